"""Calls that a model wrote as text: parsed, repaired, rendered."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.model_facts import ALL_WRITTEN_FORMS, WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.text_calls.rendering import (
    add_tool_list,
    render_call,
    render_messages,
)
from ollm.providers.text_calls.repair import (
    repair_arguments,
)
from ollm.providers.text_calls.stream_parser import CallStreamParser
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


def heard(text: str, form: WrittenForm, size: int = 3) -> tuple[str, list[tuple[str, Any]], str]:
    """The answer in pieces of this size: what a person saw, the calls, and the mistake in an attempt at one."""
    parser = CallStreamParser(TOOLS, (form,))
    shown = "".join(parser.feed(text[at : at + size]) for at in range(0, len(text), size)) + parser.finish()
    found = parser.found
    return shown, [(call.name, call.arguments) for call in found.calls] if found else [], found.mistake if found else ""


READ = [("read_file", {"path": "a.txt"})]

CALLS: list[tuple[WrittenForm, str]] = [
    ("fence", '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'),
    ("fence", '```\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'),
    ("fence", '```json {"name": "read_file", "arguments": {"path": "a.txt"}}```'),
    ("fence", '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}'),
    ("fence", '```json\n{"name": "read_file", "arguments": {"path": "a.txt",},}\n```'),
    ("fence", '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}\n```'),
    ("tag", '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'),
    ("tag", '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}'),
    ("tag", "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>"),
    ("mistral", '[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a.txt"}}]'),
    ("python", '<|python_tag|>{"name": "read_file", "parameters": {"path": "a.txt"}}'),
    ("json", '{"name": "read_file", "arguments": {"path": "a.txt"}}'),
    ("json", '[{"name": "read_file", "arguments": {"path": "a.txt"}}]'),
    ("json", '{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}'),
    ("json", '{"name": "read_file", "path": "a.txt"}'),
    ("json", "{\"name\": 'read_file', 'arguments': {'path': 'a.txt'}}"),
    ("json", '{"name": "functions.read_file", "arguments": {"path": "a.txt"}}'),
    ("function", "<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>"),
    ("function", '<function=read_file>{"path": "a.txt"}</function>'),
    ("invoke", '<invoke name="read_file"><parameter name="path">a.txt</parameter></invoke>'),
]


@covers("T10.1")
@pytest.mark.parametrize(("form", "written"), CALLS, ids=[written for _, written in CALLS])
def test_a_call_in_the_models_own_form_counts_at_the_end_of_its_answer_alone(form: WrittenForm, written: str) -> None:
    for size in (1, 4, 10_000):
        assert heard(f"I look.\n{written}\n", form, size) == ("I look.\n", READ, "")
        code = (f"    {written}", f"\t{written}", f" \t{written}", f"~~~\n{written}\n~~~")
        for text in (f"{written}\nIt says hello.", f"See {written}", f"> {written}", *code):
            assert heard(text, form, size)[:2] == (text, [])
        for other in ALL_WRITTEN_FORMS:
            if other not in (form, "json" if form == "fence" else ""):
                assert heard(written, other, size) == (written, [], "")


@pytest.mark.parametrize("entry", RECORDED, ids=[f"{e['model']}: {e['asked']}"[:60] for e in RECORDED])
def test_what_real_models_wrote_is_shown_or_called_as_a_whole(entry: dict[str, Any]) -> None:
    for form in ALL_WRITTEN_FORMS:
        shown, calls, mistake = heard(entry["answer"], form)
        assert calls == [] or [name for name, _ in calls] == entry["calls"]
        assert calls or mistake or shown == entry["answer"]


@given(st.text(alphabet="abc {}[]<>`\"':,\n/=_|tolcajsn", max_size=200), st.integers(1, 9))
def test_no_text_is_lost_or_changed_however_it_is_cut(text: str, size: int) -> None:
    parser = CallStreamParser(TOOLS, ALL_WRITTEN_FORMS)
    shown = "".join(parser.feed(text[at : at + size]) for at in range(0, len(text), size)) + parser.finish()

    assert shown + parser.held == text


@given(st.text(max_size=300), st.integers(1, 11))
def test_arguments_arrive_byte_for_byte(content: str, size: int) -> None:
    call = {"name": "write_file", "arguments": {"path": "a", "content": content}}
    for form in ("json", "fence", "mistral", "python"):
        text = render_call(ToolCall(id="", name="write_file", arguments=call["arguments"]), form)
        assert heard(text, form, size)[1] == [("write_file", call["arguments"])]


def test_plain_words_go_out_at_once_and_a_possible_call_is_held() -> None:
    parser = CallStreamParser(TOOLS, ("fence",))

    assert [parser.feed(word) for word in ("Hello", " there,", " see", " a.txt\n")] == [
        "Hello",
        " there,",
        " see",
        " a.txt\n",
    ]
    assert parser.feed('```json\n{"version": 1}') == ""
    assert parser.feed("\n```\nDone.") == '```json\n{"version": 1}\n```\nDone.'


@covers("T12.1")
@pytest.mark.parametrize(
    ("form", "text", "mistake"),
    [
        (
            "json",
            '{"name": "search", "arguments": {"q": 1}}',
            "there is no tool named 'search'; the tools are grep, read",
        ),
        ("tag", "<tool_call>\n{oh no}\n</tool_call>", "not a JSON object"),
        ("json", '{"name": "grep", "parameters": {"type": "object", "properties": {}}}', "the description of grep"),
        ("function", "<function=find><parameter=x>1</parameter></function>", "there is no tool named 'find'"),
        ("json", '{"name": "shell", "arguments": {"command": "rm -rf ./build', "breaks off"),
        ("fence", '```json\n{"name": "shell", "arguments": {"command": "rm -rf {a}', "breaks off"),
        ("tag", '<tool_call>{"name": "shell", "arguments": {"command": "rm -rf ./build', "breaks off"),
        ("function", "<function=shell><parameter>ls</parameter></function>", "cannot be read"),
    ],
)
def test_an_attempt_at_a_call_is_told_from_text(form: WrittenForm, text: str, mistake: str) -> None:
    shown, calls, told = heard(text, form)

    assert (shown, calls) == ("", [])
    assert mistake in told


@pytest.mark.parametrize("text", ['```json\n{"version": "1', '```json\n{"version": 1}\n```'])
def test_other_data_is_no_call(text: str) -> None:
    assert heard(text, "fence") == (text, [], "")


def test_a_flood_of_calls_is_cut_after_four() -> None:
    call = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
    assert heard(f"<tool_call>{call}</tool_call>\n" * 30, "tag", 50)[1] == READ * 4
    assert heard("[" + ", ".join([call] * 30) + "]", "json", 50)[1] == READ * 4


def test_a_very_deep_or_long_answer_takes_no_time() -> None:
    deep = '{"name": "read_file", "arguments": ' + "[" * 5000
    plain = CallStreamParser(TOOLS, ALL_WRITTEN_FORMS)

    assert heard(deep, "json", 500)[1] == []
    assert "".join(plain.feed("word ") for _ in range(20_000)) == "word " * 20_000


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
