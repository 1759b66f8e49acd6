"""The request ledger: what was asked stands, in full or as the line that tells most of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.context import RequestLine
from ollm.services.request_ledger import _clip, count_lines, fold_ledger, make_lines, shorten_request
from ollm.services.token_counting import TokenCounter

cost = TokenCounter().count_text
FILLER = "The service reads its settings when it starts and keeps them until somebody sends it a signal. " * 4


def test_the_sentence_that_names_things_outlives_the_others_wherever_it_stands() -> None:
    fact = "The settings of resamo-svc live in /etc/resamo/a91f.toml."
    for text in (f"{fact} {FILLER}", f"{FILLER} {fact}", f"{FILLER} {fact} {FILLER}"):
        line = shorten_request(text, 40, cost)
        assert "/etc/resamo/a91f.toml" in line
        assert "resamo-svc" in line
        assert cost(line) <= 42


def test_pasted_text_is_counted_and_does_not_hide_the_question() -> None:
    trace = "\n".join(f"    at module_{n}.call({n})" for n in range(40))
    line = shorten_request(f"Why does the build of billing fail since commit 9f31c2?\n{trace}", 50, cost)
    assert "9f31c2" in line


def test_a_sentence_that_does_not_fit_is_cut_where_it_names_things_and_not_at_all_where_little_fits() -> None:
    words = "it goes on and on about nothing in particular and comes to no end "
    for text in (
        f"Use port 8443 since {words * 6}",
        f"{words * 6} so use port 8443",
        f"{words * 3} port 8443 {words * 3}",
    ):
        line = shorten_request(text, 30, cost)
        assert "8443" in line
        assert "…" in line
        assert cost(line) <= 32
    assert "…" not in shorten_request(words * 6, 5, cost), "a few letters of its beginning are all that fits"


def test_chinese_sentences_are_told_apart() -> None:
    text = "请先检查配置。" * 30 + "端口是 8443，不要改。" + "然后继续。" * 30
    assert "8443" in shorten_request(text, 40, cost)


def test_all_requests_stand_word_for_word_while_they_fit() -> None:
    asked = [(n, f"Do number {n}.\nWith two lines.") for n in range(5)]
    assert [line.text for line in make_lines((), asked, 500, cost)] == [text for _, text in asked]
    assert all(line.whole for line in make_lines((), asked, 500, cost))


def test_once_old_requests_stand_shortened_a_long_new_one_does_not_fill_the_ledger() -> None:
    known = [RequestLine(number=1, text="Build part_1…", whole=False)]
    lines = make_lines(known, [(2, f"Look at part_2. {FILLER}"), (3, "And now?")], 1000, cost)

    assert cost(lines[0].text) <= 66
    assert "part_2" in lines[0].text
    assert (lines[1].text, lines[1].whole) == ("And now?", True)
    full = [RequestLine(number=n, text=FILLER, whole=False) for n in range(9)]
    assert cost(make_lines(full, [(10, f"Look at part_10. {FILLER}")], 600, cost)[0].text) <= 42


def test_a_ledger_written_anew_keeps_the_newest_longest_and_leaves_room() -> None:
    lines = [RequestLine(number=n, text=f"Request {n} is about part_{n}. {FILLER}") for n in range(60)]

    folded = fold_ledger(lines, 1000, cost)

    assert count_lines(folded, cost) <= 700
    assert folded[-1].number == 59
    assert [line.number for line in folded] == list(range(60 - len(folded), 60))
    assert all(f"part_{line.number}" in line.text for line in folded)
    assert cost(folded[-1].text) >= cost(folded[0].text) - 3


@settings(max_examples=150, deadline=None)
@given(st.text(min_size=1, max_size=3000), st.integers(14, 200))
def test_a_line_is_never_much_longer_than_it_may_be_and_never_empty(text: str, tokens: int) -> None:
    line = shorten_request(text, tokens, cost)
    assert line or not text.split()
    assert cost(line) <= max(tokens + 4, cost(" ".join(text.split())[:tokens]))


def count_words(text: str) -> int:
    return len(text.split())


FACTS = (
    "first we look around the place. Then use port 8443 of billing-svc now. You must never stop. It ends here. "
    "Also set LIMIT to 500 today."
)
NOTHING = "it goes on and on about nothing in particular and comes to no end "
FENCED = "Why does it fail?\n```\na\nb\nc\n```\nIt worked before the change of host_7 on Monday, and nobody knows why."
PASTED = "Look at this please now.\n  at one\n  at two\n  at three\n{more}That is it, is it not, or what."


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (FACTS, 26, FACTS),
        (FACTS, 25, FACTS.partition(" place. ")[2]),
        (FACTS, 20, "Then use port 8443 of billing-svc now. You must never stop. Also set LIMIT to 500 today."),
        (FACTS, 18, "Then use port 8443 of billing-svc now. Also set LIMIT to 500 today."),
        (FACTS, 13, "Then use port 8443 of billing-svc now. You must never stop."),
        (FACTS, 12, "Then use port 8443 of billing-svc now."),
        (FENCED, 30, " ".join(FENCED.split())),
        (FENCED, 21, "Why does it fail? It worked before the change of host_7 on Monday, and nobody knows why."),
        (FENCED, 13, "It worked before the change of host_7 on Monday, and nobody knows why."),
        (FENCED, 12, "It worked before the change of host_7 on Monday, and nobody…"),
        (FENCED, 11, "Why does it fail? [4 lines of code]"),
        (PASTED.format(more=""), 18, "Look at this please now. at one at two at three"),
        (PASTED.format(more="  at four\n"), 19, "Look at this please now. at one [3 more lines]"),
        (f"{NOTHING * 3}so use port 8443", 13, "…in particular and comes to no end so use port 8443"),
        (f"{NOTHING * 2}port 8443 {NOTHING * 2}", 13, "…and comes to no end port 8443 it goes on and on abo…"),
        (f"Use port 8443 since {NOTHING * 3}", 13, "Use port 8443 since it goes on and on about noth…"),
        (NOTHING * 3, 12, "it goes on and on about nothing in particular and c…"),
        (NOTHING * 3, 11, "it goes on "),
    ],
)
def test_what_is_left_of_a_request(text: str, words: int, line: str) -> None:
    assert shorten_request(text, words, count_words) == line


@pytest.mark.parametrize(
    ("cap", "sizes"),
    [
        (900, [25] * 4 + [30] * 4 + [36] * 4),
        (700, [25] * 6 + [30] * 6),
        (600, [25] * 11),
        (400, [25] * 7),
        (100, [25]),
        (20, []),
    ],
)
def test_how_long_the_lines_of_a_ledger_are(cap: int, sizes: list[int]) -> None:
    lines = [RequestLine(number=n, text=f"Request {n} is about part_{n}. {NOTHING * 3}") for n in range(12)]

    folded = fold_ledger(lines, cap, count_words)

    assert [count_words(line.text) for line in folded] == sizes
    assert [line.number for line in folded] == list(range(12 - len(sizes), 12))
    assert not any(line.whole for line in folded)


@pytest.mark.parametrize(
    ("cap", "size", "whole"), [(165, 112, True), (164, 59, False), (112, 59, False), (111, 36, False)]
)
def test_how_long_a_line_that_is_added_is(cap: int, size: int, whole: bool) -> None:
    known = [RequestLine(number=1, text=f"Request 1 is about part_1. {NOTHING * 3}")]
    assert count_lines(known, count_words) == 50

    (line,) = make_lines(known, [(9, f" {NOTHING * 8}")], cap, count_words)

    assert (line.number, count_words(line.text), line.whole) == (9, size, whole)


@pytest.mark.parametrize(
    ("tokens", "line"),
    [
        (52, "…we said and then mend src/area/file1234567.py…"),
        (53, "…said and then mend src/area/file1234567.py"),
        (60, "…hat we said and then mend src/area/file1234567.py…"),
        (61, "…that we said and then mend src/area/file1234567.py"),
        (63, "…that we said and then mend src/area/file1234567.py"),
        (64, "please look at the thing that we said and then mend src/area/fi…"),
    ],
)
def test_the_end_of_a_sentence_is_kept_where_it_fits_and_names_more(tokens: int, line: str) -> None:
    """Digits cost two."""
    sentence = "please look at the thing that we said and then mend src/area/file1234567.py"

    assert _clip(sentence, tokens, lambda text: len(text) + sum(map(str.isdigit, text))) == line


@pytest.mark.parametrize(("length", "kept"), [(7, 7), (8, 8), (9, 7), (10, 8), (11, 7), (20, 7)])
def test_a_sentence_is_never_cut_to_less_than_a_few_letters(length: int, kept: int) -> None:
    assert _clip("x" * length, 12, lambda _: 100) == f"{'x' * kept}…"
    assert _clip("x" * length, 11, lambda _: 100) == ""


def test_how_many_sentences_a_line_of_each_age_holds() -> None:
    """A sentence is a word here, and each but the first costs one more."""
    asked = [(number, "a. " * 80) for number in range(6)]
    lines = [RequestLine(number=number, text=text) for number, text in asked]

    folded = fold_ledger(lines, 1000, count_words)
    assert [count_words(line.text) for line in folded] == [12, 12, 15, 15, 18, 18]
    sizes = {
        cap: [count_words(line.text) for line in fold_ledger(lines, cap, count_words)]
        for cap in (27, 28, 54, 163, 164, 179, 180, 196, 197)
    }
    assert sizes == {
        27: [], 28: [12], 54: [12], 163: [12] * 5, 164: [12] * 6, 179: [12] * 6, 180: [12, 12, 12, 15, 15, 15],
        196: [12, 12, 12, 15, 15, 15], 197: [12, 12, 15, 15, 18, 18],
    }  # fmt: skip
    assert [line.number for line in fold_ledger(lines, 163, count_words)] == [1, 2, 3, 4, 5]
    assert [count_words(make_lines(folded, asked[:1], cap, count_words)[0].text) for cap in (140, 141)] == [18, 30]


@pytest.mark.parametrize(("before", "found"), [(19_990, True), (20_000, False), (30_000, False)])
def test_so_much_of_a_request_is_looked_through(before: int, found: bool) -> None:
    text = ("a. " * 10_000)[:before] + "port 8443"
    assert ("8443" in shorten_request(text, 30, count_words)) is found
