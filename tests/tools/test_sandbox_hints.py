"""The line that says what a command lacked in its box, and how to get it."""

import pytest

from ollm.system.sandbox.box import Box
from ollm.tools.sandbox_hints import explain_box_failure

WORKING = Box("working", "/w", "/home/u", network="none")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("git@host: Permission denied (publickey).", "hidden"),
        ("curl: (6) Could not resolve host: example.org", "without a network"),
        ("touch: cannot touch '/etc/x': Read-only file system", "only the workspace"),
        ("1 test failed", ""),
    ],
)
def test_what_was_lacking_is_said_with_the_way(output: str, said: str) -> None:
    hint = explain_box_failure(WORKING, (), output, 1)

    assert said in hint
    assert ("outside: true" in hint) == bool(said)


def test_blocked_files_are_named_from_the_workspace() -> None:
    hint = explain_box_failure(WORKING, ("/w/.mcp.json", "/w/a/AGENTS.md", "/w/.vscode", "/w/.idea"), "", 0)

    assert ".mcp.json, a/AGENTS.md, .vscode and 1 more" in hint


def test_success_and_no_box_say_nothing() -> None:
    assert explain_box_failure(WORKING, (), "Read-only file system", 0) == ""
    assert explain_box_failure(None, (), "Read-only file system", 1) == ""
