"""What a target that was not found may have meant."""

import pytest

from ollm.tools.files.closest_text import MAX_SHOWN_LINES, SHORT_FILE_CHARS, find_closest_text


def test_the_closest_line_is_shown_with_where_it_differs() -> None:
    text = "alpha\ndef compute(value):\n    return value\n"

    assert find_closest_text(text, "def compute(values):") == (
        "The closest text is at line 2:\ndef compute(value):\n"
        "Line 2 reads 'def compute(value):' where the target has 'def compute(values):'."
    )


def test_of_several_lines_the_longest_says_where_to_look() -> None:
    text = "start\n{\n    the longest line of all;\n}\nend\n"

    assert find_closest_text(text, "{\n    the longest line of any;\n}") == (
        "The closest text is at line 2:\n{\n    the longest line of all;\n}\n"
        "Line 3 reads '…he longest line of all;' where the target has '…he longest line of any;'."
    )


def test_of_places_alike_the_first_is_taken() -> None:
    assert find_closest_text("value = 1\nother\nvalue = 1\n", "value = 2").startswith("The closest text is at line 1:")


def test_the_whole_block_decides_between_places() -> None:
    text = "if a:\n    run()\n\nif b:\n    run()\n"

    assert find_closest_text(text, "if b:\n    run( )").startswith("The closest text is at line 4:")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("abc", "No similar text. It says:\nabc"),
        ("q", "No similar text. It says:\nq"),
        ("", "No similar text. Read the file again."),
        ("q" * SHORT_FILE_CHARS, f"No similar text. It says:\n{'q' * SHORT_FILE_CHARS}"),
        ("q" * (SHORT_FILE_CHARS + 1), "No similar text. Read the file again."),
    ],
)
def test_where_nothing_comes_near_a_short_file_is_shown(text: str, answer: str) -> None:
    assert find_closest_text(text, "ZZZZZZZZ") == answer


def test_an_empty_target_is_near_nothing() -> None:
    assert find_closest_text("   \nabc\n", "   ") == "No similar text. It says:\n   \nabc\n"


def test_a_target_longer_than_the_file_says_where_the_text_ends() -> None:
    assert find_closest_text("first line here", "first line here\nsecond") == (
        "The closest text is at line 1:\nfirst line here\nThe text ends before line 2 of the target."
    )


def test_what_is_the_same_differs_in_white_space_only() -> None:
    assert find_closest_text("some line\nx\n", "\nsome line\n") == (
        "The closest text is at line 1:\nsome line\nOnly whitespace or line endings differ."
    )


@pytest.mark.parametrize(("count", "cut"), [(MAX_SHOWN_LINES, False), (MAX_SHOWN_LINES + 1, True)])
def test_so_many_lines_are_shown(count: int, cut: bool) -> None:
    lines = [f"line number {number}" for number in range(count)]

    shown = find_closest_text("\n".join(lines), "\n".join([*lines[:-1], "line number x"]))

    assert ("\n…\n" in shown) is cut
    assert ("line number 11\n" in shown) is True


def test_long_lines_are_cut_around_the_difference() -> None:
    before, after = "b" * 50, "a" * 200

    found = find_closest_text(f"{before}X{after}", f"{before}Y{after}")

    shown = f"…{'b' * 20}{{}}{'a' * 59}…"
    assert found.endswith(f"Line 1 reads {shown.format('X')!r} where the target has {shown.format('Y')!r}.")
