"""The session of a conversation: none until the first message, then open until the end."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import CompressionRecord
from ollm.domain.messages import Message, TextPart, ToolCallPart
from ollm.domain.model_facts import ModelFacts
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import ToolCallRecord
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import Model
from ollm.runtime.session import OpenSession, load_history_page
from ollm.services.chat_recording.service import ChatRecordingService
from ollm.store.session_files.loading import LoadedSession
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import MessagePage, SessionFiles
from tests.covers import covers

MODEL = Model(OpenAICompatible(Exchange("http://127.0.0.1:9", ProviderTimeouts())), "m", 4096, ModelFacts(key="k"))


def open_session(tmp_path: Path) -> OpenSession:
    service = ChatRecordingService(SessionFiles(SessionPlaces(directory=tmp_path / "sessions")))
    return OpenSession(service, "/w", "one-shot", lambda: datetime(2026, 1, 2, tzinfo=UTC))


def compression(number: int) -> CompressionRecord:
    return CompressionRecord(
        timestamp="2026-01-01T00:00:00.000Z",
        trigger="auto",
        strategy="hybrid",
        original_token_count=number,
        compressed_token_count=1,
        message_ids=(1,),
        checkpoint=None,
    )


# Feature: services-sessions, Property 13: a compression adds exactly one to compressionCount
@covers("S3.8", "P13")
@given(rounds=st.lists(st.integers(0, 3), min_size=1, max_size=3), before=st.integers(0, 7))
def test_each_compression_counts_one_more_also_where_the_history_is_shorter(rounds: list[int], before: int) -> None:
    """`rounds` holds the number of compressions between an opening of the session and its end."""

    async def compress(place: Path) -> None:
        session = open_session(place)
        session_id = await session.create(MODEL)
        await session.record_message("user", (TextPart("hello"),))
        await session.update_metadata({"compressionCount": before})
        await session.close()
        for number in rounds:
            again = open_session(place)
            await again.resume(session_id, 0)
            for one in range(number):
                await again.record_compression(compression(one))
            metadata = again.load().metadata
            await again.close()
        assert metadata.compression_count == before + sum(rounds)
        kept = [record["originalTokenCount"] for record in metadata.compression_history]
        assert kept == [one for number in rounds for one in range(number)]

    with TemporaryDirectory() as place:
        asyncio.run(compress(Path(place)))


AT = "2026-01-27T10:00:00.000Z"
NUMBERS = (1, 2, 5, 6, 9)  # some are missing, as after damage


def message(number: int) -> Message:
    parts = (TextPart(f"m{number}"), *((ToolCallPart("c6"), ToolCallPart("gone")) if number == 6 else ()))
    return Message(id=number, role="assistant", parts=parts, timestamp=AT)


class Archive:
    """Reads as the store does: the last `count` numbers before a message, whatever is there of them."""

    def __init__(self) -> None:
        self.asked: list[MessagePage] = []

    def read(self, page: MessagePage) -> LoadedSession:
        self.asked.append(page)
        before = page.before or max(NUMBERS) + 1
        found = [number for number in NUMBERS if before - page.limit <= number < before]
        older = [number for number in NUMBERS if number < before - page.limit]
        session = Session(
            session_id="s",
            start_time=AT,
            last_activity=AT,
            model="m",
            provider="p",
            messages=tuple(map(message, found)),
            tool_calls=(ToolCallRecord(id="c6", name="ls", args={}, timestamp=AT),),
            metadata=SessionMetadata(),
        )
        return LoadedSession(
            session=session,
            damage=None,
            read_only=None,
            skipped=max(older, default=0),
            calls_so_far=1,
            partial=[],
        )


@pytest.mark.parametrize(
    ("before", "limit", "numbers"),
    [
        (None, 2, [6, 9]),
        (None, 50, [1, 2, 5, 6, 9]),
        (6, 2, [2, 5]),
        (6, 1, [5]),
        (1, 5, []),
        (None, 0, []),
        (9, 3, [2, 5, 6]),
    ],
)
def test_a_page_is_the_newest_messages_before_a_number_oldest_first(
    before: int | None, limit: int, numbers: list[int]
) -> None:
    archive = Archive()

    page = load_history_page(archive.read, before, limit)

    assert [found["id"] for found in page] == numbers


def test_calls_stand_beside_the_message_that_asked_and_unknown_ones_are_left_out() -> None:
    (found,) = load_history_page(Archive().read, 7, 1)

    assert [call["name"] for call in found["toolCalls"]] == ["ls"]
    assert found["parts"][0] == {"type": "text", "text": "m6"}
