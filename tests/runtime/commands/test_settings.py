"""Commands in general, their help, and those that change settings."""

from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, UsageError
from ollm.runtime.commands import build_command_table, run_command
from ollm.runtime.commands.base import fence_text, render_table
from ollm.runtime.commands.help_text import CustomCommands, split_front_matter
from ollm.runtime.commands.mcp import parse_pairs
from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.terminal import at_terminal
from tests.covers import covers
from tests.runtime.talking import Talking

WRONG = """/mode wild, /approval maybe, /context dance, /context size 7, /goal dance x, /todos dance, /memory dance, /undo maybe,
/history wild, /export, /plan dance, /trust maybe, /expand 99, /expand, /expand nowhere to be found, /nonsense"""


async def test_a_wrong_use_is_told_with_the_right_one(talking: Talking) -> None:
    async with talking() as talk:
        for line in WRONG.replace("\n", " ").split(", "):
            with pytest.raises(Exception, match=r"/|session"):
                await talk.run(line)


@pytest.mark.parametrize(("text", "fence"), [("a", "~~~"), ("~~~", "~~~~"), ("a ~~~~~ b ~~", "~~~~~~")])
def test_a_fence_is_longer_than_any_in_the_text(text: str, fence: str) -> None:
    assert fence_text(text, "diff") == f"{fence}diff\n{text}\n{fence}"


