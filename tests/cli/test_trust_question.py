"""The question about an unknown workspace."""

import builtins
from pathlib import Path

import pytest

from ollm.cli.trust import ask_trust, describe_untrusted, format_question
from ollm.policy.trust import TrustBook, TrustState


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    return TrustBook(tmp_path / "trust.yaml")


def answer(patch: pytest.MonkeyPatch, *said: str) -> list[str]:
    """What is asked, when these are the answers; without one the input has ended."""
    asked: list[str] = []
    left = list(said)

    def reply(question: str) -> str:
        asked.append(question)
        if not left:
            raise EOFError
        return left.pop(0)

    patch.setattr(builtins, "input", reply)
    return asked


@pytest.mark.parametrize("word", ["y", "YES", " y "])
def test_a_yes_trusts_the_files_as_they_are(
    book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    asked = answer(monkeypatch, word)
    ask_trust(book, workspace)

    assert asked == ["Trust them? Only if you know who wrote them. [y/N] "]
    assert capsys.readouterr().out == f"{workspace} contains agent instructions:\n  AGENTS.md\n"
    assert book.get_state(workspace).trusted
    ask_trust(book, workspace)
    assert len(asked) == 1


@pytest.mark.parametrize("word", ["", "n", "yess"])
def test_anything_else_is_a_no_that_is_kept(
    book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    asked = answer(monkeypatch, word)
    ask_trust(book, workspace)
    ask_trust(book, workspace)

    assert len(asked) == 1
    assert not book.get_state(workspace).trusted
    assert capsys.readouterr().out.endswith("Not used. Run `ollm trust` to change that.\n")
    assert describe_untrusted(book, workspace) == ""


def test_an_input_that_ends_decides_nothing(book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    asked = answer(monkeypatch)
    ask_trust(book, workspace)
    ask_trust(book, workspace)

    assert len(asked) == 2


def test_a_workspace_without_such_files_is_not_asked_about(
    book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer(monkeypatch, "y")
    ask_trust(book, workspace)

    assert asked == []
    assert describe_untrusted(book, workspace) == ""


def test_a_change_is_asked_about_with_what_changed(
    book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    (workspace / ".ollmignore").write_text("old")
    book.trust(workspace)
    (workspace / "AGENTS.md").write_text("Be mean.")
    (workspace / ".ollmignore").unlink()
    (workspace / ".mcp.json").write_text("{}")
    answer(monkeypatch, "n")
    ask_trust(book, workspace)

    said = capsys.readouterr().out
    assert f"{workspace} has changed since you trusted it:" in said
    assert "  .mcp.json (new)\n  AGENTS.md (changed)\n  .ollmignore (gone)\n" in said


def test_names_cannot_drive_the_terminal() -> None:
    shown = format_question(TrustState(workspace="/w\x1b[2J", trusted=False, files=("a\nb",)))

    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2


def test_where_nobody_can_be_asked_one_line_names_the_first_files(book: TrustBook, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    assert describe_untrusted(book, workspace) == (
        f"{workspace} is not trusted, so these files are ignored: AGENTS.md. Run `ollm trust` to use them."
    )
    for name in (".ollmignore", ".mcp.json"):
        (workspace / name).write_text("{}")
    assert ", …" not in describe_untrusted(book, workspace)
    (workspace / ".ollm").mkdir()
    (workspace / ".ollm" / "config.yaml").write_text("{}")
    said = describe_untrusted(book, workspace)
    assert said.count(",") >= 3
    assert ", …. Run" in said
    book.trust(workspace)
    assert describe_untrusted(book, workspace) == ""
