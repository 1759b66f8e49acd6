"""What stays although a block leaves it out."""

import pytest

from ollm.runtime.calls.kept_parts import (
    MAX_RESTORED_SHARE,
    keep_decorators,
    keep_other_parts,
    move_above,
    restore_lost_parts,
)

BEFORE = """class Library:
    def add(self, title):
        self.books.append(title)

    def find(self, title):
        return title in self.books

    def free(self):
        return self.books


def demo():
    return Library()


def main():
    print(demo().free())
"""
LONGEST = "    def longest(self):\n        return max(self.books)\n"
ADDED = BEFORE.replace("    def free(self)", f"{LONGEST}\n    def free(self)")
LOG = "# Changelog\n\n## 1.2.4\n\n- fix the clock\n\n## 1.2.3\n\n- first\n"
NEW = "## 1.3.0\n\n- new colours\n"


def drop(text: str, *parts: str) -> str:
    for part in parts:
        assert part in text
        text = text.replace(part, "")
    return text


FREE, FIND = (
    "\n    def free(self):\n        return self.books\n",
    "    def find(self, title):\n        return title in self.books\n\n",
)
DEMO, MAIN = "\n\ndef demo():\n    return Library()\n", "\n\ndef main():\n    print(demo().free())\n"
ADD = "    def add(self, title):\n        self.books.append(title)\n\n"


@pytest.mark.parametrize(
    "parts", [(FREE,), (FIND,), (ADD,), (DEMO,), (MAIN,), (FREE, MAIN), (FIND, DEMO), (FREE, FIND, DEMO)]
)
def test_what_a_block_forgets_is_put_back_where_it_was(parts: tuple[str, ...]) -> None:
    request = "Library is to have a method longest"
    assert restore_lost_parts("library.py", BEFORE, drop(BEFORE, *parts), request) == BEFORE
    restored = restore_lost_parts("library.py", BEFORE, drop(ADDED, *parts), request)
    assert sorted(restored.split()) == sorted(ADDED.split())


def test_what_had_nothing_beside_it_is_not_put_back() -> None:
    only = "\n    def only(self):\n        return 1\n"
    before = f"class Box:\n    size = 1\n{only}{DEMO}{MAIN}"
    assert restore_lost_parts("box.py", before, drop(before, only), "write it") == drop(before, only)


@pytest.mark.parametrize(("lost", "put_back"), [((FREE, FIND, DEMO), True), ((FREE, FIND, DEMO, MAIN), False)])
def test_half_of_a_file_is_put_back_and_no_more(lost: tuple[str, ...], put_back: bool) -> None:
    short = drop(BEFORE, *lost)

    assert restore_lost_parts("library.py", BEFORE, short, "write it") == (BEFORE if put_back else short)


def test_what_stood_close_to_another_comes_back_behind_it() -> None:
    before = "def a():\n    return 1\ndef b():\n    return 2\ndef c():\n    return 3\n"
    short = before.replace("def b():\n    return 2\n", "")

    restored = restore_lost_parts("a.py", before, short, "write it")

    assert restored == "def a():\n    return 1\n\n\ndef b():\n    return 2\ndef c():\n    return 3\n"


def test_what_is_no_python_is_put_back_as_well() -> None:
    before = "function a() {\n  return 1\n}\n\n\nfunction b() {\n  return 2\n}\n"
    short = before.partition("\n\n\n")[0] + "\n"

    restored = restore_lost_parts("a.js", before, short, "write it")

    assert "function b()" in restored


@pytest.mark.parametrize(
    ("before", "anchor", "moved"),
    [
        ("# Log\n\n## 1.2\n- old\n", "1.2", "# Log\n\n## 1.3\n\n## 1.2\n- old\n"),
        ("# Log\n## 1.2\n\n- old\n", "1.2", "# Log\n## 1.3\n## 1.2\n\n- old\n"),
        ("one\ntwo\n\n", "one", "## 1.3\none\ntwo\n\n"),
    ],
)
def test_a_blank_line_comes_between_where_one_was_above(before: str, anchor: str, moved: str) -> None:
    assert move_above(before, f"{before}\n## 1.3\n\n", f"add '## 1.3' above {anchor}") == moved


