"""From what a tool gave back to what model, person and session get."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.config.settings import OutputSettings
from ollm.domain.errors import StorageError, ToolFailure
from ollm.domain.events import ToolOutput
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
