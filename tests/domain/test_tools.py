"""Tools as data: a result is good unless it says why not, and a record keeps D's names."""

import msgspec

from ollm.domain.tools import ErrorInfo, RecordedResult, Risk, ToolCallRecord, ToolResult


def test_a_result_without_an_error_is_good() -> None:
    assert ToolResult(llm_content="x").ok
    assert not ToolResult(llm_content="x", error=ErrorInfo(type="Timeout", message="slow")).ok


def test_a_call_is_recorded_as_running_until_it_ends() -> None:
    begun = ToolCallRecord(id="c", name="ls", args={"path": "."}, timestamp="t")

    assert msgspec.to_builtins(begun) == {
        "id": "c",
        "name": "ls",
        "args": {"path": "."},
        "timestamp": "t",
        "result": None,
        "messageId": 0,
        "status": "running",
        "error": None,
    }


def test_a_recorded_result_holds_what_was_cut_only_when_something_was() -> None:
    assert msgspec.to_builtins(RecordedResult(llm_content="x")) == {"llmContent": "x"}
    assert msgspec.to_builtins(RecordedResult(llm_content="x", full_output="xy"))["fullOutput"] == "xy"


def test_risk_is_written_as_its_word() -> None:
    assert [msgspec.to_builtins(risk) for risk in Risk] == ["low", "medium", "high"]
