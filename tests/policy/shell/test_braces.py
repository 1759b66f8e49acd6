"""Braces expand as bash expands them."""

import subprocess

import pytest

from ollm.policy.shell.braces import Atom, expand_braces

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
