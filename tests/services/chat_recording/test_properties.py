"""The correctness properties of session recording (P1 to P9), each with at least a hundred examples."""

import asyncio
import json
import tempfile
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ollm.domain.clock import format_stamp, parse_stamp
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.services.chat_recording.library import SessionLibrary
from tests.covers import covers
from tests.store.sessions.support import Home, call, said

EXAMPLES = 100
QUICK = "/dev/shm"
times = st.integers(0, 4_000_000_000).map(lambda second: format_stamp(datetime.fromtimestamp(second, UTC)))
texts = st.text(max_size=80)
names = st.text("abcdefgh_", min_size=1, max_size=8)
parts = st.one_of(
    st.builds(TextPart, texts),
    st.builds(ThinkingPart, texts),
    st.builds(ImagePart, st.just("image/png"), st.just("aGk=")),
    st.builds(ToolCallPart, names),
    st.builds(ToolResultPart, names),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    timestamp=times,
    interrupted=st.booleans(),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
results = st.none() | st.builds(RecordedResult, llm_content=texts, return_display=texts, full_output=st.none() | texts)
calls = st.builds(
    ToolCallRecord,
    id=names,
    name=names,
    args=st.dictionaries(texts, values, max_size=3),
    timestamp=times,
    result=results,
    message_id=st.integers(0, 9),
    status=st.sampled_from(["ok", "failed", "denied", "cancelled", "interrupted"]),
    error=st.none() | st.builds(ErrorInfo, type=names, message=texts),
)
records = st.lists(messages | calls, max_size=8)


def in_a_home(work, **settings_of_home):
    """Run `work(home)` in a home of its own, in memory where there is such a place: a sync costs nothing there."""
    with tempfile.TemporaryDirectory(dir=QUICK if Path(QUICK).is_dir() else None) as root:
        home = Home(Path(root), **settings_of_home)
        try:
            return asyncio.run(work(home))
        finally:
            home.crash()


async def recorded(home: Home, said_and_done, *, fold_every: int = 3):
    """A session still open, what was recorded in it, and its service."""
    service = home.service()
    session_id = await service.create_session("model", "provider")
    kept, done = [], {}
    for place, record in enumerate(said_and_done):
        if isinstance(record, Message):
            kept.append(await service.record_message(session_id, record))
        else:
            first = done.get(record.id, record)  # any of these three would make it another call
            done[record.id] = replace(record, name=first.name, args=first.args, message_id=first.message_id)
            await service.record_tool_call(session_id, done[record.id])
        if place % fold_every == fold_every - 1:
            await service.end_turn(session_id)
    return service, session_id, tuple(kept), tuple(done.values())


@covers("P1", "P2", "P3", "P7", "S1.1", "S1.2", "S1.3", "S1.5", "S1.7", "S1.8", "S2.1", "S2.2", "S2.3", "S2.4", "S9.3")
@covers("S9.6", "D96", "D106", "D107", "D113", "D114", "D152", "H83", "H84", "H86")
@settings(max_examples=EXAMPLES)
@given(records, st.integers(1, 9))
def test_what_was_recorded_is_there_unclosed_and_saved_with_all_its_fields_and_valid_times(said_and_done, fold_every):
    """Feature: services-sessions, Property 1: Session persistence round-trip.
    Feature: services-sessions, Property 2: Session file format completeness.
    Feature: services-sessions, Property 3: Timestamp format validity.
    Feature: services-sessions, Property 7: Session auto-save durability."""

    async def work(home: Home) -> None:
        service, session_id, kept, done = await recorded(home, said_and_done, fold_every=fold_every)
        unsaved = await home.service().get_session(session_id)
        await service.save_session(session_id)
        for found in (unsaved, await home.service().get_session(session_id), await service.get_session(session_id)):
            assert found.messages == kept
            assert found.tool_calls == done
        document = json.loads(home.document(session_id).read_bytes())
        assert {
            "sessionId",
            "startTime",
            "lastActivity",
            "model",
            "provider",
            "messages",
            "toolCalls",
            "metadata",
        } <= document.keys()
        assert {"tokenCount", "compressionCount"} <= document["metadata"].keys()
        assert all({"role", "parts", "timestamp"} <= message.keys() for message in document["messages"])
        assert all({"id", "name", "args", "result", "timestamp"} <= found.keys() for found in document["toolCalls"])
        stamps = [document["startTime"], document["lastActivity"]]
        stamps += [entry["timestamp"] for entry in document["messages"] + document["toolCalls"]]
        assert all(parse_stamp(moment).tzinfo for moment in stamps)

    in_a_home(work)


@covers("P4", "S1.7", "S2.5", "S9.1")
@settings(max_examples=EXAMPLES)
@given(st.lists(texts, min_size=2, max_size=6))
def test_session_ids_are_uuids_and_unique(models):
    """Feature: services-sessions, Property 4: Session ID uniqueness and format."""

    async def work(home: Home) -> None:
        service = home.service()
        ids = [await service.create_session(model, "p") for model in models]
        assert len(set(ids)) == len(models)
        assert all(str(uuid.UUID(session_id)) == session_id for session_id in ids)

    in_a_home(work)


@covers("P5", "S1.4")
@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=4))
def test_a_list_has_every_session_with_its_counts(sessions):
    """Feature: services-sessions, Property 5: Session listing completeness."""

    async def work(home: Home) -> None:
        service = home.service()
        wanted = {}
        for count, closed in sessions:
            session_id = await service.create_session(f"model {count}", "p", workspace="/w")
            for number in range(count):
                await service.record_message(session_id, said(f"number {number}"))
            if closed:
                await service.close_session(session_id)
            found = await service.get_session(session_id)
            tokens = found.metadata.token_count
            status = "closed" if closed else "active"
            times = (found.start_time, found.last_activity)
            wanted[session_id] = (count, f"model {count}", tokens, "number 0", "/w", status, *times)
            assert parse_stamp(found.start_time) <= parse_stamp(found.last_activity)
            assert tokens > 0
        without_index = SessionLibrary(home.files, None).list_summaries()
        for listed in (await service.list_sessions(), await home.service().list_sessions(), without_index):
            found = {
                line.session_id: (
                    line.message_count,
                    line.model,
                    line.token_count,
                    line.title,
                    line.workspace,
                    line.status,
                    line.start_time,
                    line.last_activity,
                )
                for line in listed
            }
            assert found == wanted

    in_a_home(work)


