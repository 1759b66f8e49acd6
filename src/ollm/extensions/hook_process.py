"""One run of a hook: JSON in, JSON out, within limits. Its whole process tree ends with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.errors import StartError
from ollm.domain.struct import Data
from ollm.extensions.hook_settings import CLAUDE_EVENT_NAMES, Hook
from ollm.providers.base import as_mapping
from ollm.system.capture import Capture
from ollm.system.processes import ProcessCommand, ProcessHost
from ollm.system.program_pipes import connect_writer, start_configured
from ollm.system.sandbox.sandbox import Sandbox
from ollm.system.terminal_text import strip_controls

MAX_OUTPUT_BYTES = 1024 * 1024
BOXED_HINT = " (Hooks run in the sandbox; `sandbox: off` beside its command in your settings lets this one out.)"
BLOCK_EXIT_CODE = 2
MAX_SHOWN_CHARACTERS = 500
CLAUDE_KEYS = frozenset({"hookSpecificOutput", "decision", "reason", "stopReason", "systemMessage", "suppressOutput"})
LAST_OUTPUT_SECONDS = 0.5  # Output may still be in the pipe when the hook has ended.


class HookReply(Data, frozen=True):
    """Reply of a hook. `failure` is the reason the reply is invalid; `ask` the reason a person must confirm; `text` is
    text for the model, `notice` for the person; `updated_input` are arguments under Claude Code's names."""

    go_on: bool = True
    message: str = ""
    context: tuple[dict[str, Any], ...] = ()
    arguments: dict[str, Any] | None = None
    failure: str = ""
    ask: str = ""
    text: str = ""
    notice: str = ""
    updated_input: dict[str, Any] | None = None


class HookRunner:
    """Runner for hooks in the workspace, with the environment of tools."""

    def __init__(
        self, host: ProcessHost, workspace: Path, environment: Mapping[str, str], sandbox: Sandbox | None = None
    ) -> None:
        self._host = host
        self._sandbox = sandbox
        self._workspace = workspace
        self._environment = environment

    async def run(self, hook: Hook, document: Mapping[str, Any]) -> HookReply:
        try:
            async with asyncio.timeout(hook.timeout):  # In Python 3.11 `wait_for` may lose a cancellation.
                code, out, errors = await self._run(hook, msgspec.json.encode(document))
        except TimeoutError:
            return HookReply(failure=f"it timed out after {hook.timeout:g} s")
        except StartError as error:
            return HookReply(failure=f"it could not be started: {error}")
        if len(out) > MAX_OUTPUT_BYTES:
            return HookReply(failure="it printed more than 1 MiB")
        if code and hook.boxed and "ermission denied" in errors:
            errors += BOXED_HINT
        if code == BLOCK_EXIT_CODE:
            reply = read_reply(out)
            reason = reply.message or shorten_output(errors) or shorten_output(out) or "no reason was given"
            return msgspec.structs.replace(reply, go_on=False, failure="", message=reason)
        if code != 0:
            return HookReply(
                failure=f"it exited with code {code}: {shorten_output(errors) or shorten_output(out)}".rstrip(": ")
            )
        plain = hook.claude and not out.lstrip().startswith("{")  # Plain words are for the model.
        return HookReply(text=shorten_output(out)) if plain else read_reply(out)

    async def _run(self, hook: Hook, document: bytes) -> tuple[int, str, str]:
        """Run the hook, in the sandbox unless the user's own settings exempt it."""
        environment = {**self._environment, "CLAUDE_PROJECT_DIR": str(self._workspace)}
        command = ProcessCommand(argv=("/bin/sh", "-c", hook.command), cwd=self._workspace, environment=environment)
        words = hook.command.replace('"', " ").replace("'", " ").split() if hook.own else ()
        program = await start_configured(self._host, self._sandbox if hook.boxed else None, command, words)
        if self._sandbox is not None:
            self._sandbox.attach(program.process)
        said, complained = HookOutput(program.output), HookOutput(program.errors)
        try:
            with closing(await connect_writer(program.feed)) as feed, suppress(OSError):
                feed.write(document)  # The hook may close its stdin without reading it.
                await feed.drain()
            code = await program.process.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_OUTPUT_SECONDS):
                    await said.capture.ended.wait()
                    await complained.capture.ended.wait()
            return code, said.text, complained.text
        finally:
            said.capture.close()
            complained.capture.close()
            await program.process.end(grace=0.1)


class HookOutput:
    """The text from a pipe, which is closed slightly over the limit."""

    def __init__(self, descriptor: int) -> None:
        self.text = ""
        self.capture = Capture(descriptor, self._add)

    def _add(self, text: str) -> None:
        self.text += text
        if len(self.text) > MAX_OUTPUT_BYTES:
            self.capture.close()


def read_reply(out: str) -> HookReply:
    """Read stdout: nothing, or one JSON object."""
    if not out.strip():
        return HookReply()
    try:
        found = msgspec.json.decode(out)
    except msgspec.DecodeError as error:
        return HookReply(failure=f"its output is not JSON: {error}")
    if not isinstance(found, dict):
        return HookReply(failure="its output is not a JSON object")
    context, arguments = found.get("context", []), found.get("arguments")
    entries = context if isinstance(context, list) else [context]
    reply = HookReply(
        go_on=found.get("continue") is not False,
        message=str(found.get("message") or ""),
        context=tuple(entry for entry in entries if isinstance(entry, dict)),
        arguments=arguments if isinstance(arguments, dict) else None,
        text=str(found.get("additionalContext") or "")[:MAX_TEXT_CHARACTERS],
    )
    return msgspec.structs.replace(reply, **read_claude_reply(found)) if CLAUDE_KEYS & found.keys() else reply


