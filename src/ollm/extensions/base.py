"""The interface of hooks around tool calls."""

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
    """Called before each valid call and after each call."""

    async def before_tool(self, tool: str, arguments: JsonObject) -> HookDecision: ...

    async def after_tool(self, record: ToolCallRecord) -> str:
        """Return text for the model about the call, besides its result."""
        ...


class NoHooks:
    async def before_tool(self, tool: str, arguments: JsonObject) -> HookDecision:
        return HookDecision()

    async def after_tool(self, record: ToolCallRecord) -> str:
        return ""