@covers("P6", "S1.6")
@settings(max_examples=EXAMPLES)
@given(records, st.booleans())
def test_a_deleted_session_leaves_no_file_and_no_line(said_and_done, closed):
    """Feature: services-sessions, Property 6: Session deletion removes file."""

    async def work(home: Home) -> None:
        service, session_id, _, _ = await recorded(home, [said("keep"), *said_and_done])
        if closed:
            await service.close_session(session_id)
        await service.delete_session(session_id)
        assert list(home.sessions.iterdir()) == []
        assert await service.list_sessions() == []
        assert await service.get_session(session_id) is None

    in_a_home(work)


@covers("P8", "S9.4")
@settings(max_examples=EXAMPLES)
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_over_the_limit_the_oldest_go_until_it_is_kept(limit, more, data):
    """Feature: services-sessions, Property 8: Session count limit enforcement."""
    order = data.draw(st.permutations(range(limit + more)))

    async def work(home: Home) -> None:
        ids = []
        for age in order:
            service = Home(home.root, max_sessions=0).service(
                clock=lambda age=age: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=age)
            )
            session_id = await service.create_session("m", "p")
            await service.record_message(session_id, said("x"))
            await service.close_session(session_id)
            ids.append((age, session_id))
        gone = home.library().enforce_limit()
        assert gone == [session_id for _, session_id in sorted(ids)[:more]]
        left = {line["sessionId"] for line in home.index().list_sessions()}
        assert left == {session_id for _, session_id in sorted(ids)[more:]}
        assert {found.session_id for found in home.library().list_trashed()} == set(gone)

    in_a_home(work, max_sessions=limit)


@covers("P9", "S9.5")
@settings(max_examples=EXAMPLES)
@given(records, st.lists(st.integers(-10_000, 10_000), min_size=30, max_size=30))
def test_the_last_activity_never_goes_back(said_and_done, jumps):
    """Feature: services-sessions, Property 9: Last activity timestamp updates."""
    clock = iter(jumps)

    async def work(home: Home) -> None:
        service = home.service(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(clock, 0)))
        session_id = await service.create_session("m", "p")
        last = ""
        for record in [*said_and_done, call("end", result="x")]:
            if isinstance(record, Message):
                await service.record_message(session_id, record)
            else:
                await service.record_tool_call(session_id, record)
            now = (await service.get_session(session_id)).last_activity
            assert now >= last
            last = now

    in_a_home(work)
