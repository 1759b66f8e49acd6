"""Text with escape sequences: Markdown, asides, previews, diffs."""

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
