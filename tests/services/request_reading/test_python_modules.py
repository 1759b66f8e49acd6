"""A module of Python as far as moving its parts needs it."""

from ollm.services.request_reading.python_modules import find_globals, read_module, sets_global

TEXT = '''"""Doc."""

from __future__ import annotations

import os.path as paths, sys
from json import dumps, loads

# Of a day.
LIMIT: int = 3
a = b = 2
TWICE = 1


@staticmethod
def run(x):
    return x

    # nothing more
class Page:
    pass
for TWICE in (1, 2):
    pass
'''


def test_parts_have_their_lines_with_decorators_and_comments() -> None:
    module = read_module(TEXT)

    assert module is not None
    assert {name: module.copy([lines]) for name, lines in module.parts.items()} == {
        "LIMIT": "# Of a day.\nLIMIT: int = 3",
        "run": "@staticmethod\ndef run(x):\n    return x",
        "Page": "class Page:\n    pass",
    }
    assert module.simple == {"LIMIT"}
    assert module.others == {"a", "b", "TWICE"}
    assert (module.head, module.has_imports) == (6, True)
    assert [(found.module, found.names, found.plain) for found in module.imports] == [
        ("__future__", ("annotations",), True),
        ("", ("paths", "sys"), False),
        ("json", ("dumps", "loads"), True),
    ]
    assert module.cut([(1, len(module.lines) - 1)]) == ""


def test_what_cannot_be_taken_apart_is_none() -> None:
    assert [read_module(text) for text in ("def (", "a = 1; b = 2\n", "a = 1\r\n", "\0")] == [None] * 4
    assert read_module("") is not None


def test_globals_are_what_functions_classes_and_the_top_use() -> None:
    text = (
        "def f(x: 'Book', y=LIMIT) -> 'list[Page]':\n    z = x\n    return [w(z) for v in y]\n\n\n"
        "class A(Base):\n    n = size\n\n\n__all__ = ['shown']\nplain = 'hidden'\nprint(A)\n"
    )

    assert find_globals(text) >= {"Book", "LIMIT", "Page", "w", "Base", "size", "shown", "A", "print"}
    assert not find_globals(text) & {"x", "y", "z", "v", "n", "hidden", "f", "plain"}
    assert find_globals("def (") == set()


def test_a_function_may_set_a_name_of_its_module() -> None:
    text = "N = 1\n\n\ndef f():\n    global N\n    N = 2\n"

    assert sets_global(text, "N")
    assert not sets_global(text, "f")


def test_what_is_nested_too_deep_is_not_read() -> None:
    assert read_module(f"x = {'-' * 3_000}1") is None
