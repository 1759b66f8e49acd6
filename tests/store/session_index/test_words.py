"""How text is cut into words for searching, and how a hit is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.store.session_index.words import (
    MAX_WORDS,
    SearchWord,
    find_part,
    fold_text,
    make_snippet,
    parse_words,
    quote_phrase,
    separate_words,
    split_words,
)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", []),
        ("  \t\n", []),
        ("... ++", []),
        ("ab", [SearchWord("ab", "ab", "")]),
        ("abc", [SearchWord("abc", "", "abc")]),
        ("Ärger", [SearchWord("Ärger", "", "arger")]),
        ("src/Store.py", [SearchWord("src/Store.py", "src/Store.", "py")]),
        ("foo()", [SearchWord("foo()", "foo()", "")]),
        ("a\0bcd", [SearchWord("a", "a", ""), SearchWord("bcd", "", "bcd")]),
        ("my_name", [SearchWord("my_name", "my_", "name")]),
        ("one - two", [SearchWord("one", "", "one"), SearchWord("two", "", "two")]),
        ("日本語", [SearchWord("日本語", "日\x1f本\x1f語\x1f", "")]),
    ],
)
def test_what_is_typed_word_by_word(typed: str, words: list[SearchWord]) -> None:
    assert parse_words(typed) == words


def test_so_many_words_count() -> None:
    assert len(parse_words("word " * (MAX_WORDS + 5))) == MAX_WORDS == 64


def test_a_phrase_is_literal() -> None:
    assert quote_phrase('say "hi" OR *') == '"say ""hi"" OR *"'
    word = SearchWord("src/store", "src/", "store")
    assert word.phrase == '"src/store"'
    assert word.make_phrase("stores") == '"src/stores"'


@pytest.mark.parametrize(
    ("typed", "text", "begins"),
    [
        ("Sto", "a store", True),
        ("sto", "restore", False),
        ("sto", "my_store", True),
        ("sto", "store", True),
        ("./a", "b./ab", True),
        ("./a", "b./b", False),
        ("a.c", "abc", False),
    ],
)
def test_where_a_word_begins(typed: str, text: str, begins: bool) -> None:
    assert SearchWord(typed, typed, "").begins_in(text) is begins


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("plain [text]", "plain [text]"),
        ("ä", "ä"),
        ("a\ue000b", "a b"),
        ("日本x", "日\x1f本\x1fx"),
        ("a\ud800ä", "a?ä"),
        ("a \u2066iso\u2069é", "a  iso é"),
    ],
)
def test_text_as_the_index_is_given_it(text: str, given: str) -> None:
    assert separate_words(text) == given


@pytest.mark.parametrize(("text", "folded"), [("ABC", "abc"), ("ÄÉñ", "aen"), ("ß", "ß"), ("İx", "ix"), ("ﬁ", "ﬁ")])
def test_folding_lowers_and_takes_accents_off(text: str, folded: str) -> None:
    assert fold_text(text) == folded


@given(st.text())
def test_folding_keeps_every_place(text: str) -> None:
    assert len(fold_text(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "typed", "snippet"),
    [
        ("find the Needle here", "needle", "find the «Needle» here"),
        ("needle and needle", "needle", "«needle» and «needle»"),
        ("a\n\n  b  needle", "needle", "a b «needle»"),
        ("nothing", "needle", "nothing"),
        ("nothing", "", "nothing"),
        ("übung macht", "UBUNG", "«übung» macht"),
        ("a (x) b", "(x)", "a «(x)» b"),
        ("store of foo", "foo-store", "«store» of «foo»"),
        ("foobar foo", "foo foobar", "«foobar» «foo»"),
    ],
)
def test_the_text_around_a_hit_with_the_hits_marked(text: str, typed: str, snippet: str) -> None:
    assert make_snippet(text, typed) == snippet


def test_a_long_text_is_cut_around_the_hit() -> None:
    before, after = "b" * 100, "a" * 100

    assert make_snippet(f"{before}needle{after}", "needle") == (f"…{before[:60]}«needle»{after[:60]}…")
    assert make_snippet(f"needle{after}", "needle") == f"«needle»{after[:60]}…"
    assert make_snippet(f"{before}needle", "needle") == f"…{before[:60]}«needle»"
    exact = "b" * 60
    assert make_snippet(f"{exact}needle{exact}", "needle") == f"{exact}«needle»{exact}"
    assert make_snippet("x" * 200, "needle") == "x" * 2 * 60


@given(st.text(max_size=200), st.text(max_size=10))
def test_a_snippet_is_one_line_whatever_is_typed(text: str, typed: str) -> None:
    assert "\n" not in make_snippet(text, typed)


def test_a_text_is_cut_into_the_same_words_whatever_else_it_holds() -> None:
    text = "".join(map(chr, range(128))) + " See src/Cart.py, foo_bar(X) " + "y" * 300
    plain = set(split_words(text))

    assert set(split_words(text + " 日本")) - {"日", "本"} == plain
    assert {"src", "cart", "py", "foo", "bar", "x", "y" * 200} <= plain
    assert split_words("<=> _ \x1f") == []


def test_a_part_of_a_text_is_looked_for_by_its_longest_word() -> None:
    assert find_part("oo_ba") == "%oo %"
    assert find_part("a.Total") == "% total%"
    assert find_part("(x == Middle)") == "% middle %"
    assert find_part("<=>") == "%"
    assert find_part(".total") == "% total%"
    assert find_part("total.") == "%total %"
    assert find_part("total") == "%total%"
    assert find_part("") == "%"
    assert find_part("ab.cd") == "%ab %"
    assert find_part("ab.cde.fg") == "% cde %"
    assert find_part("c日") == "%c日 %"
    for length in (199, 200, 201, 299, 300, 301, 1000):
        word = "".join(chr(97 + number * number % 26) for number in range(length))
        held = f" {' '.join(split_words(f'a {word} b'))} "
        for place in range(0, length - 20, 7):
            assert find_part(word[place : place + 150]).strip("%") in held
        assert find_part(f" {word[:100]}").strip("%") in held
        assert find_part(f"{word[-99:]} ").strip("%") in held
