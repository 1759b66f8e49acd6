"""A terminal that gets narrower."""

from ollm.cli.screen.resizing import count_extra_rows, detect_rewrap


def test_a_narrower_terminal_makes_more_rows_of_the_same_lines() -> None:
    assert count_extra_rows([0, 40, 41, 80, 81], 40) == 0 + 0 + 1 + 1 + 2
    assert count_extra_rows([], 40) == 0
    assert detect_rewrap({"TERM": "xterm-256color"})
    assert detect_rewrap({"TERM": "screen-256color", "TMUX": "x", "XTERM_VERSION": "XTerm(370)"})
    assert not any(
        detect_rewrap(found) for found in ({"TERM": "xterm", "XTERM_VERSION": "XTerm(370)"}, {"TERM": "linux"})
    )
