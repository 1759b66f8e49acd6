"""Making room, with real files: snapshots before, the archive untouched, the way back open."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.config.settings import CompressionSettings, Settings, SnapshotSettings
from ollm.domain.context import Checkpoint, CompressionRecord
from ollm.domain.events import (
    AutoSnapshotCreated,
    CheckpointAged,
    Compressed,
    CompressionSkipped,
    Event,
    Notice,
    SnapshotError,
)
from ollm.domain.messages import Message, PromptMessage, Role, TextPart
from ollm.runtime.prompt.compaction import CONTEXT_FULL_ACTIONS, Compactor, ContextFull, build_options
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.runtime.resume.rebuild import collect_user_messages, rebuild_context
from ollm.services.budget import compute_checkpoints_cap, compute_target_tokens, compute_working_trigger
from ollm.services.chat_compression import ChatCompressionService, CompressionOptions, make_compression_changes
from ollm.services.chat_recording import ChatRecordingService
from ollm.services.context_manager import ContextManager
from ollm.services.snapshots import SnapshotManager
from ollm.services.token_counting import TokenCounter
from ollm.store.session_files import SessionFiles, SessionPlaces
from ollm.store.snapshot_files import SnapshotFiles
from tests.covers import covers
from tests.runtime.prompt.test_context_courses import follow_course
from tests.runtime.prompt.test_prompt import Talk, filler
from tests.services import contexts as make


class House:
    """A prompt over a real archive and real snapshots."""

    def __init__(self, root: Path, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.events: list[Event] = []
        self.asked: list[tuple[int, int]] = []
        self.recording = ChatRecordingService(SessionFiles(SessionPlaces(directory=root / "sessions")))
        self.files = SnapshotFiles(root / "context-snapshots")
        self.snapshots = SnapshotManager(self.files, self.settings.snapshots, emit=self.events.append)
        self.counter = TokenCounter()
        self.session = ""

    async def begin(self, window: int = 4096) -> Prompt:
        self.session = self.session or await self.recording.create_session("m", "p")
        self.compactor = Compactor(self.settings, self.counter, self.snapshots, keep=self._keep)
        model = PromptModel(session_id=self.session, model="m", window=window)
        self.prompt = Prompt(model, self.settings, self.counter, ContextManager())
        return self.prompt

    async def _keep(self, record: CompressionRecord) -> None:
        session = await self.recording.get_session(self.session)
        assert session is not None
        await self.recording.update_metadata(self.session, make_compression_changes(session.metadata, record))

    async def say(self, role: Role, text: str) -> None:
        message = Message(role=role, parts=(TextPart(text),), timestamp="2026-01-01T00:00:00.000Z")
        self.prompt.add_message(await self.recording.record_message(self.session, message), {})

    async def turn(self, size: int = 20) -> None:
        await self.say("user", "Go on, and keep port 8443 open")
        await self.compactor.compact_if_needed(self.prompt, self.events.append, self.summarise)
        await self.say("assistant", "I did what was asked. " * size)

    async def summarise(self, asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        self.asked.append((self.counter.count_messages(asked), tokens))
        yield "Goal:\n- build it\n- and keep building it for as long as it takes\nOpen points:\n- none that matter"

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def until_compressed(house: House, times: int = 1) -> None:
    while len(house.of(Compressed)) < times:
        await house.turn()


@covers("H245", "H247", "H267", "H53")
async def test_a_snapshot_is_taken_before_each_compression_and_leads_back_behind_it(house: House) -> None:
    await house.begin()
    await until_compressed(house, 2)

    newest, first = await house.snapshots.list_snapshots(house.session)
    assert {newest.trigger, first.trigger} == {"compression"}
    assert [type(event) for event in house.events if isinstance(event, AutoSnapshotCreated | Compressed)] == [
        AutoSnapshotCreated,
        Compressed,
    ] * 2
    before = await house.snapshots.restore_snapshot(first.id)
    assert before.checkpoints == ()
    assert len((await house.snapshots.restore_snapshot(newest.id)).checkpoints) == 1
    house.prompt.restore(before)
    assert len(house.prompt.build_request_messages()) == 1 + len(before.messages)


@covers("H22", "D754", "D755", "H66", "H82", "H590")
async def test_the_archive_is_whole_whatever_was_compressed_and_the_context_can_be_built_from_it(house: House) -> None:
    await house.begin()
    await until_compressed(house, 3)
    session = await house.recording.get_session(house.session)

    assert session is not None
    assert [message.id for message in session.messages] == list(range(1, len(session.messages) + 1))
    assert all(message.text.startswith(("Go on", "I did")) for message in session.messages)
    assert session.metadata.compression_count == len(session.metadata.compression_history) == 3
    again = rebuild_context(session)
    assert {n for m in again.messages for n in m.sources} | {n for k in again.checkpoints for n in k.message_ids} == {
        message.id for message in session.messages
    }
    other = await house.begin()
    other.restore(again, lambda: collect_user_messages(session))
    await house.compactor.compact_if_needed(other, house.events.append, house.summarise)
    assert other.used_tokens <= other.compute_budget().limit
    assert other.build_request_messages()[0].content == other.get_system_prompt()


@covers("H248", "H355", "H369", "H374")
async def test_with_compression_off_a_snapshot_is_taken_at_the_threshold_and_before_an_overflow(tmp_path: Path) -> None:
    settings = Settings(
        compression=CompressionSettings(enabled=False), snapshots=SnapshotSettings(auto_threshold=0.5, max_count=9)
    )
    house = House(tmp_path, settings)
    prompt = await house.begin()
    seen: list[float] = []
    house.snapshots.on_context_threshold(0.5, lambda: seen.append(0.5))
    house.snapshots.on_before_overflow(lambda: seen.append(0.95))
    with pytest.raises(ContextFull):
        while True:
            await house.turn()

    assert [entry.trigger for entry in await house.snapshots.list_snapshots(house.session)] == ["threshold"] * 2
    assert seen == [0.5, 0.95]
    (told,) = [event.text for event in house.events if isinstance(event, Notice) and "nearly full" in event.text]
    assert told.startswith("The context is nearly full (3,")
    assert told.endswith(CONTEXT_FULL_ACTIONS)
    assert prompt.used_tokens > prompt.compute_budget().limit


@covers("H251")
async def test_compacting_by_hand_keeps_a_snapshot_first(house: House) -> None:
    prompt = await house.begin()
    for _ in range(6):
        await house.turn()
    assert await house.compactor.compact(prompt, house.events.append, house.summarise)

    assert [entry.trigger for entry in await house.snapshots.list_snapshots(house.session)] == ["compact"]


async def test_a_snapshot_that_fails_does_not_stop_the_compression(house: House, tmp_path: Path) -> None:
    (tmp_path / "context-snapshots").write_text("in the way", "utf-8")
    await house.begin()
    await until_compressed(house)

    assert house.of(SnapshotError)


@covers("H697", "H730")
async def test_checkpoints_age_as_newer_ones_come_and_keep_every_number(house: House) -> None:
    prompt = await house.begin()
    await until_compressed(house, 6)

    assert house.of(CheckpointAged)
    ages = [found.age for found in prompt.get_active_context().checkpoints]
    assert {"compact", "medium"} & {*ages, *(event.age for event in house.of(CheckpointAged))}  # type: ignore[attr-defined]
    most = compute_checkpoints_cap(prompt.compute_budget())
    assert sum(found.tokens for found in prompt.get_active_context().checkpoints) <= most


@covers("H439")
async def test_system_messages_other_than_the_prompt_are_compressed(house: House) -> None:
    prompt = await house.begin()
    await house.say("system", "An old note of the engine: " + "nothing " * 40)
    await until_compressed(house)

    assert 1 not in {number for message in prompt.get_active_context().messages for number in message.sources}
    assert [message.role for message in prompt.build_request_messages()].count("system") == 1


@covers("H669")
async def test_a_summary_is_asked_for_within_its_own_limit(tmp_path: Path) -> None:
    house = House(tmp_path, Settings(compression=CompressionSettings(summary_max_tokens=100)))
    prompt = await house.begin()
    await until_compressed(house, 2)

    assert all(tokens <= 100 for _, tokens in house.asked)
    assert all(size + tokens <= prompt.compute_budget().limit for size, tokens in house.asked)


async def test_when_compression_makes_no_room_it_stops_trying_and_says_so_once(house: House) -> None:
    prompt = await house.begin()
    words = "word " * int(prompt.compute_budget().available * 0.44)
    await house.say("user", words)
    await house.say("assistant", words)
    for _ in range(5):
        await house.compactor.compact_if_needed(prompt, house.events.append, house.summarise)

    assert prompt.message_tokens > prompt.compute_budget().trigger
    reasons = [event.reason for event in house.events if isinstance(event, CompressionSkipped)]
    assert reasons == ["nothing in the context can be compacted"] * 2 + ["the last compactions freed no space"]
    assert "Try /compact" in [event.text for event in house.events if isinstance(event, Notice)][-1]


@covers("H298")
async def test_a_snapshot_tells_how_far_the_context_was_compressed(house: House) -> None:
    prompt = await house.begin()
    await house.turn()
    first = await house.snapshots.create_snapshot(prompt.capture_state())
    await until_compressed(house, 2)
    last = await house.snapshots.create_snapshot(prompt.capture_state())

    assert first
    assert last
    assert first.metadata.compression_ratio == 1.0
    assert 0 < last.metadata.compression_ratio < 0.7


@covers("D763")
async def test_removed_context_is_gone_with_the_next_turn(house: House) -> None:
    prompt = await house.begin()
    for source in ("hook", "extension", "user"):
        prompt.entries.add_context(source, f"Words of a {source}", source=source)
    await house.turn()
    assert all(f"Words of a {source}" in prompt.get_system_prompt() for source in ("hook", "extension", "user"))
    prompt.entries.remove_context("hook")
    await house.turn()

    assert "Words of a hook" not in prompt.get_system_prompt()


async def test_goals_the_user_changes_are_told_with_the_next_message(house: House) -> None:
    prompt = await house.begin()
    await house.turn()
    prompt.goals.set("Ship it on Friday")
    await house.turn()
    await house.turn()

    told = [message for message in prompt.build_request_messages() if "Goal: Ship it on Friday" in message.content]
    assert len(told) == 1
    assert told[0].sources == (3,)


async def test_a_context_survives_its_own_file_form(house: House) -> None:
    prompt = await house.begin()
    await until_compressed(house, 2)
    kept = prompt.get_active_context()

    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(kept))), type(kept)) == kept


async def test_results_that_pass_the_trigger_are_read_first_and_make_room_before_the_next_message() -> None:
    talk = Talk(window=8192)
    talk.user("Read them all, please.")
    while talk.prompt.message_tokens <= (state := talk.prompt.compute_budget()).trigger:
        talk.step(filler(30))
        await talk.make_room()
    assert talk.prompt.message_tokens < compute_working_trigger(state)
    assert not talk.of(Compressed)
    talk.assistant("I have read them.")
    talk.user("And now?")
    await talk.make_room()

    assert len(talk.of(Compressed)) == 1


@covers("D816")
async def test_a_hundred_messages_are_compressed_well_within_two_seconds() -> None:
    messages = make.talk(25)
    service = ChatCompressionService(TokenCounter(), make.good)
    begin = time.perf_counter()
    for strategy in ("summarize", "truncate", "hybrid"):
        result = await service.compress(messages, CompressionOptions(strategy=strategy, preserve_recent_tokens=200))
        assert not result.skipped

    assert time.perf_counter() - begin < 2


@covers("H369")
async def test_a_context_that_compaction_keeps_small_is_never_called_nearly_full(house: House) -> None:
    await house.begin()
    await until_compressed(house, 3)

    assert not [event for event in house.events if isinstance(event, Notice) and "nearly full" in event.text]


@pytest.mark.parametrize(
    ("window", "summary", "request_tokens", "ledger"),
    [(512, 40, 395, 102), (1024, 72, 798, 204), (4096, 290, 3191, 819), (32_768, 1024, 26_828, 6553)],
)
def test_what_a_compression_is_told(window: int, summary: int, request_tokens: int, ledger: int) -> None:
    made = Prompt(PromptModel(session_id="s", model="m", window=window), Settings(), TokenCounter(), ContextManager())
    made.add_message(Message(role="user", parts=(TextPart("Hello"),), timestamp="", id=7), {})
    plain = build_options(made.view_context(), Settings())
    earlier = Checkpoint(id="k", text="It was said.", message_ids=(1,), timestamp="", tokens=20)
    made.replace_context(msgspec.structs.replace(made.get_active_context(), checkpoints=(earlier,)), "compression")

    view = made.view_context()
    told, hard = build_options(view, Settings()), build_options(view, Settings(), hard=True)

    assert (told.summary_max_tokens, told.request_tokens, told.ledger_tokens) == (summary, request_tokens, ledger)
    assert (told.request, told.checkpoints, told.locked) == (7, (earlier,), ())
    assert told.target_tokens is not None
    assert told.target_tokens == view.system_tokens + view.budget.checkpoints + compute_target_tokens(view.budget)
    assert view.budget.checkpoints > 0
    assert (plain.checkpoints, plain.request) == ((), 7)
    assert hard == msgspec.structs.replace(told, preserve_recent_tokens=0)
    assert told.preserve_recent_tokens is not None
    assert told.preserve_recent_tokens > 0


def test_a_short_course_goes_the_way_it_went_when_it_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    follow_course(monkeypatch, 12, 2048, 1.0, "summarize", steps=60)


async def test_compacting_by_hand_goes_as_far_as_it_can_and_spares_a_third(house: House) -> None:
    prompt, plans = await house.begin(32_000), list[Any]()

    async def note(*told: Any) -> bool:
        plans.append(told[-1])
        return True

    house.compactor._compact = note  # type: ignore[method-assign]
    await house.say("user", "Go on")
    await house.say("assistant", "I did what was asked. " * 20)
    assert await house.compactor.compact(prompt, house.events.append)

    assert (plans[0].options.target_tokens, plans[0].trigger) == (0, "manual")
    assert plans[0].options.preserve_recent_tokens == prompt.message_tokens // 3
