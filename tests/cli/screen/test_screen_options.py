"""What a screen is like when nothing is said about it."""

from pathlib import Path

from ollm.cli.screen.screen_options import ScreenOptions


def test_a_screen_has_colours_and_a_bell_and_the_usual_keys() -> None:
    options = ScreenOptions(history=Path("h"), workspace=Path("w"))

    assert options.colour
    assert options.bell
    assert not options.vi
    assert not options.wraps_again
