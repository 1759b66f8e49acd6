"""Messages as the model is sent them."""

from __future__ import annotations

import pytest

from ollm.domain.events import Notice
from ollm.domain.messages import (
    AnyPart,
    ImagePart,
    Message,
    PromptMessage,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.runtime.prompt.messages import INTERRUPTED, NO_RESULT, UserMessages, format_result_text, render_message
from ollm.runtime.prompt.prefix import RequestBuilder, demote_system_message
from ollm.services.token_counting import TokenCounter
from tests.runtime.prompt.test_prompt import Talk, filler
from tests.services import contexts as make


async def test_a_message_longer_than_half_the_window_stands_as_head_tail_and_number() -> None:
    talk = Talk()
    talk.user("FIRST " + filler(3000) + " LAST")
    await talk.make_room()

    content = talk.prompt.build_request_messages()[-1].content
    assert content.startswith("FIRST")
    assert content.endswith("LAST")
    assert 'recall {"messageId": 1, "startLine": ' in content
    assert talk.prompt.used_tokens <= talk.prompt.compute_budget().limit
    assert talk.of(Notice)
    assert talk.prompt.capture_state().user_messages[1].endswith(" LAST")


def test_earlier_ones_are_read_once_and_only_when_asked_for() -> None:
    asked: list[int] = []

    def load() -> dict[int, str]:
        asked.append(1)
        return {1: "one", 2: "two as archived"}

    words = UserMessages(load)
    words.add_message(2, "two")
    words.add_message(3, "three")
    assert asked == []

    assert words.load_all() == {1: "one", 2: "two", 3: "three"}
    words.load_all().clear()
    assert words.load_all() == {1: "one", 2: "two", 3: "three"}
    assert asked == [1]
    assert UserMessages().load_all() == {}


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


def is_failed(record: ToolCallRecord | None) -> bool:
    message = Message(id=1, role="tool", parts=(ToolResultPart("c1"),), timestamp="")
    (rendered,) = render_message(message, {"c1": record} if record else {})
    return rendered.failed


def make_record(text: str, *, exit_code: int | None = None, error: ErrorInfo | None = None) -> ToolCallRecord:
    result = RecordedResult(llm_content=text, exit_code=exit_code)
    return ToolCallRecord(id="c1", name="shell", args={}, timestamp="", result=result, error=error)


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [("[no output; exit code 1]", 1), ("[exit code 139, SIGSEGV]", 139), ("AssertionError\n[exit code 1]", 1)],
)
def test_a_command_that_failed_is_marked_by_its_exit_code(text: str, exit_code: int) -> None:
    assert is_failed(make_record(text, exit_code=exit_code))


@pytest.mark.parametrize("text", ["Error 404 is what this page is about", "Exit code: 3 means trouble", "fine"])
def test_text_that_only_speaks_of_errors_is_no_failure(text: str) -> None:
    assert not is_failed(make_record(text, exit_code=0))
    assert not is_failed(make_record(text))


def test_a_call_with_an_error_or_without_a_result_has_failed() -> None:
    assert is_failed(make_record("", error=ErrorInfo(type="FileNotFound", message="a.txt does not exist.")))
    assert is_failed(ToolCallRecord(id="c1", name="shell", args={}, timestamp=""))
    assert is_failed(None)


PICTURE = ImagePart(media_type="image/png", data="AAAA")
DONE = ToolCallRecord(
    id="c1",
    name="shell",
    args={"command": "ls"},
    timestamp="",
    result=RecordedResult(llm_content="a.txt", images=(PICTURE,)),
)


def test_a_message_of_the_user_comes_with_its_pictures_and_its_number() -> None:
    said = Message(id=7, role="user", parts=(TextPart("See."), PICTURE), timestamp="")

    assert render_message(said, {}) == [PromptMessage(role="user", content="See.", images=(PICTURE,), sources=(7,))]


def test_each_result_is_a_message_and_the_last_one_tells_what_was_said_with_them() -> None:
    parts: tuple[AnyPart, ...] = (ToolResultPart("c1"), ToolResultPart("c2"), TextPart("Created b.txt."))

    first, second = render_message(Message(id=7, role="tool", parts=parts, timestamp=""), {"c1": DONE})

    assert first == PromptMessage(
        role="tool", content="a.txt", call_id="c1", tool_name="shell", images=(PICTURE,), sources=(7,)
    )
    assert second == PromptMessage(
        role="tool",
        content=f"{NO_RESULT}\n\nCreated b.txt.",
        call_id="c2",
        sources=(7,),
        failed=True,
        own_chars=len(NO_RESULT),
    )
    assert second.split_content() == (NO_RESULT, "Created b.txt.")
    assert render_message(Message(id=7, role="tool", parts=(TextPart("Words."),), timestamp=""), {}) == []
    assert render_message(Message(id=7, role="tool", parts=parts[:1], timestamp=""), {"c1": DONE}) == [first]


@pytest.mark.parametrize(
    ("text", "called", "interrupted", "content"),
    [
        ("I look.", False, False, "I look."),
        ("I look.", True, False, "I look."),
        ("", True, False, ""),
        ("", True, True, ""),
        ("I loo", True, True, "I loo"),
        ("I loo", False, True, f"I loo\n{INTERRUPTED}"),
        ("", False, True, INTERRUPTED),
        (" \n", False, False, None),
        ("", False, False, None),
    ],
)
def test_an_answer_is_sent_with_its_calls_unless_it_is_empty(
    text: str, called: bool, interrupted: bool, content: str | None
) -> None:
    calls = (ToolCallPart("c1"), ToolCallPart("gone")) if called else ()
    answer = Message(id=7, role="assistant", parts=(TextPart(text), *calls), timestamp="", interrupted=interrupted)

    found = render_message(answer, {"c1": DONE})

    made = (ToolCall(id="c1", name="shell", arguments={"command": "ls"}),) if called else ()
    told = [PromptMessage(role="assistant", content=content or "", calls=made, sources=(7,))]
    assert found == ([] if content is None else told)


FAILURE = ErrorInfo(type="NotFound", message="no a.txt")


@pytest.mark.parametrize(
    ("said", "code", "error", "text"),
    [
        ("all good", None, None, "all good"),
        ("all good", 0, None, "all good"),
        ("", 0, None, "(no output)"),
        ("boom", 2, None, "Exit code: 2\nboom"),
        ("Exit code: 2\nboom", 2, None, "Exit code: 2\nboom"),
        ("", 1, None, "Exit code: 1\n"),
        ("Error NotFound: no a.txt", None, FAILURE, "Error NotFound: no a.txt"),
        ("there is no a.txt here", None, FAILURE, "Error NotFound: there is no a.txt here"),
        ("look elsewhere", None, FAILURE, "Error NotFound: no a.txt\nlook elsewhere"),
        ("", None, FAILURE, "Error NotFound: no a.txt"),
    ],
)
def test_a_result_begins_with_its_failure(said: str, code: int | None, error: ErrorInfo | None, text: str) -> None:
    assert format_result_text(make_record(said, exit_code=code, error=error)) == text


def test_without_a_result_nothing_is_known_but_an_error() -> None:
    bare = ToolCallRecord(id="c1", name="shell", args={}, timestamp="")

    assert format_result_text(bare) == NO_RESULT
    assert format_result_text(ToolCallRecord("c1", "shell", {}, "", error=FAILURE)) == "Error NotFound: no a.txt"
