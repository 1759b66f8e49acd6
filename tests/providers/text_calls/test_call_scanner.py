"""How a call written as text begins: tags, fences, bare JSON."""

import pytest

from ollm.providers.text_calls.call_scanner import (
    MAX_UNDECIDED_CHARACTERS,
    CallOpening,
    compile_opening_pattern,
    find_partial_mark,
    has_named_call,
    may_be_call,
    read_opening,
)

NAMES = ("read_file", "ls")


def opening(text: str) -> CallOpening | None:
    found = compile_opening_pattern(NAMES).search(text)
    return read_opening(found) if found else None


@pytest.mark.parametrize(
    ("text", "kind", "at", "end", "closer"),
    [
        ("a <think>x", "think", 2, 9, "</think>"),
        ("<tool_call>{", "tag", 0, 11, "</tool_call>"),
        ("say <function_calls>", "tag", 4, 20, "</function_calls>"),
        ("<tool>", "tag", 0, 6, "</tool>"),
        ('<tool name="ls">', "tag", 0, 0, "</tool>"),
        ("<function=ls>", "tag", 0, 0, "</function>"),
        ('<invoke name="ls">', "tag", 0, 0, "</invoke>"),
        ("<read_file>", "tag", 0, 0, "</read_file>"),
        ("x [TOOL_CALLS]", "tag", 2, 14, ""),
        ("<|python_tag|>", "tag", 0, 14, ""),
        ("<|tool_calls|>", "tag", 0, 14, ""),
        ("```json\n{", "fence", 0, 7, "\n```"),
        ("```\n{", "fence", 0, 3, "\n```"),
        ("```python\nx", "other", 0, 9, "\n```"),
        ("a\n  {", "json", 4, 4, ""),
        ("[1]", "json", 0, 0, ""),
    ],
)
def test_the_first_mark(text: str, kind: str, at: int, end: int, closer: str) -> None:
    assert opening(text) == CallOpening(kind=kind, at=at, end=end, closer=closer)


@pytest.mark.parametrize("text", ["", "plain", "a {b}", "x ```json", "<b>", "<toolbox>", "<think", "1 < 2", "`code`"])
def test_no_mark(text: str) -> None:
    assert opening(text) is None


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("hello <tool", "<tool"),
        ("hello <", "<"),
        ("hello <think", "<think"),
        ("hello <read_f", "<read_f"),
        ('hello <tool name="x', '<tool name="x'),
        ("hello [TOOL_", "[TOOL_"),
        ("hello <b", ""),
        ("hello <tool>", ""),
        ("a [TOOL_CALLS]x", ""),
        ("line\n", ""),
        ("line\n  ", "  "),
        ("line\n``", "``"),
        ("line\n```js", "```js"),
        ("<tool" + "x" * 140, ""),
        ("<tool\nx", ""),
    ],
)
def test_what_could_still_become_a_mark_is_held(text: str, held: str) -> None:
    assert text[find_partial_mark(text, NAMES) :] == held


@pytest.mark.parametrize(
    ("body", "may"),
    [
        ("", True),
        ("<x", True),
        ("{", True),
        ('{"na', True),
        ("[{", True),
        ('{"name"', True),
        ('{"name": "read', True),
        ('{"name": "read_file"', True),
        ('{"name": "functions.ls"', True),
        ('{"name": "other"', True),
        ('{"name": "other"}', False),
        ('{"name": "other", "arguments": ', True),
        ('{"name": "other", "age": ', False),
        ('{"arguments": {', True),
        ('{"ls": {', True),
        ('{"tool_calls": [', True),
        ('{"title": ', False),
        ("plain", False),
        ("{}", False),
        ('{"arguments": "' + "x" * MAX_UNDECIDED_CHARACTERS, False),
        ('{"arguments": "' + "x" * MAX_UNDECIDED_CHARACTERS + '", "name": "ls"', True),
        ('{"name": ' + " " * MAX_UNDECIDED_CHARACTERS + "5", False),
    ],
)
def test_whether_json_that_has_begun_could_be_a_call(body: str, may: bool) -> None:
    assert may_be_call(body, NAMES) is may


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"name": "ls"', True),
        ('{"tool": "tools.read_file", ', True),
        ('{"name": "other"', False),
        ('{"title": "ls"', False),
        ("ls", False),
    ],
)
def test_whether_a_known_tool_is_named(text: str, named: bool) -> None:
    assert has_named_call(text, NAMES) is named
