"""The chat as plain lines: what is asked, and what an answer means."""

from ollm.cli.line_chat.chat import parse_answer
from tests.cli.screen.samples import details


def test_a_plain_answer_that_is_not_offered_is_a_no_with_its_words() -> None:
    assert parse_answer("y", details()).approved
    assert parse_answer("s", details(grant="x")).scope == "session"
    assert not parse_answer("s", details()).approved
    assert not parse_answer("a", details(grant="x", locked=True)).approved
    assert parse_answer("use tabs", details()).reason == "use tabs"
    assert parse_answer(None, details()).reason == ""
