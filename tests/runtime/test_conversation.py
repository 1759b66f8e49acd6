"""A conversation on this machine."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from ollm.domain.context import Checkpoint, Usage
from ollm.domain.errors import BusyError, DeniedError, StorageError, TurnFailedError
from ollm.domain.events import Notice, TextDelta, TurnFinished
from ollm.domain.lazy import Lazy
from ollm.domain.messages import TextPart
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.turn_observer import TurnObserver, TurnReport
from ollm.tools.framework.base import ToolSpec
from ollm.tools.framework.deferred_tools import make_find_spec
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


class Idle:
    """What is done while it is quiet, noted."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def start(self) -> None:
        self.done.append("start")

    def cancel(self) -> None:
        self.done.append("cancel")

    async def stop(self) -> None:
        self.done.append("stop")

    async def discard(self) -> None:
        self.done.append("discard")


async def test_what_is_done_while_it_is_quiet_makes_way_for_every_word_and_waits_for_an_answer(
    talking: Talking,
) -> None:
    refused = Answer(status=400, body={"error": {"message": "no"}})
    async with talking(["one", refused]) as talk:
        idle = Idle()
        talk.conversation.idle = Lazy(lambda: idle)  # type: ignore[assignment,arg-type,return-value]
        await talk.say("hello")
        talk.conversation.note_typing()
        await talk.conversation.cancel()
        await talk.run("/help")
        await talk.say("this one fails")
        await talk.conversation.close()

    assert idle.done == ["start", "cancel", "cancel", "discard", "stop", "stop"]


async def test_a_command_during_a_turn_leaves_alone_what_waits_for_its_end(talking: Talking) -> None:
    async with talking(["one", Answer(text="one two three", pace=5.0)]) as talk:
        idle = Idle()
        talk.conversation.idle = Lazy(lambda: idle)  # type: ignore[assignment,arg-type,return-value]
        await talk.say("hello")
        async with talk.conversation.turn("slow") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
            await talk.run("/help")
            assert idle.done == ["start", "stop"]


async def test_stopping_counts_again_once_two_seconds_have_passed(talking: Talking) -> None:
    class Stuck(TurnObserver):
        def __init__(self) -> None:
            self.saving, self.interrupted = asyncio.Event(), False

        async def after_turn(self, report: TurnReport) -> None:
            self.saving.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.interrupted = True
                raise

    async with talking([Answer(text="one two three", pace=5.0)]) as talk:
        clock, stuck = [100.0], Stuck()
        talk.conversation.parts = msgspec.structs.replace(talk.conversation.parts, monotonic=lambda: clock[0])
        talk.conversation._observers = [stuck]
        async with talk.conversation.turn("slow") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    await talk.conversation.cancel()
                    break
            await stuck.saving.wait()
            for moment, interrupted in ((101.9, False), (102.0, True)):
                clock[0] = moment
                await talk.conversation.cancel()
                for _ in range(3):
                    await asyncio.sleep(0)
                assert stuck.interrupted is interrupted


