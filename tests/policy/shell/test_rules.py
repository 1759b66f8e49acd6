"""Every kind of rule against shell commands: what it covers, what it does not, and what stays unsure."""

from typing import Any

import pytest

from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.rule_lines import (
    COVERED_BY_PROGRAM,
    COVERED_BY_WORDS,
    DENIED,
    FORBIDDEN,
    HARMLESS_WORDS,
    NOT_COVERED_BY_PROGRAM,
    NOT_COVERED_BY_WORDS,
    NOT_DENIED,
    PROGRAMS,
    UNSURE,
)
from tests.policy.told_verdicts import check_told

BY_PROGRAM = [rule("allow", "program", PROGRAMS.split())]
BY_WORDS = [
    rule("allow", "startsWith", ["git diff", "git log", "npm run test"]),
    rule("allow", "equals", "npm test"),
    rule("allow", "matches", r"^pytest( -q)?$"),
    rule("allow", "matches", r"cargo (build|test)"),
    rule("allow", "program", "ls"),
]
RESTRICTING = [
    rule("deny", "program", "rm", flags=["recursive", "force"]),
    rule("deny", "startsWith", "git push --force"),
    rule("deny", "program", "curl"),
    rule("deny", "startsWith", "npm publish"),
    rule("deny", "matches", "^terraform (apply|destroy)"),
    rule("deny", "contains", "--no-verify"),
    rule("deny", "equals", "make deploy"),
    rule("deny", "under", "secrets"),
    rule("allow", "program", ["rm", "git", "ls", "make", "cat", "npm"]),
]


@covers("T7.1", "T7.6")
@pytest.mark.parametrize("command", COVERED_BY_PROGRAM)
def test_an_allowed_program_runs_with_ordinary_words(place: Place, command: str):
    verdict = shell(place.engine(BY_PROGRAM), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command, "programs")


@pytest.mark.parametrize("command", NOT_COVERED_BY_PROGRAM)
def test_allowing_many_programs_allows_no_more_than_these_programs(place: Place, command: str):
    verdict = shell(place.engine(BY_PROGRAM), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "programs")


@covers("T7.2", "T7.6")
@pytest.mark.parametrize("command", DENIED)
def test_a_restricting_rule_finds_its_command_in_every_spelling(place: Place, command: str):
    verdict = shell(place.engine(RESTRICTING, "allow"), command)
    assert verdict.decision == "deny"
    check_told(verdict, place, command, "restricting")


@pytest.mark.parametrize("command", FORBIDDEN)
def test_a_denied_program_is_found_behind_everything_that_can_run_it(place: Place, command: str):
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), command)
    assert verdict.decision == "deny"
    check_told(verdict, place, command, "without rm alone")


@pytest.mark.parametrize("command", HARMLESS_WORDS)
def test_a_denied_name_that_is_only_a_word_is_never_denied(place: Place, command: str):
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), command)
    assert verdict.decision != "deny"
    check_told(verdict, place, command, "without rm alone")


@pytest.mark.parametrize("command", UNSURE)
def test_a_command_that_may_turn_out_to_be_denied_is_asked_about(place: Place, command: str):
    verdict = shell(place.engine(RESTRICTING, "allow"), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "restricting")


@pytest.mark.parametrize("command", NOT_DENIED)
def test_a_restricting_rule_leaves_its_neighbours_alone(place: Place, command: str):
    verdict = shell(place.engine(RESTRICTING, "allow"), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command, "restricting")


@pytest.mark.parametrize("command", COVERED_BY_WORDS)
def test_words_are_compared_after_quotes_and_harmless_options_are_gone(place: Place, command: str):
    verdict = shell(place.engine(BY_WORDS), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command, "words")


@pytest.mark.parametrize("command", NOT_COVERED_BY_WORDS)
def test_an_allowing_rule_covers_whole_words_only(place: Place, command: str):
    verdict = shell(place.engine(BY_WORDS), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "words")


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        ([rule("allow", "startsWith", "git -C sub status")], "git -C sub status"),
        ([rule("allow", "equals", "sort -o out.txt in.txt")], "sort -o out.txt in.txt"),
        ([rule("allow", "startsWith", "find . -delete")], "find . -delete"),
    ],
)
def test_an_option_that_runs_or_writes_is_covered_where_the_rule_names_it(
    place: Place, rules: list[dict[str, Any]], command: str
):
    assert shell(place.engine(rules), command).decision == "allow"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("rm build/x", "allow"),
        ("rm -r build", "allow"),
        ("rm build/../src/a.py", "ask"),
        ("rm build/x src/a.py", "ask"),
        ("rm buildx", "ask"),
        ("rm $X", "ask"),
        ("cd src && rm build/x", "ask"),
    ],
)
def test_under_allows_only_when_every_path_is_inside(place: Place, command: str, decision: str):
    conditions = [
        {"param": "command", "operator": "program", "value": "rm"},
        {"param": "command", "operator": "under", "value": "build"},
    ]
    engine = place.engine(
        [{"tool": "shell", "action": "allow", "conditions": conditions}, rule("allow", "program", "cd")]
    )

    assert shell(engine, command).decision == decision


def test_a_write_rule_also_forbids_redirection_to_that_path(place: Place):
    condition = {"param": "path", "operator": "under", "value": "vendor"}
    engine = place.engine([{"tool": "write_file", "action": "deny", "conditions": [condition]}], "allow")

    assert shell(engine, "echo x > vendor/a").decision == "deny"
    assert shell(engine, "echo x > src/a").decision == "ask"


def test_parts_tell_what_was_thought_of_each_command(place: Place):
    verdict = shell(
        place.engine([rule("allow", "program", "ls"), rule("deny", "program", "rm")]), "ls -la && (sudo rm x)"
    )

    assert [(part.command, part.decision) for part in verdict.parts] == [
        ("ls -la", "allow"),
        ("sudo rm x", "ask"),
        ("rm x", "deny"),
    ]
    assert verdict.rule is not None
    assert verdict.rule.text == "deny shell, command program rm"


@pytest.mark.parametrize(
    ("value", "line", "decision"),
    [
        ("key", "frob key", "deny"), ("key", "frob a/key", "deny"), ("key", "frob akey", "allow"), ("key", "frob keya", "allow"),
        ("key", "frob key/a", "deny"), ("key", "frob keyb:key", "deny"), ("key", "frob akeykey", "allow"),
        ("/key", "frob a/key", "deny"), ("key/", "frob akey/", "allow"), ("key/", "frob b/key/a", "deny"),
        ("=key", "frob a=keyb", "allow"), ("=key=", "frob a=key=b", "deny"), ("k", "frob ak", "allow"), ("k", "frob ,k@", "deny"),
    ],
)  # fmt: skip
def test_contains_finds_whole_components(place: Place, value: str, line: str, decision: str) -> None:
    verdict = shell(place.engine([rule("deny", "contains", value)], "allow"), line)
    assert verdict.decision == decision
