"""What the commands share: the workspace, questions, tables, warnings and JSON."""

import io
import json
import sys
from pathlib import Path

import pexpect
import pytest

from ollm.cli.options import confirm_or_fail, print_json, print_table, resolve_workspace, warn
from ollm.domain.errors import OllmError, UsageError


def test_json_is_one_document_even_with_text_that_is_no_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"path": "caf\udce9", "text": "é"})

    assert json.loads(capsys.readouterr().out) == {"path": "caf\udce9", "text": "é"}


def ask(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Tty(typed))
    confirm_or_fail("Delete it?", yes=False)


def test_a_question_on_a_terminal_takes_yes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "y\n")
    with pytest.raises(OllmError, match=r"Cancelled\."):
        ask(monkeypatch, "n\n")


def test_without_a_terminal_the_question_is_shown_and_not_in_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(UsageError) as found:
        confirm_or_fail("Delete the secret plan?", yes=False)

    assert capsys.readouterr().err == "Delete the secret plan?\n"
    assert (found.value.message, found.value.action) == ("Cannot ask: no terminal.", "Add --yes to skip the question.")


def test_the_workspace_is_where_one_stands_or_what_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)

    assert resolve_workspace(None) == resolve_workspace("") == resolve_workspace("~") == tmp_path.resolve()
    assert resolve_workspace("link") == tmp_path.resolve()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="the workspace file is not a directory") as found:
        resolve_workspace("file")
    assert found.value.action == "Choose one with --workspace DIR."
    with pytest.raises(UsageError, match="Cannot use the workspace gone"):
        resolve_workspace("gone")


def test_a_table_shows_control_characters_and_keeps_wide_ones_in_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "n"), [("日本", 1), ("\x1b[31mred\u202e", 22)])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name" + 15 * " " + "n"
    assert lines[1] == "日本" + 15 * " " + "1"
    assert lines[2] == "\\x1b[31mred\\u202e  22"


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