def test_nothing_is_put_back_that_was_to_go_or_where_most_is_gone() -> None:
    short = drop(BEFORE, FREE)
    for request in ("remove free", "rename free to list", "simplify the class", "change free"):
        assert restore_lost_parts("library.py", BEFORE, short, request) == short
    other = "def quite_another():\n    return 1\n"
    assert MAX_RESTORED_SHARE == 0.5
    assert restore_lost_parts("library.py", BEFORE, other, "write it") == other
    assert restore_lost_parts("library.txt", BEFORE, short, "write it") == short
    assert restore_lost_parts("library.py", "", short, "write it") == short
    broken = drop(BEFORE, FREE).replace("def main():", "def main(:")
    assert restore_lost_parts("library.py", BEFORE, broken, "write it") == broken


@pytest.mark.parametrize(
    ("request_", "after", "moved"),
    [
        (
            "add '## 1.3.0' with '- new colours' above 1.2.4",
            f"{LOG}\n{NEW}",
            LOG.replace("## 1.2.4", f"{NEW}\n## 1.2.4"),
        ),
        ("add a section '## 1.3.0' before 1.2.3", f"{LOG}\n{NEW}", LOG.replace("## 1.2.3", f"{NEW}\n## 1.2.3")),
        ("add '## 1.3.0' below 1.2.4", f"{LOG}\n{NEW}", f"{LOG}\n{NEW}"),
        ("add '## 1.3.0' above 9.9.9", f"{LOG}\n{NEW}", f"{LOG}\n{NEW}"),
        ("add '## 1.3.0' above 1.2.4", LOG.replace("## 1.2.4", f"{NEW}\n## 1.2.4"), None),
        ("add '## 1.3.0' above 1.2.4", LOG.replace("first", "other") + NEW, None),
        ("add '## 1.3.0' above 1.2.4", LOG.replace("## 1.2.4", f"{NEW}## 1.2.4"), None),
    ],
)
def test_lines_that_are_to_be_above_another_are(request_: str, after: str, moved: str | None) -> None:
    assert move_above(LOG, after, request_) == (moved or after)


def test_other_parts_stay_only_where_nothing_else_is_to_change() -> None:
    after = BEFORE.replace("return Library()", "return Library(1)").replace("print(demo()", "print(2, demo()")
    kept = BEFORE.replace("return Library()", "return Library(1)")
    assert keep_other_parts(BEFORE, after, "change demo and nothing else") == kept
    assert keep_other_parts(BEFORE, after, "change demo") == after


CART = "from dataclasses import dataclass\n\n\n@dataclass\nclass Cart:\n    n: int = 0\n\n    @property\n    def size(self):\n        return 1\n"
BARE = CART.replace("@dataclass\n", "").replace("    @property\n", "")


def test_decorators_stay() -> None:
    after = BARE.replace("return 1", "return 2")

    assert keep_decorators("a.py", CART, after, "Let size return 2; clear removes all.") == CART.replace(
        "return 1", "return 2"
    )


@pytest.mark.parametrize(
    ("path", "after", "asked"),
    [
        ("a.py", BARE, "Remove the decorator of size."),
        ("a.py", BARE, "Drop @property and @dataclass."),
        ("a.py", BARE, "Cart is to be no dataclass, and size no property."),
        ("a.js", BARE, "Let size return 2."),
        (
            "a.py",
            BARE.replace("class Cart:", "class Cart(Base):").replace("size(self)", "size(self, x)"),
            "Let it take x.",
        ),
        ("a.py", CART.replace("@dataclass", "@frozen").replace("@property", "@cached"), "Let it be quick."),
        ("a.py", BARE + "\n\n" + BARE, "Let it be there twice."),
        ("a.py", CART, "Let size return 1."),
    ],
)
def test_decorators_that_were_meant_to_go_do(path: str, after: str, asked: str) -> None:
    assert keep_decorators(path, CART, after, asked) == after


def test_a_decorator_whose_import_went_is_not_put_back() -> None:
    after = "class Cart:\n    n: int = 0\n"

    assert keep_decorators("a.py", CART, after, "Make Cart plain.") == after
