"""The text protocol as a model is sent it: how it works, worked exchanges, and calls and results as plain messages.

All pure functions of the messages: the same history is always rendered to the same bytes, so a server's cache holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers.text_calls.block_edits import ALREADY_RUN, BREAKS_FILE, BROKEN_OFF, NOTHING_CHANGES, OUTPUT_REPEATED
from ollm.providers.text_calls.definitions import find_definitions
from ollm.providers.text_calls.worked_exchanges import EXCHANGES, READING_EXCHANGES

PROTOCOL = """\
You are a coding agent on Linux. You work in the current directory only. Each of your messages is either ONE step, or \
the final answer in words.
To run something write:
```bash
command
```
and stop; you will be shown its output. To change or create a file, write its name on a line of its own and then its \
whole new content in a block:
name.py
```
content
```
In a long file write only what changes: the whole new function, or the lines that were shown to you with the change in \
them. Do every part of the request, one step after the other. When all is done, answer in one or two sentences without \
a block."""
READING_PROTOCOL = """\
You are a coding agent on Linux. You answer questions about the project in the current directory and change nothing.
To look at something write:
```bash
command
```
with cat, ls or grep, and stop; you will be shown its output. When you know enough, answer in words."""
IDLE = "Writing the file again as it is changes nothing. Take another step."
UNSAID = " "  # nothing: the words would be its next answer
IDLE_RESULTS = {
    NOTHING_CHANGES.format(""): IDLE,
    BROKEN_OFF: BROKEN_OFF,
    OUTPUT_REPEATED: OUTPUT_REPEATED,
    ALREADY_RUN: UNSAID,
}
BREAKING = BREAKS_FILE.partition("{}")[0]
OTHER_TOOLS = (
    "A block in the language of a tool's name calls that tool; write its parameters in it, one `name: value` a line."
    " The tools, those parameters in brackets that may be left out:"
)
MAX_TOOL_LINE_CHARS = 240
_ERROR = re.compile(r"^Error \w+: ")
_STEP = re.compile(r"(?:^|\. |\n)Now [^\n]+\.$|: mend it\.$")
_FACTS = re.compile(
    r"\n\n(?=Changed lines of |Created |Deleted |That is |Now |The command printed |sed found |"
    r"\S+ (?:still |does not |is |in |prints nothing|fails|uses |no longer )|\S+:\n```)"
)
_NAME = re.compile(r"\s*[\w-]+\s*")
COVERED_TOOLS = frozenset(
    "shell read_file read_many_files write_file edit_file glob grep ls goal write_todos memory recall".split()  # noqa: SIM905
)


def build_protocol(tools: Sequence[ToolSchema]) -> str:
    """How the model calls, for these tools; files and commands need no tool of their own."""
    told = PROTOCOL if can_change(tools) else READING_PROTOCOL
    others = [describe_tool(tool) for tool in tools if tool.name not in COVERED_TOOLS]
    return "\n".join([told, OTHER_TOOLS, *others]) if others else told


def describe_tool(tool: ToolSchema) -> str:
    """A tool in one line: its name, its parameters and what it does."""
    known = tool.parameters.get("properties")
    needed = tool.parameters.get("required") or ()
    names = [name if name in needed else f"[{name}]" for name in (known if isinstance(known, dict) else ())]
    told = " ".join(tool.description.split())
    line = f"- {tool.name}({', '.join(names)}): {told}"
    return line if len(line) <= MAX_TOOL_LINE_CHARS else f"{line[: MAX_TOOL_LINE_CHARS - 1]}…"


def can_change(tools: Sequence[ToolSchema]) -> bool:
    return any(tool.name in ("shell", "write_file", "edit_file") for tool in tools)


def render_block_messages(messages: Sequence[PromptMessage], tools: Sequence[ToolSchema]) -> tuple[PromptMessage, ...]:
    """The history as plain messages, with the protocol and worked exchanges in front."""
    first = messages[0] if messages and messages[0].role == "system" else None
    rest = messages[1:] if first else messages
    told = "\n\n".join(filter(None, (build_protocol(tools), first.content if first else "")))
    exchanges = EXCHANGES if can_change(tools) else READING_EXCHANGES
    shown = [PromptMessage(role="user" if role == "user" else "assistant", content=text) for role, text in exchanges]
    system = replace(first, content=told) if first else PromptMessage(role="system", content=told)
    return (system, *shown, *_render_plain(rest))


def _render_plain(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """What the user would say in several messages is joined: many templates want the roles to alternate."""
    said: list[PromptMessage] = []
    for message in drop_idle_steps(messages):
        plain = _render_message(message)
        if said and plain.role == said[-1].role == "user":
            joined = f"{said[-1].content}\n\n{plain.content}"
            sources = (*said[-1].sources, *plain.sources)
            said[-1] = replace(said[-1], content=joined, images=(*said[-1].images, *plain.images), sources=sources)
        else:
            said.append(plain)
    return tuple(said)


def drop_idle_steps(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """The messages without steps that came to nothing: a model that sees one before it takes it again. What was said
    besides stays."""
    kept: list[PromptMessage] = []
    for place, message in enumerate(messages):
        following = messages[place + 1 : place + 1 + len(message.calls)]
        if message.calls and len(following) == len(message.calls) and all(map(_find_idle, following)):
            continue
        if idle := _find_idle(message):
            facts = message.content.partition("\n\n")[2]
            facts = f"{idle}\n\n{facts}" if facts and idle.startswith(BREAKING) else facts
            if facts:
                kept.append(PromptMessage(role="user", content=facts, sources=message.sources))
            elif idle != UNSAID and kept and kept[-1].role == "user":
                kept.append(PromptMessage(role="user", content=idle, sources=message.sources))
            continue
        kept.append(message)
    return kept


def _find_idle(message: PromptMessage) -> str:
    """What is said instead of a step that came to nothing; empty for every other message."""
    result = message.content.partition("\n\n")[0] if message.role == "tool" else ""
    if BREAKING in result:
        return _ERROR.sub("", result)
    return next((told for mark, told in IDLE_RESULTS.items() if mark in result), "")


def _render_message(message: PromptMessage) -> PromptMessage:
    if message.role == "tool":
        content = render_result(message.tool_name, message.content)
        return PromptMessage(role="user", content=content, images=message.images, sources=message.sources)
    if not message.calls:
        return message
    text = "\n\n".join(filter(None, (message.content.strip(), *map(render_call, message.calls))))
    return replace(message, content=text, calls=())


def render_result(tool: str | None, content: str) -> str:
    """The output of a command with its exit code; what other calls said as it is."""
    if content.startswith("Error "):
        return _ERROR.sub("", content)
    if tool != "shell":
        return content
    if content.startswith("Exit code:"):
        return content.partition("\n")[2]
    if _STEP.search(content) and (said := _FACTS.search(content)):
        return f"{content[: said.start()].rstrip()}\n[exit code 0]{content[said.start() :]}"
    output, mark, facts = content.rpartition("\n\n")
    if mark and facts.startswith(("Changed lines of ", "Created ", "Deleted ", "That is ")):
        return f"{output.rstrip()}\n[exit code 0]\n{facts}"
    return f"{content.rstrip()}\n[exit code 0]"


def render_call(call: ToolCall) -> str:
    """One call as the block that stands for it."""
    arguments = call.arguments
    match call.name:
        case "shell" if "command" in arguments:
            return f"```bash\n{arguments['command']}\n```"
        case "write_file" if "path" in arguments:
            return f"{arguments['path']}\n```\n{str(arguments.get('content', '')).rstrip()}\n```"
        case "edit_file" if "path" in arguments:
            return f"{arguments['path']}\n```\n{render_edits(arguments.get('edits'))}\n```"
    lines = "\n".join(f"{name}: {value}" for name, value in arguments.items())
    return f"```{call.name}\n{lines}\n```"


def render_edits(edits: object) -> str:
    """The new lines, as a model writes them that changes a part: of definitions only those that changed."""
    pairs = [
        (str(edit.get("target", "")), str(edit.get("replacement", "")))
        for edit in (edits if isinstance(edits, list) else [])
        if isinstance(edit, dict)
    ]
    if any(not new.strip() for _, new in pairs):
        return "\n".join(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE" for old, new in pairs)
    return "\n\n\n".join(_find_new_definitions(old, new) or new for old, new in pairs)


def _find_new_definitions(old: str, new: str) -> str:
    before = {found.text for found in find_definitions(old.split("\n"))}
    found = [definition.text for definition in find_definitions(new.split("\n")) if definition.text not in before]
    return "\n\n\n".join(found)


def parse_parameters(body: str, tool: ToolSchema) -> dict[str, object]:
    """The parameters in a tool's block: JSON, lines of `name: value`, or the one value that is required."""
    import json

    text = body.strip()
    known = tool.parameters.get("properties", {})
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
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
