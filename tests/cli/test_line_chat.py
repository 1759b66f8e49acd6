"""The chat as plain lines, and answers printed on a terminal."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.cli.line_chat import LineReader, choose_session, parse_answer
from ollm.cli.sessions.session_list import SessionChoice, SessionListItem
from tests.cli.running import running
from tests.cli.screen.samples import details
from tests.cli.terminal import at_terminal
from tests.servers.answers import Answer


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


MARKDOWN = """# Result

It is **done**:

- one
- two

| file | lines |
|------|-------|
| a.py | 3 |

```python
print("hi")
```
"""


async def test_markdown_is_rendered_on_a_terminal_and_left_alone_in_a_pipe(tmp_path: Path) -> None:
    read = Answer(text="I will **look**.", calls=[("read_file", {"path": "a.py"})])
    async with running(tmp_path, [read, MARKDOWN, MARKDOWN, MARKDOWN]) as runner:
        (runner.workspace / "a.py").write_text("print('hi')\n")
        async with at_terminal(runner, "-p", "do it", size=(60, 30)) as terminal:
            assert await terminal.ended() == 0
        piped = await runner.run("-p", "do it")
        async with at_terminal(runner, "-p", "do it", OLLM_PLAIN="1") as plain:
            assert await plain.ended() == 0

    shown = terminal.text()
    assert "I will look." in shown
    assert shown.index("I will look.") < shown.index("Read a.py") < shown.index("Result")
    assert "**" not in shown
    assert "|---" not in shown
    assert "```" not in shown
    assert "• one\n" in shown
    assert "file" in shown
    assert "\x1b[1m" in terminal.raw.decode()
    assert piped.out == MARKDOWN
    assert "**done**" in plain.text()


async def test_no_colour_is_used_where_none_is_wanted(tmp_path: Path) -> None:
    async with running(tmp_path, [MARKDOWN]) as runner, at_terminal(runner, "-p", "do it", NO_COLOR="1") as terminal:
        assert await terminal.ended() == 0

    assert "\x1b[3" not in terminal.raw.decode()
    assert "It is done:" in terminal.text()
