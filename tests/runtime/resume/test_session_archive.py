"""The archive as `recall` reads it: what was cut in the context is whole here."""

from __future__ import annotations

import msgspec
import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.resume.session_archive import (
    SessionArchive,
    find_passages,
    get_call_output,
    render_archived_message,
)
from ollm.store.session_files import MessagePage

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


async def test_a_search_shows_question_and_answer_together_and_the_message_being_worked_on_last() -> None:
    said = [
        ("user", "Why does the import fail?"),
        ("assistant", "The file has a byte order mark; open it with utf-8-sig."),
        ("user", "Say again why that import did fail, the import of Monday."),
    ]
    messages = [
        Message(role=role, parts=(TextPart(text),), timestamp="", id=number)  # type: ignore[arg-type] # roles as texts
        for number, (role, text) in enumerate(said, 1)
    ]

    async def load_said(_page: MessagePage | None = None) -> Session:
        return msgspec.structs.replace(await load(), messages=tuple(messages))

    asked = said[2][1]
    during = await SessionArchive(load_said).search(asked, 3)
    messages.append(Message(role="assistant", parts=(TextPart("utf-8-sig."),), timestamp="", id=4))
    later = await SessionArchive(load_said).search(asked, 3)

    assert [hit.message_id for hit in during] == [1, 3]
    assert str(during[0]).split(" | ") == [
        "message 1 (user): Why does the import fail?",
        "message 2 (assistant): The file has a byte order mark; open it with utf-8-sig.",
    ]
    assert {hit.message_id for hit in later} == {1, 3}
    messages[0] = msgspec.structs.replace(
        messages[0], parts=(TextPart("filler " * 200 + said[0][1] + " filler" * 200),)
    )
    (first,) = [hit for hit in await SessionArchive(load_said).search(asked, 3) if hit.message_id == 1]
    assert "does the import fail" in str(first)
    assert 200 < len(str(first).split(" | ")[0]) < 300, "a passage around the words, not the message"


async def test_a_page_is_asked_for_and_what_is_not_there_is_nothing() -> None:
    asked: list[MessagePage | None] = []

    async def load_page(page: MessagePage | None) -> Session:
        asked.append(page)
        return await load()

    async def load_nothing(_page: MessagePage | None) -> None:
        return None

    await SessionArchive(load_page).read_message(2)
    assert asked == [MessagePage(before=3, limit=1)]
    nothing = SessionArchive(load_nothing)
    assert (await nothing.read_message(1), await nothing.read_call_output("c1")) == (None, None)
    assert await nothing.search("x", 3) == []
    assert await SessionArchive(load).read_call_output("c9") is None


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


async def test_calls_of_recall_are_left_out_and_the_first_three_hits_show_both_sides() -> None:
    recall = msgspec.structs.replace(CALL, id="c9", name="recall", args={"query": "heron"})
    said = [
        message
        for number in range(5)
        for message in (
            Message(role="user", parts=(TextPart(f"heron {number}?"),), timestamp="", id=2 * number + 1),
            Message(role="assistant", parts=(TextPart(f"It is {number}."),), timestamp="", id=2 * number + 2),
        )
    ]
    said.append(Message(role="assistant", parts=(ToolCallPart("c9"),), timestamp="", id=11))
    session = msgspec.structs.replace(await load(), messages=tuple(said), tool_calls=(recall,))

    found = find_passages(session, "heron", 4)

    assert len(found) == 4
    assert [len(hit.beside) for hit in found] == [1, 1, 1, 0]
    assert 11 not in [hit.message_id for hit in found]
    assert [hit.message_id for hit in find_passages(session, "heron", 5)][-1] == 9, "the one being worked on"
    done = msgspec.structs.replace(session, messages=tuple(said[:-1]))
    assert next(hit.message_id for hit in find_passages(done, "heron", 5)) == 9


async def test_what_stands_beside_a_hit_is_shorter_than_the_hit_and_silent_messages_are_not_searched() -> None:
    said = (
        Message(role="user", parts=(TextPart("word " * 200 + "heron? " + "word " * 200),), timestamp="", id=1),
        Message(role="assistant", parts=(TextPart("It is so. " * 100),), timestamp="", id=2),
        Message(role="assistant", parts=(ToolCallPart("c1"),), timestamp="", id=3),
    )
    session = msgspec.structs.replace(await load(), messages=said, tool_calls=())

    (found,) = find_passages(session, "heron", 4)

    assert 200 < len(found.snippet) <= 250
    assert [120 < len(one.snippet) <= 170 for one in found.beside] == [True]
