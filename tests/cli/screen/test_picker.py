"""The list of sessions to choose from, driven by keys."""

from pathlib import Path

import pytest

from ollm.cli.screen.picker import format_preview
from ollm.cli.sessions.session_list import SessionListItem, filter_sessions
from tests.cli.running import running
from tests.cli.terminal import CTRL_A, CTRL_D, ENTER, UP, at_terminal


def test_the_preview_is_whole_lines_cut_between_words() -> None:
    text = "Last request (#3): fix the parser and then run all of the tests again\n\nAnswer: done\x1b[31m\na\nb\nc"

    lines = format_preview(text, 40)

    assert lines[0] == "  Last request (#3): fix the parser and…"
    assert lines[2:] == ["  a", "  b"]
    assert len(lines) == 4
    assert all(len(line) <= 40 for line in lines)
    assert "\x1b" not in "".join(lines)


async def test_a_narrow_list_shows_its_whole_hints(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "only once")
        async with at_terminal(runner, "--new", "Why is it wrong?") as terminal:
            await terminal.wait_for("● Two.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "chat", size=(40, 20)) as terminal:
            await terminal.wait_for("Why is it wrong?", "Tab 1 chat / 1 one-shot", "Esc new chat", "Ctrl-C quit")
            for file in (runner.home / "sessions").iterdir():
                file.unlink()
            terminal.type(CTRL_A)
            await terminal.wait_for("No session", gone="Esc new chat")
            terminal.type(UP)
            await terminal.wait_for("Esc new chat", gone="No session")
            terminal.type("tell me more")
            await terminal.wait_for("New chat: tell me more", "Enter send it in a new chat", gone="Why is")
            terminal.type(ENTER)
            await terminal.wait_for("● Three.")
            terminal.type(CTRL_D)
            await terminal.ended()


def item_choice(name: str, **more: str) -> SessionListItem:
    return SessionListItem(**{"session_id": name, "title": "", "model": "", "updated_at": 0, **more})  # type: ignore[arg-type]


ITEMS = [
    item_choice("aaaa1111", title="Fix the Parser", model="qwen3", last="all tests pass"),
    item_choice("bbbb2222", title="Straße planen", model="llama3", origin="from /old/place"),
    item_choice("cccc3333", model="qwen3"),
]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["aaaa1111", "bbbb2222", "cccc3333"]),
        ("  ", ["aaaa1111", "bbbb2222", "cccc3333"]),
        ("PARSER fix", ["aaaa1111"]),
        ("parser llama3", []),
        ("qwen3", ["aaaa1111", "cccc3333"]),
        ("tests", ["aaaa1111"]),
        ("STRASSE", ["bbbb2222"]),
        ("/old", ["bbbb2222"]),
        ("cccc", ["cccc3333"]),
    ],
)
def test_every_typed_word_must_be_somewhere_in_the_session(typed: str, found: list[str]) -> None:
    assert [line.session_id for line in filter_sessions(ITEMS, typed)] == found
