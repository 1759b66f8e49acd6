"""Calls and results as plain text, for models and servers that know no other form.

All pure functions of the messages: the same history is always rendered to the same bytes, so a server's cache holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ollm.domain.messages import Call, JsonObject, PromptMessage
from ollm.domain.model_facts import WrittenForm
from ollm.domain.tools import ToolSchema

MARKS: dict[WrittenForm, tuple[str, str]] = {
    "fence": ("```json\n", "\n```"),
    "tag": ("<tool_call>\n", "\n</tool_call>"),
    "json": ("", ""),
}
CLOSED = {"additionalProperties": False}  # a model that may add parameters of its own goes on adding them
_FAILED = re.compile(r"\AError |\[exit code [1-9]\d*\]\s*\Z")  # how the result of a call shows that it failed
# What a model that writes its calls names when it wants to speak: with no such choice it calls whatever is said.
ANSWER = ToolSchema(
    name="answer",
    description="Say something when no tool is needed.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
BEGUN = '{{"name": "{}", "arguments": '
LONGEST_REMINDER = 320  # characters of what was asked
LEFT = (
    "The user asked: {}\n"
    "If a part of that is not done yet, write the next call. If all is done, say what was found or done."
)
AGAIN = "Write another call that does it right."
EXAMPLES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def written(call: Call, form: WrittenForm) -> str:
    """One call as the model would write it."""
    before, after = MARKS[form]
    return before + _json({"name": call.name, "arguments": call.arguments}) + after


def spoken(messages: Sequence[PromptMessage], form: WrittenForm) -> tuple[PromptMessage, ...]:
    """The history with calls as text in the model's answers and results as messages of the user.

    What the user would then say in several messages is joined: many templates want the roles to alternate.
    """
    said: list[PromptMessage] = []
    for message in messages:
        found = _spoken(message, form)
        if said and found.role == said[-1].role == "user":
            joined = f"{said[-1].content}\n\n{found.content}"
            sources = (*said[-1].sources, *found.sources)
            said[-1] = replace(said[-1], content=joined, images=(*said[-1].images, *found.images), sources=sources)
        else:
            said.append(found)
    return tuple(said)


def _spoken(message: PromptMessage, form: WrittenForm) -> PromptMessage:
    if message.role == "tool":
        tool = message.tool_name or "The tool"
        told = f"failed:\n{message.content}\n{AGAIN}" if failed(message) else f"returned:\n{message.content}"
        return PromptMessage(
            role="user",
            content=f"{tool} {told}",
            images=message.images,
            sources=message.sources,
        )
    if not message.calls:
        return message
    text = "\n".join(filter(None, (message.content, *(written(call, form) for call in message.calls))))
    return replace(message, content=text, calls=())


def failed(message: PromptMessage) -> bool:
    """Whether this is the result of a call that failed, or of a command that did."""
    return message.role == "tool" and _FAILED.search(message.content) is not None


def reminder(messages: Sequence[PromptMessage]) -> str:
    """The user's last words once more, the middle of long ones left out, and what to do about them."""
    asked = next((message.content for message in reversed(messages) if message.role == "user"), "")
    if len(asked) > LONGEST_REMINDER:
        asked = f"{asked[: LONGEST_REMINDER // 2]} … {asked[-LONGEST_REMINDER // 2 :]}"
    return LEFT.format(asked) if asked else ""


def reminded(messages: Sequence[PromptMessage], words: str) -> tuple[PromptMessage, ...]:
    """The messages with these words at the end of the last one."""
    last = messages[-1]
    return (*messages[:-1], replace(last, content=f"{last.content}\n\n{words}"))


def listed(
    messages: Sequence[PromptMessage], tools: Sequence[ToolSchema], form: WrittenForm
) -> tuple[PromptMessage, ...]:
    """The tools as part of the system prompt, a line each, with how to call one."""
    told = "\n".join(("Tools:", *(_line(tool) for tool in tools), how_to_call(tools, form)))
    first = messages[0] if messages and messages[0].role == "system" else None
    if first is None:
        return (PromptMessage(role="system", content=told), *messages)
    return (replace(first, content=f"{first.content}\n\n{told}"), *messages[1:])


