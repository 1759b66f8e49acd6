"""The tables of shell lines, line by line."""

import pytest

from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.shell_lines import (
    FORBIDDEN,
    FORBIDDEN_LINES,
    HARMLESS,
    QUOTED,
    RISKY,
    RISKY_CHARACTERS,
    WRITING_GIT,
    lines,
)
from tests.policy.told_verdicts import check_told

PROGRAMS = [
    "ls",
    "cat",
    "head",
    "tail",
    "grep",
    "rg",
    "find",
    "wc",
    "sort",
    "uniq",
    "echo",
    "printf",
    "git",
    "sed",
    "awk",
    "cd",
    "pwd",
    "test",
    "[",
    "true",
    "tr",
    "cut",
    "jq",
    "diff",
    "xxd",
    "fd",
    "tree",
    "date",
    "tar",
]
DENY = [rule("deny", "program", "rm"), rule("deny", "program", "git push", flags=["force"])]


@covers("T7.1")
@pytest.mark.parametrize("command", lines(HARMLESS))
def test_ordinary_reading_commands_run_without_a_question(place: Place, command: str):
    verdict = shell(place.engine(trusted=True), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command)


@covers("T7.3")
@pytest.mark.parametrize("command", [*lines(RISKY), *RISKY_CHARACTERS])
def test_a_risky_command_never_runs_unasked(place: Place, command: str):
    verdict = shell(place.engine(trusted=True), command)

    assert verdict.decision == "ask"
    check_told(verdict, place, command)


@pytest.mark.parametrize("command", [*lines(RISKY), *RISKY_CHARACTERS])
def test_allowing_a_program_does_not_allow_what_it_can_be_made_to_do(place: Place, command: str):
    if command in WRITING_GIT:
        return
    assert shell(place.engine([rule("allow", "program", PROGRAMS)]), command).decision == "ask"


@covers("T7.2")
@pytest.mark.parametrize("command", [*lines(FORBIDDEN), *FORBIDDEN_LINES])
def test_a_denied_command_is_found_wherever_it_stands(place: Place, command: str):
    for default in ("ask", "allow"):
        verdict = shell(place.engine(DENY, default), command)
        assert verdict.decision == "deny"
    check_told(verdict, place, command, "without rm")


@pytest.mark.parametrize("command", lines(QUOTED))
def test_words_in_quotes_comments_and_quoted_here_documents_cause_nothing(place: Place, command: str):
    verdict = shell(place.engine(DENY, "allow"), command)
    assert verdict.decision == "allow"
    check_told(verdict, place, command, "without rm")


@pytest.mark.parametrize("command", ["git status", "git diff | head", "ls && git log"])
def test_git_runs_unasked_only_in_a_trusted_workspace(place: Place, command: str):
    assert shell(place.engine(trusted=False), command).decision == "ask"
    assert shell(place.engine(trusted=True), command).decision == "allow"


def test_the_tables_are_as_long_as_promised():
    assert len(lines(HARMLESS)) + len(lines(RISKY)) + len(lines(FORBIDDEN)) >= 700
