"""One call on its way."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from ollm.config.settings import OutputSettings
from ollm.domain.errors import StorageError, ToolFailure
from ollm.domain.events import Notice
from ollm.domain.tools import (
    ToolCallRecord,
    ToolResult,
)
from ollm.extensions.hooks import HookDecision
from ollm.runtime.calls.dispatch import UNPARSED_KEY
from ollm.tools.framework.base import Tool, ToolContext
from tests.covers import covers
from tests.runtime.calls.support import QuietHooks, Say, Table


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
    class Hooks(QuietHooks):
        async def after_tool(self, record: ToolCallRecord) -> None:
            raise ValueError("a broken hook")

    table = Table(tmp_path, hooks=Hooks())

    assert (await table.one("say", {"text": "x"})).status == "ok"
    assert "a broken hook" in table.of(Notice)[0].text


async def test_a_hook_that_breaks_before_keeps_the_call_from_running(tmp_path: Path) -> None:
    class Hooks(QuietHooks):
        async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
            raise ValueError("a broken hook")

    table = Table(tmp_path, hooks=Hooks())

    assert (await table.one("log", {"text": "x"})).status == "failed"
    assert table.order == []


class Recall(Say, frozen=True):
    """Read again."""

    name: ClassVar[str] = "recall"


async def test_a_result_that_was_cut_says_how_to_read_the_rest_where_that_can_be_done(tmp_path: Path) -> None:
    table = Table(tmp_path, output=OutputSettings(max_lines=6))
    before = await table.one("say", {"text": "line\n" * 40})
    table.registry.register(Recall)
    after = await table.one("say", {"text": "line\n" * 40})

    assert before.result is not None
    assert after.result is not None
    assert "recall" not in before.result.llm_content
    assert f'read it with recall {{"callId": "{after.id}", "startLine": ' in after.result.llm_content


class Print(Tool[None], frozen=True):
    """Print something, and fail where it is told to."""

    name: ClassVar[str] = "print"
    text: str
    failure: str = ""

    def summary(self) -> str:
        return "Print"

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        context.emit(self.text)
        if self.failure:
            raise ToolFailure(self.failure, "It was stopped.")
        return ToolResult(llm_content="done")


@pytest.mark.parametrize(
    ("failure", "said"),
    [("Cancelled", "so far\n[It was stopped.]"), ("Timeout", "Error Timeout: It was stopped.")],
)
async def test_a_call_that_is_cancelled_keeps_what_it_printed(tmp_path: Path, failure: str, said: str) -> None:
    table = Table(tmp_path)
    table.registry.register(Print)

    record = await table.one("print", {"text": "so far\n", "failure": failure})

    assert record.result is not None
    assert record.result.llm_content == said
