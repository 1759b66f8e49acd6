"""From what a tool gave back, or how it failed, to what model, person and session get (T9, T10.7, T12.6)."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.config.settings import OutputSettings
from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.messages import UNPARSED_KEY, JsonObject, replace_surrogates
from ollm.domain.tools import AnsweredQuestion, CallStatus, ErrorInfo, RecordedResult, ToolResult
from ollm.system.paths import make_tool_failure as file_failure
from ollm.tools.framework.base import Keep
from ollm.tools.framework.output import clean_text, trim_for_session, trim_output

MAX_ARGUMENT_DEPTH = 64
_STATUS: dict[str, CallStatus] = {"Denied": "denied", "OutsideWorkspace": "denied", "Cancelled": "cancelled"}


def build_failure(kind: str, message: str) -> ToolResult:
    message = clean_text(message)
    return ToolResult(
        llm_content=f"Error {kind}: {message}", return_display=message, error=ErrorInfo(type=kind, message=message)
    )


def keep_output(result: ToolResult, printed: str) -> ToolResult:
    """A cancelled call with what it had printed by then."""
    if result.error is None or result.error.type != "Cancelled" or not printed:
        return result
    text = f"{printed.rstrip()}\n[{result.error.message}]"
    return msgspec.structs.replace(result, llm_content=text, return_display=text)


def to_tool_failure(error: Exception) -> ToolFailure:
    """Any exception as the model reads it; what is not foreseen is a bug, and said to be one."""
    match error:
        case ToolFailure():
            return error
        case OSError() if error.errno is not None:
            return file_failure(error, str(error.filename or "A file"))
        case OllmError():
            return ToolFailure("Interrupted", str(error))
        case RecursionError():
            return ToolFailure("ValidationError", "The arguments are nested too deeply.")
    return ToolFailure("Interrupted", f"The tool crashed ({type(error).__name__}: {error}).")


def get_call_status(result: ToolResult) -> CallStatus:
    return "ok" if result.error is None else _STATUS.get(result.error.type, "failed")


def trim_result(result: ToolResult, limits: OutputSettings, keep: Keep, way_back: str) -> ToolResult:
    """Clean and within limits. What was cut is in `full_output`."""
    short = trim_output(clean_text(result.llm_content), limits, keep=keep, way_back=way_back)
    full = short.full if result.full_output is None else trim_for_session(clean_text(result.full_output))
    return msgspec.structs.replace(
        result,
        llm_content=short.text,
        full_output=full,
        return_display=trim_output(clean_text(result.return_display), limits, keep=keep).text,
        diff=clean_text(result.diff),
    )


def to_recorded_result(result: ToolResult, questions: tuple[AnsweredQuestion, ...] = ()) -> RecordedResult:
    return RecordedResult(
        llm_content=result.llm_content,
        return_display=result.return_display,
        full_output=result.full_output,
        exit_code=result.exit_code,
        diff=result.diff,
        images=result.images,
        questions=questions,
    )


def sanitize_arguments(arguments: Any) -> JsonObject:
    """Arguments as they can be written down, whatever a model sent: an object, of bounded depth, all of it text."""
    given = arguments if isinstance(arguments, dict) else {UNPARSED_KEY: arguments}
    try:
        msgspec.json.encode(given)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        plain: JsonObject = _sanitize_value(given, MAX_ARGUMENT_DEPTH)
        return plain
    return given


def _sanitize_value(value: Any, depth: int) -> Any:
    match value:
        case _ if depth == 0:
            return "…"
        case dict():
            return {replace_surrogates(str(key)): _sanitize_value(item, depth - 1) for key, item in value.items()}
        case list() | tuple():
            return [_sanitize_value(item, depth - 1) for item in value]
        case str():
            return replace_surrogates(value)
        case None | bool() | int() | float():
            return value
    return replace_surrogates(str(value))
