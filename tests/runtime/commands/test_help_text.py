"""What `/help` says, through the command and without a model server."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ollm.domain.errors import UsageError
from ollm.runtime.commands.help_text import render_help, shorten_home
from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.terminal import at_terminal

NOBODY = {"OLLM_PROVIDER": "openai", "OLLM_BASE_URL": "http://127.0.0.1:9/v1", "OLLM_MODEL": "m"}


def test_help_needs_no_server_and_names_the_file_of_an_own_command(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "tidy.md").write_text("Tidy up $1.\n")

    listed = ollm("-p", "/help", home=tmp_path, **NOBODY)
    own = ollm("-p", "/help tidy", home=tmp_path, **NOBODY)
    goal = ollm("-p", "/help /goal", home=tmp_path, **NOBODY)
    wrong = ollm("-p", "/help tdy", home=tmp_path, **NOBODY)

    assert listed.returncode == 0
    assert "| /tidy | Tidy up $1. |" in listed.stdout
    assert "| Ctrl-O | show the calls of the last turn" in listed.stdout
    assert f"sends the text of `{tmp_path}/commands/tidy.md`" in own.stdout
    assert "`blocker TEXT`" in goal.stdout
    assert (wrong.returncode, "Did you mean /tidy?" in wrong.stderr) == (2, True)


async def test_no_usage_is_cut_at_eighty_or_forty_columns(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        for columns in (80, 40):
            async with at_terminal(runner, "--new", size=(columns, 24), COLUMNS="") as terminal:
                await terminal.wait_for("code·ask")
                terminal.type("/help\r")
                await terminal.wait_for("/goal", "blocker", "Ctrl-D")
                assert "…" not in terminal.text().partition("/help")[2].rpartition("Ctrl-D")[0]


def test_an_own_command_is_described_by_its_text_or_by_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "silent.md").write_text("")
    (tmp_path / "mine" / "tidy.md").write_text("Tidy up.")

    listed = render_help((tmp_path / "mine",), "")

    assert "| /silent | ~/mine/silent.md |" in listed.text
    assert "| /tidy | Tidy up. |" in listed.text
    assert "/goal [set | subtask" in listed.text.replace("\\|", "|")
    assert listed.text.endswith("| Ctrl-D | quit; the session is saved |")
    assert [row for row in listed.data if row.startswith(("/tidy", "/exit"))] == [
        "/exit Quit; the session is saved.",
        "/tidy Tidy up.",
    ]
    assert render_help((tmp_path / "mine",), " /tidy ").text == (
        "`/tidy [TEXT]` sends the text of `~/mine/tidy.md`.\n\nTidy up."
    )
    assert render_help((), "exit").text == "`/exit`\n\nQuit; the session is saved."


def test_prompts_of_servers_are_listed_with_the_commands() -> None:
    prompt = SimpleNamespace(name="review", description="", arguments=("path",), required=("path",))
    state = SimpleNamespace(
        server=SimpleNamespace(name="files"), catalogue=SimpleNamespace(prompts=[prompt]), connected=True, failure=""
    )
    servers: Any = SimpleNamespace(list_states=lambda: [state])

    assert "| /files:review path=… | a prompt of files |" in render_help((), "", servers).text
    assert "files:review" not in render_help((), "").text


@pytest.mark.parametrize(("name", "hint"), [("gaol", "Did you mean /goal?"), ("zzzqqq", "See /help for all commands.")])
def test_an_unknown_command_is_told_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"Unknown command /{name}") as told:
        render_help((), name)

    assert told.value.action == hint


def test_a_path_is_shortened_in_the_home_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert shorten_home(tmp_path / "home" / "a.md") == "~/a.md"
    assert shorten_home(tmp_path / "a.md") == str(tmp_path / "a.md")
    assert shorten_home(None) == ""
