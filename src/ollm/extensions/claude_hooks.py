"""Hooks as Claude Code has them: its events, its names of tools and parameters on stdin, its answers on stdout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ollm.extensions.hook_settings import CLAUDE_EVENT_NAMES

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
    """A name, several with `|`, or a pattern, of Claude Code's names or of ours; nothing and `*` match every tool."""
    if matcher in ("", "*"):
        return True
    try:
        return any(re.fullmatch(matcher, name) for name in (to_claude_name(tool), tool))
    except re.error:
        return True  # a guard with a broken pattern guards everything


def to_claude_name(tool: str) -> str:
    return TOOL_NAMES.get(tool) or (f"mcp__{tool}" if "__" in tool else tool)


def build_claude_fields(
    event: str, data: Mapping[str, Any], session: str | None, workspace: str, transcript: str
) -> dict[str, Any]:
    """What a hook of Claude Code finds on its stdin."""
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
            fields["tool_response"] = _build_response(call)
        case "before-turn":
            fields["prompt"] = data["text"]
        case "after-turn":
            fields["stop_hook_active"] = False
        case "session-start":
            fields["source"] = "resume" if data.get("resumed") else "startup"
        case "session-end":
            fields["reason"] = "other"
        case "before-compression":
            fields |= {"trigger": "auto", "custom_instructions": ""}
        case "notification":
            fields["message"] = str(data.get("notification", {}).get("type", ""))
        case _:
            pass
    return fields


def _build_tool_fields(tool: str, arguments: Mapping[str, Any], workspace: str) -> dict[str, Any]:
    return {"tool_name": to_claude_name(tool), "tool_input": to_claude_input(tool, arguments, workspace)}


def to_claude_input(tool: str, arguments: Mapping[str, Any], workspace: str) -> dict[str, Any]:
    """The arguments under the names Claude Code uses, beside those we use, so that a guard written for either works."""
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


def _build_response(call: Mapping[str, Any]) -> dict[str, Any]:
    result = call.get("result") or {}
    text = str(result.get("llmContent") or result.get("llm_content") or "")[:MAX_TEXT_CHARACTERS]
    return {"success": call.get("status") == "ok", "content": text, "stdout": text}


def to_our_arguments(tool: str, changed: Mapping[str, Any], workspace: str) -> dict[str, Any] | None:
    """`updatedInput` as arguments of ours; None where it cannot be said in our words."""
    given = dict(changed)
    if tool == "edit_file":
        return None
    if isinstance(path := given.pop("file_path", None), str):
        given["path"] = str(Path(path).relative_to(workspace)) if Path(path).is_relative_to(workspace) else path
    return given


def read_claude_reply(found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of our reply that an answer in Claude Code's form comes to. Its `allow` lifts nothing of ours."""
    special = found.get("hookSpecificOutput")
    special = special if isinstance(special, Mapping) else {}
    reply: dict[str, Any] = {}
    wish = special.get("permissionDecision")
    reason = str(special.get("permissionDecisionReason") or found.get("reason") or found.get("stopReason") or "")
    if wish == "deny" or found.get("decision") in ("block", "deny"):
        reply |= {"go_on": False, "message": reason or "no reason was given"}
    elif wish == "ask":
        reply["ask"] = reason or "a hook wants it confirmed"
    elif found.get("continue") is False:
        reply |= {"go_on": False, "message": reason or str(found.get("message") or "")}
    if text := special.get("additionalContext"):
        reply["told"] = str(text)[:MAX_TEXT_CHARACTERS]
    if found.get("systemMessage"):
        reply["notice"] = str(found["systemMessage"])
    if isinstance(special.get("updatedInput"), Mapping):
        reply["updated_input"] = msgspec.to_builtins(dict(special["updatedInput"]))
    return reply
