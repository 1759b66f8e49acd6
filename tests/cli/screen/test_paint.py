"""Text with escape sequences: Markdown, asides, previews, diffs."""

import pytest

from ollm.cli.screen.paint import Painter
from ollm.system.terminal_text import clean_lines, clean_prose
from tests.cli.screen.samples import PLAIN


def test_joined_letters_stay_joined_in_prose_and_show_in_a_question() -> None:
    family = "👩\u200d👩\u200d👧"

    assert clean_prose(f"{family} می\u200cخواهم") == f"{family} می\u200cخواهم"
    assert clean_prose("r\u200dm \u200b\u202e👩\u200d\u200d👩") == "r\\u200dm \\u200b\\u202e👩\\u200d\\u200d👩"
    assert clean_lines(family) == "👩\\u200d👩\\u200d👧"


def test_blocks_bring_no_blank_lines_of_their_own() -> None:
    for text in ("| a |\n|---|\n| 1 |", "- a\n- b", "```py\nx\n```", "# Head", "> said", "1. one"):
        painted = PLAIN.paint_markdown(text)
        assert painted.strip("\n") + "\n" == painted, text


def test_a_wide_terminal_shows_both_sides_and_a_narrow_one_the_unified_form() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"

    assert "1 - old" in Painter(lambda: 130, colour=False).paint_diff(diff)
    assert "1 - old\n     1 + new" in PLAIN.paint_diff(diff)


COLOURED = Painter(lambda: 80, colour=True)


def test_without_colour_there_is_no_escape() -> None:
    for painted in (
        PLAIN.paint_answer("**bold** `code`", first=True),
        PLAIN.paint_aside("x", "red"),
        PLAIN.paint_header("t", [("a",)]),
        PLAIN.paint_user_message("hi"),
    ):
        assert "\x1b" not in painted


def test_with_colour_marks_and_styles_are_there() -> None:
    assert COLOURED.paint_mark("● ", "cyan").startswith("\x1b[36m● ")
    assert COLOURED.paint_mark("● ", "cyan").endswith("\x1b[0m")
    assert PLAIN.paint_mark("● ", "cyan") == "● "
    assert "\x1b[31m" in COLOURED.paint_aside("x", "red")
    assert "\x1b[" in COLOURED.paint_answer("**bold**", first=True)


def test_an_answer_begins_with_a_mark_and_goes_on_in_its_gutter() -> None:
    assert PLAIN.paint_answer("one\n\ntwo", first=True) == "● one\n\n  two\n"
    assert PLAIN.paint_answer("one", first=False) == "  one\n"


@pytest.mark.parametrize(("width", "columns"), [(40, 40), (10, 20)])
def test_lines_are_as_wide_as_the_terminal_and_never_under_twenty(width: int, columns: int) -> None:
    painter = Painter(lambda: width, colour=False)

    assert max(len(line) for line in painter.paint_output("word " * 30).split("\n")) <= columns
    assert painter.paint_rule("yellow") == "─" * max(20, width) + "\n"
    assert max(len(line) for line in painter.paint_answer("word " * 30, first=True).split("\n")) <= columns + 2


def test_a_line_is_cut_where_it_must_leave_something_free() -> None:
    assert PLAIN.fit_line("x" * 56, 24) == "x" * 56
    assert PLAIN.fit_line("x" * 57, 24) == "x" * 55 + "…"
    assert Painter(lambda: 10, colour=False).fit_line("x" * 21, 5) == "x" * 11 + "…"


def test_a_preview_is_quiet_short_and_harmless() -> None:
    assert PLAIN.paint_preview(["a\x1bb", "x" * 74, "y" * 75]) == f"  │ a\\x1bb\n  │ {'x' * 74}\n  │ {'y' * 73}…\n"


def test_a_header_is_a_title_over_lines_behind_a_bar() -> None:
    assert PLAIN.paint_header("Title", [("short", "more"), ("x" * 77, "more"), ("y" * 78,), ("/" + "z" * 78,)]) == (
        f"▌ Title\n▌ short · more\n▌ {'x' * 77}\n▌ {'y' * 76}…\n▌ …{'z' * 76}\n\n"
    )


def test_asides_are_set_in_and_what_was_said_is_marked() -> None:
    assert PLAIN.paint_aside("one\ntwo") == "  one\n  two\n"
    assert PLAIN.paint_user_message("hi") == "› hi\n"
    assert PLAIN.paint_output("quiet") == "    quiet\n"


def test_nothing_that_is_said_is_taken_for_markup() -> None:
    assert PLAIN.paint_aside("[red]x[/red] :smile:") == "  [red]x[/red] :smile:\n"
