"""What `/help` says, through the command and without a model server."""

from pathlib import Path

import pytest

from ollm.runtime.commands.help_text import CustomCommands, render_help, split_front_matter
from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.terminal import at_terminal
from tests.runtime.talking import Talking

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


async def test_a_text_of_ones_own_is_sent_with_its_arguments(talking: Talking) -> None:
    async with talking(["ok"]) as talk:
        (talk.home / "commands").mkdir(parents=True)
        (talk.home / "commands" / "review.md").write_text("Review $1 for $ARGUMENTS.\n")
        await talk.say((await talk.run("/review a.py speed")).argument)

    assert talk.server.chats[0]["messages"][-1]["content"] == "Review a.py for a.py speed.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    return tmp_path


def commands(folder: Path) -> CustomCommands:
    return CustomCommands((folder / "theirs", folder / "ours", folder / "missing"))


def test_the_first_folder_wins_and_names_are_plain(folder: Path) -> None:
    (folder / "theirs" / "review.md").write_text("theirs")
    (folder / "ours" / "review.md").write_text("ours")
    (folder / "ours" / "tidy_up-2.md").write_text("x")
    for odd in ("Upper.md", ".hidden.md", "notes.txt", "a b.md", "x" * 65 + ".md"):
        (folder / "ours" / odd).write_text("x")
    (folder / "ours" / "dir.md").mkdir()

    made = commands(folder)

    assert made.list_names() == ["review", "tidy_up-2"]
    assert made.expand("review", "") == "theirs"
    for name in ("Upper", "../theirs/review", "dir", "missing", ""):
        assert made.expand(name, "") is None


def test_a_link_is_not_read(folder: Path) -> None:
    (folder / "secret").write_text("secret")
    (folder / "ours" / "link.md").symlink_to(folder / "secret")

    assert commands(folder).expand("link", "") is None


@pytest.mark.parametrize(
    ("text", "arguments", "sent"),
    [
        ("Review it.", "", "Review it."),
        ("Review it.\n", "a b", "Review it.\n\na b"),
        ("Review $ARGUMENTS now", "a b", "Review a b now"),
        ("$1 and $2 and $3", "a b", "a and b and "),
        ("$1 and $2", "\"a b\" 'c d'", "a b and c d"),
        ("$1 and $2", "don't say \"no", "don't and say"),
        ("$1", "", ""),
        ("costs $10", "x", "costs x0"),
    ],
)
def test_arguments_stand_where_the_text_says_or_at_its_end(folder: Path, text: str, arguments: str, sent: str) -> None:
    (folder / "ours" / "c.md").write_text(text)

    assert commands(folder).expand("c", arguments) == sent


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("plain", {}, "plain"),
        ("---\ndescription: 'Do it'\n# note\n inner: x\nempty\n---\n\nBody\n", {"description": "Do it"}, "Body\n"),
        ("\ufeff---\na: b\n---\nBody", {"a": "b"}, "Body"),
        ("---\nno end", {}, "---\nno end"),
        ("text\n---\na: b\n---\n", {}, "text\n---\na: b\n---\n"),
    ],
)
def test_front_matter_is_told_from_the_text(text: str, fields: dict[str, str], body: str) -> None:
    assert split_front_matter(text) == (fields, body)


def test_a_command_is_described_by_its_front_matter_or_its_first_line(folder: Path) -> None:
    (folder / "ours" / "a.md").write_text("---\ndescription: What it does\n---\n# Title\n")
    (folder / "ours" / "b.md").write_text("\n\n## The title \nmore")
    (folder / "ours" / "c.md").write_text("x" * 300)

    made = commands(folder)

    assert (made.describe("a"), made.describe("b")) == ("What it does", "The title")
    assert made.describe("c") == "x" * 200
    assert made.describe("missing") == ""
