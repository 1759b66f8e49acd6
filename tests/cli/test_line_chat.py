"""The chat as plain lines."""

import asyncio
import os
from datetime import UTC, datetime

import pytest

from ollm.cli.line_chat import QUESTION, LineReader, choose_session, parse_answer
from ollm.cli.sessions.session_list import SessionChoice, SessionListItem
from tests.cli.screen.samples import details


def test_a_plain_answer_that_is_not_offered_is_a_no_with_its_words() -> None:
    assert parse_answer("y", details()).approved
    assert parse_answer("s", details(grant="x")).scope == "session"
    assert not parse_answer("s", details()).approved
    assert not parse_answer("a", details(grant="x", locked=True)).approved
    assert parse_answer("use tabs", details()).reason == "use tabs"
    assert parse_answer(None, details()).reason == ""


async def ask(reader: LineReader, *lines: str | None) -> str | None:
    for line in lines:
        reader.put(line)
    return await asyncio.wait_for(reader.ask("> "), 30)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (["hello"], "hello"),
        ([""], ""),
        ([None], None),
        (["one\\", "two"], "one\ntwo"),
        (["a\\", "b\\", "c"], "a\nb\nc"),
        (["one\\", None], "one\n"),
        (["\\\\", "x"], "\\\nx"),
    ],
)
async def test_a_line_that_ends_with_a_backslash_continues(typed: list[str | None], line: str | None) -> None:
    assert await ask(LineReader(), *typed) == line


async def test_the_prompt_stands_before_a_line_and_a_bar_before_what_continues_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await ask(LineReader(), "one\\", "two")

    assert capsys.readouterr().out == "> | "


async def test_what_comes_on_standard_input_is_cut_into_lines_and_its_end_is_an_end() -> None:
    reading, writing = os.pipe()
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        reader = LineReader()
        with reader.start_reading():
            os.write(writing, "first\nsecond é\n".encode() + b"\xff\n")
            assert [await asyncio.wait_for(reader.ask(""), 30) for _ in range(3)] == ["first", "second é", "\ufffd"]
            os.close(writing)
            assert await asyncio.wait_for(reader.ask(""), 30) is None
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)


def item(number: int, **more: object) -> SessionListItem:
    now = int(datetime.now(UTC).timestamp() * 1000)
    facts = {"session_id": f"s{number}", "title": f"Title {number}", "model": "qwen3", "updated_at": now, **more}
    return SessionListItem(**facts)  # type: ignore[arg-type]


SESSIONS = [item(1), item(2, archived=True), item(3, title="Other")]


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        (["1"], SessionChoice(action="resume", session_id="s1")),
        ([" 2 "], SessionChoice(action="resume", session_id="s3")),
        (["0", "3", "2"], SessionChoice(action="resume", session_id="s3")),
        ([""], SessionChoice(action="new")),
        (["  "], SessionChoice(action="new")),
        (["q"], SessionChoice(action="leave")),
        (["Q"], SessionChoice(action="leave")),
        ([None], SessionChoice(action="leave")),
        (["other", "1"], SessionChoice(action="resume", session_id="s3")),
        (["fix the parser"], SessionChoice(action="new", text="fix the parser")),
    ],
)
async def test_a_number_resumes_words_narrow_and_nothing_is_a_new_session(
    typed: list[str | None], choice: SessionChoice
) -> None:
    reader = LineReader()
    for line in typed:
        reader.put(line)

    assert await choose_session(SESSIONS, reader) == choice


async def test_archived_ones_are_not_offered(capsys: pytest.CaptureFixture[str]) -> None:
    reader = LineReader()
    reader.put("q")
    await choose_session(SESSIONS, reader)
    said = capsys.readouterr().out

    assert "1. Title 1" in said
    assert "2. Other" in said
    assert "Title 2" not in said
    assert said.endswith(QUESTION)
