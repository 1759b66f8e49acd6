"""Calls and results as plain text, for models and servers that support no other form.

All pure functions of the messages: the same history always renders to the same bytes, so the server's cache stays
valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ollm.domain.messages import JsonObject, PromptMessage, ToolCall
from ollm.domain.model_facts import WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.base import merge_user_messages

CALL_MARKS: dict[WrittenForm, tuple[str, str]] = {
    "fence": ("```json\n", "\n```"),
    "tag": ("<tool_call>\n", "\n</tool_call>"),
    "json": ("", ""),
}
CLOSED_SCHEMA = {"additionalProperties": False}  # a model that may add parameters of its own goes on adding them
# What a model that writes its calls names when it wants to speak: with no such choice it calls whatever is said.
ANSWER_TOOL = ToolSchema(
    name="answer",
    description="Say something when no tool is needed.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
CALL_START = '{{"name": "{}", "arguments": '
MAX_REMINDER_CHARACTERS = 320  # characters of what was asked
REMINDER_TEXT = (
    "The user asked: {}\n"
    "If a part of that is not done yet, write the next call. If all is done, say what was found or done."
)
RETRY_TEXT = "Write another call that does it right."
EXAMPLE_VALUES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def render_call(call: ToolCall, form: WrittenForm) -> str:
    """Render a call as the model would write it."""
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
        told = f"failed:\n{message.content}\n{RETRY_TEXT}" if message.failed else f"returned:\n{message.content}"
        return PromptMessage(
            role="user",
            content=f"{tool} {told}",
            images=message.images,
            sources=message.sources,
        )
    if not message.calls:
        return message
    text = "\n".join(filter(None, (message.content, *(render_call(call, form) for call in message.calls))))
    return replace(message, content=text, calls=())


def build_reminder(messages: Sequence[PromptMessage]) -> str:
    """Repeat the user's last message, shortened in the middle, with instructions."""
    asked = next((message.content for message in reversed(messages) if message.role == "user"), "")
    if len(asked) > MAX_REMINDER_CHARACTERS:
        asked = f"{asked[: MAX_REMINDER_CHARACTERS // 2]} … {asked[-MAX_REMINDER_CHARACTERS // 2 :]}"
    return REMINDER_TEXT.format(asked) if asked else ""


def append_reminder(messages: Sequence[PromptMessage], words: str) -> tuple[PromptMessage, ...]:
    last = messages[-1]
    return (*messages[:-1], replace(last, content=f"{last.content}\n\n{words}"))


def add_tool_list(
    messages: Sequence[PromptMessage], tools: Sequence[ToolSchema], form: WrittenForm
) -> tuple[PromptMessage, ...]:
    """Add the tools to the system prompt, one line each, with instructions for calling them."""
    told = "\n".join(("Tools:", *(_render_tool_line(tool) for tool in tools), explain_calling(tools, form)))
    first = messages[0] if messages and messages[0].role == "system" else None
    if first is None:
        return (PromptMessage(role="system", content=told), *messages)
    return (replace(first, content=f"{first.content}\n\n{told}"), *messages[1:])


def add_worked_example(
    messages: Sequence[PromptMessage], tools: Sequence[ToolSchema], form: WrittenForm
) -> tuple[PromptMessage, ...]:
    """Prepend a worked example to the conversation: a question, a call, its result, the answer.

    Very small models imitate examples rather than follow instructions. If possible, a second exchange changes what
    the first one read. The last one needs no tool."""
    offered = {tool.name for tool in tools}
    if "read_file" not in offered:
        return tuple(messages)
    shown = _make_exchange(
        ("What does hello.txt say?", "hello.txt says: hi there"), _make_call("read_file", path="hello.txt"), "hi there"
    )
    if "edit_file" in offered:
        edit = _make_call("edit_file", path="hello.txt", target="hi there", replacement="hello")
        answers = ("Change it to hello.", "Done: hello.txt says hello now.")
        shown += _make_exchange(answers, edit, "Edited hello.txt: 1 edit made.")
    if ANSWER_TOOL in tools:
        thanked = PromptMessage(
            role="assistant", content="", calls=(_make_call(ANSWER_TOOL.name, text="You are welcome."),)
        )
        shown += (PromptMessage(role="user", content="Thank you!"), thanked)
    first = 1 if messages and messages[0].role == "system" else 0
    return (*messages[:first], *render_messages(shown, form), *messages[first:])


def _make_call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(id="", name=name, arguments=dict(arguments))


def _make_exchange(said: tuple[str, str], call: ToolCall, result: str) -> tuple[PromptMessage, ...]:
    asked, answered = said
    return (
        PromptMessage(role="user", content=asked),
        PromptMessage(role="assistant", content="", calls=(call,)),
        PromptMessage(role="tool", content=result, tool_name=call.name),
        PromptMessage(role="assistant", content=answered),
    )


def explain_calling(tools: Sequence[ToolSchema], form: WrittenForm) -> str:
    """Show an example call of the simplest tool."""
    plainest = min(tools, key=lambda tool: (len(tool.parameters.get("required", ())) != 1, tool.name != "read_file"))
    return f"To use a tool, write only the call:\n{render_call(make_example_call(plainest), form)}"


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


def build_call_schema(tools: Sequence[ToolSchema]) -> JsonObject:
    """Build a JSON Schema that allows exactly one call of these tools."""
    return {"anyOf": [_build_one_call_schema(tool) for tool in tools]}


def build_name_schema(tools: Sequence[ToolSchema]) -> JsonObject:
    """Build a JSON Schema that allows only the name of a call."""
    names = {"name": {"enum": [tool.name for tool in tools]}}
    return {"type": "object", "properties": names, "required": ["name"], **CLOSED_SCHEMA}


def find_named_tool(text: str, tools: Sequence[ToolSchema]) -> str | None:
    return next((tool.name for tool in tools if f'"{tool.name}"' in text), None)


def do_arguments_fit(arguments: JsonObject | str, tool: ToolSchema) -> bool:
    """Return True if all required arguments are present and none is unknown."""
    if not isinstance(arguments, dict):
        return False
    return set(tool.parameters.get("required", ())) <= set(arguments) <= set(tool.parameters.get("properties", ()))


def _build_one_call_schema(tool: ToolSchema) -> JsonObject:
    name: JsonObject = {"name": {"const": tool.name}}
    arguments = {**tool.parameters, **CLOSED_SCHEMA}
    properties = {**name, "arguments": arguments}
    return {"type": "object", "properties": properties, "required": ["name", "arguments"], **CLOSED_SCHEMA}


def _dump_json(value: Any) -> str:
    """Encode with spaces, as in training data: without them small models lose the end of copied text."""
    import json

    return json.dumps(value, ensure_ascii=False)