async def test_nobody_is_left_listening_when_a_turn_is_over(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        listeners = talk.conversation.parts.stream._listeners
        before = list(listeners)
        async with talk.conversation.follow_turn(0):
            assert len(listeners) == len(before) + 1
        assert listeners == before
        await talk.say("hello")
        assert listeners == before


async def test_what_runs_calls_is_closed_with_the_conversation_where_there_is_such(talking: Talking) -> None:
    class Dispatch:
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    for built in (True, False):
        made = Dispatch()
        dispatch = Lazy(lambda made=made: made)
        async with talking() as talk:
            if built:
                dispatch.get()
            talk.conversation.parts = msgspec.structs.replace(talk.conversation.parts, dispatch=dispatch)
            await talk.conversation.close()
        assert made.closed == built


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
            await talk.conversation.parts.session.recorder.record_message("user", (TextPart(f"text {number}"),))

        assert len(await talk.conversation.history()) == 50
        assert [found["id"] for found in await talk.conversation.history(before=3)] == [1, 2]
        assert len(await talk.conversation.history(limit=4)) == 4


async def test_what_is_fixed_in_the_context_counts_its_checkpoints(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.say("hello")
        prompt = talk.conversation.parts.prompt
        before = (await talk.conversation.status()).fixed
        point = Checkpoint(id="k", text="Earlier: much was said.", message_ids=(1,), timestamp="", tokens=40)
        prompt.restore(msgspec.structs.replace(prompt.get_active_context(), checkpoints=(point,)))
        budget = prompt.compute_budget()

        after = (await talk.conversation.status()).fixed
        assert budget.checkpoints > 0
        assert after == budget.fixed + budget.checkpoints > before


@pytest.mark.parametrize(
    ("text", "form", "used", "asked"),
    [
        ("where is it?", "native", 100, "files"),
        ("where is it?", "text", 50, "files"),
        ("where is it?", "text", 51, "task"),
        ("where is it?", "native", 51, "files"),
        ("@Agent-x where is it?", "native", 0, "task"),
        ("@agent-x where is it?", "text", 51, "task"),
    ],
)
async def test_a_task_is_asked_for_what_names_one_and_where_a_small_models_context_is_half_full(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, text: str, form: str, used: int, asked: str
) -> None:
    async def find_files(_files: object, _model: object, found: str) -> str:
        return f"files {found}"

    async def offer(_parts: object, found: str) -> str:
        return f"task {found}"

    monkeypatch.setattr("ollm.runtime.calls.native_priming.prime_native_request", find_files)
    monkeypatch.setattr("ollm.runtime.task_offer.offer_task", offer)
    async with talking() as talk:
        parts = talk.conversation.parts
        parts.model.facts = msgspec.structs.replace(parts.model.facts, call_form=form)
        half = SimpleNamespace(used_tokens=used, compute_budget=lambda: SimpleNamespace(limit=101))
        talk.conversation.parts = msgspec.structs.replace(parts, prompt=half)
        found = await talk.conversation._explore(text)
        talk.conversation.parts = parts

    assert found == f"{asked} {text}"


async def test_what_tasks_took_counts_with_the_turn(talking: Talking) -> None:
    class Tasks:
        def take_usage(self) -> Usage:
            return Usage(prompt_tokens=300, completion_tokens=30)

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


async def test_observers_hear_of_the_session_once_and_of_every_request_and_change(talking: Talking) -> None:
    heard: list[object] = []

    class Noting(TurnObserver):
        async def session_opened(self, session_id: str, *, resumed: bool) -> None:
            heard.append(("opened", resumed))

        async def before_request(self) -> None:
            heard.append("request")

        async def context_changed(self) -> None:
            heard.append("changed")

        async def session_closed(self, session_id: str) -> None:
            heard.append(("closed", session_id))

    async with talking([Answer(calls=[("ls", {"path": "."})]), "one"]) as talk:
        talk.conversation._observers = [Noting()]
        await talk.say("hello")
        await talk.run("/help")
        await talk.run("/goal set Ship it")
        session_id = talk.conversation.session_id
        await talk.conversation.close()

    assert heard == [("opened", False), "request", "request", "changed", ("closed", session_id)]


async def test_a_tool_of_ones_own_is_shown_from_the_next_turn_on_and_replaced_by_its_name(talking: Talking) -> None:
    def make(text: str) -> ToolSpec:
        return msgspec.structs.replace(make_find_spec(list), name="far", category=None, description=text)

    async with talking(["one", "two"]) as talk:
        for text in ("Reach far.", "Reach farther."):
            talk.conversation.add_tool(make(text))
            await talk.say("hello")
        shown = [
            [tool["function"]["description"] for tool in chat["tools"] if tool["function"]["name"] == "far"]
            for chat in talk.server.chats
        ]

    assert shown == [["Reach far."], ["Reach farther."]]
