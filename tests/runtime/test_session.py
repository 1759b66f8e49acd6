"""The session of a conversation: none until the first message, then open until the end."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import CompressionRecord
from ollm.domain.errors import NotFoundError
from ollm.domain.messages import TextPart
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolCallRecord
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import Model
from ollm.runtime.session import OpenSession
from ollm.services.chat_recording import ChatRecordingService
from ollm.store.session_files import SessionFiles, SessionPlaces
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


async def test_before_the_first_message_there_is_none(tmp_path: Path) -> None:
    session = open_session(tmp_path)

    assert (session.id, session.title, session.load_page(None, 10)) == (None, "", [])
    with pytest.raises(NotFoundError, match="No session yet"):
        _ = session.recorder
    await session.update_metadata({"title": "x"})
    await session.ensure_saved()
    await session.close()
    assert not (tmp_path / "sessions").exists() or list((tmp_path / "sessions").iterdir()) == []


async def test_a_session_is_created_for_its_model_and_workspace(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session_id = await session.create(MODEL)
    await session.recorder.record_message("user", (TextPart("hello"),))

    loaded = session.load()
    assert session.id == session_id
    assert (loaded.model, loaded.provider) == ("m", MODEL.provider.name)
    assert (loaded.metadata.workspace, loaded.metadata.origin, loaded.metadata.context_window) == (
        "/w",
        "one-shot",
        4096,
    )
    assert session.load_user_messages() == {1: "hello"}
    assert [found["id"] for found in session.load_page(None, 10)] == [1]
    await session.rename("another")
    assert (session.title, session.load().metadata.title) == ("another", "another")
    await session.close()
    assert session.id is None
    await session.close()


async def test_a_resumed_session_goes_on_with_its_numbers_and_title(tmp_path: Path) -> None:
    first = open_session(tmp_path)
    session_id = await first.create(MODEL)
    await first.recorder.record_message("user", (TextPart("hello"),))
    await first.close()

    again = open_session(tmp_path)
    resumed = await again.resume(session_id, 0)

    assert [message.text for message in resumed.session.messages] == ["hello"]
    assert (resumed.damage, resumed.skipped, again.title) == ("", 0, "hello")
    assert again.recorder.make_call_id() == "c1"
    assert (await again.recorder.record_message("user", (TextPart("two"),))).id == 2
    await again.close()


@covers("S3.8", "P13")
async def test_each_compression_counts_one_more_also_where_the_history_is_shorter(tmp_path: Path) -> None:
    first = open_session(tmp_path)
    session_id = await first.create(MODEL)
    await first.recorder.record_message("user", (TextPart("hello"),))
    await first.record_compression(compression(10))
    await first.update_metadata({"compressionCount": 7})
    await first.close()
    again = open_session(tmp_path)
    await again.resume(session_id, 0)

    await again.record_compression(compression(20))
    await again.record_compression(compression(30))

    metadata = again.load().metadata
    assert metadata.compression_count == 9
    assert [record["originalTokenCount"] for record in metadata.compression_history] == [10, 20, 30]
    await again.close()


async def test_calls_of_a_new_session_are_numbered_from_one_and_an_empty_one_stays_where_it_is_kept(
    tmp_path: Path,
) -> None:
    for kept in (True, False):
        session = open_session(tmp_path / str(kept))
        await session.keep()
        session_id = await session.create(MODEL)
        assert session.recorder.make_call_id() == "c1"
        if kept:
            await session.keep()
        await session.close()
        assert [path.stem for path in (tmp_path / str(kept) / "sessions").glob("*.json")] == [session_id] * kept


async def test_a_call_is_recorded_and_what_is_in_memory_only_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(tmp_path)
    session_id = await session.create(MODEL)
    await session.recorder.record_message("user", (TextPart("hello"),))
    await session.record_tool_call(ToolCallRecord(id="c1", name="ls", args={}, timestamp="", message_id=1))
    asked: list[str] = []

    async def note(_self: object, asked_for: str) -> None:
        asked.append(asked_for)

    monkeypatch.setattr(ChatRecordingService, "ensure_saved", note)
    await session.ensure_saved()

    assert [call.id for call in session.load().tool_calls] == ["c1"]
    assert asked == [session_id]
    await session.close()
