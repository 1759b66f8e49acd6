"""Methods that a block puts beside the class they are to be in."""

import pytest

from ollm.runtime.calls.class_members import move_into_class

BOOK = "class Book:\n    def label(self):\n        return 1"
LIBRARY = "class Library:\n    def __init__(self):\n        self.books = []\n\n    def add(self):\n        return 1"
DEMO = "def demo():\n    return Library()\n"
BEFORE = f"{BOOK}\n\n\n{LIBRARY}\n\n\n{DEMO}"
LONGEST = 'def longest(self):\n    """The longest.\n\n    Of all."""\n    return """a\nb""" + max(self.books)'
MEMBER = (
    '    def longest(self):\n        """The longest.\n\n        Of all."""\n        return """a\nb""" + max(self.books)'
)
WANTED = f"{BOOK}\n\n\n{LIBRARY}\n\n{MEMBER}\n\n\n{DEMO}"
ASKED = "add a method longest() to the class Library in library.py that returns the title, and print it in main.py"


@pytest.mark.parametrize(
    "after",
    [
        f"{BEFORE}\n\n{LONGEST}\n",
        f"{BOOK}\n\n\n{LONGEST}\n\n\n{LIBRARY}\n\n\n{DEMO}",
        f"{LONGEST}\n\n\n{BEFORE}",
    ],
)
def test_a_function_with_self_goes_into_the_class_that_is_named(after: str) -> None:
    assert move_into_class("library.py", BEFORE, after, ASKED).strip() == WANTED.strip()


def test_decorators_go_along() -> None:
    after = f"{BEFORE}\n\n@property\ndef size(self):\n    return 3\n"

    made = move_into_class("a.py", BEFORE, after, "Library needs a method size.")

    assert "        return 1\n\n    @property\n    def size(self):\n        return 3\n\n\ndef demo" in made


@pytest.mark.parametrize(
    ("path", "before", "added", "asked"),
    [
        ("library.py", BEFORE, LONGEST, "add a function longest to library.py"),
        ("library.py", BEFORE, LONGEST, "add a method longest to the class Shelf in library.py"),
        ("library.py", BEFORE, LONGEST.replace("self", "library"), ASKED),
        ("library.py", BEFORE, f"{LONGEST}\n\n\nLibrary.longest = longest", ASKED),
        ("library.py", BEFORE, f"{LONGEST}\n\n\n{LIBRARY}", ASKED),  # two classes of this name
        ("library.py", BEFORE, f"{LONGEST}\n\n\n{LONGEST}", ASKED),
        ("library.py", f"{BEFORE}\n\n{LONGEST}\n", "", ASKED),  # it was there before
        ("library.py", BEFORE, "def longest(self:\n    return 1", ASKED),
        ("library.js", BEFORE, LONGEST, ASKED),
    ],
)
def test_other_functions_stay_where_they_are(path: str, before: str, added: str, asked: str) -> None:
    after = f"{before}\n\n{added}\n"

    assert move_into_class(path, before, after, asked) == after


def test_a_class_that_has_the_method_is_left_alone() -> None:
    after = f"{WANTED}\n\n{LONGEST}\n"

    assert move_into_class("library.py", BEFORE, after, ASKED) == after
