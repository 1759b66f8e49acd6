"""The list of sessions to choose from, driven by keys."""

from ollm.cli.screen.picker import Picker, format_preview, format_row
from ollm.cli.screen.themes import THEMES
from ollm.cli.sessions.session_list import SessionListItem


class EmptyShelf:
    """Keeps nothing; the lines are handed to the picker."""

    async def load_items(self) -> list[SessionListItem]:
        return []

    async def archive(self, session_id: str, archived: bool) -> None:
        raise AssertionError

    async def delete(self, session_id: str) -> None:
        raise AssertionError


def test_a_session_of_a_copied_folder_says_where_it_comes_from() -> None:
    line = SessionListItem(session_id="x", title="Fix\x1b it", model="m", updated_at=0, messages=3, origin="/old/place")

    assert "from /old/place" in format_row(line, 100)
    assert "3 msgs" in format_row(line, 100)
    assert "\x1b" not in format_row(line, 100)
    assert Picker([line], EmptyShelf(), theme=THEMES["plain"]).find_matches() == [line]


def test_the_preview_is_whole_lines_cut_between_words() -> None:
    text = "Last request (#3): fix the parser and then run all of the tests again\n\nAnswer: done\x1b[31m\na\nb\nc"

    lines = format_preview(text, 40)

    assert lines[0] == "  Last request (#3): fix the parser and…"
    assert lines[2:] == ["  a", "  b"]
    assert len(lines) == 4
    assert all(len(line) <= 40 for line in lines)
    assert "\x1b" not in "".join(lines)


def test_the_preview_has_no_marks_of_markdown_and_no_empty_headings() -> None:
    assert format_preview("Answer: ## What to do `x` **now**\nEarlier:\n- one", 80) == [
        "  Answer: What to do x now",
        "  one",
    ]
