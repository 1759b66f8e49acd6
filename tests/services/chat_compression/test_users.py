"""What rides with a user's message for a moment, and how a long one stands."""

import pytest

from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression.users import add_aside, add_primed, remove_aside, shorten_message
from tests.services import contexts as make


@pytest.mark.parametrize(
    ("aside", "primed"), [("", ""), ("it is Monday", ""), ("", "Files here: a.py"), ("x", "Files here: b\n\nc")]
)
def test_what_was_added_for_a_moment_can_be_taken_off_again(aside: str, primed: str) -> None:
    told = make.user(1, add_aside(add_primed("Do it.\n\nNow.", primed), aside))

    assert remove_aside(told) == make.user(1, "Do it.\n\nNow.")


def test_the_aside_stands_at_the_end_between_its_marks() -> None:
    assert add_aside("Do it", "it is Monday") == "Do it\n\n<now>\nit is Monday\n</now>"
    assert add_primed("Do it", "Files here: a.py") == "Do it\n\nFiles here: a.py"
    assert add_aside("Do it", "") == add_primed("Do it", "") == "Do it"


def test_only_a_user_s_message_loses_its_aside() -> None:
    answer = make.assistant(2, add_aside("As you said", "it is Monday"))

    assert remove_aside(answer) is answer
    plain = make.user(1, "nothing to take off")
    assert remove_aside(plain) is plain


def test_marks_the_user_wrote_in_the_middle_stay() -> None:
    quoted = make.user(1, "why does <now>\nthis\n</now> stand there?")

    assert remove_aside(quoted) == quoted


def test_a_long_message_keeps_head_and_tail_and_the_way_to_the_rest() -> None:
    long = make.user(7, "first words\n" + "middle\n" * 300 + "last words")

    short = shorten_message(long, 60, len)

    assert short.content == '[... 302 lines, 2122 characters omitted; recall {"messageId": 7} reads them]'
    wider = shorten_message(long, 200, len).content
    assert wider.startswith("first words\n")
    assert wider.endswith("last words")
    assert 'recall {"messageId": 7, "startLine": ' in wider
    assert len(wider) <= 200


def test_a_short_message_is_left_as_it_is() -> None:
    nameless = PromptMessage(role="user", content="short")

    assert shorten_message(nameless, 5, len) == nameless
    assert (
        'recall {"messageId": None' in shorten_message(PromptMessage(role="user", content="x\n" * 500), 5, len).content
    )
