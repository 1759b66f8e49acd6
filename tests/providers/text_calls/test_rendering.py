"""Calls and results as plain text, for models and servers that know no other form."""

from typing import Any

import pytest

from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers.text_calls.rendering import (
    ANSWER_TOOL,
    add_tool_list,
    add_worked_example,
    append_reminder,
    build_reminder,
    render_call,
    render_messages,
)


def tool(name: str, required: tuple[str, ...] = (), description: str = "", **properties: Any) -> ToolSchema:
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    return ToolSchema(
        name=name,
        description=description,
        parameters={**parameters, **({"required": list(required)} if required else {})},
    )


LS = tool("ls", ("path",), "List.", path={"type": "string"}, depth={"type": "integer"})
READ = tool("read_file", ("path",), path={"type": "string"})
CALL = ToolCall(id="c1", name="ls", arguments={"path": "ä"})


def message(role: Any, content: str, **more: Any) -> PromptMessage:
    return PromptMessage(role=role, content=content, **more)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("json", '{"name": "ls", "arguments": {"path": "ä"}}'),
        ("fence", '```json\n{"name": "ls", "arguments": {"path": "ä"}}\n```'),
        ("tag", '<tool_call>\n{"name": "ls", "arguments": {"path": "ä"}}\n</tool_call>'),
    ],
)
def test_a_call_as_the_model_would_write_it(form: Any, written: str) -> None:
    assert render_call(CALL, form) == written


def test_calls_are_part_of_the_answer_and_results_come_from_the_user() -> None:
    history = [
        message("user", "hi"),
        message("assistant", "Looking.", calls=(CALL,)),
        message("tool", "a.txt", tool_name="ls", sources=(3,)),
        message("tool", "no", failed=True, sources=(4,)),
        message("user", "and?", sources=(5,), images=(ImagePart(media_type="image/png", data=""),)),
    ]

    first, answer, joined = render_messages(history, "json")

    assert first == message("user", "hi")
    assert answer == message("assistant", f"Looking.\n{render_call(CALL, 'json')}")
    assert joined.role == "user"
    assert joined.content == (
        "ls returned:\na.txt\n\nThe tool failed:\nno\nWrite another call that does it right.\n\nand?"
    )
    assert joined.sources == (3, 4, 5)
    assert len(joined.images) == 1


def test_the_users_last_words_are_said_once_more() -> None:
    history = [message("user", "first"), message("user", "do it"), message("assistant", "x")]

    assert build_reminder(history) == (
        "The user asked: do it\n"
        "If a part of that is not done yet, write the next call. If all is done, say what was found or done."
    )
    assert build_reminder([message("assistant", "x")]) == ""
    exact = build_reminder([message("user", "a" * 320)])
    assert "…" not in exact
    long = build_reminder([message("user", "a" * 200 + "b" * 200)])
    assert f"The user asked: {'a' * 160} … {'b' * 160}\n" in long
    assert append_reminder([message("user", "a"), message("user", "b")], "more")[1].content == "b\n\nmore"


def test_the_tools_stand_in_the_system_prompt_a_line_each() -> None:
    told = (
        "Tools:\n- ls(path, depth?): List.\n- read_file(path)\n"
        'To use a tool, write only the call:\n{"name": "read_file", "arguments": {"path": "…"}}'
    )

    alone = add_tool_list([message("user", "hi")], [LS, READ], "json")
    assert alone == (message("system", told), message("user", "hi"))
    with_system = add_tool_list([message("system", "You are."), message("user", "hi")], [LS, READ], "json")
    assert with_system[0] == message("system", f"You are.\n\n{told}")
    assert len(with_system) == 2
    assert add_tool_list([], [LS], "json")[0].role == "system"


def test_a_worked_exchange_comes_before_the_conversation() -> None:
    history = [message("system", "s"), message("user", "hi")]

    assert add_worked_example(history, [LS], "json") == tuple(history)
    shown = add_worked_example(history, [READ], "json")
    assert (shown[0], shown[-1]) == (history[0], history[1])
    assert [found.role for found in shown] == ["system", "user", "assistant", "user", "assistant", "user"]
    edited = add_worked_example(history, [READ, tool("edit_file")], "json")
    assert len(edited) == len(shown) + 4
    answered = add_worked_example(history, [READ, ANSWER_TOOL], "json")
    assert answered[-2].content == '{"name": "answer", "arguments": {"text": "You are welcome."}}'
    assert add_worked_example(history[1:], [READ], "json")[-1] == history[1]
