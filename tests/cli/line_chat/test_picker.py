"""The sessions as a numbered list."""

from datetime import UTC, datetime

import pytest

from ollm.cli.line_chat.line_reader import LineReader
from ollm.cli.line_chat.picker import MAX_SHOWN_SESSIONS, QUESTION, choose_session, format_list, format_session
from ollm.cli.screen.choice import SessionChoice
from ollm.cli.sessions.session_list import SessionListItem


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


def test_only_so_many_are_listed_and_the_rest_counted() -> None:
    full = format_list([item(n) for n in range(MAX_SHOWN_SESSIONS)]).splitlines()
    more = format_list([item(n) for n in range(MAX_SHOWN_SESSIONS + 3)]).splitlines()

    assert full[0] == "Sessions of this workspace:"
    assert len(full) == 21
    assert full[-1].startswith("20. ")
    assert more[-1] == "and 3 more; type words to narrow the list"
    assert format_list([]) == "Sessions of this workspace:\nNo matching sessions."


def test_a_session_is_one_sentence() -> None:
    assert format_session(item(1, messages=4, origin="/old")) == "Title 1, just now, qwen3, 4 messages, from /old"
    assert format_session(item(1, messages=1)) == "Title 1, just now, qwen3, 1 message"
    assert format_session(item(1, title="")) == "(no title), just now, qwen3"
    assert "\x1b" not in format_session(item(1, title="\x1b[2J"))
