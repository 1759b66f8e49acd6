"""What a front end holds."""

import pytest

from ollm.domain.messages import ImagePart, TextPart
from ollm.runtime.base import Attachment, CommandReply, Status, build_message_parts, get_recap_end


@pytest.mark.parametrize(
    ("turn_after", "turn_message", "end"),
    [(None, 0, None), (None, 4, None), (7, 0, None), (0, 4, 5), (7, 4, 5)],
)
def test_a_recap_ends_before_a_running_turn_that_is_written_down(
    turn_after: int | None, turn_message: int, end: int | None
) -> None:
    status = Status(
        session_id="s",
        title="",
        model="m",
        provider="p",
        base_url="",
        window=1,
        mode="code",
        approval="ask",
        workspace="/w",
        turn_after=turn_after,
        turn_message=turn_message,
    )

    assert get_recap_end(status) == end
    assert (status.used, status.limit, status.trigger, status.fixed) == (0, 0, 0, 0)  # before anything was counted


def test_of_a_conversation_in_which_nothing_happened_nothing_is_counted() -> None:
    named = {"model": "m", "provider": "p", "base_url": "", "mode": "code", "approval": "ask", "workspace": "/w"}
    status = Status(session_id=None, title="", window=1, **named)

    assert (status.turn_after, status.turn_message, status.last_event) == (None, 0, 0)
    assert (status.todos, status.notices, status.sandbox) == ((), (), "")


def test_a_reply_asks_for_nothing_unless_it_says_so() -> None:
    assert CommandReply() == CommandReply(text="", data=None, ok=True, follow_up="none", argument="")


def test_what_is_put_beside_a_message_follows_it() -> None:
    picture = ImagePart("image/png", "aGk=")

    assert build_message_parts("look", ()) == (TextPart("look"),)
    assert build_message_parts("look", (Attachment(name="a.txt", text="x"), Attachment(name="p", image=picture))) == (
        TextPart("look"),
        TextPart("\n\n[a.txt]\nx"),
        picture,
    )
