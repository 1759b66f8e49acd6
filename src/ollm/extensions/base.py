"""Watch tool calls from outside: hooks may stop or rewrite a call; neither knows the other."""

from __future__ import annotations

from typing import Protocol

from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord


class HookDecision(Data, frozen=True):
    """Decision of hooks before a call: `blocked` is the reason it must not run, `arguments` stand in place of its own.
    `ask` is why a person is to be asked, whatever policy says."""

    blocked: str | None = None
    arguments: JsonObject | None = None
    ask: str = ""


class ToolHooks(Protocol):
    """Asked before each call, after its arguments were found valid; told after each one has ended."""

    async def before_tool(self, tool: str, arguments: JsonObject) -> HookDecision: ...

    async def after_tool(self, record: ToolCallRecord) -> str:
        """Return text for the model about the call, besides its result."""
        ...


class NoHooks:
    """Nobody watches."""

    async def before_tool(self, tool: str, arguments: JsonObject) -> HookDecision:
        return HookDecision()

    async def after_tool(self, record: ToolCallRecord) -> str:
        return ""
