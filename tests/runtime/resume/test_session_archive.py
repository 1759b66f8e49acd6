"""What a session leaves for its resume, and reads back from its archive."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.resume import session_archive
from ollm.runtime.resume.session_archive import (
    SessionArchive,
    get_call_output,
    render_archived_message,
)
from ollm.runtime.resume.workspace_record import SavedContext, read_last_number, read_saved_context
from ollm.services.message_search import MessageMatch
from ollm.store.session_files.store import MessagePage
from ollm.store.session_index.passages import IndexedText
from ollm.store.session_index.session_texts import Vector
from tests.runtime.prompt.test_prompt import Talk


def talked() -> Talk:
    talk = Talk()
    talk.entries.add_context("mine", "Use tabs.", source="user")
    talk.entries.add_context("theirs", "From a file.", source="system")
    talk.user("Build it")
    talk.step("all good")
    talk.prompt.build_request_messages()
    return talk


def test_what_cannot_be_read_is_none() -> None:
    assert read_saved_context(None) is None
    assert read_saved_context(b"") is None
    assert read_saved_context(b'{"lastNumber": 5}') is None
    assert read_last_number(b'{"lastNumber": 5, "other": 1}') == 5
    assert (read_last_number(None), read_last_number(b"{"), read_last_number(b"{}")) == (0, 0, 0)


def test_one_of_an_earlier_version_knows_of_no_goals_to_tell_and_no_snapshot() -> None:
    kept = msgspec.to_builtins(SavedContext.from_prompt(talked().prompt, 3))
    for name in ("goalsTold", "armed", "counted", "entries", "ledger", "forms", "tokenFactor"):
        del kept[name]

    again = read_saved_context(msgspec.json.encode(kept))

    assert again is not None
    assert (again.goals_told, again.armed, again.counted, again.entries) == (True, True, None, ())


CONTENT = "x = 1\n" * 400

CALL = ToolCallRecord(
    id="c1",
    name="write_file",
    args={"path": "a.py", "content": CONTENT, "overwrite": True},
    timestamp="",
    result=RecordedResult(llm_content="cut", full_output="Wrote all of it"),
    message_id=2,
    status="ok",
)


async def load(page: MessagePage | None = None) -> Session:
    said = (
        Message(role="user", parts=(TextPart("Write it"),), timestamp="", id=1),
        Message(role="assistant", parts=(TextPart("Writing."), ToolCallPart("c1")), timestamp="", id=2),
        Message(role="tool", parts=(ToolResultPart("c1"),), timestamp="", id=3),
    )
    return Session(
        session_id="s",
        start_time="",
        last_activity="",
        model="",
        provider="",
        messages=said,
        tool_calls=(CALL,),
        metadata=SessionMetadata(),
    )


async def test_an_answer_comes_back_with_the_arguments_of_its_calls() -> None:
    text = await SessionArchive(load).read_message(2)

    assert text is not None
    assert text.startswith("Writing.\n[called write_file c1]\npath: a.py\n")
    assert CONTENT in text
    assert "overwrite: true" in text


async def test_plain_messages_and_results_come_back_as_they_were() -> None:
    archive = SessionArchive(load)

    assert await archive.read_message(1) == "Write it"
    assert "Wrote all of it" in (await archive.read_message(3) or "")
    assert await archive.read_call_output("c1") == "Wrote all of it"
    assert await archive.read_message(9) is None


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (None, ""),
        (RecordedResult(llm_content="short"), "short"),
        (RecordedResult(llm_content="short", full_output=""), ""),
        (RecordedResult(llm_content="short", full_output="whole"), "whole"),
    ],
)
def test_the_output_of_a_call_is_the_whole_one_where_there_is(result: RecordedResult | None, output: str) -> None:
    call = msgspec.structs.replace(CALL, result=result)
    answer = Message(role="tool", parts=(ToolResultPart("c1"), TextPart("note")), timestamp="", id=3)

    assert get_call_output(call) == output
    assert render_archived_message(answer, (call, msgspec.structs.replace(call, id="c2"))) == (
        f"[write_file c1]\n{output}\nnote"
    )


async def test_a_search_does_not_wait_for_embeddings_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_archive, "EMBEDDING_SECONDS", 0.01)

    async def hang(_queries: Sequence[str]) -> list[Vector]:
        await asyncio.Event().wait()
        return []

    text = IndexedText(row=1, number=1, role="user", call=None, text="Write it")
    match = MessageMatch(text, "Write it", ("write",), None)
    found = await SessionArchive(load, lambda *_asked: ([match], True), hang).search(["write"], 3)

    assert [passage.message_id for passage in found.passages] == [1]
