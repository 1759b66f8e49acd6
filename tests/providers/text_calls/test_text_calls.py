"""Calls that a model wrote as text: parsed, repaired, rendered."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers.text_calls.rendering import (
    add_tool_list,
    render_call,
    render_messages,
)
from ollm.providers.text_calls.repair import (
    repair_arguments,
)
from ollm.providers.text_calls.stream_parser import CallStreamParser, JsonEndScanner, MarkEndScanner
from tests.covers import covers

RECORDED = json.loads((Path(__file__).parents[1] / "answers" / "recorded.json").read_text(encoding="utf-8"))


def tool(name: str, **parameters: str) -> ToolSchema:
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    return ToolSchema(name=name, description="", parameters={"type": "object", "properties": properties})


TOOLS = (
    tool("read_file", path="string", startLine="integer"),
    tool("grep", pattern="string", path="string"),
    tool("shell", command="string"),
    tool("write_file", path="string", content="string"),
)


def heard(text: str, size: int = 3, *, careful: bool = False) -> tuple[str, list[tuple[str, Any]], CallStreamParser]:
    """The answer in pieces of this size: what a person saw, the calls, and the listener."""
    listener = CallStreamParser(TOOLS, careful=careful)
    shown = ""
    for at in range(0, len(text), size):
        shown += listener.feed(text[at : at + size])
        if listener.is_over:
            break
    shown += listener.finish()
    return shown, [(call.name, call.arguments) for call in listener.calls], listener


READ = [("read_file", {"path": "a.txt"})]

FORMS = {
    "fence": '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```',
    "fence without a language": '```\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```',
    "fence on one line": '```json {"name": "read_file", "arguments": {"path": "a.txt"}}```',
    "fence that never ends": '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}',
    "tool_call": '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>',
    "tool_call that never ends": '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}',
    "tools": '<tools>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tools>',
    "mistral": '[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a.txt"}}]',
    "python tag": '<|python_tag|>{"name": "read_file", "parameters": {"path": "a.txt"}}',
    "bare": '{"name": "read_file", "arguments": {"path": "a.txt"}}',
    "bare, in a list": '[{"name": "read_file", "arguments": {"path": "a.txt"}}]',
    "tool and parameters": '{"tool": "read_file", "parameters": {"path": "a.txt"}}',
    "arguments as text": '{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}',
    "arguments laid flat": '{"name": "read_file", "path": "a.txt"}',
    "the name as key": '{"read_file": {"path": "a.txt"}}',
    "openai": '{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}}]}',
    "single quotes": "{'name': 'read_file', 'arguments': {'path': 'a.txt'}}",
    "a comma too much": '```json\n{"name": "read_file", "arguments": {"path": "a.txt",},}\n```',
    "a bracket too few": '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}\n```',
    "function": "<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>",
    "function with JSON": '<function=read_file>{"path": "a.txt"}</function>',
    "invoke": '<invoke name="read_file"><parameter name="path">a.txt</parameter></invoke>',
    "elements": "<read_file>\n<path>a.txt</path>\n</read_file>",
    "elements in a fence": "```xml\n<read_file>\n<path>a.txt</path>\n</read_file>\n```",
    "a namespace": '{"name": "functions.read_file", "arguments": {"path": "a.txt"}}',
}


@covers("T10.1")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 4, 10_000])
def test_every_form_is_understood_however_it_is_cut_into_pieces(form: str, size: int) -> None:
    shown, calls, _ = heard(FORMS[form], size)

    assert (shown.strip(), calls) == ("", READ)


@pytest.mark.parametrize("entry", RECORDED, ids=[f"{e['model']}: {e['asked']}"[:60] for e in RECORDED])
def test_what_real_models_wrote_is_understood(entry: dict[str, Any]) -> None:
    shown, calls, listener = heard(entry["answer"])

    assert [name for name, _ in calls] == entry["calls"]
    assert [arguments for _, arguments in calls] == entry["arguments"]
    assert bool(listener.attempts) is entry["attempt"]
    if not calls and not listener.attempts:
        assert shown == entry["answer"]


@pytest.mark.parametrize(
    "text",
    [
        'Here:\n```python\nx = {"name": "shell", "arguments": {"command": "ls"}}\n```\nDone.',
        '```json\n{"name": "my-app", "version": "1.0", "scripts": {"name": "shell"}}\n```\n',
        '{"key": {"name": "shell", "arguments": {"command": "ls"}}}',
        "a < b, <b>bold</b>, [link](x), `code`, <shell> is a tag\n- [ ] todo\n{oops}\n",
        '<think>I could <tool_call>{"name": "shell", "arguments": {"command": "ls"}}</tool_call></think>No.',
        '```json\n{"type": "object", "properties": {"a": 1}}\n```',
        "```\n$ ls\na.txt\n```\n",
        "",
        "\n\n[1, 2, 3]\n",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_what_is_no_call_is_shown_as_it_was_written(text: str, size: int) -> None:
    shown, calls, listener = heard(text, size)

    assert (shown, calls, listener.attempts) == (text, [], [])


@given(st.text(alphabet="abc {}[]<>`\"':,\n/=_|tolcajsn", max_size=200), st.integers(1, 9))
def test_no_text_is_lost_or_changed_however_it_is_cut(text: str, size: int) -> None:
    shown, calls, listener = heard(text, size)

    rejected = "".join(attempt.text for attempt in listener.attempts)
    assert calls == []
    assert sorted(shown + rejected) == sorted(text)


@given(st.sampled_from(["write_file"]), st.text(max_size=300), st.integers(1, 11))
def test_arguments_arrive_byte_for_byte(name: str, content: str, size: int) -> None:
    call = {"name": name, "arguments": {"path": "a", "content": content}}
    for text in (json.dumps(call), f"```json\n{json.dumps(call)}\n```", f"<tool_call>{json.dumps(call)}</tool_call>"):
        _, calls, _ = heard(text, size)
        assert calls == [(name, call["arguments"])]


def test_plain_words_go_out_at_once() -> None:
    listener = CallStreamParser(TOOLS)

    assert [listener.feed(word) for word in ("Hello", " there,", " see", " a.txt")] == [
        "Hello",
        " there,",
        " see",
        " a.txt",
    ]


def test_json_is_held_until_it_ends_and_other_code_is_not() -> None:
    listener = CallStreamParser(TOOLS)

    assert listener.feed("```\nx = {") == "```\nx = {"
    assert listener.feed("}\n```\n") == "}\n```\n"
    assert listener.feed('```json\n{"version": 1}') == ""
    assert listener.feed("\n```\nDone.") == '```json\n{"version": 1}\n```\nDone.'


@pytest.mark.parametrize("text", ['```json\n{"version": "1', '{"name": "my-app", "version": "1'])
def test_data_that_breaks_off_is_no_call(text: str) -> None:
    shown, calls, listener = heard(text)

    assert (shown, calls, listener.attempts) == (text, [], [])


@covers("T12.1")
@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('{"name": "search", "arguments": {"q": 1}}', "there is no tool named 'search'; the tools are grep, read_file"),
        ("<tool_call>\n{oh no\n</tool_call>", "not a JSON object"),
        ('{"name": "grep", "parameters": {"type": "object", "properties": {}}}', "the description of grep"),
        ("<function=find><parameter=x>1</parameter></function>", "there is no tool named 'find'"),
    ],
)
def test_what_was_meant_as_a_call_is_told_from_text(text: str, mistake: str) -> None:
    shown, calls, listener = heard(text)

    assert (shown, calls) == ("", [])
    assert mistake in listener.attempts[0].mistake
    assert listener.attempts[0].text == text


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "shell", "arguments": {"command": "rm -rf ./build',
        '{name: shell, arguments: {command: "rm -rf ./build',
        '```json\n{"name": "shell", "arguments": {"command": "rm -rf ./build',
        '<tool_call>{"name": "shell", "arguments": {"command": "rm -rf ./build',
        "<function=shell><parameter=command>rm -rf ./build",
    ],
)
def test_a_call_that_breaks_off_in_a_value_is_not_made(text: str) -> None:
    _, calls, listener = heard(text)

    assert calls == []
    assert listener.attempts


def test_several_calls_are_taken_and_what_is_made_up_after_them_is_not() -> None:
    calls = '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>\n' * 2

    shown, found, listener = heard(f"Let me look.\n{calls}The file says hello.")

    assert shown == "Let me look.\n"
    assert found == READ * 2
    assert listener.is_over


def test_a_flood_of_calls_is_cut_after_four() -> None:
    _, found, listener = heard(f"{FORMS['bare']}\n" * 30)
    _, listed, _ = heard("[" + ", ".join([FORMS["bare"]] * 30) + "]")

    assert found == listed == READ * 4
    assert listener.is_over


def test_a_model_that_calls_natively_may_quote_a_call() -> None:
    quoted = f"You would write:\n{FORMS['fence']}\nand that is all."

    assert heard(quoted, careful=True)[:2] == (quoted, [])
    assert heard(FORMS["fence"], careful=True)[1] == READ


def test_a_very_deep_or_long_answer_takes_no_time() -> None:
    deep = '{"name": "read_file", "arguments": ' + "[" * 5000

    _, calls, listener = heard(deep, 500)

    assert calls == [] or listener.calls[0].name == "read_file"


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': 1}", {"a": 1}),
        ('{"a": 1', {"a": 1}),
        ("[1]", "[1]"),
        ("words", "words"),
        ("", ""),
        ("{}", "{}"),
    ],
)
def test_arguments_that_are_not_quite_json(text: str, arguments: Any) -> None:
    assert repair_arguments(text) == arguments


JSON = st.recursive(
    st.none() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def scan_in_parts(scanner: JsonEndScanner | MarkEndScanner, text: str, size: int) -> int | None:
    """Find the end, fed `size` characters at a time."""
    for start in range(0, len(text), size):
        end = scanner.scan(text[start : start + size])
        if end is not None:
            return start + end
    return None


@given(JSON, st.integers(1, 5))
def test_any_value_in_brackets_ends_where_it_ends(value: object, size: int) -> None:
    text = json.dumps([value], ensure_ascii=False)

    assert scan_in_parts(JsonEndScanner(), text + "]}", size) == len(text)


def make_tool(name: str, required: tuple[str, ...] = (), description: str = "", **properties: Any) -> ToolSchema:
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    return ToolSchema(
        name=name,
        description=description,
        parameters={**parameters, **({"required": list(required)} if required else {})},
    )


LS = make_tool("ls", ("path",), "List.", path={"type": "string"}, depth={"type": "integer"})

READ_TOOL = make_tool("read_file", ("path",), path={"type": "string"})

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
    assert joined.content == "ls returned:\na.txt\n\nThe tool failed:\nno\n\nand?"
    assert joined.sources == (3, 4, 5)
    assert len(joined.images) == 1


def test_the_tools_stand_in_the_system_prompt_a_line_each() -> None:
    told = (
        "Tools:\n- ls(path, depth?): List.\n- read_file(path)\n"
        'To use a tool, write only the call:\n{"name": "read_file", "arguments": {"path": "…"}}'
    )

    alone = add_tool_list([message("user", "hi")], [LS, READ_TOOL], "json")
    assert alone == (message("system", told), message("user", "hi"))
    with_system = add_tool_list([message("system", "You are."), message("user", "hi")], [LS, READ_TOOL], "json")
    assert with_system[0] == message("system", f"You are.\n\n{told}")
    assert len(with_system) == 2
    assert add_tool_list([], [LS], "json")[0].role == "system"
