"""Recorded messages as a model is sent them: what failed is known as failed, whatever its text says."""

import pytest

from ollm.domain.messages import Message, ToolResultPart
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.runtime.prompt.rendering import render_message


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
