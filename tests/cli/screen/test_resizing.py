"""A terminal that gets narrower."""

import pytest
from prompt_toolkit.layout.screen import Char, Screen

from ollm.cli.screen.resizing import count_extra_rows, detect_rewrap, measure_row_widths


def test_a_narrower_terminal_makes_more_rows_of_the_same_lines() -> None:
    assert count_extra_rows([0, 40, 41, 80, 81], 40) == 0 + 0 + 1 + 1 + 2
    assert count_extra_rows([], 40) == 0
    assert detect_rewrap({"TERM": "xterm-256color"})
    assert detect_rewrap({"TERM": "screen-256color", "TMUX": "x", "XTERM_VERSION": "XTerm(370)"})
    assert not any(
        detect_rewrap(found) for found in ({"TERM": "xterm", "XTERM_VERSION": "XTerm(370)"}, {"TERM": "linux"})
    )


def test_rows_are_measured_to_their_last_letter() -> None:
    screen = Screen()
    for column, letter in enumerate("ab cd  "):
        screen.data_buffer[0][column] = Char(letter)
    screen.data_buffer[1][0] = Char("日")
    screen.data_buffer[3][0] = Char("x")

    assert measure_row_widths(screen, 3) == [5, 2, 0]


@pytest.mark.parametrize(
    ("environment", "wraps"),
    [
        ({}, True),
        ({"TERM": "screen"}, False),
        ({"TERM": "screen", "TMUX": "x"}, True),
        ({"XTERM_VERSION": "1", "TMUX": "x", "TERM": "linux"}, True),
        ({"XTERM_VERSION": "1", "TERM": "xterm"}, False),
        ({"TERM": "linux"}, False),
    ],
)
def test_most_terminals_wrap_again(environment: dict[str, str], wraps: bool) -> None:
    assert detect_rewrap(environment) is wraps
