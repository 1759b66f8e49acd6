"""Hooks around turns and tools: they observe events, may add context, and may stop a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.errors import DeniedError
from ollm.domain.events import Event, Notice
from ollm.domain.lazy import Lazy
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord
from ollm.extensions.hook_settings import Hook, HookEvent

if TYPE_CHECKING:
    from ollm.extensions.hook_process import HookReply, HookRunner

AddContext = Callable[[Mapping[str, Any]], None]


class HookContext(msgspec.Struct, frozen=True):
    """Context of hooks: the session, the person and the prompt. `transcript` is the session's file."""

    session: Callable[[], str | None]
    workspace: str
    emit: Callable[[Event], None]
    add_context: AddContext
    transcript: Callable[[], str] = str


class HookDecision(Data, frozen=True):
    """Decision of hooks before a call: `blocked` is the reason it must not run, `arguments` replace its arguments.
    `ask` is the reason a person must confirm, whatever the policy decides."""

    blocked: str | None = None
    arguments: JsonObject | None = None
    ask: str = ""


class Hooks:
    """The hooks of one conversation. Hooks of one event run concurrently, except before a tool: there, each may change
    the arguments for the next."""

    def __init__(self, hooks: Sequence[Hook], runner: Lazy[HookRunner], context: HookContext) -> None:
        self._hooks = tuple(hooks)
        self._runner = runner
        self._context = context
        self._reported_commands: set[str] = set()
        self._notifying: set[asyncio.Task[list[tuple[Hook, HookReply]]]] = set()

    async def before_tool(self, tool: str, arguments: JsonObject) -> HookDecision:
        changed: JsonObject | None = None
        ask = ""
        for hook in self._select_hooks("before-tool", tool):
            reply = await self._run(hook, {"tool": tool, "arguments": arguments if changed is None else changed})
            if reply.failure and hook.required:
                return HookDecision(blocked=f"the required hook {hook.command!r} failed: {reply.failure}")
            if not reply.go_on:
                return HookDecision(blocked=reply.message)
            ask = ask or reply.ask
            given = reply.arguments
            if reply.updated_input is not None:
                from ollm.extensions.hook_process import to_our_arguments

                given = to_our_arguments(tool, reply.updated_input, self._context.workspace)
            changed = changed if given is None else given
        return HookDecision(arguments=changed, ask=ask)

    async def after_tool(self, record: ToolCallRecord) -> str:
        """Return the hooks' text about the call, for the model."""
        hooks = self._select_hooks("after-tool", record.name)
        wanted = [hook for hook in hooks if record.status == "ok" or not hook.claude]  # PostToolUse runs on success.
        replies = await self._run_all(wanted, {"call": msgspec.to_builtins(record)})
        return "\n".join(text for _, reply in replies if (text := self._get_words(reply)))

    async def before_turn(self, text: str) -> None:
        """Raise DeniedError if a hook stops the turn or a required one fails."""
        for hook, reply in await self._run_all(self._select_hooks("before-turn"), {"text": text}):
            if reply.failure and hook.required:
                raise DeniedError(f"The required hook {hook.command!r} failed: {reply.failure}. The turn was stopped.")
            if not reply.go_on:
                raise DeniedError(f"A hook stopped this turn: {reply.message}")
            self._tell_model(hook, reply)

    async def run_event(self, event: HookEvent, data: Mapping[str, Any]) -> None:
        """Run the hooks of an event and wait for them. Their objections are shown to the person, and to the model with
        the next turn."""
        for hook, reply in await self._run_all(self._select_hooks(event), data):
            if not reply.go_on and reply.message:
                self._context.emit(Notice(level="warning", text=f"A hook says after {event}: {reply.message}"))
            self._tell_model(hook, reply)

    def _get_words(self, reply: HookReply) -> str:
        return "\n".join(text for text in ("" if reply.go_on else reply.message, reply.text) if text)

    def _tell_model(self, hook: Hook, reply: HookReply) -> None:
        if words := self._get_words(reply):
            key = f"hook {hook.event} {self._hooks.index(hook)}"
            self._context.add_context({"key": key, "content": words, "volatile": True})

    def notify(self, data: Mapping[str, Any]) -> None:
        """Start notification hooks without waiting for them."""
        if hooks := self._select_hooks("notification"):
            task = asyncio.create_task(self._run_all(hooks, data))
            self._notifying.add(task)
            task.add_done_callback(self._notifying.discard)

    async def close(self) -> None:
        if self._notifying:
            await asyncio.wait(self._notifying)

    async def _run_all(self, hooks: Sequence[Hook], data: Mapping[str, Any]) -> list[tuple[Hook, HookReply]]:
        replies = await asyncio.gather(*(self._run(hook, data) for hook in hooks))
        return list(zip(hooks, replies, strict=True))

    async def _run(self, hook: Hook, data: Mapping[str, Any]) -> HookReply:
        from ollm.extensions.hook_process import build_claude_fields

        context = self._context
        document = {
            "event": hook.event,
            "data": data,
            "session": context.session(),
            "workspace": context.workspace,
            **build_claude_fields(hook.event, data, context.session(), context.workspace, context.transcript()),
        }
        reply = await self._runner.get().run(hook, document)
        if reply.failure and hook.command not in self._reported_commands:
            self._reported_commands.add(hook.command)
            context.emit(Notice(level="warning", text=f"The hook {hook.command!r} failed: {reply.failure}."))
        elif reply.message and reply.go_on:
            context.emit(Notice(level="info", text=reply.message))
        if reply.notice:
            context.emit(Notice(level="info", text=reply.notice))
        for entry in reply.context:
            context.add_context(entry)
        return reply

    def _select_hooks(self, event: HookEvent, tool: str | None = None) -> list[Hook]:
        found = [hook for hook in self._hooks if hook.event == event and hook.applies_to(tool)]
        if tool is None or not found:
            return found
        from ollm.extensions.hook_process import match_tool

        return [hook for hook in found if match_tool(hook.matcher, tool)]
