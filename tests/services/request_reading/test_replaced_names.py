"""A word that is to become another one."""

import pytest

from ollm.services.request_reading.replaced_names import (
    WordChange,
    escape_for_sed,
    find_left_over,
    find_replacement,
    is_distinct,
)


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ("Rename the function greet to welcome in a.py.", WordChange(old="greet", new="welcome", called=True)),
        ("Please rename the class `Team` to `Club`.", WordChange(old="Team", new="Club")),
        ("Replace the colour #ff6600 by #0066ff everywhere in style.css.", WordChange(old="#ff6600", new="#0066ff")),
        ("Raise the version from 1.4.0 to 1.5.0 in a.toml.", WordChange(old="1.4.0", new="1.5.0")),
        ("Change every oldname to newname.", WordChange(old="oldname", new="newname")),
        ("Rename data.txt to input.txt.", None),
        ("Raise the timeout from 30 to 60 in conf.py.", None),
        ("Rename x to y in a.py.", None),
        ("Change LIMIT in conf.py to 20.", None),
        ("What is greet?", None),
        ("Change the label from 'Send' to 'Send now'.", None),
        (
            "change the label from 'Send' to 'Submit order' (src/button.js)",
            WordChange(old="Send", new="Submit order"),
        ),
        ('Replace "Old Name Ltd" with "New Name" in a.md.', WordChange(old="Old Name Ltd", new="New Name")),
    ],
)
def test_what_is_to_become_something_else_is_read_from_the_request(request_: str, found: WordChange | None) -> None:
    assert find_replacement(request_) == found


def test_the_old_word_is_found_where_it_stands_as_a_word() -> None:
    texts = {"a.py": "from b import Team", "b.py": "class Teams: pass", "c.py": "Club()"}

    assert find_left_over(WordChange(old="Team", new="Club"), texts) == ["a.py"]


def test_of_a_function_only_uses_count() -> None:
    load = WordChange(old="load", new="fetch", called=True)
    texts = {
        "a.py": "# what we load here",
        "b.py": "load()",
        "c.py": "from a import load",
        "d.py": "x.load",
        "e.py": "",
    }

    assert find_left_over(load, texts) == ["b.py", "c.py", "d.py"]


def test_what_means_something_to_sed_is_marked() -> None:
    assert escape_for_sed("a.b/c*[d]") == r"a\.b\/c\*\[d\]"


@pytest.mark.parametrize(
    ("word", "distinct"),
    [("ab", False), ("abc", True), ("123", False), ("1.2", True), ("a.py", False), ("a.pyc", True)],
)
def test_a_word_that_stands_somewhere_by_chance_is_not_replaced(word: str, distinct: bool) -> None:
    assert is_distinct(word) is distinct
    assert (find_replacement(f"Rename {word} to other_name everywhere.") is not None) is distinct
