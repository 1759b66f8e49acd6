"""From what a tool gave back to what model, person and session get."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.config.settings import OutputSettings
from ollm.domain.errors import StorageError, ToolFailure
from ollm.domain.events import ToolOutput
from ollm.domain.tools import ErrorInfo, ToolResult
from ollm.runtime.calls.results import (
    UNPARSED_KEY,
    build_failure,
    get_call_status,
    sanitize_arguments,
    to_recorded_result,
    to_tool_failure,
    trim_result,
)
from tests.covers import covers
from tests.runtime.calls.support import Table


@covers("T9.1", "T9.3")
async def test_long_output_is_cut_and_the_whole_kept(tmp_path: Path) -> None:
    record = await Table(tmp_path, output=OutputSettings(max_chars=100, max_lines=10)).one("say", {"text": "x" * 500})

    assert record.result is not None
    assert len(record.result.llm_content) < 200
    assert "400 characters omitted" in record.result.llm_content
    assert record.result.full_output == "x" * 500


@covers("T9.5")
async def test_escape_sequences_reach_neither_the_model_nor_the_screen(tmp_path: Path) -> None:
    table = Table(tmp_path)

    record = await table.one("say", {"text": "\x1b[31mred\x1b[0m\x07"})

    assert record.result is not None
    assert record.result.llm_content == "red␇"
    assert table.of(ToolOutput)[0].text == "red␇"


@covers("T12.6", "T12.2")
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (ToolFailure("EditTargetNotFound", "edit 1 is nowhere"), "EditTargetNotFound", "edit 1 is nowhere"),
        (ValueError("a bug"), "Interrupted", "ValueError: a bug"),
        (PermissionError(13, "Permission denied", "/x/y"), "PermissionDenied", "/x/y"),
        (StorageError("the disk is full"), "Interrupted", "the disk is full"),
        (RecursionError("too deep"), "ValidationError", "nested too deeply"),
    ],
)
async def test_whatever_a_tool_raises_becomes_its_result(
    tmp_path: Path, fault: Exception, kind: str, said: str
) -> None:
    record = await Table(tmp_path, fault=fault).one("break")

    assert record.error is not None
    assert record.error.type == kind
    assert said in record.error.message
    assert record.result is not None
    assert record.result.llm_content == f"Error {kind}: {record.error.message}"


async def test_deeply_nested_arguments_are_refused_and_can_be_recorded(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]

    record = await Table(tmp_path).one("say", {"text": deep})

    assert record.status == "failed"
    assert len(msgspec.json.encode(record)) < 2_000


async def test_half_a_surrogate_pair_in_arguments_can_be_recorded(tmp_path: Path) -> None:
    record = await Table(tmp_path).one("say", {"text": "\ud800"})

    msgspec.json.encode(record)
    assert record.status == "ok"


def test_a_failure_is_told_to_model_person_and_session() -> None:
    failure = build_failure("Denied", "no\x1b[31m way")

    assert (failure.llm_content, failure.return_display) == ("Error Denied: no way", "no way")
    assert failure.error == ErrorInfo(type="Denied", message="no way")


@pytest.mark.parametrize(
    ("kind", "status"),
    [("Denied", "denied"), ("OutsideWorkspace", "denied"), ("Cancelled", "cancelled"), ("NotFound", "failed")],
)
def test_the_kind_of_failure_gives_the_status(kind: str, status: str) -> None:
    assert get_call_status(build_failure(kind, "x")) == status
    assert get_call_status(ToolResult(llm_content="x")) == "ok"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ToolFailure("NotFound", "gone"), "NotFound", "gone"),
        (StorageError("disk full"), "Interrupted", "disk full"),
        (RecursionError(), "ValidationError", "The arguments are nested too deeply."),
        (ValueError("a bug"), "Interrupted", "The tool crashed (ValueError: a bug)."),
        (OSError("no number"), "Interrupted", "The tool crashed (OSError: no number)."),
    ],
)
def test_any_exception_reads_as_a_failure(error: Exception, kind: str, text: str) -> None:
    failure = to_tool_failure(error)

    assert (failure.kind, str(failure)) == (kind, text)


def test_a_missing_file_is_told_by_its_name() -> None:
    failure = to_tool_failure(FileNotFoundError(2, "No such file", "/w/a.txt"))

    assert "/w/a.txt" in str(failure)
    assert failure.kind != "Interrupted"


def test_what_was_cut_is_kept_whole_beside_it() -> None:
    limits = OutputSettings(max_chars=2000, max_lines=5)
    long = ToolResult(llm_content="\n".join(f"line {n}" for n in range(50)), return_display="short", diff="\x1b[1md")

    trimmed = trim_result(long, limits, "head", "read it again")

    assert trimmed.full_output == long.llm_content
    assert "read it again" in trimmed.llm_content
    assert (trimmed.return_display, trimmed.diff) == ("short", "d")
    short = trim_result(ToolResult(llm_content="x"), limits, "head", "way")
    assert (short.llm_content, short.full_output) == ("x", None)
    given = trim_result(ToolResult(llm_content="x", full_output="all\x1b[0m of it"), limits, "head", "way")
    assert given.full_output == "all of it"


def test_a_recorded_result_has_everything_but_the_error() -> None:
    result = ToolResult(llm_content="a", return_display="b", full_output="c", exit_code=3, diff="d")

    recorded = to_recorded_result(result)

    assert (recorded.llm_content, recorded.return_display, recorded.full_output) == ("a", "b", "c")
    assert (recorded.exit_code, recorded.diff, recorded.images) == (3, "d", ())


def test_arguments_can_always_be_written_down() -> None:
    plain = {"a": [1, None, True, 2.5, {"b": "é"}]}
    assert sanitize_arguments(plain) is plain
    assert sanitize_arguments("text") == {UNPARSED_KEY: "text"}
    odd: dict[str, Any] = {"a\ud800": "b\udfff", "set": {1}, "tuple": ("x\ud800",)}
    assert sanitize_arguments(odd) == {"a?": "b?", "set": "{1}", "tuple": ["x?"]}
    deep: Any = "\ud800"
    for _ in range(100):
        deep = [deep]
    written = str(sanitize_arguments({"d": deep}))
    assert "…" in written
    assert written.count("[") == 63
