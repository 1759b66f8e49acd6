"""Making room, with real files: snapshots before, the archive untouched, the way back open."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ollm.config.settings import CompressionSettings, Settings, SnapshotSettings
from ollm.domain.context import CompressionRecord
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
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.compaction import (
    CONTEXT_FULL_ACTIONS,
    FREES_TOO_LITTLE,
    Compactor,
    ContextFull,
)
from ollm.runtime.prompt.messages import MESSAGE_TOO_LONG
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.runtime.resume.resume import rebuild_context
from ollm.services.budget import compute_working_trigger
from ollm.services.chat_compression.compression_state import CompressionOptions
from ollm.services.chat_compression.service import ChatCompressionService
from ollm.services.chat_recording.service import ChatRecordingService
from ollm.services.context_manager import ContextManager
from ollm.services.goals import GOALS_CHECKPOINT_ID
from ollm.services.snapshots import SnapshotManager
from ollm.services.token_counting import TokenCounter
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from ollm.store.snapshot_files import SnapshotFiles
from tests.covers import covers
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
        history = [*session.metadata.compression_history, msgspec.to_builtins(record)]
        changes = {"compressionCount": session.metadata.compression_count + 1, "compressionHistory": history}
        await self.recording.update_metadata(self.session, changes)

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
    other.restore(again)
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
    assert len(prompt.get_active_context().checkpoints) == 1


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
    assert list_reasons(house) == [NOTHING] * 2 + [NO_SPACE]
    told = [event.text for event in house.events if isinstance(event, Notice)]
    assert told == [f"Compaction frees no more space. {CONTEXT_FULL_ACTIONS}"]


NOTHING, NO_SPACE = "nothing in the context can be compacted", "the last compactions freed no space"


def list_reasons(house: House) -> list[str]:
    return [event.reason for event in house.events if isinstance(event, CompressionSkipped)]


async def give_up(house: House, share: float = 0.44) -> Prompt:
    """Over the trigger, with nothing that could be folded, until it is no longer tried."""
    prompt = await house.begin()
    words = "word " * int(prompt.compute_budget().available * share)
    await house.say("user", words)
    await house.say("assistant", words)
    for _ in range(4):
        await house.compactor.compact_if_needed(prompt, house.events.append, house.summarise)
    assert list_reasons(house) == [NOTHING] * 2 + [NO_SPACE]
    house.events.clear()
    return prompt


async def test_who_compacts_by_hand_lets_it_be_tried_and_told_again(house: House) -> None:
    prompt = await give_up(house)

    assert not await house.compactor.compact(prompt, house.events.append, house.summarise)
    for _ in range(4):
        await house.compactor.compact_if_needed(prompt, house.events.append, house.summarise)

    assert list_reasons(house) == [NOTHING] * 3 + [NO_SPACE]


async def test_what_waits_to_be_told_is_told_when_it_is_compacted_by_hand(house: House) -> None:
    prompt = await house.begin()
    await house.say("user", "word " * 3000)
    await house.compactor.compact(prompt, house.events.append, house.summarise)

    assert MESSAGE_TOO_LONG in [event.text for event in house.events if isinstance(event, Notice)]


def fill(prompt: Prompt, tokens: int) -> None:
    """Messages of so many tokens, as they are counted."""
    prompt.meter.restart(float(tokens))
    while prompt.message_tokens < tokens:
        prompt.meter.add_units(0.25)
    assert prompt.message_tokens == tokens


async def test_one_snapshot_is_taken_of_each_state_and_one_that_failed_is_tried_again(
    house: House, tmp_path: Path
) -> None:
    prompt = await house.begin()
    await house.say("user", "Go on")
    (tmp_path / "context-snapshots").write_text("in the way", "utf-8")
    await house.compactor.compact(prompt, house.events.append)
    assert len(house.of(SnapshotError)) == 1
    (tmp_path / "context-snapshots").unlink()
    for _ in range(3):
        await house.compactor.compact(prompt, house.events.append)
    assert len(await house.snapshots.list_snapshots(house.session)) == 1
    await house.say("user", "And now")
    await house.compactor.compact(prompt, house.events.append)

    assert len(await house.snapshots.list_snapshots(house.session)) == 2


async def test_a_snapshot_at_the_threshold_is_taken_once_each_time_it_is_passed(tmp_path: Path) -> None:
    house = House(tmp_path, Settings(snapshots=SnapshotSettings(auto_threshold=0.5, max_count=9)))
    prompt = await house.begin()
    await house.say("user", "Go on")
    for tokens, taken in ((100, 0), (1800, 1), (1900, 1), (100, 1), (1800, 2)):
        prompt.revision += 1
        fill(prompt, tokens)
        await house.compactor.compact_if_needed(prompt, house.events.append, house.summarise)
        found = await house.snapshots.list_snapshots(house.session)
        assert [entry.trigger for entry in found] == ["threshold"] * taken


async def test_a_compaction_that_passes_the_threshold_keeps_its_own_snapshot_alone(tmp_path: Path) -> None:
    house = House(tmp_path, Settings(snapshots=SnapshotSettings(auto_threshold=0.5, max_count=9)))
    prompt = await house.begin()
    while prompt.message_tokens <= prompt.compute_budget().trigger:
        await house.say("user", "Go on")
        await house.say("assistant", "I did what was asked. " * 20)
    await house.compactor.compact_if_needed(prompt, house.events.append, house.summarise)

    assert house.of(Compressed)
    assert [entry.trigger for entry in await house.snapshots.list_snapshots(house.session)] == ["compression"]


def list_tools(*names: str) -> list[ToolSchema]:
    return [ToolSchema(name=name, description="Words " * 120, parameters={"type": "object"}) for name in names]


@pytest.mark.parametrize(("size", "folds"), [(8, False), (20, True)])
async def test_by_hand_nothing_is_folded_that_frees_less_than_the_tool_that_brings_it_back(
    house: House, size: int, folds: bool
) -> None:
    prompt = await house.begin()
    prompt.set_tools(list_tools("ls"), lambda: list_tools("ls", "recall"))
    for _ in range(8):
        await house.turn(size)

    assert await house.compactor.compact(prompt, house.events.append, house.summarise) is folds
    assert list_reasons(house) == ([] if folds else [FREES_TOO_LITTLE])
    assert [tool.name for tool in prompt.tools] == (["ls", "recall"] if folds else ["ls"])


async def test_goals_stand_behind_the_records_once_however_often_it_is_compacted(house: House) -> None:
    prompt = await house.begin()
    prompt.goals.set("Ship it")
    await until_compressed(house, 3)

    ids = [found.id for found in prompt.get_active_context().checkpoints]
    assert ids.count(GOALS_CHECKPOINT_ID) == 1
    assert ids[-1] == GOALS_CHECKPOINT_ID
    assert len(ids) > 1
    assert prompt.get_active_context().messages[0].content.startswith(("Go on", "I did"))


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
    begin = time.process_time()
    for strategy in ("summarize", "truncate", "hybrid"):
        result = await service.compress(messages, CompressionOptions(strategy=strategy, preserve_recent_tokens=200))
        assert not result.skipped

    assert time.process_time() - begin < 2


@covers("H369")
async def test_a_context_that_compaction_keeps_small_is_never_called_nearly_full(house: House) -> None:
    await house.begin()
    await until_compressed(house, 3)

    assert not [event for event in house.events if isinstance(event, Notice) and "nearly full" in event.text]
