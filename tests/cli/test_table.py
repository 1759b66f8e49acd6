"""Tables and warnings."""

import sys

import pexpect
import pytest

from ollm.cli.options import print_table, warn
from ollm.system.terminal_text import make_printable


def test_a_table_shows_control_characters_and_keeps_wide_ones_in_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "n"), [("日本", 1), ("\x1b[31mred\u202e", 22)])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name" + 15 * " " + "n"
    assert lines[1] == "日本" + 15 * " " + "1"
    assert lines[2] == "\\x1b[31mred\\u202e  22"


def test_one_line_of_text_has_no_line_breaks() -> None:
    assert make_printable("a\nb\tc\u200b") == "a⏎b c\\u200b"


def test_a_sentence_is_broken_between_words_at_a_terminal_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    text = "No model server is running on its usual port, and no model is installed yet. " * 2
    warn(text)
    assert capsys.readouterr().err == f"ollm: {text}\n"

    child = pexpect.spawn(
        sys.executable,
        ["-c", f"from ollm.cli.options import warn; warn({text!r})"],
        dimensions=(24, 40),
        encoding="utf-8",
    )
    lines = child.read().split("\r\n")
    assert max(map(len, lines)) < 40
    assert " ".join(line.strip() for line in lines).strip() == f"ollm: {text}".strip()


def test_only_the_first_line_is_broken_since_a_command_may_follow() -> None:
    text = "a b c d e f g h i j k l m n o p q r s t\n  ollm chat --workspace /one/long/path --session 1234"
    child = pexpect.spawn(
        sys.executable,
        ["-c", f"from ollm.cli.options import warn; warn({text!r})"],
        dimensions=(24, 30),
        encoding="utf-8",
    )
    first, second, command, _ = child.read().split("\r\n")
    assert max(len(first), len(second)) < 30
    assert command == text.partition("\n")[2]
