"""Shell words, braces and lines are read as bash reads them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ollm.policy.shell import parse
from ollm.policy.shell.parse import explain_bash_refusal, find_parser, parse_script
from ollm.policy.shell.words import Atom, ShellWord, WordDecoder, expand_braces

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


WORDS = [
    "a{b,c}d", "{1..3}", "{3..1}", "{a..e..2}", "{1..9..3}", "{a,b}{c,d}", "{a,{b,c}}", "{a}", "{}", "a{b", "a}b", "{a,b",
    "{1..x}", "{-1..1}", "x{,y}", "{a..c}{1..2}", "{1..2..0}", "{c..a}", "{10..1..4}", "{a,b}}", "{{a,b}",
]  # fmt: skip


def expand(text: str) -> list[str]:
    atoms = [Atom(character, "plain") for character in text]
    return ["".join(atom.character for atom in word) for word in expand_braces(atoms)]


@pytest.mark.parametrize("word", WORDS)
def test_braces_expand_as_in_bash(word: str) -> None:
    told = subprocess.run(["bash", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True).stdout

    assert expand(word) == told.splitlines()


def test_quoted_braces_stay() -> None:
    assert len(expand_braces([Atom(character, "quoted") for character in "{a,b}"])) == 1
    mixed = [Atom("{", "plain"), Atom("1..3", "quoted"), Atom("}", "plain")]
    assert len(expand_braces(mixed)) == 1


def test_a_list_that_is_cut_is_marked() -> None:
    words = expand_braces([Atom(character, "plain") for character in "{1..5000}"])

    assert len(words) <= 1024
    assert all(word[-1] == Atom("", "unknown") for word in words)
    assert words[0][0].character == "1"
    exact = expand_braces([Atom(character, "plain") for character in "{1..1024}"])
    assert len(exact) == 1024
    assert exact[-1][-1].kind == "plain"


def test_bash_is_asked_about_lines_that_hold_more_than_words() -> None:
    assert explain_bash_refusal("ls -la | wc -l && git log") == ""
    assert explain_bash_refusal("echo 'a b'") == ""
    assert explain_bash_refusal("cat <<E\nx") == "bash cannot read it"
    assert explain_bash_refusal("if true") == ""  # words only: the parser sees to those


def test_the_parser_is_there() -> None:
    assert Path(find_parser() or "").is_file()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (None, "the shell parser shfmt is not installed"),
        ("/nowhere/shfmt", "the shell parser could not be run: [Errno 2] No such file or directory: '/nowhere/shfmt'"),
        ("false", "the shell parser gave up"),
        ("cat", "cat: invalid option -- 'l'"),
        ("echo", "it is nested too deeply"),
    ],
)
def test_a_parser_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, program: str | None, told: str) -> None:
    found = program and (shutil.which(program) or program)
    monkeypatch.setattr(parse, "find_parser", lambda: found)

    failed = parse_script.__wrapped__("ls")

    assert failed.statements == ()
    assert failed.error.rpartition("/")[2] == told.rpartition("/")[2]
