"""What the commands share: the workspace, questions and JSON."""

import io
import json

import pytest

from ollm.cli.options import confirm_or_fail, print_json, resolve_workspace
from ollm.domain.errors import UsageError


def test_a_question_without_a_terminal_is_an_error_unless_yes_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())

    confirm_or_fail("Delete it?", yes=True)
    with pytest.raises(UsageError, match="--yes"):
        confirm_or_fail("Delete it?", yes=False)


def test_a_workspace_must_be_a_directory(tmp_path) -> None:
    (tmp_path / "file").touch()

    assert resolve_workspace(str(tmp_path)) == tmp_path.resolve()
    for wrong in ("file", "absent"):
        with pytest.raises(UsageError, match="workspace"):
            resolve_workspace(str(tmp_path / wrong))


def test_json_is_one_document_even_with_text_that_is_no_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"path": "caf\udce9", "text": "é"})

    assert json.loads(capsys.readouterr().out) == {"path": "caf\udce9", "text": "é"}
