"""Several files on one page: as many as fit, and what was left out."""

import pytest

from ollm.config.settings import OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.services.token_counting import estimate_units
from ollm.tools.files.file_pages import FAIR_PAGE_CHARS, MIN_PAGE_TOKENS, FilePages
from ollm.tools.files.file_text import NOTE_CHARS

LIMITS = OutputSettings(max_chars=10_000, max_lines=100)


def test_each_file_has_its_header_and_failures_their_reason() -> None:
    pages = FilePages(None, LIMITS)
    failure = ToolFailure("FileNotFound", "b is not there.")
    pages.add("a", "text\n")
    pages.add("b", failure)

    assert pages.texts == ["=== a ===\ntext", "=== b ===\n[FileNotFound: b is not there.]"]
    assert (pages.read, pages.failures) == (1, [failure])


def test_the_next_file_may_take_half_while_others_wait_but_a_fair_share_at_least() -> None:
    pages = FilePages(None, LIMITS)
    left = LIMITS.max_chars - NOTE_CHARS

    assert pages.limit_next(1) == OutputSettings(max_chars=left + NOTE_CHARS, max_lines=95)
    assert pages.limit_next(2).max_chars == left // 2 + NOTE_CHARS
    pages.add("a", "x" * (left - 3000 - len("=== a ===\n") - 1))
    assert pages.limit_next(1).max_chars == 3000 + NOTE_CHARS
    assert pages.limit_next(2).max_chars == FAIR_PAGE_CHARS + NOTE_CHARS


def test_a_limit_in_tokens_bounds_the_characters() -> None:
    assert FilePages(100, LIMITS).limit_next(1).max_chars == 400 + NOTE_CHARS
    assert FilePages(0, LIMITS).limit_next(1).max_chars == 1 + NOTE_CHARS


@pytest.mark.parametrize(("left", "full"), [(200, False), (199, True)])
def test_with_few_characters_left_it_is_full(left: int, full: bool) -> None:
    pages = FilePages(None, LIMITS)
    assert not pages.full
    pages.add("a", "x" * (LIMITS.max_chars - NOTE_CHARS - left - len("=== a ===\n") - 1))

    assert pages.full is full


@pytest.mark.parametrize(("lines", "full"), [(89, False), (90, True)])
def test_with_few_lines_left_it_is_full(lines: int, full: bool) -> None:
    pages = FilePages(None, LIMITS)
    pages.add("a", "\n".join("x" * lines))

    assert pages.full is full


def test_with_few_tokens_left_it_is_full() -> None:
    pages = FilePages(60, LIMITS)
    pages.add("a", "word " * 30)
    assert not pages.full
    pages.add("b", "word " * 100)
    assert pages.full


def test_an_empty_page_is_never_full() -> None:
    assert not FilePages(0, OutputSettings(max_chars=1, max_lines=1)).full


def test_a_file_is_cut_to_the_tokens_that_are_left() -> None:
    pages = FilePages(50, LIMITS)
    pages.add("a", "word and more words\n" * 100)

    [text] = pages.texts
    assert text.endswith("\n[cut: maxTokens]")
    assert estimate_units(text.removesuffix("\n[cut: maxTokens]")) <= 50
    assert len(text) > 100
    assert MIN_PAGE_TOKENS == 10


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, []),
        (2, ["1 more file not shown (too long): f1"]),
        (4, ["3 more files not shown (too long): f1, f2, f3"]),
        (12, ["11 more files not shown (too long): f1, f2, f3, f4, f5, f6, f7, f8, f9, f10 …"]),
        (11, ["10 more files not shown (too long): f1, f2, f3, f4, f5, f6, f7, f8, f9, f10"]),
    ],
)
def test_what_was_left_out_is_named(count: int, words: list[str]) -> None:
    pages = FilePages(None, LIMITS)
    pages.add("f0", "x")

    assert pages.describe_left_out([f"f{number}" for number in range(count)]) == words
