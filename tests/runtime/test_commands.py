"""Slash commands, run by a conversation that talks to a real server: what they say and what they change."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app import open_conversation
from ollm.domain.errors import UsageError
from ollm.domain.events import AnyEvent, TurnFinished
from ollm.runtime.commands import build_command_table
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.conversation_options import ConversationOptions
from tests.covers import covers
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


class Talk:
    def __init__(self, conversation: LocalConversation, server: ScriptedServer, home: Path, workspace: Path) -> None:
        self.conversation, self.server, self.home, self.workspace = conversation, server, home, workspace

    async def say(self, text: str) -> list[AnyEvent]:
        async with self.conversation.turn(text) as events:
            return [event async for event in events]

    async def run(self, line: str) -> Any:
        name, _, rest = line.removeprefix("/").partition(" ")
        return await self.conversation.command(name, rest)

    @property
    def document(self) -> dict[str, Any]:
        (file,) = (self.home / "sessions").glob("*.json")
        found: dict[str, Any] = json.loads(file.read_text())
        return found


Talking = Callable[..., AbstractAsyncContextManager[Talk]]


@pytest.fixture
def talking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talking:
    @asynccontextmanager
    async def opened(script: Sequence[Answer | str] = (), **more: Any) -> AsyncIterator[Talk]:
        home, workspace = tmp_path / "home", tmp_path / "project"
        workspace.mkdir(exist_ok=True)
        async with ScriptedServer(script, models=("scripted", "other")) as server:
            for name, value in (("HOME", home), ("BASE_URL", server.base_url), ("PROVIDER", "openai")):
                monkeypatch.setenv(f"OLLM_{name}", str(value))
            monkeypatch.setenv("OLLM_MODEL", "scripted")
            async with open_conversation(
                ConversationOptions(workspace=workspace, interactive=True, **more)
            ) as conversation:
                yield Talk(conversation, server, home, workspace)

    return opened


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


@covers("H479", "H480", "H481", "H482", "H620", "H621")
async def test_history_shows_everything_in_full_and_exports_it(talking: Talking) -> None:
    script = [Answer(calls=[("ls", {})], thinking="let me look"), "Nothing here."]
    async with talking(script) as talk:
        await talk.say("what is here?")
        shown = await talk.run("/history")
        await talk.run("/export talk.md")
        await talk.run("/history export talk.json")
        with pytest.raises(UsageError, match="already exists"):
            await talk.run("/export talk.md")

    for part in ("#1 user", "what is here?", "> let me look", "`ls` {}", "Nothing here."):
        assert part in shown.text
    assert "what is here?" in (talk.workspace / "talk.md").read_text()
    assert len(json.loads((talk.workspace / "talk.json").read_text())["messages"]) == 4


async def test_a_rewind_says_what_it_does_and_then_the_model_no_longer_sees_it(talking: Talking) -> None:
    async with talking(["one", "two", "three"]) as talk:
        await talk.say("keep this")
        await talk.say("forget this")
        assert "To confirm: /rewind 3 yes" in (await talk.run("/rewind 3")).text
        assert (await talk.run("/rewind 3 yes")).data == {"text": "forget this"}
        await talk.say("go on")
        with pytest.raises(UsageError, match="not one of your messages"):
            await talk.run("/rewind 2")

    sent = [message["content"] for message in talk.server.chats[2]["messages"][1:]]
    assert sent == ["keep this", "one", "go on"]
    assert len(talk.document["messages"]) == 6
    assert talk.document["metadata"]["contextHistory"][-1]["step"] == "rewind"


@covers("H257", "H258")
async def test_a_snapshot_brings_the_context_back(talking: Talking) -> None:
    async with talking(["one", "two", "three"]) as talk:
        await talk.say("first")
        taken = (await talk.run("/context snapshot")).data["id"]
        await talk.say("second")
        await talk.run(f"/context restore {taken[:6]}")
        await talk.say("third")

    assert [m["content"] for m in talk.server.chats[2]["messages"][1:]] == ["first", "one", "third"]


@covers("H253")
async def test_a_snapshot_brings_back_the_mode_with_its_tools_and_approval(talking: Talking) -> None:
    async with talking(["one", "two"]) as talk:
        await talk.run("/mode plan")
        await talk.say("first")
        taken = (await talk.run("/context snapshot")).data["id"]
        await talk.run("/mode code")
        await talk.run(f"/context restore {taken}")
        await talk.say("second")
        status = await talk.conversation.status()

    assert (status.mode, status.approval) == ("plan", "read-only")
    assert "edit_file" not in [tool["function"]["name"] for tool in talk.server.chats[1]["tools"]]
    assert talk.document["metadata"]["modeHistory"][-1]["to"] == "plan"


async def test_a_resumed_session_is_in_the_mode_it_was_left_in(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.say("first")
        await talk.run("/mode plan")
        await talk.say("second")
    async with talking(["two"], newest=True) as talk:
        again = await talk.conversation.status()
    async with talking(["three"], newest=True, mode="debug") as talk:
        chosen = await talk.conversation.status()

    assert (again.mode, again.approval) == ("plan", "read-only")
    assert (chosen.mode, chosen.approval) == ("debug", "ask")


async def test_goals_outlive_a_resume_with_another_window_and_are_told_again(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talking(["one"]) as talk:
        await talk.run("/goal set ship it")
        await talk.say("first")
    monkeypatch.setenv("OLLM_CONTEXT_WINDOW", "16384")
    async with talking(["two"], newest=True) as talk:
        await talk.say("second")
        goal = (await talk.run("/goal")).text

    assert "ship it" in goal
    assert "ship it" in talk.server.chats[-1]["messages"][-1]["content"]


async def test_an_entry_of_the_users_outlives_a_resume_and_the_front_stands(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.run("/context add style Write short sentences.")
        await talk.say("first")
        before = talk.server.chats[0]["messages"]
    async with talking(["two"], newest=True) as talk:
        await talk.say("second")
        listed = [entry["key"] for entry in (await talk.run("/context entries")).data]

    assert listed == ["style"]
    assert talk.server.chats[0]["messages"][: len(before)] == before


@pytest.mark.parametrize("line", ["/context add style Write short sentences.", "/goal set ship it", "/compact"])
async def test_what_a_command_alone_changed_in_a_resumed_session_stands(talking: Talking, line: str) -> None:
    async with talking(["A long answer. " * 60, "and another " * 60, "short"]) as talk:
        for text in ("first", "second", "third"):
            await talk.say(text)
        whole = talk.conversation.parts.prompt.used_tokens
    async with talking(newest=True) as talk:
        await talk.run(line)
    async with talking(newest=True) as talk:
        entries = (await talk.run("/context entries")).data
        goal, used = (await talk.run("/goal")).text, talk.conversation.parts.prompt.used_tokens

    assert ("style" in [entry["key"] for entry in entries]) is ("style" in line)
    assert ("ship it" in goal) is ("goal" in line)
    assert (used < whole - 100) is (line == "/compact")


async def test_expand_shows_a_message_a_call_or_what_holds_some_words(talking: Talking) -> None:
    async with talking([Answer(calls=[("ls", {})]), "The parser is elsewhere."]) as talk:
        (talk.workspace / "lexer.py").write_text("x = 1\n")
        await talk.say("Where is the lexer?")
        call = talk.document["toolCalls"][0]["id"]

        assert "Where is the lexer?" in (await talk.run("/expand 1")).text
        assert "lexer.py" in (await talk.run("/expand #3")).text
        assert "lexer.py" in (await talk.run(f"/expand {call}")).text
        assert [found["messageId"] for found in (await talk.run("/expand the PARSER")).data] == [4]


async def test_goals_todos_memory_and_context_entries_are_kept(talking: Talking) -> None:
    async with talking(["ok"]) as talk:
        assert (await talk.run("/goal set ship it")).text == "Goal set: ship it"
        await talk.run("/goal lock use sqlite")
        assert "Decided (locked): use sqlite" in (await talk.run("/goal")).text
        await talk.run("/todos add write tests")
        added = (await talk.run("/todos add run tests")).data
        await talk.run(f"/todos done {added[0]['id']}")
        assert "1 of 2 done" in (await talk.run("/plan")).text
        await talk.run("/memory set colour blue")
        assert "colour" in (await talk.run("/memory")).text
        await talk.run("/context add style Write short sentences.")
        await talk.say("hello")
        assert [entry["key"] for entry in (await talk.run("/context entries")).data] == ["style"]
        await talk.run("/context remove style")
        assert (await talk.run("/context entries")).data == []

    assert "Write short sentences." in talk.server.chats[0]["messages"][0]["content"]


async def test_an_edit_is_taken_back_after_a_word_about_it(talking: Talking) -> None:
    call = Answer(calls=[("write_file", {"path": "a.txt", "content": "new", "overwrite": True})])
    async with talking([call, "done"], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old")
        await talk.say("write")
        assert (talk.workspace / "a.txt").read_text() == "new"
        told = (await talk.run("/undo")).text
        assert "reverts the last edit of" in told
        assert "-new\n+old" in told
        assert (talk.workspace / "a.txt").read_text() == "new"
        await talk.run("/undo yes")
        assert (talk.workspace / "a.txt").read_text() == "old"
        with pytest.raises(UsageError, match="Nothing to undo"):
            await talk.run("/undo")


async def test_taking_back_a_new_file_says_that_it_goes(talking: Talking) -> None:
    call = Answer(calls=[("write_file", {"path": "b.txt", "content": "new"})])
    async with talking([call, "done"], yes=True) as talk:
        await talk.say("write")
        assert "deletes" in (await talk.run("/undo")).text
        assert "is removed again" in (await talk.run("/undo yes")).text
        assert not (talk.workspace / "b.txt").exists()


async def test_the_history_shows_what_was_typed_as_it_was_typed(talking: Talking) -> None:
    async with talking(["Yes."]) as talk:
        await talk.say("# one\n*two*\n~~~\n  three")
        shown = (await talk.run("/history")).text

    assert "~~~~\n# one\n*two*\n~~~\n  three\n~~~~" in shown


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


@pytest.mark.parametrize(("window", "told"), [("1024", True), ("2048", False)])
async def test_a_window_too_small_to_work_in_is_told_and_used_all_the_same(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, window: str, told: bool
) -> None:
    monkeypatch.setenv("OLLM_CONTEXT_WINDOW", window)
    async with talking(["one", "two"]) as talk:
        notices = (await talk.conversation.status()).notices
        events = await talk.say("Read this. " * 400)
        reply = (await talk.run(f"/context size {window}")).text

    assert any("too small" in notice for notice in notices) is told
    assert ("too small" in reply) is told
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].reason == "answered"


@pytest.mark.parametrize(
    "line",
    ["/mode wild", "/approval maybe", "/context dance", "/context size 7", "/rewind", "/goal dance x", "/todos dance",
     "/memory dance", "/undo maybe", "/history wild", "/export", "/plan dance", "/trust maybe", "/expand 99", "/expand", "/expand nowhere to be found", "/nonsense"],
)  # fmt: skip
async def test_a_wrong_use_is_told_with_the_right_one(talking: Talking, line: str) -> None:
    async with talking() as talk:
        with pytest.raises(Exception, match=r"/|session"):
            await talk.run(line)


async def test_every_command_is_in_the_help_and_documented(talking: Talking) -> None:
    async with talking() as talk:
        shown = (await talk.run("/help")).text

    named = [command.name for command in build_command_table().list_all()]
    wanted = (
        "help history context compact expand mode approval plan goal model tools memory todos sessions new undo continue"
        " trust export exit"
    )
    assert set(wanted.split()) <= set(named)
    for name in named:
        assert f"/{name}" in shown


async def test_a_text_of_ones_own_is_sent_with_its_arguments(talking: Talking) -> None:
    async with talking(["ok"]) as talk:
        (talk.home / "commands").mkdir(parents=True)
        (talk.home / "commands" / "review.md").write_text("Review $1 for $ARGUMENTS.\n")
        await talk.say((await talk.run("/review a.py speed")).argument)

    assert talk.server.chats[0]["messages"][-1]["content"] == "Review a.py for a.py speed.\n"


async def test_continue_names_the_loop_to_the_model(talking: Talking) -> None:
    script = [Answer(calls=[("ls", {})]) for _ in range(3)]
    async with talking([*script, "done"]) as talk:
        events = await talk.say("list")
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].reason == "loop"
        await talk.say((await talk.run("/continue")).argument)

    assert "not like this again" in talk.server.chats[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("text", ["/approval yolo", "/trust yes", "/exit", "//x", "!touch injected"])
async def test_a_turn_takes_text_as_text_whatever_it_begins_with(talking: Talking, text: str) -> None:
    async with talking(["What?"]) as talk:
        events = await talk.say(text)
        status = await talk.conversation.status()
        made = (talk.conversation.parts.workspace / "injected").exists()

    assert talk.server.chats[0]["messages"][-1]["content"].endswith(text)
    assert (status.approval, made) == ("ask", False)
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].reason == "answered"