def worked(
    messages: Sequence[PromptMessage], tools: Sequence[ToolSchema], form: WrittenForm
) -> tuple[PromptMessage, ...]:
    """A finished exchange in front of the conversation: a question, a call, its result, the answer.

    Very small models do what they see done, not what they are told. A second exchange changes what the first one read,
    where that can be; a last one needs no tool."""
    offered = {tool.name for tool in tools}
    if "read_file" not in offered:
        return tuple(messages)
    shown = _exchange(
        ("What does hello.txt say?", "hello.txt says: hi there"), _call("read_file", path="hello.txt"), "hi there"
    )
    if "edit_file" in offered:
        edit = _call("edit_file", path="hello.txt", target="hi there", replacement="hello")
        answers = ("Change it to hello.", "Done: hello.txt says hello now.")
        shown += _exchange(answers, edit, "Edited hello.txt: 1 edit made.")
    if ANSWER in tools:
        thanked = PromptMessage(role="assistant", content="", calls=(_call(ANSWER.name, text="You are welcome."),))
        shown += (PromptMessage(role="user", content="Thank you!"), thanked)
    first = 1 if messages and messages[0].role == "system" else 0
    return (*messages[:first], *spoken(shown, form), *messages[first:])


def _call(name: str, **arguments: str) -> Call:
    return Call(id="", name=name, arguments=dict(arguments))


def _exchange(said: tuple[str, str], call: Call, result: str) -> tuple[PromptMessage, ...]:
    asked, answered = said
    return (
        PromptMessage(role="user", content=asked),
        PromptMessage(role="assistant", content="", calls=(call,)),
        PromptMessage(role="tool", content=result, tool_name=call.name),
        PromptMessage(role="assistant", content=answered),
    )


def how_to_call(tools: Sequence[ToolSchema], form: WrittenForm) -> str:
    """One worked call, of the plainest tool there is."""
    plainest = min(tools, key=lambda tool: (len(tool.parameters.get("required", ())) != 1, tool.name != "read_file"))
    return f"To use a tool, write only the call:\n{written(example(plainest), form)}"


def example(tool: ToolSchema) -> Call:
    """A call with a stand-in for every parameter that is required."""
    known = tool.parameters.get("properties", {})
    needed = tool.parameters.get("required") or list(known)[:1]
    return Call(id="", name=tool.name, arguments={name: _stand_in(known.get(name, {})) for name in needed})


def _stand_in(schema: JsonObject) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        return [_stand_in(schema["items"])]
    if schema.get("type") == "object" and schema.get("properties"):
        return {name: _stand_in(schema["properties"][name]) for name in schema.get("required", ())}
    return EXAMPLES.get(str(schema.get("type")), "…")


def _line(tool: ToolSchema) -> str:
    needed = tool.parameters.get("required", ())
    names = [name if name in needed else f"{name}?" for name in tool.parameters.get("properties", {})]
    return f"- {tool.name}({', '.join(names)})" + (f": {tool.description}" if tool.description else "")


def call_schema(tools: Sequence[ToolSchema]) -> JsonObject:
    """A JSON Schema that allows one call of any of these tools and nothing else."""
    return {"anyOf": [_one_call(tool) for tool in tools]}


def name_schema(tools: Sequence[ToolSchema]) -> JsonObject:
    """A JSON Schema that allows the beginning of a call, its name, and nothing else."""
    names = {"name": {"enum": [tool.name for tool in tools]}}
    return {"type": "object", "properties": names, "required": ["name"], **CLOSED}


def named(text: str, tools: Sequence[ToolSchema]) -> str | None:
    """The tool that was named under `name_schema`."""
    return next((tool.name for tool in tools if f'"{tool.name}"' in text), None)


def fits(arguments: JsonObject | str, tool: ToolSchema) -> bool:
    """Whether what is required is there and nothing that was not shown."""
    if not isinstance(arguments, dict):
        return False
    return set(tool.parameters.get("required", ())) <= set(arguments) <= set(tool.parameters.get("properties", ()))


def _one_call(tool: ToolSchema) -> JsonObject:
    name: JsonObject = {"name": {"const": tool.name}}
    arguments = {**tool.parameters, **CLOSED}
    properties = {**name, "arguments": arguments}
    return {"type": "object", "properties": properties, "required": ["name", "arguments"], **CLOSED}


def _json(value: Any) -> str:
    """With the spaces models have learnt: without them a small one does not find the end of a text it copies."""
    import json

    return json.dumps(value, ensure_ascii=False)
