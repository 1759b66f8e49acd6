"""Commands that change how the agent works."""

import pytest

from ollm.domain.errors import UsageError
from ollm.runtime.commands import build_command_table
from tests.covers import covers
from tests.runtime.talking import Talking


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
        assert set((await talk.run("/mode")).data["options"]) == {"assistant", "plan", "code", "debug"}
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
        assert "| scripted | ← now |" in models.text
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
        assert "- `accept-edits`: edits inside the workspace run" in (await talk.run("/help approval")).text
        plain = {name for name, said in HELP_LINES.items() if (await talk.run(f"/help {name}")).text.endswith(said)}
        assert plain == {"exit", "help", "quit", "status"}, "every other command says more than its line in the list"
        with pytest.raises(UsageError, match="Unknown command /modell") as error:
            await talk.run("/help modell")
        assert error.value.action == "Did you mean /model?"
        (talk.home / "commands").mkdir(parents=True, exist_ok=True)
        (talk.home / "commands" / "review.md").write_text("Review it.")
        assert (await talk.run("/help review")).text.endswith("\n\nReview it.")
        assert "/review" in (await talk.run("/help")).text


async def test_trust_is_asked_about_and_given(talking: Talking) -> None:
    async with talking() as talk:
        assert "It has no files that need it." in (await talk.run("/trust")).text
        await talk.run("/trust yes")
        assert "is trusted (since" in (await talk.run("/trust")).text
        with pytest.raises(UsageError, match=r"Usage: /trust \[yes\]"):
            await talk.run("/trust maybe")


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
