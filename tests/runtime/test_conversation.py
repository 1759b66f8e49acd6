"""A conversation on this machine."""

import asyncio

import msgspec
import pytest

from ollm.domain.errors import BusyError, DeniedError, StorageError, TurnFailedError
from ollm.domain.events import Notice, TextDelta, TurnFinished
from ollm.domain.lazy import Lazy
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.turn_observer import TurnObserver, TurnReport
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


async def test_cancelling_ends_the_turn_with_its_end(talking: Talking) -> None:
    async with talking([Answer(text="one two three", pace=5.0)]) as talk:
        seen = []
        async with talk.conversation.turn("slow") as events:
            async for event in events:
                seen.append(event)
                if isinstance(event, TextDelta):
                    await talk.conversation.cancel()

    assert isinstance(seen[-1], TurnFinished)
    assert seen[-1].reason == "cancelled"


async def test_being_stopped_again_and_again_does_not_interrupt_the_saving(talking: Talking) -> None:
    class Slow(TurnObserver):
        saved = 0

        async def after_turn(self, report: TurnReport) -> None:
            for _ in range(20):
                await asyncio.sleep(0.005)
            self.saved = len(report.messages)

    async with talking([Answer(text="one two three", pace=5.0)]) as talk:
        slow = Slow()
        talk.conversation._observers = [*talk.conversation._observers, slow]

        async def stop_often() -> None:
            for _ in range(20):
                await talk.conversation.cancel()
                await asyncio.sleep(0.005)

        async with talk.conversation.turn("slow") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    stopping = asyncio.create_task(stop_often())
        await stopping

        assert slow.saved == 2
        assert (await talk.conversation.history())[1]["interrupted"]


async def test_an_observer_that_fails_is_told_and_stops_nothing(talking: Talking) -> None:
    class Failing(TurnObserver):
        async def after_turn(self, report: TurnReport) -> None:
            raise StorageError("The disk is full.")

    async with talking(["one", "two"]) as talk:
        talk.conversation._observers = [*talk.conversation._observers, Failing()]
        events = await talk.say("hello")

        assert [event.text for event in events if isinstance(event, Notice)] == ["The disk is full."]
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].reason == "answered"


async def test_an_observer_may_say_no_before_the_model_is_asked(talking: Talking) -> None:
    class Refusing(TurnObserver):
        async def before_turn(self, text: str) -> None:
            raise DeniedError("Not today.")

    async with talking(["one"]) as talk:
        talk.conversation._observers = [Refusing()]
        events = await talk.say("hello")

        assert isinstance(events[-1], TurnFinished)
        assert (events[-1].reason, events[-1].message) == ("denied", "Not today.")
        assert talk.server.chats == []


async def test_a_fault_of_ours_is_told_and_the_turn_still_ends(talking: Talking) -> None:
    class Broken(TurnObserver):
        async def before_turn(self, text: str) -> None:
            raise RuntimeError("a bug")

    async with talking(["one"]) as talk:
        talk.conversation._observers = [Broken()]
        seen = []
        with pytest.raises(RuntimeError, match="a bug"):
            async with talk.conversation.turn("hello") as events:
                async for event in events:
                    seen.append(event)

    assert [event.text for event in seen if isinstance(event, Notice)] == ["Internal error: a bug"]
    assert isinstance(seen[-1], TurnFinished)
    assert seen[-1].reason == "model-error"


async def test_a_file_that_cannot_be_written_is_told_once(talking: Talking) -> None:
    class Full(TurnObserver):
        async def after_turn(self, report: TurnReport) -> None:
            raise OSError(28, "No space left on device", "/there/notes")

    async with talking(["one", "two"]) as talk:
        talk.conversation._observers = [Full()]
        told = [
            [event.text for event in await talk.say(text) if isinstance(event, Notice)] for text in ("hello", "again")
        ]

    assert told == [["/there/notes could not be written: No space left on device."], []]


async def test_what_was_begun_while_it_was_quiet_is_stopped_before_a_turn(talking: Talking) -> None:
    done: list[str] = []

    class Idle:
        async def stop(self) -> None:
            done.append("stop")

        def start(self) -> None:
            done.append("start")

        def cancel(self) -> None:
            done.append("cancel")

    async with talking(["one", "two"]) as talk:
        talk.conversation.idle = Lazy(Idle)  # type: ignore[assignment,arg-type]
        await talk.say("hello")
        assert done == ["start"]
        await talk.say("again")
        assert done == ["start", "stop", "start"]
        talk.conversation.note_typing()
        assert done[3:] == ["cancel"]


async def test_whether_it_is_to_close_is_asked_as_one_at_work_unless_it_is_said(talking: Talking) -> None:
    async with talking() as talk:
        talk.conversation.parts = msgspec.structs.replace(talk.conversation.parts, asked_to_close=lambda *, idle: idle)
        assert talk.conversation.asked_to_close() is False
        assert talk.conversation.asked_to_close(idle=True) is True


async def test_a_model_that_writes_blocks_has_a_guide_and_the_others_have_none(talking: Talking) -> None:
    async with talking() as talk:
        model = talk.conversation.parts.model
        assert talk.conversation._create_guide() is None
        model.facts = msgspec.structs.replace(model.facts, call_form="blocks")
        guide = talk.conversation._create_guide()

        assert guide is not None
        assert (guide._window, guide._names_steps, guide._may_change) == (model.window, model.facts.is_tiny, True)
        await talk.run("/mode plan")
        guide = talk.conversation._create_guide()
        assert guide is not None
        assert not guide._may_change