def shorten_output(text: str) -> str:
    return strip_controls(text[: MAX_SHOWN_CHARACTERS * 4]).strip()[:MAX_SHOWN_CHARACTERS]


CLAUDE_EVENTS: dict[str, str] = {ours: theirs for theirs, ours in CLAUDE_EVENT_NAMES.items()}
TOOL_NAMES = {
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Edit",
    "shell": "Bash",
    "glob": "Glob",
    "grep": "Grep",
    "ls": "LS",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "write_todos": "TodoWrite",
    "task": "Task",
}
MAX_TEXT_CHARACTERS = 8_000


def match_tool(matcher: str, tool: str) -> bool:
    """Match our or Claude Code's tool name against a name, names joined by `|`, or a regex. Empty and `*` match all."""
    if matcher in ("", "*"):
        return True
    try:
        return any(re.fullmatch(matcher, name) for name in (to_claude_name(tool), tool))
    except re.error:
        return True  # A guard with a broken pattern guards everything.


def to_claude_name(tool: str) -> str:
    return TOOL_NAMES.get(tool) or (f"mcp__{tool}" if "__" in tool else tool)


def build_claude_fields(
    event: str, data: Mapping[str, Any], session: str | None, workspace: str, transcript: str
) -> dict[str, Any]:
    """Build the fields that a Claude Code hook reads on stdin."""
    fields: dict[str, Any] = {
        "session_id": session or "",
        "transcript_path": transcript,
        "cwd": workspace,
        "permission_mode": "default",
        "hook_event_name": CLAUDE_EVENTS.get(event, event),
    }
    match event:
        case "before-tool":
            fields |= _build_tool_fields(str(data["tool"]), data["arguments"], workspace)
        case "after-tool":
            call = data["call"]
            fields |= _build_tool_fields(str(call["name"]), call.get("args") or {}, workspace)
            result = call.get("result") or {}
            text = str(result.get("llmContent") or result.get("llm_content") or "")[:MAX_TEXT_CHARACTERS]
            fields["tool_response"] = {"success": call.get("status") == "ok", "content": text, "stdout": text}
    notified = data.get("notification") if event == "notification" else None
    more: dict[str, dict[str, Any]] = {
        "before-turn": {"prompt": data.get("text")},
        "after-turn": {"stop_hook_active": False},
        "session-start": {"source": "resume" if data.get("resumed") else "startup"},
        "session-end": {"reason": "other"},
        "before-compression": {"trigger": "auto", "custom_instructions": ""},
        "notification": {"message": str((notified or {}).get("type", ""))},
    }
    return fields | more.get(event, {})


def _build_tool_fields(tool: str, arguments: Mapping[str, Any], workspace: str) -> dict[str, Any]:
    return {"tool_name": to_claude_name(tool), "tool_input": to_claude_input(tool, arguments, workspace)}


def to_claude_input(tool: str, arguments: Mapping[str, Any], workspace: str) -> dict[str, Any]:
    """Add the names Claude Code uses to our arguments, so that a guard written for either works."""
    given = dict(arguments)
    path = given.get("path")
    if tool in ("read_file", "write_file", "edit_file") and isinstance(path, str):
        given["file_path"] = str(Path(workspace) / path)
    if tool == "edit_file":
        edits = given.get("edits") if isinstance(given.get("edits"), list) else [given]
        changes = [_to_claude_edit(edit) for edit in edits or () if isinstance(edit, Mapping)]
        given |= {**(changes[0] if changes else {}), "edits": changes}
    if tool == "grep" and given.get("filePattern"):
        given["glob"] = given["filePattern"]
    return given


def _to_claude_edit(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "old_string": edit.get("target", ""),
        "new_string": edit.get("replacement", ""),
        "replace_all": bool(edit.get("replaceAll")),
    }


def to_our_arguments(tool: str, changed: Mapping[str, Any], workspace: str) -> dict[str, Any] | None:
    """Convert `updatedInput` to our arguments; None if that is not possible."""
    given = dict(changed)
    if tool == "edit_file":
        return None
    if isinstance(path := given.pop("file_path", None), str):
        given["path"] = str(Path(path).relative_to(workspace)) if Path(path).is_relative_to(workspace) else path
    return given


def read_claude_reply(found: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a reply in Claude Code's form to our fields. Its `allow` does not override our policy."""
    special = as_mapping(found.get("hookSpecificOutput"))
    reply: dict[str, Any] = {}
    wish = special.get("permissionDecision")
    reason = str(special.get("permissionDecisionReason") or found.get("reason") or found.get("stopReason") or "")
    if wish == "deny" or found.get("decision") in ("block", "deny"):
        reply |= {"go_on": False, "message": reason or "no reason was given"}
    elif wish == "ask":
        reply["ask"] = reason or "a hook wants it confirmed"
    elif found.get("continue") is False:
        reply |= {"go_on": False, "message": reason or str(found.get("message") or "")}
    more = {
        "text": str(special.get("additionalContext") or "")[:MAX_TEXT_CHARACTERS],
        "notice": str(found.get("systemMessage") or ""),
        "updated_input": as_mapping(special.get("updatedInput")),
    }
    return reply | {name: value for name, value in more.items() if value}
