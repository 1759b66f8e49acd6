"""`ollm trust`, what a trusted workspace may do, and the question about an unknown one."""

import builtins
import json
from pathlib import Path

import pytest

from ollm.cli.trust import ask_trust, describe_untrusted, format_question
from ollm.policy.trust import TrustBook, TrustState
from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.policy.samples import check, run


def test_a_trusted_workspace_may_forbid_but_never_allow(place: Path):
    (place / "work/.ollm").mkdir()
    (place / "work/.ollm/config.yaml").write_text(
        "policy:\n  rules:\n    - {tool: shell, action: allow}\n    - {tool: glob, action: deny}\n"
    )
    run(place, "trust")

    assert check(place, "make")["decision"] == "ask"
    assert run(place, "policy", "check", "glob", "--param", "pattern=*").startswith("deny")


def test_a_workspace_is_trusted_with_its_files_and_untrusted_again(inside: Inside) -> None:
    assert inside.read("trust", "--list") == "No trusted workspaces.\n"
    assert inside.read("trust") == f"Trusted {inside.workspace}; it contains no agent files.\n"
    assert inside.read("trust") == f"{inside.workspace} is already trusted.\n"
    (inside.workspace / "AGENTS.md").write_text("one")
    (inside.workspace / ".mcp.json").write_text("{}")
    (inside.workspace / "CLAUDE.md").write_text("not used beside AGENTS.md")
    assert inside.read("trust") == f"Trusted {inside.workspace} with:\n  .mcp.json (new)\n  AGENTS.md (new)\n"
    (inside.workspace / "AGENTS.md").write_text("two")
    (inside.workspace / ".mcp.json").unlink()
    (listed,) = inside.read_json("trust", "--list")
    assert (listed["workspace"], listed["trusted"]) == (str(inside.workspace), False)
    assert inside.read("trust", "--list").splitlines()[1].endswith("changed since")
    assert inside.read("trust") == (f"Trusted {inside.workspace} with:\n  AGENTS.md (changed)\n  .mcp.json (gone)\n")
    assert inside.read("trust", "--list").splitlines()[1].split()[-1] == "yes"
    assert inside.read_json("trust")["trusted"]
    assert inside.read("trust", "--revoke") == f"{inside.workspace}: no longer trusted.\n"
    assert "was not trusted." in inside.fail("trust", "--revoke", code=1)
    inside.read("trust")
    assert inside.read_json("trust", "--revoke") == {"workspace": str(inside.workspace), "trusted": False}
    assert inside.read("trust", "--list") == "No trusted workspaces.\n"


def test_the_list_stands_alone(inside: Inside) -> None:
    for more in ("--revoke", "."):
        assert "--list cannot be combined with other options." in inside.fail("trust", "--list", more, code=2)


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


def test_a_change_is_asked_about_with_what_changed(
    book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    (workspace / ".ollm").mkdir()
    (workspace / ".ollm" / "config.yml").write_text("old")
    book.trust(workspace)
    (workspace / "AGENTS.md").write_text("Be mean.")
    (workspace / ".ollm" / "config.yml").unlink()
    (workspace / ".mcp.json").write_text("{}")
    answer(monkeypatch, "n")
    ask_trust(book, workspace)

    said = capsys.readouterr().out
    assert f"{workspace} has changed since you trusted it:" in said
    assert "  .mcp.json (new)\n  AGENTS.md (changed)\n  .ollm/config.yml (gone)\n" in said


def test_names_cannot_drive_the_terminal() -> None:
    shown = format_question(TrustState(workspace="/w\x1b[2J", trusted=False, files=("a\nb",)))

    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2


def test_where_nobody_can_be_asked_one_line_names_the_first_files(book: TrustBook, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Be kind.")
    assert describe_untrusted(book, workspace) == (
        f"{workspace} is not trusted, so these files are ignored: AGENTS.md. Run `ollm trust` to use them."
    )
    (workspace / ".ollm").mkdir()
    for name in (".ollm/config.yml", ".mcp.json"):
        (workspace / name).write_text("{}")
    assert ", …" not in describe_untrusted(book, workspace)
    (workspace / ".ollm" / "config.yaml").write_text("{}")
    said = describe_untrusted(book, workspace)
    assert said.count(",") >= 3
    assert ", …. Run" in said
    book.trust(workspace)
    assert describe_untrusted(book, workspace) == ""


@pytest.mark.parametrize(
    "words",
    [
        ["trust"],
        ["policy", "check", "shell", "--param", "command=true"],
        ["tools", "run", "read_file", "--args", '{"path": "a.txt"}'],
    ],
)
def test_what_a_killed_agent_left_is_moved_before_any_command_reads_the_workspace(
    tmp_path: Path, words: list[str]
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (work / "a.txt").touch()
    record = {"roots": [str(work)], "executed": [], "folder": str(home / "taken/s"), "known": {}, "allowed": []}
    (home / "taken/open").mkdir(parents=True)
    (home / "taken/open/1-a.json").write_text(json.dumps(record | {"process": [1, "gone"]}))
    (work / ".ollm").mkdir()
    (work / ".ollm/config.yaml").write_text("hooks: {SessionStart: [{hooks: [{type: command, command: touch RAN}]}]}")
    (work / ".mcp.json").write_text("{}")

    done = ollm(*words, home=home, cwd=work, HOME=str(tmp_path))

    assert not (work / ".mcp.json").exists()
    assert not (work / ".ollm/config.yaml").exists()
    assert "config.yaml" not in done.stdout
    assert "Moved aside" in done.stderr
    assert (home / "taken/s/1/.mcp.json").exists()
