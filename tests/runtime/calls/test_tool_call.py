"""One call on its way."""

from pathlib import Path
from typing import Any

from ollm.domain.errors import StorageError
from ollm.domain.events import Notice
from ollm.domain.tools import (
    ToolCallRecord,
)
from ollm.extensions.base import HookDecision, NoHooks
from ollm.runtime.calls.results import UNPARSED_KEY
from tests.covers import covers
from tests.runtime.calls.support import Table


@covers("T12.1", "T12.6")
async def test_an_unknown_tool_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    record = await Table(tmp_path).one("lgo")

    assert record.error is not None
    assert record.error.type == "UnknownTool"
    assert "Did you mean log" in record.error.message


@covers("T12.1")
async def test_bad_arguments_are_explained_and_policy_is_not_asked(tmp_path: Path) -> None:
    table = Table(tmp_path)

    record = await table.one("say", {"txt": 1, "text": ["no text"]})

    assert record.error is not None
    assert record.error.type == "ValidationError"
    assert 'did you mean "text"' in record.error.message
    assert table.policy.requests == []


async def test_arguments_that_are_json_in_a_string_are_understood(tmp_path: Path) -> None:
    (record,) = await Table(tmp_path).run(("say", {UNPARSED_KEY: '{"text": "hello"}'}))

    assert record.status == "ok"


async def test_a_record_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    async def full(record: ToolCallRecord) -> None:
        raise StorageError("the disk is full")

    table = Table(tmp_path, record=full)

    assert (await table.one("say", {"text": "x"})).status == "ok"
    assert "the disk is full" in table.of(Notice)[0].text


async def test_a_hook_that_breaks_afterwards_is_said_and_stops_nothing(tmp_path: Path) -> None:
    class Hooks(NoHooks):
        async def after_tool(self, record: ToolCallRecord) -> None:
            raise ValueError("a broken hook")

    table = Table(tmp_path, hooks=Hooks())

    assert (await table.one("say", {"text": "x"})).status == "ok"
    assert "a broken hook" in table.of(Notice)[0].text


async def test_a_hook_that_breaks_before_keeps_the_call_from_running(tmp_path: Path) -> None:
    class Hooks(NoHooks):
        async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
            raise ValueError("a broken hook")

    table = Table(tmp_path, hooks=Hooks())

    assert (await table.one("log", {"text": "x"})).status == "failed"
    assert table.order == []
