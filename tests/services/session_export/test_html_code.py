"""Code as HTML."""

import pytest

from ollm.services.session_export.html_code import MAX_COLOURED_CHARS, render_code_as_html


def test_the_words_of_a_known_language_are_marked() -> None:
    assert '<span class="k">def</span>' in render_code_as_html("def f(): pass\n", "Python title=x")


@pytest.mark.parametrize("language", ["", "  ", "no-such-language", "<script>", "../python"])
def test_an_unknown_language_is_shown_as_it_is(language: str) -> None:
    assert render_code_as_html("<b> & c\n", language) == "&lt;b&gt; &amp; c\n"


def test_what_is_very_long_is_not_coloured_and_blanks_stay() -> None:
    assert "<span" not in render_code_as_html("x = 1\n" * MAX_COLOURED_CHARS, "python")
    assert render_code_as_html("\n\n  x\n", "text") == "\n\n  x\n"


def test_code_as_long_as_the_bound_is_coloured_and_quotes_stay() -> None:
    line = "x = 1\n"
    most = line * (60_000 // len(line))

    assert "<span" in render_code_as_html(most, "python")
    assert render_code_as_html(f"{most} ", "python") == f"{most} "
    assert render_code_as_html("'a' \"b\"", "") == render_code_as_html("'a' \"b\"", "none") == "'a' \"b\""
