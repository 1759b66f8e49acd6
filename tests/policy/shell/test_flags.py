"""Flags are found in any order and spelling."""

import pytest

from ollm.policy.shell.flags import FlagSet, collect_flags, parse_required_flags
from ollm.policy.shell.words import make_literal

FOUND = [
    ("rm -rf x", "recursive force"), ("rm -r -f x", "-rf"), ("rm x -fr", "recursive"), ("rm --recurs x", "recursive"),
    ("rm -R x", "recursive"), ("rm -R x", "r"), ("cp -a x y", "recursive"), ("rsync -a x y", "recursive"),
    ("git push -d x", "delete"), ("git push +main", "force"), ("git push origin +main", "--force"),
    ("git branch -D x", "delete force"), ("git commit -n", "no-verify"), ("git commit -am x", "all"),
    ("git tag -d x", "delete"), ("git clean -d", "directories"), ("rm --force=x y", "force"), ("x -y", "yes"),
    ("rm --recursive x", "r"), ("x --output=y", "output"), ("x -o y", "output"), ("sed -i x", "in-place"),
]  # fmt: skip
MISSING = [
    ("rm -r x", "recursive force"), ("rm x", "f"), ("rm -- -rf", "force"), ("git push main", "force"),
    ("git log +x", "force"), ("rsync -f x", "force"), ("git push -a", "all"), ("ls -1", "all"), ("git + push", "force"),
    ("rm - x", "force"), ("tar -a x", "recursive"),
]  # fmt: skip


def holds(line: str, flags: str) -> bool:
    words = line.split()
    return parse_required_flags(flags.split(), words) <= collect_flags([make_literal(word) for word in words])


@pytest.mark.parametrize(("line", "flags"), FOUND)
def test_a_flag_is_found_however_it_is_spelled(line: str, flags: str) -> None:
    assert holds(line, flags)


@pytest.mark.parametrize(("line", "flags"), MISSING)
def test_a_flag_that_is_not_there_is_not_found(line: str, flags: str) -> None:
    assert not holds(line, flags)


def test_flags_are_compared_with_flags_only() -> None:
    assert not (parse_required_flags(["f"], ["rm"]) <= frozenset({"-f"}))


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("", ""),
        ("rm", ""),
        ("rm -rf x", "-f -r"),
        ("rm -r -- -f", "-r"),
        ("rm --force=now", "--force"),
        ("rm -", ""),
        ("rm -r1-x", "-1 -r -x"),
        ("rm --", ""),
        ("rm -é", "-é"),
        ("git push +x", "--force"),
        ("git push +", ""),
        ("git +push x", ""),
        ("git -c push +y", "--force -c"),
        ("push +x", ""),
        ("/usr/bin/git push +x", "--force"),
        ("hub push +x", ""),
        ("git +x", ""),
        ("git log +x --a", "--a"),
    ],
)
def test_all_flags_of_a_line(line: str, flags: str) -> None:
    assert sorted(collect_flags([make_literal(word) for word in line.split()])) == flags.split()


@pytest.mark.parametrize(
    ("name", "program", "given", "held"),
    [
        ("r", "rm", "-R", True),
        ("R", "rm", "-r", True),
        ("r", "rm", "--recursive", True),
        ("r", "rm", "--rec", True),
        ("f", "rm", "--for", True),
        ("f", "rm", "--x", False),
        ("a", "git branch", "--all", True),
        ("D", "git branch", "--force", True),
        ("D", "git branch", "--delete", True),
        ("n", "git commit", "--no-verify", True),
        ("n", "git", "--no-verify", False),
        ("force", "git branch", "-D", True),
        ("force", "git push", "-D", False),
        ("quiet", "git push", "-q", True),
        ("all", "git push", "-a", False),
        ("all", "git", "-a", True),
        ("frob", "x", "--fro", True),
        ("frob", "x", "--", False),
        ("frob", "x", "-f", False),
        ("frob", "x", "--frobs", False),
        ("i", "sed", "--in-place", True),
        ("i", "x", "--interactive", True),
        ("x", "x", "--xyz", False),
        ("force", "x", "-", False),
        ("force", "rm", "--f", True),
    ],
)
def test_a_letter_stands_for_a_name_as_its_program_has_it(name: str, program: str, given: str, held: bool) -> None:
    assert FlagSet({given}).has(name, program) is held


@pytest.mark.parametrize(
    ("command", "flags", "wanted"),
    [
        ("rm", ["-rf"], {("rm", "f"), ("rm", "r")}),
        ("rm", ["--recursive"], {("rm", "recursive")}),
        ("/bin/rm", ["f"], {("rm", "f")}),
        ("git push", ["--force=x"], {("git push", "force")}),
        ("git -x", ["f"], {("git", "f")}),
        ("git push origin", ["force"], {("git push", "force")}),
        ("rm", ["-"], set()),
        ("rm", ["", "a"], {("rm", "a")}),
    ],
)
def test_what_a_rule_asks_for(command: str, flags: list[str], wanted: set[tuple[str, str]]) -> None:
    assert set(parse_required_flags(flags, command.split())) == wanted
