"""The words that name what a program writes, reads and removes."""

import pytest

from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.file_targets import find_targets
from ollm.policy.shell.words import UNKNOWN_WORD, make_literal

TARGETS = [  # the line, what it writes, reads, removes
    ("cp a b", "b b/a", "a", ""), ("cp a b c", "c c/a c/b", "a b", ""), ("cp -t d a b", "d d/a d/b", "a b", ""),
    ("cp a", "a", "", ""), ("cp --target-directory=d x/a/", "d d/a", "x/a/", ""), ("cp . b", "b b", ".", ""),
    ("cp a /", "/ /a", "a", ""), ("mv a b", "b b/a a", "a", "a"), ("rm a b", "a b", "", ""), ("rm -r a", "a", "", "a"),
    ("rm -R a b", "a b", "", "a b"), ("chmod 1 a", "a", "", ""), ("chmod -R 1 a", "a", "", "a"), ("tee a", "a", "", ""),
    ("dd if=a of=b", "b", "a", ""), ("zip a b c", "a", "b c", ""), ("mknod -m 1 a p", "a", "p", ""),
    ("curl -o a b", "a", "", ""), ("curl b", "", "", ""), ("tar -C d -xf a", "d a", "", ""), ("sed -i p a b", "a b", "", ""),
    ("sed -i -e p a", "a", "", ""), ("sed p a", "", "", ""), ("sed --in-place=x p a", "a", "", ""),
    ("perl -pi -e x a", "a", "", ""), ("perl -e x a", "", "", ""), ("sort -o a b", "a", "", ""), ("frob a", "", "", ""),
    ("patch -o a b", "a b", "", ""), ("touch -r a b", "b", "", ""), ("install -m 1 a b", "b b/a", "a", ""),
]  # fmt: skip


@pytest.mark.parametrize(("line", "written", "read", "removed"), TARGETS)
def test_the_files_of_a_command(line: str, written: str, read: str, removed: str) -> None:
    words = [make_literal(word) for word in line.split()]
    found = find_targets(get_program(words[0].text), words)

    assert [[word.text for word in some] for some in (found.written, found.read, found.removed)] == [
        written.split(), read.split(), removed.split(),
    ]  # fmt: skip


def test_a_name_that_is_not_sure_stays_so() -> None:
    words = [make_literal("cp"), UNKNOWN_WORD, make_literal("b")]
    unsure = find_targets(
        get_program("cp"), [*words[:1], UNKNOWN_WORD.__class__(text="x", known="", static=False), words[2]]
    )

    assert [(word.text, word.known, word.static) for word in unsure.written] == [("b", "b", True), ("b/x", "b", False)]
