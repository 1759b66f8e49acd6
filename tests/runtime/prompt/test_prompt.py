"""What the model is sent: in order, within the window, with a front that stands."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ollm.config.settings import CompressionSettings, Settings
from ollm.domain.context import ActiveContext, Checkpoint, CompressionRecord
from ollm.domain.errors import ModelError, PromptTooLongError
from ollm.domain.events import CheckpointCreated, Compressed, CompressionError, CompressionSkipped, Event, Notice
from ollm.domain.messages import (
    AnyPart,
    Message,
    PromptMessage,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord, ToolSchema
from ollm.runtime.prompt.compaction import Compactor, ContextFull
from ollm.runtime.prompt.prefix import build_instructions
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.services.context_manager import ContextManager
from ollm.services.token_counting import TokenCounter
from tests.covers import covers

SESSION = "7d9f4a52-0000-4000-8000-00000000000a"


class Talk:
    """A prompt with a recorder that numbers what is said."""

    def __init__(self, window: int = 4096, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.counter = TokenCounter()
        self.entries = ContextManager()
        self.records: list[CompressionRecord] = []
        self.events: list[Event] = []
        self.number = 0
        self.prompt = self.new_prompt(window)

    def new_prompt(self, window: int) -> Prompt:
        self.compactor = Compactor(self.settings, self.counter, keep=self._keep)
        model = PromptModel(session_id=SESSION, model="m", window=window)
        return Prompt(model, self.settings, self.counter, self.entries)

    async def _keep(self, record: CompressionRecord) -> None:
        self.records.append(record)

    def say(self, role: Role, *parts: AnyPart, calls: dict[str, ToolCallRecord] | None = None) -> None:
        self.number += 1
        self.prompt.add_message(Message(role=role, parts=parts, timestamp="", id=self.number), calls or {})

    def user(self, text: str) -> None:
        self.say("user", TextPart(text))

    def assistant(self, text: str) -> None:
        self.say("assistant", TextPart(text))

    def step(self, *outputs: str, error: ErrorInfo | None = None, exit_code: int | None = None) -> None:
        made = [
            ToolCallRecord(
                id=f"c{self.number}-{place}",
                name="shell",
                args={"command": "make"},
                timestamp="",
                status="failed" if error else "ok",
                error=error,
                result=RecordedResult(llm_content=output, exit_code=exit_code),
            )
            for place, output in enumerate(outputs)
        ]
        calls = {record.id: record for record in made}
        self.say("assistant", TextPart("Trying."), *(ToolCallPart(record.id) for record in made), calls=calls)
        self.say("tool", *(ToolResultPart(record.id) for record in made), calls=calls)

    async def make_room(self, summarise: Callable[..., AsyncIterator[str]] | None = None) -> None:
        await self.compactor.compact_if_needed(self.prompt, self.events.append, summarise or minutes)

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


async def minutes(asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
    yield "Goal:\n- build it\nOpen points:\n- none that matter"


def filler(lines: int) -> str:
    return "\n".join(f"line {number} says nothing of note to anybody" for number in range(lines))


@covers("H549")
def test_a_request_is_the_system_prompt_and_what_was_said_in_order() -> None:
    talk = Talk()
    talk.user("Build it")
    talk.step("all good")
    talk.assistant("Done.")

    sent = talk.prompt.build_request_messages()

    assert [message.role for message in sent] == ["system", "user", "assistant", "tool", "assistant"]
    assert sent[0].content == talk.prompt.get_system_prompt()
    assert sent[2].calls[0].name == "shell"
    assert (sent[3].call_id, sent[3].content) == ("c1-0", "all good")


def test_thinking_is_kept_and_never_sent() -> None:
    talk = Talk()
    talk.user("Hello")
    talk.say("assistant", ThinkingPart("They greet me."), TextPart("Hi."))

    assert all(
        "They greet me" not in message.content + message.thinking for message in talk.prompt.build_request_messages()
    )
    assert talk.prompt.get_active_context().reasoning.traces[0].text == "They greet me."


def test_a_failure_is_known_as_one_by_its_first_words() -> None:
    talk = Talk()
    talk.user("Go")
    talk.step("No such file: a.py", error=ErrorInfo(type="FileNotFound", message="No such file: a.py"))
    talk.step("boom", exit_code=2)

    results = [message.content for message in talk.prompt.build_request_messages() if message.role == "tool"]
    assert results == ["Error FileNotFound: No such file: a.py", "Exit code: 2\nboom"]


@covers("S3.1", "H39", "H66", "H693")
async def test_over_its_trigger_the_context_is_compressed_and_the_record_kept() -> None:
    talk = Talk()
    while talk.prompt.message_tokens <= talk.prompt.compute_budget().trigger:
        talk.user("Keep port 8443 open")
        talk.step(filler(12))
        talk.assistant("I did what was asked. " * 20)
    before = talk.prompt.used_tokens
    await talk.make_room()

    assert talk.prompt.used_tokens < before
    assert talk.prompt.message_tokens <= talk.prompt.compute_budget().trigger
    assert len(talk.records) == len(talk.of(Compressed)) == 1
    assert (talk.records[0].trigger, talk.records[0].original_token_count) == ("auto", before)
    assert talk.prompt.build_request_messages()[0].content == talk.prompt.get_system_prompt()


@covers("H695", "H696", "S10.3")
async def test_a_server_that_fails_to_summarise_does_not_end_the_turn() -> None:
    async def broken(asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        raise ModelError("The server is gone.")
        yield ""

    talk = Talk()
    while talk.prompt.message_tokens <= talk.prompt.compute_budget().trigger:
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 20)
    await talk.make_room(broken)

    assert talk.of(CompressionError)
    assert talk.of(CheckpointCreated)
    assert talk.records[0].checkpoint is not None
    assert talk.records[0].checkpoint.engine_written


@covers("H444")
async def test_goals_and_locked_decisions_stand_in_the_context_after_a_compression() -> None:
    talk = Talk()
    talk.prompt.goals.set("Ship version 2")
    talk.prompt.goals.decision("Use SQLite and nothing else", locked=True)
    while talk.prompt.message_tokens <= talk.prompt.compute_budget().trigger:
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 20)
    await talk.make_room()

    sent = "\n".join(message.content for message in talk.prompt.build_request_messages())
    assert "Goal: Ship version 2" in sent
    assert "Decided (locked): Use SQLite and nothing else" in sent


async def test_with_compression_off_a_full_context_ends_the_turn() -> None:
    talk = Talk(settings=Settings(compression=CompressionSettings(enabled=False)))
    while talk.prompt.used_tokens <= talk.prompt.compute_budget().limit:
        await talk.make_room()
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 20)

    with pytest.raises(ContextFull, match="Try /compact"):
        await talk.make_room()


async def test_a_context_of_user_messages_alone_still_fits() -> None:
    talk = Talk()
    for _ in range(40):
        talk.user(filler(30))
        await talk.make_room()
        assert talk.prompt.used_tokens <= talk.prompt.compute_budget().limit


@covers("H694")
async def test_compacting_by_hand_makes_room_or_says_why_not() -> None:
    talk = Talk()
    talk.user("Hello")
    assert not await talk.compactor.compact(talk.prompt, talk.events.append, minutes)
    assert talk.of(CompressionSkipped)
    for _ in range(8):
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 12)
    assert await talk.compactor.compact(talk.prompt, talk.events.append, minutes)
    assert talk.records[0].trigger == "manual"


async def test_a_kept_context_is_taken_up_byte_for_byte() -> None:
    talk = Talk()
    talk.prompt.goals.set("Ship it")
    for _ in range(30):
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 12)
        await talk.make_room()
    kept = talk.prompt.get_active_context()
    sent = talk.prompt.build_request_messages()

    again = talk.new_prompt(4096)
    again.restore(kept)

    assert again.build_request_messages() == sent
    assert again.get_active_context() == kept
    assert kept != ActiveContext()


def test_a_context_that_is_taken_up_brings_the_instructions_of_its_mode() -> None:
    talk, plan = Talk(), Talk()
    talk.user("Hello")
    plan.prompt.restore(msgspec.structs.replace(talk.prompt.get_active_context(), mode="plan"))
    plan_text, code_text = (
        plan.prompt.build_request_messages()[0].content,
        talk.prompt.build_request_messages()[0].content,
    )

    assert plan_text == build_instructions(4096, "plan")
    assert code_text == build_instructions(4096, "code") != plan_text


READ = ToolSchema(name="read_file", description="Read a file.", parameters={"type": "object"})
RECALL = ToolSchema(name="recall", description="Bring back what was folded.", parameters={"type": "object"})
EARLIER = Checkpoint(id="k", text="It was said.", message_ids=(1,), timestamp="", tokens=20)


@pytest.mark.parametrize(
    ("context", "offered"),
    [
        (ActiveContext(), False),
        (ActiveContext(folded=True), True),
        (ActiveContext(checkpoints=(EARLIER,)), True),
        (ActiveContext(folded=True, checkpoints=(EARLIER,)), True),
    ],
)
def test_where_something_was_folded_away_the_tool_that_brings_it_back_is_offered(
    context: ActiveContext, offered: bool
) -> None:
    prompt = Talk().prompt
    prompt.set_tools([READ], lambda: [READ, RECALL])
    before = prompt.used_tokens
    assert prompt.view_context(with_recall=True).recall_tokens > 0
    assert prompt.view_context().recall_tokens == 0

    prompt.restore(context)

    assert prompt.tools == ((READ, RECALL) if offered else (READ,))
    assert (prompt.used_tokens > before) is offered
    assert prompt.get_active_context().folded is offered


def test_a_result_that_is_cut_offers_the_tool_that_brings_the_rest_at_once() -> None:
    talk = Talk()
    talk.prompt.set_tools([READ], lambda: [READ, RECALL])
    talk.user("Read it")
    talk.step("short")
    before, units = talk.prompt.compute_budget().fixed, talk.prompt.meter.prefix_units
    assert talk.prompt.tools == (READ,)
    talk.step(filler(900))

    assert talk.prompt.tools == (READ, RECALL)
    assert talk.prompt.get_active_context().folded
    assert talk.prompt.meter.prefix_units > units
    assert talk.prompt.compute_budget().fixed > before


@pytest.mark.parametrize(("cause", "compressed"), [("restore", False), ("rewind", False), ("resume", True)])
async def test_a_context_that_somebody_went_back_to_is_sent_once_before_it_is_compacted(
    cause: str, compressed: bool
) -> None:
    talk = Talk()
    while talk.prompt.message_tokens <= talk.prompt.compute_budget().trigger:
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 20)
    kept, talk.prompt = talk.prompt.get_active_context(), talk.new_prompt(4096)

    talk.prompt.restore(kept, cause=cause)
    await talk.make_room()
    assert bool(talk.of(Compressed)) is compressed
    assert talk.prompt.just_compressed is compressed
    talk.prompt.build_request_messages()
    await talk.make_room()

    assert len(talk.of(Compressed)) == 1


def test_goals_that_came_with_a_context_are_told_only_when_they_change() -> None:
    talk, later = Talk(), Talk()
    talk.prompt.goals.set("Ship it")
    talk.user("Hello")
    later.prompt.restore(talk.prompt.get_active_context())
    assert later.prompt.goals_told
    later.user("Go on")
    later.prompt.goals.set("Ship it on Friday")
    later.user("And then?")

    told = [message.content.count("Goal:") for message in later.prompt.build_request_messages() if message.sources]
    assert told == [1, 0, 2]


async def test_after_a_compression_goals_are_told_by_their_record_alone() -> None:
    talk = Talk()
    while talk.prompt.message_tokens <= talk.prompt.compute_budget().trigger:
        talk.user("Go on")
        talk.assistant("I did what was asked. " * 20)
    talk.prompt.goals.set("Ship it")
    assert not talk.prompt.goals_told
    await talk.make_room()
    assert talk.prompt.goals_told
    talk.user("Go on")

    assert talk.prompt.just_compressed is False
    assert sum("Goal: Ship it" in message.content for message in talk.prompt.build_request_messages()) == 1
    talk.prompt.tell_goals_again()
    assert not talk.prompt.goals_told


def refusal(**told: Any) -> PromptTooLongError:
    return PromptTooLongError("Too long.", **told)


@pytest.mark.parametrize(
    ("error", "window"),
    [
        (refusal(), 3072),
        (refusal(window=2000), 2000),
        (refusal(window=9000), 4096),
        (refusal(window=4096), 4096),
        (refusal(window=1), 512),
        (refusal(prompt_tokens=700), 4096),
        (refusal(prompt_tokens=700, window=2000), 2000),
        (refusal(prompt_tokens=700, prompt_at_least=True), 4096),
        (refusal(prompt_tokens=700, prompt_at_least=True, window=2000), 2000),
    ],
)
def test_a_refusal_teaches_what_it_says(error: PromptTooLongError, window: int) -> None:
    talk = Talk()
    talk.user("Hello there, " * 100)
    talk.prompt.build_request_messages()
    before = talk.prompt.used_tokens
    talk.prompt.learn_from_rejection(error)

    exact = error.prompt_tokens if not error.prompt_at_least else 0
    assert talk.prompt.model.window == window
    assert talk.prompt.window_learnt is (window == 2000)
    assert talk.counter.samples == bool(exact)
    if window == 4096:
        assert talk.prompt.used_tokens == (exact or pytest.approx(before * 1.15, abs=1))


def test_how_full_a_context_is_is_told_with_all_that_does_not_move() -> None:
    talk = Talk()
    first = talk.prompt.measure_usage()
    assert (first.reused_share, first.broken_by) == (None, None)
    talk.user("Hello")
    talk.prompt.build_request_messages()
    assert talk.prompt.measure_usage().reused_share is None
    talk.prompt.restore(ActiveContext(checkpoints=(EARLIER,)))
    talk.user("Hello")
    talk.prompt.build_request_messages()
    told, state = talk.prompt.measure_usage(), talk.prompt.compute_budget()

    assert told.reused_share is None, "the server has not said it"
    assert told.broken_by == "restore"
    assert state.checkpoints > 0
    assert told.fixed == state.fixed + state.checkpoints
    assert (told.used, told.limit, told.window) == (talk.prompt.used_tokens, state.limit, 4096)
    assert told.trigger == state.trigger


def test_what_breaks_the_prefix_is_named_by_what_came_first() -> None:
    talk = Talk()
    talk.prompt.build_request_messages()
    talk.entries.add_context("rule", "Be brief.", source="user")
    talk.prompt.set_forms(ModelFacts(key="k", call_form="text", result_form="user"))
    talk.user("Hello")
    talk.prompt.build_request_messages()
    forms = talk.prompt.measure_usage().broken_by
    talk.entries.add_context("rule", "Be very brief.", source="user")
    talk.user("Hello")
    talk.prompt.build_request_messages()
    entries = talk.prompt.measure_usage().broken_by
    talk.prompt.set_mode("plan")
    talk.entries.add_context("rule", "Be long.", source="user")
    talk.user("Hello")
    talk.prompt.build_request_messages()

    assert (forms, entries, talk.prompt.measure_usage().broken_by) == ("call form", "context entry", "mode")
    assert talk.prompt.mode == "plan"
    assert build_instructions(4096, "plan") in talk.prompt.get_system_prompt()


def test_an_entry_that_has_expired_is_told_once() -> None:
    talk, began = Talk(), datetime(2026, 1, 1, tzinfo=UTC)
    minutes_passed = itertools.count()
    talk.entries = ContextManager(clock=lambda: began + timedelta(minutes=next(minutes_passed)))
    talk.prompt = talk.new_prompt(4096)
    talk.entries.add_context("note", "For a minute.", ttl_seconds=60)
    for _ in range(3):
        talk.user("Hello")
        talk.prompt.emit_notes(talk.events.append)

    assert [event.text for event in talk.events if isinstance(event, Notice)] == ["Context entry 'note' has expired."]
