"""Recorded messages as a model is sent them: what failed is known as failed, whatever its text says."""

import pytest

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
from ollm.runtime.prompt.rendering import INTERRUPTED, NO_RESULT, format_result_text, render_message


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
    parts: tuple[AnyPart, ...] = (ToolResultPart("c1"), ToolResultPart("c2"), TextPart("Now change b.txt."))

    first, second = render_message(Message(id=7, role="tool", parts=parts, timestamp=""), {"c1": DONE})

    assert first == PromptMessage(
        role="tool", content="a.txt", call_id="c1", tool_name="shell", images=(PICTURE,), sources=(7,)
    )
    assert second == PromptMessage(
        role="tool", content=f"{NO_RESULT}\n\nNow change b.txt.", call_id="c2", sources=(7,), failed=True
    )
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
