"""recall and task, through dispatch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import Message, TextPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata, TaskReport, TaskRequest
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.message_search.session_archive import Passage, SessionArchive
from ollm.tools.catalogue import describe_catalogue
from ollm.tools.framework.tool_selection import select_tools
from ollm.tools.recall import Recall
from ollm.tools.task import Task, render_report
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


@pytest.mark.parametrize("complete", [True, False])
async def test_what_is_found_says_where_it_stands_and_which_words_it_has(workspace: Path, complete: bool) -> None:
    asked: list[list[str]] = []

    class Found(SessionArchive):
        async def search(self, queries: Sequence[str], limit: int) -> tuple[Sequence[Passage], bool]:
            asked.append(list(queries))
            user = Passage(message_id=1, role="user", snippet="Fix the Parser.", words=("parser",), beside="message 2")
            output = Passage(message_id=2, role="tool", snippet="parsed", call_id="c1")
            return (user, output), complete

    async def load(page: object) -> None:
        return None

    driver = Driver(workspace)
    driver.registry.register(Recall, Found(load))
    told = content(await driver("recall", queries=["parser", " ", "lexer"]))
    await driver("recall", query="one")  # as older models were told

    assert told.splitlines()[:3] == [
        "message 1 (user; has parser): Fix the Parser.",
        "call c1 of message 2 (tool; near in meaning, no word matches): parsed",
        "message 2",
    ]
    assert ("not indexed yet" in told) is not complete
    assert asked == [["parser", "lexer"], ["one"]]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "ValidationError"),
        ({"queries": ["x"], "messageId": 1}, "ValidationError"),
        ({"queries": ["x"] * 6}, "ValidationError"),
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


async def test_a_text_of_one_line_is_read_on_by_characters(workspace: Path) -> None:
    line = "".join(f"<{number}>" for number in range(3000))

    async def load(page: object) -> Session:
        message = Message(id=1, role="user", parts=(TextPart(line),), timestamp=T)
        return msgspec.structs.replace(session(), messages=(message,))

    driver = Driver(workspace)
    driver.registry.register(Recall, SessionArchive(load))
    read, offset = "", 0
    while offset < len(line):
        page = content(await driver("recall", messageId=1, offset=offset)).partition("\n[characters ")[0]
        read, offset = read + page, offset + len(page)

    assert read == line
    assert error(await driver("recall", messageId=1, offset=len(line)))[0] == "InvalidLineRange"


async def test_too_many_queries_are_refused_in_words_and_long_ones_shown_in_part(drive: Driver) -> None:
    refused = error(await drive("recall", queries=list("abcdef")))
    missed = error(await drive("recall", queries=["nowhere " * 1000]))

    assert "queries: expected a list of length <= 5" in refused[1]
    assert drive.registry.get("recall").parameters["properties"]["queries"]["maxItems"] == 5
    assert len(missed[1]) < 300


async def test_the_report_comes_back_with_what_it_rests_on(workspace: Path) -> None:
    asked: list[TaskRequest] = []

    async def run(request: TaskRequest, emit) -> TaskReport:
        asked.append(request)
        emit("Read a.py\n")
        return TaskReport(text="Found.", session_id="s", steps=1, files=("a.py",), problem="It ended early.")

    drive = Driver(workspace)
    drive.registry.register(Task, run)
    record = await drive("task", prompt="Look.\nWell.", files=["a.py"], agent="x")

    assert content(record) == "Found.\n[It looked at a.py. It ended early.]"
    assert record.result is not None
    assert record.result.return_display == "report after 1 step; It ended early.\n· Read a.py\nFound."
    assert asked == [TaskRequest(prompt="Look.\nWell.", files=("a.py",), agent="x", title="Task for x: Look.")]
    assert Task(prompt="Look.\nWell.", agent="x").summary() == "Task for x: Look."


async def test_a_task_without_a_report_failed(workspace: Path) -> None:
    async def run(_request: TaskRequest, _emit) -> TaskReport:
        raise ToolFailure("Timeout", "Too late.")

    drive = Driver(workspace)
    drive.registry.register(Task, run)

    assert error(await drive("task", prompt="x")) == ("Timeout", "Too late.")
    assert error(await drive("task"))[0] == "ValidationError"


def test_many_files_are_counted() -> None:
    report = TaskReport(text="x", session_id="s", steps=2, files=tuple(f"f{number}" for number in range(14)))

    assert render_report(report).endswith("f11 and 2 more.]")


@pytest.mark.parametrize("mode", ["code", "plan", "assistant", "debug"])
def test_a_window_of_8k_never_shows_it(mode) -> None:
    for window in (2048, 4096, 8192, 16_384):
        assert "task" not in [tool.name for tool in select_tools(mode, describe_catalogue(), window)]
