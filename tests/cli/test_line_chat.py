"""The chat as plain lines."""

from datetime import UTC, datetime

import pytest

from ollm.cli.line_chat import LineReader, choose_session, parse_answer
from ollm.cli.sessions.session_list import SessionChoice, SessionListItem
from tests.cli.screen.samples import details


def test_a_plain_answer_that_is_not_offered_is_a_no_with_its_words() -> None:
    assert parse_answer("y", details()).approved
    assert parse_answer("s", details(grant="x")).scope == "session"
    assert not parse_answer("s", details()).approved
    assert not parse_answer("a", details(grant="x", locked=True)).approved
    assert parse_answer("use tabs", details()).reason == "use tabs"
    assert parse_answer(None, details()).reason == ""


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
