"""The parts of a long file that a request is about."""

import pytest

from ollm.services.request_reading.excerpts import (
    MAX_EXCERPT_LINES,
    choose_spans,
    find_words,
    fit_spans,
    merge_spans,
    show_excerpt,
)

FILLER = "".join(f"def filler_{number}(x):\n    return x + {number}\n\n\n" for number in range(30))
LEND = "def lend(title):\n    if too_many(title):\n        raise LibraryError(title)\n    return LOAN_DAYS\n"
GIVE_BACK = "def give_back(title):\n    if is_free(title):\n        raise NotLentError(title)\n    return 3 * FINE\n"
LIBRARY = f'"""Books."""\n\nLOAN_DAYS = 21\nFINE = 0.25\nSHELVES = 4\n\n\n{FILLER}{LEND}\n\n{GIVE_BACK}'
REGION = '    "{0}": {{\n      "host": "{0}.example",\n      "timeout": 30,\n      "disks": [\n        "ssd"\n      ]\n    }}'
REGIONS = '{\n  "regions": {\n' + ",\n".join(REGION.format(f"zone-{number}") for number in range(12)) + "\n  }\n}\n"


def read_body(shown: str) -> str:
    return shown.partition("```\n")[2].rpartition("```")[0]


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        ("What does give_back raise?", f"FINE = 0.25\n...\n{GIVE_BACK}"),
        ("What happens when I give back a book?", f"FINE = 0.25\n...\n{GIVE_BACK}"),
        ("who raises NotLentError", f"FINE = 0.25\n...\n{GIVE_BACK}"),
        ("a loan takes 28 days now", "LOAN_DAYS = 21\n"),
        ("more shelves please", "SHELVES = 4\n"),
    ],
)
def test_a_function_is_shown_whole_and_with_the_constants_it_uses(request_: str, shown: str) -> None:
    found = read_body(show_excerpt("library.py", LIBRARY, request_, []))
    assert found.replace("\n\n", "\n") == shown


def test_of_nested_data_the_whole_entry_is_shown() -> None:
    shown = read_body(show_excerpt("regions.json", REGIONS, "set the timeout of zone-7 to 45 in regions.json", []))
    assert REGION.format("zone-7") in shown
    assert "zone-6" not in shown
    assert "zone-8" not in shown


def test_the_likeliest_parts_come_first_and_the_rest_while_there_is_room() -> None:
    assert fit_spans([(50, 60), (0, 5)]) == [(0, 5), (50, 60)]
    assert fit_spans([(100, 150), (0, 20), (200, 205)]) == [(100, 150), (200, 205)]
    assert fit_spans([(0, MAX_EXCERPT_LINES), (MAX_EXCERPT_LINES, MAX_EXCERPT_LINES + 1)]) == [(0, MAX_EXCERPT_LINES)]
    assert merge_spans([(5, 9), (0, 5), (20, 21)]) == [(0, 9), (20, 21)]


def test_functions_named_by_a_word_come_while_they_and_what_else_is_shown_are_few() -> None:
    lines = LIBRARY.splitlines()
    lend = (lines.index("def lend(title):"), lines.index("def lend(title):") + 4)
    assert lend in choose_spans(lines, "What may one lend?", [])
    assert choose_spans(lines, "Which of these is a filler?", []) == []


def test_words_that_say_little_name_nothing() -> None:
    assert find_words("the file of NotLentError and #fff or 12.55") == ["NotLentError", "#fff", "12.55"]
