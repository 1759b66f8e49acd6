"""Calls and results as plain text, for models and servers that support no other form.

All pure functions of the messages: the same history always renders to the same bytes, so the server's cache stays
valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Any

from msgspec.structs import replace

from ollm.domain.messages import JsonObject, PromptMessage, ToolCall
from ollm.domain.model_facts import WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.base import merge_user_messages

CALL_MARKS: dict[WrittenForm, tuple[str, str]] = {
    "fence": ("```json\n", "\n```"),
    "tag": ("<tool_call>\n", "\n</tool_call>"),
    "mistral": ("[TOOL_CALLS]", ""),
    "python": ("<|python_tag|>", ""),
    "json": ("", ""),
}
ELEMENT_MARKS: dict[WrittenForm, tuple[str, str, str]] = {
    "function": ("<function={}>\n", "<parameter={}>\n{}\n</parameter>\n", "</function>"),
    "invoke": ('<invoke name="{}">\n', '<parameter name="{}">{}</parameter>\n', "</invoke>"),
}
EXAMPLE_VALUES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def render_call(call: ToolCall, form: WrittenForm) -> str:
    """Render a call as the model would write it."""
    if form in ELEMENT_MARKS:
        opening, parameter, closing = ELEMENT_MARKS[form]
        texts = {name: value if isinstance(value, str) else _dump_json(value) for name, value in call.arguments.items()}
        return opening.format(call.name) + "".join(starmap(parameter.format, texts.items())) + closing
    before, after = CALL_MARKS[form]
    return before + _dump_json({"name": call.name, "arguments": call.arguments}) + after


def render_messages(messages: Sequence[PromptMessage], form: WrittenForm) -> tuple[PromptMessage, ...]:
    """Render the history with calls as text in the model's answers and results as user messages.

    Adjacent user messages are joined, because many templates require alternating roles.
    """
    return tuple(merge_user_messages([_render_message(message, form) for message in messages]))


def _render_message(message: PromptMessage, form: WrittenForm) -> PromptMessage:
    if message.role == "tool":
        tool = message.tool_name or "The tool"
        told = f"{tool} {'failed' if message.failed else 'returned'}:\n{message.content}"
        return PromptMessage(role="user", content=told, images=message.images, sources=message.sources)
    if not message.calls:
        return message
    text = "\n".join(filter(None, (message.content, *(render_call(call, form) for call in message.calls))))
    return replace(message, content=text, calls=())


def add_tool_list(
    messages: Sequence[PromptMessage], tools: Sequence[ToolSchema], form: WrittenForm
) -> tuple[PromptMessage, ...]:
    """Add the tools to the system prompt, one line each, with instructions for calling them."""
    told = "\n".join(("Tools:", *(_render_tool_line(tool) for tool in tools), explain_calling(tools, form)))
    first = messages[0] if messages and messages[0].role == "system" else None
    if first is None:
        return (PromptMessage(role="system", content=told), *messages)
    return (replace(first, content=f"{first.content}\n\n{told}"), *messages[1:])


def explain_calling(tools: Sequence[ToolSchema], form: WrittenForm) -> str:
    """Show an example call of the simplest tool."""
    return f"To use a tool, write only the call:\n{render_call(make_example_call(choose_plainest(tools)), form)}"


def choose_plainest(tools: Sequence[ToolSchema]) -> ToolSchema:
    return min(tools, key=lambda tool: (len(tool.parameters.get("required", ())) != 1, tool.name != "read_file"))


def make_example_call(tool: ToolSchema) -> ToolCall:
    """Make a call with a placeholder for every required parameter."""
    known = tool.parameters.get("properties", {})
    needed = tool.parameters.get("required") or list(known)[:1]
    return ToolCall(
        id="", name=tool.name, arguments={name: _make_example_value(known.get(name, {})) for name in needed}
    )


def _make_example_value(schema: JsonObject) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        return [_make_example_value(schema["items"])]
    if schema.get("type") == "object" and schema.get("properties"):
        return {name: _make_example_value(schema["properties"][name]) for name in schema.get("required", ())}
    return EXAMPLE_VALUES.get(str(schema.get("type")), "…")


def _render_tool_line(tool: ToolSchema) -> str:
    needed = tool.parameters.get("required", ())
    names = [name if name in needed else f"{name}?" for name in tool.parameters.get("properties", {})]
    return f"- {tool.name}({', '.join(names)})" + (f": {tool.description}" if tool.description else "")


def _dump_json(value: Any) -> str:
    """Encode with spaces, as in training data: without them small models lose the end of copied text."""
    import json

    return json.dumps(value, ensure_ascii=False)