def test_cells_cannot_break_a_table() -> None:
    assert render_table(("a", "b"), [("x|y", "1\n2")]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |"
    assert render_table(("a",), []) == "| a |\n| --- |"


async def test_an_unknown_command_is_told_with_the_nearest_and_a_busy_one_waits(talking: Talking) -> None:
    async with talking() as talk:
        with pytest.raises(UsageError, match="Unknown command /hlep") as told:
            await talk.run("/hlep")
        assert told.value.action == "Did you mean /help?"
        with pytest.raises(UsageError) as told:
            await talk.run("/zzzzqqq")
        assert told.value.action == "See /help for all commands."
        parts = talk.conversation.parts
        with pytest.raises(BusyError, match="/compact cannot run while the model works"):
            await run_command(parts, "compact", "", busy=True)
        assert (await run_command(parts, "help", "", busy=True)).ok


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("a=1 b=2", {"a": "1", "b": "2"}),
        ("a='two words' b=", {"a": "two words", "b": ""}),
        ("a=b=c", {"a": "b=c"}),
    ],
)
def test_arguments_of_a_prompt_are_pairs_quoted_as_in_a_shell(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs(text) == pairs


@pytest.mark.parametrize(("text", "told"), [("a", "no argument to go to"), ("a='x", "The arguments cannot be read: ")])
def test_other_arguments_are_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_pairs(text)


NOBODY = {"OLLM_PROVIDER": "openai", "OLLM_BASE_URL": "http://127.0.0.1:9/v1", "OLLM_MODEL": "m"}


def test_help_needs_no_server_and_knows_own_commands(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "tidy.md").write_text("Tidy up $1.\n")

    listed = ollm("-p", "/help", home=tmp_path, **NOBODY)
    wrong = ollm("-p", "/help tdy", home=tmp_path, **NOBODY)

    assert listed.returncode == 0
    assert "| /tidy | Tidy up $1. |" in listed.stdout
    assert "| Ctrl-O | show the calls of the last turn" in listed.stdout
    assert (wrong.returncode, "Did you mean /tidy?" in wrong.stderr) == (2, True)


async def test_no_usage_is_cut_at_eighty_or_forty_columns(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        for columns in (80, 40):
            async with at_terminal(runner, "--new", size=(columns, 24), COLUMNS="") as terminal:
                await terminal.wait_for("code·ask")
                terminal.type("/help\r")
                await terminal.wait_for("/goal", "blocker", "Ctrl-D")
                assert "…" not in terminal.text().partition("/help")[2].rpartition("Ctrl-D")[0]


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

    assert list(made.files) == ["review", "tidy_up-2"]
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


@covers("H65", "H85", "H253", "H150")
async def test_a_change_of_mode_is_recorded_with_why_and_a_snapshot_before_it(talking: Talking) -> None:
    async with talking(["one", "two"]) as talk:
        await talk.say("hello")
        assert (await talk.run("/mode plan")).text == "Mode: **plan**."
        listed = (await talk.run("/context list")).data
        await talk.say("again")
        policy = talk.conversation.parts.policy.get()
        assert policy.approval == "read-only"
        await talk.run("/mode code")
        assert policy.approval == "ask"

    first, second = talk.document["metadata"]["modeHistory"]
    assert (first["from"], first["to"], first["trigger"], first["confidence"]) == ("code", "plan", "manual", 1.0)
    assert (second["from"], second["to"]) == ("plan", "code")
    assert [snapshot["trigger"] for snapshot in listed] == ["mode"]
    shown = [{tool["function"]["name"] for tool in chat["tools"]} for chat in talk.server.chats]
    assert "write_file" in shown[0]
    assert "write_file" not in shown[1]


async def test_model_window_and_approval_can_be_changed(talking: Talking) -> None:
    async with talking(["one", "two"]) as talk:
        await talk.say("hi")
        assert "other" in (await talk.run("/model")).text
        await talk.run("/model other")
        await talk.run("/context size 8192")
        await talk.run("/approval accept-edits")
        await talk.say("again")
        status = await talk.conversation.status()

    assert (status.model, status.window, status.approval) == ("other", 8192, "accept-edits")
    assert talk.server.chats[1]["model"] == "other"
    assert talk.document["model"] == "other"
    assert [step["step"] for step in talk.document["metadata"]["contextHistory"]] == ["model", "window"]


async def test_every_command_is_in_the_help_and_documented(talking: Talking) -> None:
    async with talking() as talk:
        shown = (await talk.run("/help")).text

    named = [command.name for command in build_command_table().values()]
    wanted = (
        "help history context compact expand mode approval plan goal model tools memory todos sessions new undo continue"
        " trust export exit"
    )
    assert set(wanted.split()) <= set(named)
    for name in named:
        assert f"/{name}" in shown


async def test_the_status_is_told_before_and_after_the_session_began(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        before = (await talk.run("/status")).data
        await talk.say("hello")
        after = (await talk.run("/status")).data

        assert before["session"] == "not started"
        assert after["session"] == talk.conversation.session_id
        assert after["model"] == f"scripted at {talk.server.base_url}/v1"
        assert (after["mode"], after["approval"]) == ("code", "ask")
        used = talk.conversation.parts.prompt.used_tokens
        assert after["context"].startswith(f"{used:,} of ")


async def test_modes_and_approvals_are_listed_and_set(talking: Talking) -> None:
    async with talking() as talk:
        assert set((await talk.run("/mode")).data["options"]) == {"assistant", "plan", "code", "debug", "auto"}
        assert (await talk.run("/mode")).text.startswith("Mode: **code**. Options: ")
        assert (await talk.run("/mode auto")).text == "The mode follows your request; set one with /mode NAME."
        assert talk.conversation.parts.state.auto_switch == "on"
        with pytest.raises(UsageError, match=r"Usage: /mode \["):
            await talk.run("/mode nonsense")
        assert (await talk.run("/approval")).text.startswith("Approval: **ask**. Options: ")
        warned = await talk.run("/approval yolo")
        assert warned.text == "Approval: **yolo**. Everything except protected files now runs without asking."
        assert talk.conversation.parts.state.approval == "yolo" == talk.conversation.parts.policy.get().approval
        with pytest.raises(UsageError, match=r"Usage: /approval \["):
            await talk.run("/approval nonsense")


async def test_tools_permissions_and_models_are_listed(talking: Talking) -> None:
    async with talking() as talk:
        listed = await talk.run("/tools")
        shown = {row[1].strip(): row[3].strip() for row in (line.split("|") for line in listed.text.splitlines()[2:])}
        assert (shown["edit_file"], shown["ls"]) == ("yes", "")
        tools = listed.data
        assert {"name": "edit_file", "shown": True} in tools
        assert {"name": "ls", "shown": False} in tools
        permissions = await talk.run("/permissions")
        assert "No grants." in permissions.text
        assert permissions.data == {"approval": "ask", "grants": []}
        models = await talk.run("/model")
        assert "| scripted |  | ← now |" in models.text
        assert models.data["options"] == ["scripted", "other"]


HELP_LINES = {command.name: command.help for command in build_command_table().values()}


async def test_help_about_one_command_and_about_none(talking: Talking) -> None:
    async with talking() as talk:
        told = (await talk.run("/help /context")).text
        assert told.startswith("`/context [show | snapshot")
        assert "- `clear`: remove every entry you added" in told
        assert (await talk.run("/help new")).text.startswith(
            "`/new`\n\nStart a new session.\n\nThe session so far is saved"
        )
        assert "- `accept-edits`: asks before commands" in (await talk.run("/help approval")).text
        plain = {name for name, said in HELP_LINES.items() if (await talk.run(f"/help {name}")).text.endswith(said)}
        assert plain == {"exit", "help", "quit", "status"}, "every other command says more than its line in the list"
        with pytest.raises(UsageError, match="Unknown command /modell") as error:
            await talk.run("/help modell")
        assert error.value.action == "Did you mean /model?"
        (talk.home / "commands").mkdir(parents=True, exist_ok=True)
        (talk.home / "commands" / "inspect.md").write_text("Review it.")
        assert (await talk.run("/help inspect")).text.endswith("\n\nReview it.")
        assert "/inspect" in (await talk.run("/help")).text


async def test_the_agents_are_listed_with_what_is_wrong_with_one(talking: Talking) -> None:
    async with talking([]) as talk:
        none = await talk.run("/agents")
        (talk.home / "agents").mkdir()
        (talk.home / "agents" / "reviewer.md").write_text("---\ndescription: Reviews.\ntools: ls\n---\nBe strict.\n")
        (talk.home / "agents" / "broken.md").write_text("---\ntools: fly\n---\nFly.\n")
        shown = await talk.run("/agents")

    assert (none.data, ".ollm/agents/NAME.md" in none.text) == ([], True)
    assert [(one["name"], one["description"], bool(one["problem"])) for one in shown.data] == [
        ("broken", "", True),
        ("reviewer", "Reviews.", False),
    ]
    assert "@agent-reviewer" in shown.text
    assert "cannot be used: Agent broken names the tool fly" in shown.text
