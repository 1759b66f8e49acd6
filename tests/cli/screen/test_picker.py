"""The list of sessions to choose from, driven by keys."""

from ollm.cli.screen.picker import Picker, format_row
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
    assert Picker([line], EmptyShelf(), colour=False).find_matches() == [line]
