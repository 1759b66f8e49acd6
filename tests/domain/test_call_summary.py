"""A recorded call in words: those it had when it ran."""

from typing import Any

import pytest

from ollm.domain.call_summary import summarize_call
from ollm.tools.catalogue import TOOLS
from ollm.tools.framework.arguments import parse_arguments
from ollm.tools.framework.schema_cache import load_tool_class

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "shell": [
        {"command": "pytest -q"},
        {"command": "make", "background": True},
        {"id": "j1"},
        {"id": "j1", "action": "stop"},
        {"cmd": "ls"},
    ],
    "read_file": [
        {"path": "a"},
        {"path": "a", "startLine": 4},
        {"path": "a", "startLine": 4, "endLine": 9},
        {"path": "a", "endLine": 9},
        {"path": "a", "symbol": "pay"},
        {"file_path": "a"},
    ],
    "edit_file": [
        {"path": "a", "edits": [{"target": "x", "replacement": "y"}]},
        {"path": "a", "edits": [{"target": "x", "replacement": "y"}, {"target": "z", "replacement": "y"}]},
    ],
    "write_file": [
        {"path": "a", "content": ""},
        {"path": "a", "content": "one"},
        {"path": "a", "content": "one\n"},
        {"path": "a", "content": "one\ntwo", "overwrite": True},
        {"filename": "a", "contents": "one\n"},
    ],
    "grep": [{"pattern": "it's"}, {"pattern": "x", "path": "src"}, {"pattern": "x", "filePattern": "*.py"}],
    "glob": [{"pattern": "*.py"}, {"pattern": "*.py", "path": "src"}],
    "ls": [{}, {"path": "src"}, {"path": "src", "recursive": True}],
    "web_fetch": [{"url": "https://example.org"}],
    "web_search": [{"query": "old trees"}],
    "outline": [{"path": "src"}],
    "read_many_files": [{"paths": ["a", "b"]}, {"paths": list("abcdef")}],
    "recall": [{"query": "cart"}, {"callId": "c1"}, {"messageId": 4}],
    "task": [{"prompt": "Where is pay?\nLook well."}, {"prompt": "Look", "agent": "scout"}],
    "memory": [{"action": "list"}, {"action": "set", "key": "k", "value": 1}, {"action": "list", "scope": "global"}],
    "goal": [{"action": "set", "text": "Ship it"}, {"action": "complete"}],
    "write_todos": [
        {"action": "add", "text": "test"},
        {"action": "list"},
        {"action": "complete", "id": "#1"},
        {"action": "remove", "id": "2"},
    ],
}


@pytest.mark.parametrize("name", list(TOOLS))
def test_a_call_is_named_as_it_was_when_it_ran(name: str) -> None:
    tool = load_tool_class(TOOLS[name][0])
    for arguments in SAMPLES[name]:
        assert summarize_call(name, arguments) == parse_arguments(tool, arguments).summary(), arguments


@pytest.mark.parametrize("name", [name for name in TOOLS if name != "ls"])
def test_a_call_without_what_it_needs_goes_by_its_tool(name: str) -> None:
    assert summarize_call(name, {}) == name


def test_a_name_is_one_short_line() -> None:
    assert summarize_call("shell", {"command": "pytest\n  -q"}) == "Run pytest -q"
    assert summarize_call("edit_file", {"path": "a.py", "edits": []}) == "Edit a.py"
    assert summarize_call("edit_file", {}) == "edit_file"
    assert summarize_call("mcp_x", {"path": "a"}) == "mcp_x"
    assert len(summarize_call("grep", {"pattern": "x" * 900})) < 230
