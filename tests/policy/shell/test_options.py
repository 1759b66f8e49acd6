"""Options are read as getopt reads them."""

import pytest

from ollm.policy.shell.options import OptionGrammar, OptionScan, scan_options
from ollm.policy.shell.words import UNKNOWN_WORD, ShellWord, make_literal

GRAMMAR = OptionGrammar(
    flags="ab", values="no", joined="i", long_values=("name", "number"), known=("all",), optional=("color",)
)


def scan(line: str, grammar: OptionGrammar = GRAMMAR) -> OptionScan:
    return scan_options([make_literal(word) for word in line.split()], grammar)


def tell(found: OptionScan) -> list[str]:
    told = [f"{one.spelled}={one.value.text}" if one.value else one.spelled for one in found.options]
    return [*told, *(word.text for _, word in found.operands)]


def test_clusters_values_and_operands_are_told_apart() -> None:
    assert tell(scan("x -ab y")) == ["-a", "-b", "y"]
    assert tell(scan("x -an 3 y")) == ["-a", "-n=3", "y"]
    assert tell(scan("x -n3 y")) == ["-n=3", "y"]
    assert tell(scan("x -i y")) == ["-i", "y"]
    assert tell(scan("x -i.bak y")) == ["-i=.bak", "y"]
    assert tell(scan("x y -a")) == ["-a", "y"]
    assert tell(scan("x -- -a")) == ["-a"]
    assert tell(scan("x -n")) == ["-n"]
    assert tell(scan("x - y")) == ["-", "y"]


def test_long_options_are_found_written_out_joined_and_abbreviated() -> None:
    assert tell(scan("x --name y z")) == ["--name=y", "z"]
    assert tell(scan("x --name=y z")) == ["--name=y", "z"]
    assert tell(scan("x --nam y")) == ["--nam=y"]
    assert tell(scan("x --color y")) == ["--color", "y"]
    assert tell(scan("x --all y")) == ["--all", "y"]
    (option,) = scan("x --n y").options
    assert option.abbreviates == ("name", "number")
    assert option.is_any(["number"])
    assert option.is_any(["n"])
    assert not option.is_any(["all"])


def test_what_the_grammar_does_not_list_is_unknown() -> None:
    assert [one.spelled for one in scan("x -a -Q --frob --al -i -n 1").unknown] == ["-Q", "--frob"]
    assert scan("x -Q", OptionGrammar()).unknown == ()
    assert [one.spelled for one in scan("x --a", OptionGrammar(flags="a")).unknown] == ["--a"]


def test_options_may_end_at_the_first_operand() -> None:
    assert tell(scan("x y -a", OptionGrammar(flags="a", stops=True))) == ["y", "-a"]


def test_a_number_alone_may_be_a_value() -> None:
    numeric = OptionGrammar(values="c", numeric=True)
    assert tell(scan("x -c 3 y", numeric)) == ["-c=3", "y"]
    assert tell(scan("x -c 0x1f y", numeric)) == ["-c=0x1f", "y"]
    assert tell(scan("x -c y", numeric)) == ["-c", "y"]


def test_words_that_may_turn_out_to_be_options_are_uncertain() -> None:
    several = ShellWord(text="", known="", static=False, several=True)
    assert scan_options([make_literal("x"), UNKNOWN_WORD], GRAMMAR).uncertain == (1,)
    assert scan_options([make_literal("x"), make_literal("-n"), several], GRAMMAR).uncertain == (2,)
    assert scan_options([make_literal("x"), make_literal("-n"), UNKNOWN_WORD], GRAMMAR).uncertain == ()
    begun = ShellWord(text="a", known="a", static=False)
    assert scan_options([make_literal("x"), begun], GRAMMAR).uncertain == ()


def test_one_dash_may_be_enough_for_a_long_option() -> None:
    assert tell(scan("x -name y", OptionGrammar(long_values=("name",), single_dash=True))) == ["--name=y"]


NUMERIC = OptionGrammar(values="c", numeric=True, flags="q")
STOPPING = OptionGrammar(flags="a", values="n", stops=True)
DASHED = OptionGrammar(long_values=("name",), known=("print",), flags="", single_dash=True)
WIDE = OptionGrammar(
    flags="ab", values="no", joined="i", long_values=("name", "number"), known=("all", "also"), optional=("color",)
)


def make_word(text: str) -> ShellWord:
    """`?` is a word that is not known, `?*` one that may become several, `a?` one of which the beginning is known."""
    if text == "?*":
        return ShellWord(text="", known="", static=False, several=True)
    if text.endswith("?"):
        return ShellWord(text=text[:-1], known=text[:-1], static=False)
    return make_literal(text)


def tell_all(found: OptionScan) -> str:
    """Options with place, value and what they abbreviate / operands / uncertain places / unknown options."""
    options = [
        f"{one.index}{one.spelled}"
        + (f"={one.value.text}" if one.value is not None else "")
        + (f"~{'|'.join(one.abbreviates)}" if one.abbreviates else "")
        for one in found.options
    ]
    operands = [f"{place}{word.text}" for place, word in found.operands]
    parts = (options, operands, map(str, found.uncertain), (one.spelled for one in found.unknown))
    return " / ".join(" ".join(part) for part in parts)


