"""What stands where a file does not parse is still found."""

from ollm.services.code_map.outline import outline_text


def list_names(name: str, text: str) -> list[str]:
    return [found.full_name for found in outline_text(name, text.encode())]


def test_an_open_bracket_does_not_swallow_the_rest() -> None:
    text = "class A:\n    def ok(self): 1\n    def bad(self:\n        return (\n\ndef later(x):\n    return x\n"
    assert list_names("a.py", text) == ["A", "A.ok", "A.bad", "later"]


def test_what_parses_is_not_named_twice() -> None:
    text = "function a() {}\nclass B { go() {} }\nlet x = = 3;\nfunction c() {\n"
    assert list_names("a.js", text) == ["a", "B", "B.go", "c"]
