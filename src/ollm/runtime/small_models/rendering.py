"""Renders the block protocol: its rules, worked exchanges, and calls and results as plain messages.

Pure functions of the messages: the same history always renders to the same bytes, so a server's cache stays valid.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from ollm.domain.messages import PromptMessage, Role, ToolCall, put_in_fence
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece, merge_user_messages

SKILLS_FOLDER = "/skills/"
OTHER_TOOLS = (
    "A block labelled `call` and a tool's name calls that tool; write its parameters in it, one `name: value` a line."
    " The tools, those parameters in brackets that may be left out:"
)
MAX_TOOL_LINE_CHARS = 240
_ERROR = re.compile(r"^Error \w+: ")
_NAME = re.compile(r"\s*[\w-]+\s*")
COVERED_TOOLS = frozenset(
    "shell read_file read_many_files write_file edit_file glob grep ls goal write_todos memory recall".split()  # noqa: SIM905
)


def build_protocol(tools: Sequence[ToolSchema]) -> str:
    """Explain how to call these tools. Files and commands need no separate tool."""
    told = load_exchanges(can_change=can_change(tools))[0].content
    others = [describe_tool(tool) for tool in tools if tool.name not in COVERED_TOOLS]
    return "\n".join([told, OTHER_TOOLS, *others]) if others else told


def describe_tool(tool: ToolSchema) -> str:
    """Describe a tool in one line: its name, its parameters and its purpose."""
    known = tool.parameters.get("properties")
    needed = tool.parameters.get("required") or ()
    names = [name if name in needed else f"[{name}]" for name in (known if isinstance(known, dict) else ())]
    told = " ".join(tool.description.split())
    line = f"- {tool.name}({', '.join(names)}): {told}"
    return line if len(line) <= MAX_TOOL_LINE_CHARS else f"{line[: MAX_TOOL_LINE_CHARS - 1]}…"


def can_change(tools: Sequence[ToolSchema]) -> bool:
    return any(tool.name in ("shell", "write_file", "edit_file") for tool in tools)


def render_block_messages(messages: Sequence[PromptMessage], tools: Sequence[ToolSchema]) -> tuple[PromptMessage, ...]:
    """Render the history as plain messages, after the protocol and worked exchanges."""
    first = messages[0] if messages and messages[0].role == "system" else None
    rest = messages[1:] if first else messages
    told = "\n\n".join(filter(None, (build_protocol(tools), first.content if first else "")))
    _, *shown = load_exchanges(can_change=can_change(tools))
    system = replace(first, content=told) if first else PromptMessage(role="system", content=told)
    return (system, *shown, *merge_user_messages([_render_message(message) for message in rest]))


@cache
def load_exchanges(*, can_change: bool) -> tuple[PromptMessage, ...]:
    """Load the protocol and the example exchanges: very small models imitate what they see."""
    text = Path(__file__).with_name("exchanges.txt" if can_change else "reading_exchanges.txt").read_text("utf-8")
    parts = re.split(r"^>>> (\w+)\n", text, flags=re.MULTILINE)[1:]
    roles: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(PromptMessage(role=roles[role], content=said.rstrip("\n")) for role, said in pairs)


def _render_message(message: PromptMessage) -> PromptMessage:
    if message.role == "tool":
        content = render_result(message)
        return PromptMessage(role="user", content=content, images=message.images, sources=message.sources)
    if not message.calls:
        return message
    rendered = "\n\n".join(filter(None, (message.content.strip(), *map(render_call, message.calls))))
    text = message.written.rstrip() or rendered
    return replace(message, content=text, calls=(), written="")


def render_result(message: PromptMessage) -> str:
    """Render a command's output with its exit code and facts after it. Other results are unchanged."""
    output, facts = message.split_content()
    if message.failed and output.startswith("Error "):
        output = _ERROR.sub("", output)
    elif message.failed and message.tool_name == "shell" and output.startswith("Exit code:"):
        output = output.partition("\n")[2]
    elif message.tool_name == "shell":
        return f"{output.rstrip()}\n[exit code 0]" + (f"\n{facts}" if facts else "")
    elif message.tool_name and message.tool_name not in COVERED_TOOLS:  # A fence marks text that is not the user's.
        output = f"Result of {message.tool_name}:\n{put_in_fence(output)}"
    return f"{output}\n\n{facts}" if facts else output


def render_call(call: ToolCall) -> str:
    """Render a call as its block."""
    arguments = call.arguments
    match call.name:
        case "shell" if "command" in arguments:
            return put_in_fence(str(arguments["command"]), "run")
        case "write_file" if "path" in arguments:
            return put_in_fence(str(arguments.get("content", "")).rstrip(), f"write {arguments['path']}")
        case "edit_file" if "path" in arguments:
            return put_in_fence(render_edits(arguments.get("edits")), f"write {arguments['path']}")
    lines = "\n".join(f"{name}: {value}" for name, value in arguments.items())
    return put_in_fence(lines, f"call {call.name}")


def render_edits(edits: object) -> str:
    """Render edits of another model, or of an answer that was shortened, as lines to replace."""
    pairs = [
        (str(edit.get("target", "")), str(edit.get("replacement", "")))
        for edit in (edits if isinstance(edits, list) else [])
        if isinstance(edit, dict)
    ]
    return "\n".join(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE" for old, new in pairs)


def parse_parameters(body: str, tool: ToolSchema) -> dict[str, object]:
    """Parse the parameters in a tool's block: JSON, lines of `name: value`, or the one required value."""
    import json

    text = body.strip()
    known = tool.parameters.get("properties", {})
    if text.startswith("{"):
        with suppress(ValueError):
            return dict(json.loads(text))
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    if pairs and pairs[0][0].strip() in known and all(mark and _NAME.fullmatch(name) for name, mark, _ in pairs):
        return {name.strip(): _read_value(value.strip(), known.get(name.strip(), {})) for name, _, value in pairs}
    needed = tool.parameters.get("required") or list(known)[:1]
    return {needed[0]: text} if needed else {}


def _read_value(text: str, schema: dict[str, object]) -> object:
    import json

    if schema.get("type") == "string" or "anyOf" in schema:
        return text.strip("\"'")
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        return text


def translate_command(command: str) -> CallPiece:
    """Translate plain `cat`, `ls` and `grep` to tool calls. Anything else stays a command, which is then refused."""
    words = _split_words(command)
    plain = [word for word in words[1:] if not word.startswith("-")]
    match words[:1]:
        case ["cat" | "head" | "tail" | "less"] if len(plain) == 1:
            return CallPiece("read_file", {"path": plain[0]})
        case ["ls"] if len(plain) <= 1:
            return CallPiece("ls", {"path": plain[0] if plain else "."})
        case ["grep" | "rg"] if 0 < len(plain) <= 2:
            return CallPiece("grep", {"pattern": plain[0], "path": plain[1] if len(plain) == 2 else "."})
    return CallPiece("shell", {"command": command})


def find_skill_reading(command: str) -> CallPiece | None:
    """Turn `cat` of a skill file outside the workspace into `read_file`, which needs no permission; None for others."""
    if SKILLS_FOLDER not in command:
        return None
    words = _split_words(command)
    if len(words) != 2 or words[0] != "cat" or not words[1].startswith("/") or SKILLS_FOLDER not in words[1]:
        return None
    return CallPiece("read_file", {"path": words[1]})


def _split_words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []
