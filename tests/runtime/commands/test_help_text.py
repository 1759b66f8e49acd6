"""What `/help` says, through the command and without a model server."""

from pathlib import Path

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
