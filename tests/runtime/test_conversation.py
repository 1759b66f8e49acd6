"""A conversation on this machine."""

import asyncio

import msgspec
import pytest

from ollm.domain.context import Usage
from ollm.domain.errors import BusyError, TurnFailedError
from ollm.domain.events import Notice, TextDelta, TurnFinished
from ollm.domain.lazy import Lazy
from ollm.domain.messages import TextPart
from ollm.domain.tools import ConfirmationAnswer
from ollm.tools.framework.base import ToolSpec, make_spec
from ollm.tools.framework.tool_selection import FindTool
from tests.runtime.talking import Talking
from tests.servers.answers import Answer


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


async def test_one_turn_at_a_time_and_leaving_early_cancels(talking: Talking) -> None:
    async with talking([Answer(text="one two three", pace=5.0), "next"]) as talk:
        conversation = talk.conversation
        async with conversation.turn("slow") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
            assert conversation.busy
            with pytest.raises(BusyError, match="A turn is running in this session"):
                async with conversation.turn("another"):
                    pass
        assert not conversation.busy
        assert await conversation.ask("again") == "next"
        history = await conversation.history()
        assert [(found["role"], found.get("interrupted", False)) for found in history][:2] == [
            ("user", False),
            ("assistant", True),
        ]


async def test_an_answer_is_what_was_said_last_and_a_failure_is_raised(talking: Talking) -> None:
    script = [
        Answer(text="Looking first.", calls=[("ls", {"path": "."})]),
        "  The answer. ",
        Answer(status=500, body={"error": {"message": "broken"}}),
    ]
    async with talking(script) as talk:
        assert await talk.conversation.ask("what is here?") == "The answer."
        used = talk.conversation.usage
        assert (used.prompt_tokens, used.completion_tokens) == (40, 10)
        talk.server.script = lambda _request: Answer(status=500, body={"error": {"message": "broken"}})
        with pytest.raises(TurnFailedError) as told:
            await talk.conversation.ask("again")
        assert told.value.reason == "model-error"


async def test_a_conversation_has_no_session_until_something_is_said_and_closing_twice_is_once(
    talking: Talking,
) -> None:
    async with talking(["one"]) as talk:
        conversation = talk.conversation
        status = await conversation.status()
        assert (conversation.session_id, status.session_id, status.todos) == (None, None, ())
        assert await conversation.wait_for_foreign_turn() is None
        assert await conversation.history() == []
        assert not conversation.asked_to_close()
        assert not await conversation.respond("unknown", ConfirmationAnswer(approved=True))
        await conversation.cancel()
        await talk.say("hello")
        after = await conversation.status()
        assert after.session_id == conversation.session_id is not None
        assert (after.title, after.model, after.mode, after.approval) == ("hello", "scripted", "code", "ask")
        assert 0 < after.used < after.limit < after.window
        await conversation.close()
        await conversation.close()


async def test_a_command_that_leaves_something_opens_the_session(talking: Talking) -> None:
    async with talking([]) as talk:
        await talk.run("/help")
        assert talk.conversation.session_id is None
        await talk.run("/goal set Ship it")
        assert talk.conversation.session_id is not None


async def test_being_stopped_again_and_again_does_not_interrupt_the_saving(talking: Talking) -> None:
    async with talking([Answer(text="one two three", pace=5.0)]) as talk:

        async def stop_often() -> None:
            for _ in range(20):
                await talk.conversation.cancel()
                await asyncio.sleep(0.005)

        async with talk.conversation.turn("slow") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    stopping = asyncio.create_task(stop_often())
        await stopping

        assert (await talk.conversation.history())[1]["interrupted"]

    assert [message["role"] for message in talk.document["messages"]] == ["user", "assistant"]


async def test_a_session_that_cannot_be_made_is_told_and_the_turn_still_ends(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_self: object, _model: object) -> str:
        raise OSError(28, "No space left on device")

    async with talking(["one"]) as talk:
        monkeypatch.setattr(type(talk.conversation.parts.session), "create", fail)
        seen = []
        with pytest.raises(OSError, match="No space left"):
            async with talk.conversation.turn("hello") as events:
                async for event in events:
                    seen.append(event)

        assert [event.text for event in seen if isinstance(event, Notice)] == [
            "Internal error: [Errno 28] No space left on device"
        ]
        assert isinstance(seen[-1], TurnFinished)
        assert seen[-1].reason == "model-error"
        assert not talk.conversation.busy


async def test_a_page_of_the_history_has_fifty_messages_unless_it_is_said(talking: Talking) -> None:
    async with talking() as talk:
        await talk.conversation.create_session()
        for number in range(52):
            await talk.conversation.parts.session.record_message("user", (TextPart(f"text {number}"),))

        assert len(await talk.conversation.history()) == 50
        assert [found["id"] for found in await talk.conversation.history(before=3)] == [1, 2]
        assert len(await talk.conversation.history(limit=4)) == 4


async def test_what_tasks_took_counts_with_the_turn(talking: Talking) -> None:
    class Tasks:
        def take_usage(self) -> tuple[Usage, float]:
            return Usage(prompt_tokens=300, completion_tokens=30), 0.0

    async with talking(["one", "two"]) as talk:
        tasks = Lazy(Tasks)
        talk.conversation.parts = msgspec.structs.replace(talk.conversation.parts, tasks=tasks)  # type: ignore[type-var]
        first = (await talk.say("hello"))[-1]
        tasks.get()
        second = (await talk.say("again"))[-1]
        whole = talk.conversation.usage

    assert isinstance(first, TurnFinished)
    assert isinstance(second, TurnFinished)
    assert (first.usage.prompt_tokens, second.usage.prompt_tokens, whole.prompt_tokens) == (20, 320, 340)
    assert (first.usage.completion_tokens, second.usage.completion_tokens, whole.completion_tokens) == (5, 35, 40)


async def test_a_tool_of_ones_own_is_shown_from_the_next_turn_on_and_replaced_by_its_name(talking: Talking) -> None:
    def make(text: str) -> ToolSpec:
        return msgspec.structs.replace(make_spec(FindTool, list), name="far", category=None, description=text)

    async with talking(["one", "two"]) as talk:
        for text in ("Reach far.", "Reach farther."):
            talk.conversation.add_tool(make(text))
            await talk.say("hello")
        shown = [
            [tool["function"]["description"] for tool in chat["tools"] if tool["function"]["name"] == "far"]
            for chat in talk.server.chats
        ]

    assert shown == [["Reach far."], ["Reach farther."]]


async def test_a_warning_between_two_turns_is_in_the_next_one_once(talking: Talking) -> None:
    async with talking(["one", "two", "three"]) as talk:
        turns = [await talk.say("hi")]
        talk.conversation.parts.stream.emit(Notice(level="warning", text="late"))
        turns += [await talk.say("more"), await talk.say("again")]

    assert [sum(isinstance(event, Notice) and event.text == "late" for event in turn) for turn in turns] == [0, 1, 0]
