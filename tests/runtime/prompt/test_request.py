"""The parts of a request: what was sent before, and what is new."""

from ollm.domain.messages import PromptMessage
from ollm.runtime.prompt.request import RequestBuilder, demote_system_message
from ollm.services.token_counting import TokenCounter
from tests.services import contexts as make

counter = TokenCounter()
SYSTEM = PromptMessage(role="system", content="Be brief.")


def builder(*records: PromptMessage) -> RequestBuilder:
    made = RequestBuilder(counter)
    made.set_prefix(SYSTEM, records, (SYSTEM, PromptMessage(role="user", content="a worked call")))
    return made


def test_only_the_first_message_is_a_system_message() -> None:
    note = PromptMessage(role="system", content="a note", sources=(3,))

    assert demote_system_message(note) == PromptMessage(role="user", content="a note", sources=(3,))
    said = make.user(1, "x")
    assert demote_system_message(said) is said


def test_a_request_is_the_prefix_and_the_messages() -> None:
    record = PromptMessage(role="user", content="minutes")
    note = PromptMessage(role="system", content="a note")

    sent = builder(record).build_request_messages([make.user(1, "hello"), note], None)

    assert sent == (SYSTEM, record, make.user(1, "hello"), PromptMessage(role="user", content="a note"))


def test_what_stood_is_told_from_what_is_new() -> None:
    made = builder()
    made.build_request_messages([make.user(1, "hello")], None)
    made.build_request_messages([make.user(1, "hello"), make.assistant(2, "hi")], None)

    last = made.ledger.last
    assert last is not None
    assert last.broken_by is None
    assert 0 < last.reused_share <= 1
    assert len(made.ledger.entries) == 2


def test_after_a_restart_the_messages_are_read_anew_and_the_cause_is_kept() -> None:
    made = builder()
    made.build_request_messages([make.user(1, "hello " * 50)], None)
    made.restart()
    sent = made.build_request_messages([make.user(9, "other")], "compression")

    assert sent[1:] == (make.user(9, "other"),)
    assert made.ledger.last is not None
    assert made.ledger.last.broken_by == "compression"
    assert made.ledger.last.reused_share < 1
