"""Words are seen as bash sees them."""

import subprocess
from typing import Any

import pytest

from ollm.policy.shell.parse import parse_script
from ollm.policy.shell.words import (
    ShellWord,
    WordDecoder,
    decode_ansi,
    drop_prefix,
    make_literal,
    make_part_of,
)

QUOTINGS = [
    r"a\ b", r"'a b'", r'"a b"', r"a'b'\"c\"", r'"a\$b\\c\"d\e"', r"$'a\tb\x41\u00e9\101\cA\n'", r"\a\b", "'a\\b'",
    r"{a,b}c", r"x'{a,b}'", r'"{1..3}"', r"{1..3}", r"$'\'\"\\\?'", "a\\\nb", r"'*'", '"a\\\nb"', r"$'a\0b'", "''",
    r"x{,y}", r"{'',a}",
]  # fmt: skip


def decode(text: str, **values: str) -> list[ShellWord]:
    statement: Any = parse_script(f": {text}").statements[0]
    decoder = WordDecoder(certain=values, assigned={"guess": "a b"}, output=lambda _: "out put")
    return [word for one in statement["Cmd"]["Args"][1:] for word in decoder.decode_words(one)]


@pytest.mark.parametrize("text", QUOTINGS)
def test_static_words_are_what_bash_makes_of_them(text: str) -> None:
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True).stdout
    words = decode(text)

    assert "\0".join(word.text for word in words) + "\0" == told.decode()
    assert all(word.static and word.known == word.text for word in words)


def test_what_is_not_known_is_marked() -> None:
    (word,) = decode('a"$x"b')
    assert (word.text, word.known, word.static, word.several, word.quoted) == ("ab", "a", False, False, True)
    (word,) = decode("a$x")
    assert (word.several, word.might_be_option) == (True, True)
    (word,) = decode('"$x"')
    assert (word.several, word.might_be_option) == (False, True)
    (word,) = decode('-"$x"')
    assert word.might_be_option
    (word,) = decode('a"$x"')
    assert not word.might_be_option
    (word,) = decode("<(ls)")
    assert (word.descriptor, word.might_be_option) == (True, False)
    assert not decode("a")[0].might_be_option


def test_a_sure_value_is_filled_in_and_a_guess_is_not_sure() -> None:
    (word,) = decode("$HOME/x", HOME="/h")
    assert (word.text, word.static, word.variable) == ("/h/x", True, True)
    (word,) = decode('"$HOME/x"', HOME="/h h")
    assert (word.text, word.static) == ("/h h/x", True)
    assert not decode("$HOME/x", HOME="/h h")[0].static
    assert not decode("${HOME%x}", HOME="/h")[0].static
    assert [word.text for word in decode("$guess")] == ["a", "b"]
    assert [word.text for word in decode('"$guess"')] == ["a b"]
    assert [word.text for word in decode("$(ls)")] == ["out", "put"]
    assert [word.text for word in decode("${x:-default}")] == ["default"]
    assert [word.text for word in decode("rm$IFS-rf")] == ["rm", "-rf"]
    assert [word.text for word in decode('"rm${IFS}x"')] == ["rmx"]
    assert decode("${#x}")[0].several is False
    assert decode('"$@"')[0].several is True


def test_patterns_are_seen_where_they_are_not_quoted() -> None:
    assert [word.glob for word in decode("*.py '*' a?c [ab] \\* \"?\" a @(x)")] == [
        True, False, True, True, False, False, False, True,
    ]  # fmt: skip
    assert decode("$x", x="*")[0].glob


def test_a_part_of_a_word_is_as_sure_as_the_word() -> None:
    assert drop_prefix(make_literal("@a"), 1).text == "a"
    assert make_part_of(make_literal("x=a"), "a").known == "a"
    (unsure,) = decode('"$x"a')
    assert make_part_of(unsure, "a").known == ""
    assert decode_ansi(r"\ud800\x41") == "\ufffdA"
    assert decode_ansi(r"\777") == "\xff"
