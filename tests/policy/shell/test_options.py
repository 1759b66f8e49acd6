"""Options are read as getopt reads them."""

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
