"""recall reads the archive back: messages, outputs of calls, ranges, words."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.messages import Message, TextPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.resume.session_archive import SessionArchive
from ollm.tools.recall import Recall
from tests.covers import covers
from tests.tools.drive import Driver, content, error

T = "2026-01-01T00:00:00.000Z"
LONG = "".join(f"line {number}\n" for number in range(1, 3001))


def session() -> Session:
    call = ToolCallRecord(
        id="c1",
        name="shell",
        args={},
        timestamp=T,
        status="ok",
        result=RecordedResult(llm_content="cut", full_output=LONG),
    )
    messages = (
        Message(id=1, role="user", parts=(TextPart("Please fix the Parser."),), timestamp=T),
        Message(id=2, role="assistant", parts=(TextPart("I look at the parser now."),), timestamp=T),
        Message(id=3, role="tool", parts=(ToolResultPart("c1"),), timestamp=T),
    )
    return Session(
        session_id="s",
        start_time=T,
        last_activity=T,
        model="m",
        provider="p",
        messages=messages,
        tool_calls=(call,),
        metadata=SessionMetadata(),
    )


@pytest.fixture
def drive(workspace: Path) -> Driver:
    async def load(page: object) -> Session:
        return session()

    driver = Driver(workspace)
    driver.registry.register(Recall, SessionArchive(load))
    return driver


@covers("T9.3")
async def test_the_whole_output_of_a_cut_call_is_read_by_range(drive: Driver) -> None:
    assert content(await drive("recall", callId="c1", startLine=2999)) == "line 2999\nline 3000\n"
    assert content(await drive("recall", callId="c1", startLine=5, endLine=6)) == "line 5\nline 6\n"
    assert "read on with startLine 998" in content(await drive("recall", callId="c1"))


async def test_a_message_is_read_by_its_number(drive: Driver) -> None:
    assert content(await drive("recall", messageId=1)) == "Please fix the Parser."
    assert content(await drive("recall", messageId="3", endLine=2)) == "[shell c1]\nline 1\n"


async def test_words_are_found_newest_first_whatever_their_case(drive: Driver) -> None:
    assert content(await drive("recall", query="PARSER the")) == (
        "message 2 (assistant): I look at the parser now.\nmessage 1 (user): Please fix the Parser."
    )


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "ValidationError"),
        ({"query": "x", "messageId": 1}, "ValidationError"),
        ({"query": " "}, "ValidationError"),
        ({"messageId": 0}, "ValidationError"),
        ({"messageId": 99}, "NotFound"),
        ({"callId": "c9"}, "NotFound"),
        ({"query": "nowhere"}, "NotFound"),
        ({"callId": "c1", "startLine": 5, "endLine": 2}, "InvalidLineRange"),
        ({"callId": "c1", "startLine": 4000}, "InvalidLineRange"),
    ],
)
async def test_what_is_not_there_is_said(drive: Driver, arguments: dict[str, Any], kind: str) -> None:
    assert error(await drive("recall", **arguments))[0] == kind


async def test_before_there_is_a_session_nothing_is_found(workspace: Path) -> None:
    async def load(page: object) -> None:
        return None

    driver = Driver(workspace)
    driver.registry.register(Recall, SessionArchive(load))

    assert error(await driver("recall", query="x"))[0] == "NotFound"
    assert error(await driver("recall", messageId=1))[0] == "NotFound"
    assert error(await driver("recall", callId="c1"))[0] == "NotFound"
