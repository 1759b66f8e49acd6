"""Snapshots: their form, and when they are taken and restored."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from ollm.domain.context import (
    ActiveContext,
)
from ollm.domain.errors import DamagedError, NotFoundError, OllmError
from ollm.domain.events import (
    AutoSnapshotCreated,
    Notice,
    SnapshotCreated,
    SnapshotDeleted,
    SnapshotError,
    SnapshotRestored,
)
from ollm.domain.messages import PromptMessage
from ollm.domain.session import ContextSnapshot
from ollm.services.snapshots import make_snapshot, read_context
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.services import contexts as make
from tests.services.snapshots.support import CONTEXT, OTHER, SESSION, Shelf, state


def old_form(messages: list[dict[str, Any]], users: list[dict[str, Any]] | None = None) -> str:
    document = {
        "id": "old",
        "sessionId": SESSION,
        "timestamp": "2025-01-01T00:00:00Z",
        "tokenCount": 5,
        "messages": messages,
    }
    return json.dumps(document | ({} if users is None else {"userMessages": users, "goalStack": {"activeGoal": None}}))


@covers("H334")
async def test_older_forms_are_read(shelf: Shelf) -> None:
    shelf.file("old").parent.mkdir(parents=True)
    spoken = [
        {"id": "m1", "role": "user", "content": "Hello", "timestamp": "2025-01-01T00:00:01Z"},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [{"type": "text", "text": "Hi."}],
            "timestamp": "2025-01-01T00:00:02Z",
        },
        {"id": "m3", "role": "user", "content": "Go", "timestamp": "2025-01-01T00:00:03Z"},
    ]
    for text in (
        old_form(spoken),
        old_form(spoken, [spoken[0], spoken[2]]),
        old_form([spoken[1]], [spoken[0], spoken[2]]),
    ):
        shelf.file("old").write_text(text, "utf-8")
        context = await shelf.manager.restore_snapshot("old")
        assert [(m.role, m.content) for m in context.messages] == [
            ("user", "Hello"),
            ("assistant", "Hi."),
            ("user", "Go"),
        ]
        assert context.mode == "code"


@covers("H48")
async def test_user_messages_are_kept_in_full_even_when_the_context_holds_them_shortened(shelf: Shelf) -> None:
    context = ActiveContext(messages=(make.user(5, "Start [... left out] end"), make.assistant(6, "Yes.")))
    words = {1: "The very first", 5: "Start " + "and so on " * 200 + "end"}

    taken = await shelf.manager.create_snapshot(state(context, words=words))

    assert taken is not None
    assert [entry["content"] for entry in taken.user_messages] == [words[1], words[5]]
    assert taken.metadata.total_user_messages == 2
    assert await shelf.manager.restore_snapshot(taken.id) == context


@covers("H325", "H332")
@given(make.contexts())
def test_what_was_taken_comes_back_message_for_message(
    tmp_path_factory: pytest.TempPathFactory, messages: list[PromptMessage]
) -> None:
    shelf = Shelf(tmp_path_factory.mktemp("snapshots"))
    before = ActiveContext(
        messages=tuple(messages[1:]), checkpoints=CONTEXT.checkpoints, goals=CONTEXT.goals, mode="plan"
    )

    async def there_and_back() -> ActiveContext:
        taken = await shelf.manager.create_snapshot(state(before))
        assert taken is not None
        return await shelf.manager.restore_snapshot(taken.id)

    assert asyncio.run(there_and_back()) == before


def snapshot(messages: list[dict[str, Any]], users: list[dict[str, Any]] | None = None, **more: Any) -> ContextSnapshot:
    plain = msgspec.to_builtins(make_snapshot(state(ActiveContext()), "manual", "s1", "2026-01-01T00:00:00Z"))
    return msgspec.convert({**plain, "messages": messages, "userMessages": users or [], **more}, ContextSnapshot)


@pytest.mark.parametrize(
    ("entry", "content", "sources"),
    [
        ({"role": "user", "content": "whole", "shown": "short", "id": 3}, "short", (3,)),
        ({"role": "user", "content": "x", "id": "m1"}, "x", ()),
        ({"role": "user", "content": "first", "id": 1}, "first", (1,)),
        ({"role": "user", "content": "none", "id": 0}, "none", ()),
        ({"role": "user", "content": "x", "id": 0}, "x", ()),
        ({"role": "user", "content": "x", "id": 3, "sources": [1, 2]}, "x", (1, 2)),
        ({"role": "user", "content": [{"text": "a"}, {"other": 1}, {"text": "b"}, "c"]}, "ab", ()),
        ({"role": "user", "parts": [{"text": "a"}]}, "a", ()),
        ({"role": "user"}, "", ()),
    ],
)
def test_a_message_is_read_in_every_form(entry: dict[str, Any], content: str, sources: tuple[int, ...]) -> None:
    (message,) = read_context(snapshot([entry])).messages

    assert (message.content, message.sources) == (content, sources)


def test_a_message_nobody_can_read_is_damage() -> None:
    with pytest.raises(DamagedError, match="A message of the snapshot cannot be read: "):
        read_context(snapshot([{"role": "king", "content": "x"}]))


@covers(
    "H46",
    "H47",
    "H49",
    "H50",
    "H51",
    "H55",
    "H240",
    "H277",
    "H278",
    "H281",
    "H285",
    "H288",
    "H296",
    "H297",
    "H298",
    "H299",
    "H300",
    "H301",
    "H302",
    "H303",
    "H304",
    "H315",
    "H318",
    "H752",
)
async def test_a_snapshot_stands_where_it_belongs_with_the_fields_it_must_have(shelf: Shelf) -> None:
    snapshot = await shelf.manager.create_snapshot(state(words={1: "Look at part 0"}))

    assert snapshot is not None
    document = json.loads(shelf.file(snapshot.id).read_text("utf-8"))
    assert set(document) == {
        "id", "sessionId", "timestamp", "tokenCount", "summary", "userMessages", "archivedUserMessages", "messages",
        "goalStack", "reasoningStorage", "metadata", "trigger", "mode", "checkpoints",
    }  # fmt: skip
    assert document["archivedUserMessages"] == []
    assert {entry["role"] for entry in document["userMessages"]} == {"user"}
    assert "user" not in {entry["role"] for entry in document["messages"]}
    assert all({"id", "index"} <= set(entry) for entry in [*document["messages"], *document["userMessages"]])
    assert document["metadata"] == {
        "model": "llama3", "contextSize": 8192, "compressionRatio": 1.0, "totalUserMessages": 3, "activeGoalId": "g",
        "totalGoalsCompleted": 0, "totalCheckpoints": 1, "isReasoningModel": False, "totalThinkingTokens": 1,
    }  # fmt: skip
    index = json.loads((shelf.file(snapshot.id).parent / "snapshots-index.json").read_text("utf-8"))
    assert [entry["id"] for entry in index] == [snapshot.id]
    assert json.loads((shelf.root / "snapshot-map.json").read_text("utf-8")) == {snapshot.id: SESSION}
    assert shelf.file(snapshot.id).stat().st_mode & 0o777 == 0o600
    assert shelf.file(snapshot.id).parent.stat().st_mode & 0o777 == 0o700


@covers("H339", "H340")
async def test_the_newest_comes_first(shelf: Shelf) -> None:
    taken = [await shelf.manager.create_snapshot(state()) for _ in range(4)]

    listed = await shelf.manager.list_snapshots(SESSION)

    assert [entry.id for entry in listed] == [snapshot.id for snapshot in reversed(taken) if snapshot]
    assert await shelf.manager.list_snapshots(OTHER) == []


@covers("H270", "H327", "H353")
async def test_beyond_the_count_the_oldest_automatic_ones_go_first(shelf: Shelf) -> None:
    first = await shelf.manager.create_snapshot(state(), "manual")
    automatic = [await shelf.manager.create_snapshot(state(), "compression") for _ in range(6)]

    listed = [entry.id for entry in await shelf.manager.list_snapshots(SESSION)]

    assert first is not None
    assert listed == [*[s.id for s in reversed(automatic[2:]) if s], first.id]
    assert shelf.kinds().count(SnapshotDeleted) == 2


@covers("H345", "H685", "H686", "H687", "H688", "H689")
async def test_every_step_is_an_event(shelf: Shelf) -> None:
    by_hand = await shelf.manager.create_snapshot(state())
    await shelf.manager.create_snapshot(state(), "mode")
    assert by_hand is not None
    await shelf.manager.restore_snapshot(by_hand.id)
    await shelf.manager.delete_snapshot(by_hand.id)
    with pytest.raises(NotFoundError):
        await shelf.manager.restore_snapshot(by_hand.id)

    assert shelf.kinds() == [SnapshotCreated, AutoSnapshotCreated, SnapshotRestored, SnapshotDeleted, SnapshotError]


@covers("H271")
async def test_a_restore_can_be_undone_even_when_the_shelf_is_full(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, max_count=1, auto_create=False)
    taken = await shelf.manager.create_snapshot(state())
    assert taken is not None
    now = ActiveContext(messages=(make.user(9, "Now"),))

    assert await shelf.manager.restore_snapshot(taken.id, current=state(now)) == CONTEXT
    kept = (await shelf.manager.list_snapshots(SESSION))[0]
    assert kept.trigger == "restore"
    assert await shelf.manager.restore_snapshot(kept.id) == now


@covers("H352", "H354")
async def test_turned_off_there_are_none_and_it_is_said(tmp_path: Path) -> None:
    off = Shelf(tmp_path / "off", enabled=False)
    by_hand_only = Shelf(tmp_path / "hand", auto_create=False)

    assert await off.manager.create_snapshot(state()) is None
    assert off.kinds() == [Notice]
    assert await by_hand_only.manager.create_snapshot(state(), "compression") is None
    assert await by_hand_only.manager.create_snapshot(state(), "manual") is not None


@covers("H363", "H369")
async def test_thresholds_fire_when_first_reached_and_again_only_after_a_fall(shelf: Shelf) -> None:
    seen: list[str] = []

    async def at_threshold() -> None:
        seen.append("threshold")

    shelf.manager.on_context_threshold(0.85, at_threshold)
    shelf.manager.on_before_overflow(lambda: seen.append("overflow"))
    for tokens in (84, 85, 90, 95, 99, 50, 86, 96):
        await shelf.manager.check_thresholds(tokens, 100)
    await shelf.manager.check_thresholds(5, 0)

    assert seen == ["threshold", "overflow", "threshold", "overflow"]


async def test_index_and_map_are_written_anew_when_they_are_missing_or_wrong(shelf: Shelf) -> None:
    taken = [await shelf.manager.create_snapshot(state()) for _ in range(3)]
    before = await shelf.manager.list_snapshots(SESSION)
    directory = shelf.root / SESSION / "snapshots"
    for damage in ("", "{", "[]", '[{"id": 1}]'):
        (directory / "snapshots-index.json").write_text(damage, "utf-8")
        (shelf.root / "snapshot-map.json").write_text(damage, "utf-8")
        assert await shelf.manager.list_snapshots(SESSION) == before
        assert taken[0] is not None
        assert await shelf.manager.restore_snapshot(taken[0].id) == CONTEXT
    (directory / "snapshots-index.json").unlink()
    (shelf.root / "snapshot-map.json").unlink()
    assert await shelf.manager.list_snapshots(SESSION) == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not a JSON object"),
        ("[" * 200_000, "not a JSON object"),
        ("[]", "not a JSON object"),
        ("\x00\xff", "not a JSON object"),
        (json.dumps({"id": "x", "sessionId": OTHER}), "another session"),
        (json.dumps({"id": "x", "sessionId": SESSION, "schemaVersion": 9}), "newer"),
        (json.dumps({"id": "x", "sessionId": SESSION, "timestamp": 5}), "broken"),
        (
            json.dumps({"id": "x", "sessionId": SESSION, "timestamp": "t", "messages": [{"role": "king"}]}),
            "cannot be read",
        ),
    ],
)
async def test_what_cannot_be_trusted_is_refused_with_the_reason(shelf: Shelf, content: str, reason: str) -> None:
    shelf.file("bad").parent.mkdir(parents=True)
    shelf.file("bad").write_text(content, "latin-1")

    with pytest.raises(OllmError, match=reason):
        await shelf.manager.restore_snapshot("bad")
    assert [entry.id for entry in await shelf.manager.list_snapshots(SESSION)] == ["bad"]
    await shelf.manager.delete_snapshot("bad")
    assert await shelf.manager.list_snapshots(SESSION) == []


async def test_a_snapshot_of_another_session_is_not_restored_into_this_one(shelf: Shelf) -> None:
    taken = await shelf.manager.create_snapshot(state(session=OTHER))
    assert taken is not None

    with pytest.raises(OllmError, match="belongs to session"):
        await shelf.manager.restore_snapshot(taken.id, current=state())


@pytest.mark.parametrize("name", ["../../etc/passwd", "", ".", "a/b", "a\x00b", "x" * 300])
async def test_an_id_never_leads_out_of_the_directory(shelf: Shelf, name: str) -> None:
    for attempt in (shelf.manager.restore_snapshot(name), shelf.manager.list_snapshots(name)):
        with pytest.raises(NotFoundError):
            await attempt


@covers("H721")
def test_a_snapshot_that_cannot_be_written_is_told_and_ends_nothing() -> None:
    def body(directory: Path) -> None:
        (directory / "shut").mkdir(mode=0o555)
        shelf = Shelf(directory / "shut")

        assert asyncio.run(shelf.manager.create_snapshot(state())) is None
        assert shelf.kinds() == [SnapshotError, Notice]

    as_ordinary_user(body)
