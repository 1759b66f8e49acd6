"""What bash and our parser do not read alike, or not at all, asks."""

import shutil
from pathlib import Path

import pytest

from ollm.policy.shell import parse
from ollm.policy.shell.parse import (
    close_here_document,
    explain_bash_refusal,
    find_parser,
    parse_script,
    split_unparsed,
    take_balanced,
)
from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, decide, rows

LINES = r"""
ask: ls (
ask: ls "
ask: if ls
ask: ls )
ask: ;
ask: ls ;; ls
ask: cat <<E
ask: $((
ask: ls }; }
allow: ls }
allow: ls "a b"
ask: ls |
ask: && ls
ask: for
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_what_cannot_be_parsed_asks(place: Place, row: Row) -> None:
    check_row(place, row)


@pytest.mark.parametrize("line", ["", " ", "\n", "# only a remark", "\\\n"])
def test_a_line_that_runs_nothing_asks(place: Place, line: str) -> None:
    assert decide(place, line) == "ask"


def test_a_tree_comes_with_the_text_of_its_nodes() -> None:
    parsed = parse_script("ls -l; cat a")

    assert [parsed.get_text(statement) for statement in parsed.statements] == ["ls -l;", "cat a"]
    assert parsed.error == ""
    assert parse_script("ls (").error != ""
    assert parse_script("ls\0 -l").statements


def test_bash_is_asked_about_lines_that_hold_more_than_words() -> None:
    assert explain_bash_refusal("ls -la | wc -l && git log") == ""
    assert explain_bash_refusal("echo 'a b'") == ""
    assert explain_bash_refusal("cat <<E\nx") == "bash cannot read it"
    assert explain_bash_refusal("if true") == ""  # words only: the parser sees to those


def test_what_does_not_parse_is_taken_apart_by_its_operators() -> None:
    assert list(split_unparsed("ls ( && rm -rf 'x'")) == [["ls"], ["rm", "-rf", "x"]]
    assert list(split_unparsed("if A=1 rm x; then")) == [["rm", "x"]]
    assert list(split_unparsed("cat <a rm x")) == [["cat"], ["a", "rm", "x"], ["rm", "x"]]


def test_an_open_here_document_is_closed_and_parentheses_are_balanced() -> None:
    assert close_here_document("cat <<E\nx", "1:5: unclosed here-document `E`") == "cat <<E\nx\nE"
    assert close_here_document("ls (", "no") is None
    assert take_balanced("(a (b) c) d") == "(a (b) c)"
    assert take_balanced("(a (b") == "(a (b"


def test_the_parser_is_there() -> None:
    assert Path(find_parser() or "").is_file()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (None, "the shell parser shfmt is not installed"),
        ("/nowhere/shfmt", "the shell parser could not be run: [Errno 2] No such file or directory: '/nowhere/shfmt'"),
        ("false", "the shell parser gave up"),
        ("cat", "cat: invalid option -- 'l'"),
        ("echo", "it is nested too deeply"),
    ],
)
def test_a_parser_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, program: str | None, told: str) -> None:
    found = program and (shutil.which(program) or program)
    monkeypatch.setattr(parse, "find_parser", lambda: found)

    failed = parse_script.__wrapped__("ls")

    assert failed.statements == ()
    assert failed.error.rpartition("/")[2] == told.rpartition("/")[2]