@pytest.mark.parametrize(
    ("grammar", "line", "told"),
    [
        (WIDE, "x", " /  /  / "),
        (WIDE, "x a b", " / 1a 2b /  / "),
        (WIDE, "x -ab y -n 3 z", "1-a 1-b 3-n=3 / 2y 5z /  / "),
        (WIDE, "x -nb y", "1-n=b / 2y /  / "),
        (WIDE, "x -bn", "1-b 1-n /  /  / "),
        (WIDE, "x -b -n", "1-b 2-n /  /  / "),
        (WIDE, "x -o -n y", "1-o=-n / 3y /  / "),
        (WIDE, "x -ix -i y", "1-i=x 2-i / 3y /  / "),
        (WIDE, "x -iab", "1-i=ab /  /  / "),
        (WIDE, "x - -- -a", " / 1- 3-a /  / "),
        (WIDE, "x --name", "1--name~name /  /  / "),
        (WIDE, "x --name --all", "1--name=--all~name /  /  / "),
        (WIDE, "x --all --name", "1--all~all 2--name~name /  /  / "),
        (WIDE, "x --nam=y -- --all", "1--nam=y~name / 3--all /  / "),
        (WIDE, "x --al --co --c=z y", "1--al~all|also 2--co~color 3--c=z~color / 4y /  / "),
        (WIDE, "x --num 3 4", "1--num=3~number / 34 /  / "),
        (WIDE, "x --n 3", "1--n=3~name|number /  /  / "),
        (WIDE, "x -- -a --", " / 2-a 3-- /  / "),
        (WIDE, "x ?", " / 1 / 1 / "),
        (WIDE, "x ? -a", "2-a / 1 / 1 / "),
        (WIDE, "x a? -?", " / 1a 2- / 2 / "),
        (WIDE, "x -n ? y", "1-n= / 3y /  / "),
        (WIDE, "x -n ?* y", "1-n= / 3y / 2 / "),
        (WIDE, "x -an ?* ?*", "1-a 1-n= / 3 / 2 3 / "),
        (WIDE, "x --name ?* ?", "1--name=~name / 3 / 2 3 / "),
        (WIDE, "x -- ?", " / 2 /  / "),
        (WIDE, "x --?", "1-- /  / 1 / --"),
        (WIDE, "x --name=?*", "1--name=?*~name /  /  / "),
        (WIDE, "x -Q --frob=1 --Name y", "1-Q 2--frob=1 3--Name / 4y /  / -Q --frob --Name"),
        (WIDE, "x -1 y", "1-1 / 2y /  / -1"),
        (WIDE, "x --", " /  /  / "),
        (WIDE, "x -", " / 1- /  / "),
        (NUMERIC, "x -c 3 y", "1-c=3 / 3y /  / "),
        (NUMERIC, "x -c -3 y", "1-c=-3 / 3y /  / "),
        (NUMERIC, "x -c +3", "1-c=+3 /  /  / "),
        (NUMERIC, "x -c 0X1F", "1-c=0X1F /  /  / "),
        (NUMERIC, "x -c y", "1-c / 2y /  / "),
        (NUMERIC, "x -qc 3", "1-q 1-c=3 /  /  / "),
        (NUMERIC, "x -qc y", "1-q 1-c / 2y /  / "),
        (NUMERIC, "x -c", "1-c /  /  / "),
        (NUMERIC, "x -c3y", "1-c=3y /  /  / "),
        (NUMERIC, "x -c 3x", "1-c / 23x /  / "),
        (NUMERIC, "x -cq 3", "1-c=q / 23 /  / "),
        (STOPPING, "x -a y -a", "1-a / 2y 3-a /  / "),
        (STOPPING, "x -n 1 y -n 2", "1-n=1 / 3y 4-n 52 /  / "),
        (STOPPING, "x -- y", " / 2y /  / "),
        (STOPPING, "x - -a", " / 1- 2-a /  / "),
        (STOPPING, "x y", " / 1y /  / "),
        (DASHED, "x -name y -print z", "1--name=y~name 3--print~print / 4z /  / "),
        (DASHED, "x -name", "1--name~name /  /  / "),
        (DASHED, "x --name y", "1--name=y~name /  /  / "),
        (DASHED, "x -n y", "1--n=y~name /  /  / "),
        (DASHED, "x -p", "1--p~print /  /  / "),
        (DASHED, "x -name=y", "1--name=y~name /  /  / "),
        (DASHED, "x - y", " / 1- 2y /  / "),
        (DASHED, "x -x", "1--x /  /  / --x"),
    ],
)
def test_a_line_is_sorted_out_whole(grammar: OptionGrammar, line: str, told: str) -> None:
    assert tell_all(scan_options([make_word(word) for word in line.split()], grammar)) == told
