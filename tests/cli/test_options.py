"""What the commands share: the workspace, questions and JSON."""

import io
import json
from pathlib import Path

import pytest

from ollm.cli.options import confirm_or_fail, print_json, resolve_workspace
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
