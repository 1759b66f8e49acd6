"""Flags are found in any order and spelling."""

import pytest

from ollm.policy.shell.flags import collect_flags, parse_required_flags
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
