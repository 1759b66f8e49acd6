"""The first line of code that an answer begins with."""

import pytest

from ollm.services.request_reading.begun_code import add_tested_import, begin_lacking_function, begin_new_function

WORDS = "def shout(text):\n    return text\n\n\nclass Page:\n    def turn(self):\n        return 1"
SHOWN = (
    f"\n\nFiles here: sub/list.py, words.js, words.py\n\nwords.py:\n```\n{WORDS}\n```\n\nwords.js:\n```\nlet a = 1\n```"
)
BOTH = "write a function count(text, most=3) in words.py and put a test for it in test_words.py"


@pytest.mark.parametrize(
    ("asked", "whole", "begun"),
    [
        (BOTH, False, "words.py\n```python\ndef count(text, most=3):\n"),
        ("Add a function count to words.py and a test in test_words.py.", False, "words.py\n```python\ndef count("),
        ("Add a function count('a') to words.py and use it in main.py.", True, "words.py\n```python\ndef count("),
        ("Add a count(text) function to words.py.", True, "words.py\n```python\ndef count(text):\n"),
        ("Add a count(text) function to words.py.", False, ""),
        ("Add a function shout(text) to words.py.", True, ""),
        ("Add a method count(text) to words.py.", True, ""),
        ("Add a class Count to words.py.", True, ""),
        ("Add a function count(text) to words.js.", True, ""),
        ("Add a function count(text) to new.py.", True, ""),
        ("Add a function count(text) to sub/list.py.", True, ""),  # it was not shown
        ("Rename shout to cry, then add a function count(text) to words.py.", True, ""),
        ("Run words.py and add a function count(text) to words.py.", True, ""),
        ("What does the function count in words.py do?", True, ""),
    ],
)
def test_a_function_that_is_asked_for_first_begins_with_its_head(asked: str, whole: bool, begun: str) -> None:
    assert begin_new_function(asked, SHOWN, whole=whole) == begun


def test_a_step_for_a_file_that_lacks_the_function_begins_with_its_head() -> None:
    step = f"words.py:\n```\n{WORDS}\n```\n\nwords.py does not define count. Now change words.py."

    assert begin_lacking_function(BOTH, step) == "words.py\n```python\ndef count(text, most=3):\n"
    assert begin_lacking_function(BOTH, step.replace("def shout", "def count")) == ""
    assert begin_lacking_function(BOTH, step.replace("change words.py", "change main.py")) == ""
    assert begin_lacking_function(BOTH, "Now change words.py.") == ""
    assert begin_lacking_function(BOTH, "Now run python words.py.") == ""


@pytest.mark.parametrize(
    ("begun", "asked", "made"),
    [
        ("test_words.py\n```python\n", "Test shout.", "from words import shout\n"),
        ("test_words.py\n```python\n", "Test Page and shout, and turn.", "from words import shout, Page\n"),
        ("test_words.py\n```python\n", BOTH, "from words import count\n"),
        ("test_words.py\n```python\n", "Write some tests.", "from words import "),
        ("test_list.py\n```python\n", "Write some tests.", ""),
        ("test_words.py\n```python\nimport", "Test shout.", ""),
        ("words.py\n```python\n", "Test shout.", ""),
        ("", "Test shout.", ""),
    ],
)
def test_a_new_test_begins_with_the_import_of_what_it_tests(begun: str, asked: str, made: str) -> None:
    assert add_tested_import(begun, asked, SHOWN) == begun + made


LIBRARY = "class Book:\n    def label(self):\n        return 1\n\n\nclass Library(Base):\n    def add(self):\n        return 1"
METHOD = (
    "add a method longest() to the class Library in library.py that returns a title, and print it at the end of main.py"
)


@pytest.mark.parametrize(
    ("asked", "head"),
    [
        (METHOD, "def longest(self"),
        (METHOD.replace("longest()", "longest(self, most=3)"), "def longest(self, most=3):\n"),
        (METHOD.replace("longest()", "longest(least)"), "def longest(self, least):\n"),
        (METHOD.replace("Library", "Shelf"), ""),
        (METHOD.replace("longest", "add"), ""),
        (METHOD.replace("library.py", "other.py"), ""),
        (f"Run main.py, then {METHOD}", ""),
    ],
)
def test_a_method_begins_with_its_class(asked: str, head: str) -> None:
    begun = f"library.py\n```python\nclass Library(Base):\n    {head}" if head else ""
    whole = f"\n\nFiles here: library.py, main.py, other.py\n\nlibrary.py:\n```\n{LIBRARY}\n```"
    parts = whole.replace("library.py:\n", "library.py is long (90 lines). Parts of it:\n")

    assert begin_new_function(asked, whole) == begin_new_function(asked, parts) == begun


def test_a_step_for_a_class_that_lacks_a_method_begins_with_it() -> None:
    told = f"library.py:\n```\n{LIBRARY}\n```\n\nLibrary has no method longest. Now change library.py."

    assert begin_lacking_function(METHOD, told) == "library.py\n```python\nclass Library(Base):\n    def longest(self"
    assert begin_lacking_function(METHOD, told.replace("def add", "def longest")) == ""
