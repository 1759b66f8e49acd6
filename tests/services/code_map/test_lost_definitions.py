"""What stands where a file does not parse is still found."""

from ollm.services.code_map.lost_definitions import _find_error_rows
from ollm.services.code_map.outline import outline_text
from ollm.services.code_map.syntax_tree import get_parser


def list_names(name: str, text: str) -> list[str]:
    return [found.full_name for found in outline_text(name, text.encode())]


def test_an_open_bracket_does_not_swallow_the_rest() -> None:
    text = "class A:\n    def ok(self): 1\n    def bad(self:\n        return (\n\ndef later(x):\n    return x\n"
    assert list_names("a.py", text) == ["A", "A.ok", "A.bad", "later"]


def test_what_parses_is_not_named_twice() -> None:
    text = "function a() {}\nclass B { go() {} }\nlet x = = 3;\nfunction c() {\n"
    assert list_names("a.js", text) == ["a", "B", "B.go", "c"]


def test_where_a_file_parses_nothing_is_added_to_it() -> None:
    text = "def outer():\n    def inner():\n        return 1\n    return inner\n\n\ndef broken(:\n    pass\n"
    assert list_names("a.py", text) == ["outer", "broken"]


def test_only_so_many_stretches_are_looked_at() -> None:
    parser = get_parser("tree_sitter_python", "language")
    assert parser is not None
    rows = [_find_error_rows(parser.parse(b"x = = 1\n" * count).root_node) for count in (3, 300)]
    assert [len(found) for found in rows] == [3, 200]
