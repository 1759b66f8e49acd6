"""Pages of the archive, with calls beside their messages."""

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.history import load_history_page
from ollm.store.session_files import LoadedSession, MessagePage

AT = "2026-01-27T10:00:00.000Z"
NUMBERS = (1, 2, 5, 6, 9)  # some are missing, as after damage


def message(number: int) -> Message:
    parts = (TextPart(f"m{number}"), *((ToolCallPart("c6"), ToolCallPart("gone")) if number == 6 else ()))
    return Message(id=number, role="assistant", parts=parts, timestamp=AT)


class Archive:
    """Reads as the store does: the last `count` numbers before a message, whatever is there of them."""

    def __init__(self) -> None:
        self.asked: list[MessagePage] = []

    def read(self, page: MessagePage) -> LoadedSession:
        self.asked.append(page)
        before = page.before or max(NUMBERS) + 1
        found = [number for number in NUMBERS if before - page.limit <= number < before]
        older = [number for number in NUMBERS if number < before - page.limit]
        session = Session(
            session_id="s",
            start_time=AT,
            last_activity=AT,
            model="m",
            provider="p",
            messages=tuple(map(message, found)),
            tool_calls=(ToolCallRecord(id="c6", name="ls", args={}, timestamp=AT),),
            metadata=SessionMetadata(),
        )
        return LoadedSession(
            session=session,
            damage=None,
            read_only=None,
            unfinished=False,
            journal_good=0,
            skipped=max(older, default=0),
            calls_so_far=1,
        )


@pytest.mark.parametrize(
    ("before", "limit", "numbers"),
    [
        (None, 2, [6, 9]),
        (None, 50, [1, 2, 5, 6, 9]),
        (6, 2, [2, 5]),
        (6, 1, [5]),
        (1, 5, []),
        (None, 0, []),
        (9, 3, [2, 5, 6]),
    ],
)
def test_a_page_is_the_newest_messages_before_a_number_oldest_first(
    before: int | None, limit: int, numbers: list[int]
) -> None:
    archive = Archive()

    page = load_history_page(archive.read, before, limit)

    assert [found["id"] for found in page] == numbers


def test_calls_stand_beside_the_message_that_asked_and_unknown_ones_are_left_out() -> None:
    (found,) = load_history_page(Archive().read, 7, 1)

    assert [call["name"] for call in found["toolCalls"]] == ["ls"]
    assert found["parts"][0] == {"type": "text", "text": "m6"}


def test_more_is_read_only_while_numbers_are_missing() -> None:
    archive = Archive()
    load_history_page(archive.read, 6, 2)

    assert [page.limit for page in archive.asked] == [2, 8]
    archive.asked.clear()
    load_history_page(archive.read, 3, 2)
    assert [page.limit for page in archive.asked] == [2]
