"""What the model is sent: in order, within the window, with a front that stands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from ollm.config.settings import CompressionSettings, Settings
from ollm.domain.context import ActiveContext, CompressionRecord
from ollm.domain.errors import ModelError
from ollm.domain.events import CheckpointCreated, Compressed, CompressionError, CompressionSkipped, Event
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
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.runtime.prompt.compaction import Compactor, ContextFull
from ollm.runtime.prompt.instructions import build_instructions
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.services.context_manager import ContextManager
from ollm.services.token_counting import TokenCounter
from tests.covers import covers
from tests.runtime.prompt.test_context_courses import follow_course

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


def test_a_short_course_goes_the_way_it_went_when_it_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    follow_course(monkeypatch, 11, 3000, 1.1, "hybrid", steps=60)
