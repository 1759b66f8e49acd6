"""What a command would do beyond its name is found out whatever its record says of it."""

import os
from pathlib import Path

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, decide, judge, rows

LINES = r"""
ask: /bin/cat a
ask: ./cat a
lock: /bin/cat /etc/passwd
ask: frob --version
ask: git --version x
ask: find . -exec cat {} +
ask: cat a $x
ask: cat --frob a
lock: cat --frob=/etc/x a
lock: cat --frob ~/x
ask: grep --frob /etc/passwd
lock: grep --frob x /etc/passwd
lock: ls a*/ /etc/*
lock: grep -r x /etc
lock: head -n /etc/* a
ask: tar --checkpoint-action=x -cf a b
ask: tar --to-com x -xf a
ask: tar -Ix -cf a b
ask: make --eval=x
ask: bash -
ask: bash /dev/stdin
ask: python3
ask: xargs cat
lock: find . -name a -exec cat /etc/passwd ;
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_what_it_would_do_is_asked_about(place: Place, row: Row) -> None:
    wanted = {"lock"} if row.wanted == "lock" else {"ask", "lock"}
    assert decide(place, row.line) in wanted


def test_the_reason_says_what_it_would_do(place: Place) -> None:
    assert "--output can run, write or read something else" in judge(place, "sort --output=x a").reason
    assert "sort -o can run" in judge(place, "sort -o x a").reason
    assert "it is not known what cat --frob does" in judge(place, "cat --frob a").reason
    assert "it is not known what cat -Q does" in judge(place, "cat -Q a").reason
    assert "runs what it reads" in judge(place, "bash").reason
    assert "uniq writes x" in judge(place, "uniq a x").reason
    assert "what cat reads is computed at run time" in judge(place, "ls | xargs cat").parts[-1].reason


def test_where_the_kernel_holds_a_reader_an_unknown_option_does_not_ask(place: Place) -> None:
    for line in ("cat --frob a", "md5sum -c a", "sed --frob p a", "awk -Q 1 a", "find . -frob", "strings @a"):
        assert (decide(place, line, "full"), decide(place, line, "landlock"), decide(place, line, "none")) == (
            "allow",
            "ask",
            "ask",
        )


def test_the_version_of_a_program_that_a_home_brings_asks(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert decide(place, "curl --version") == "allow"
    shim = tmp_path / "curl"
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert decide(place, "curl --version") == "ask"
    assert decide(place, "curl -V") == "ask"


def test_a_tree_with_a_secret_in_it_asks_where_the_kernel_does_not_hide_it(place: Place) -> None:
    assert decide(place, "grep -r x .", "full") == "allow"
    assert decide(place, "grep -r x .", "landlock") == "ask"
    assert decide(place, "grep -r x src", "landlock") == "allow"
    assert decide(place, "grep -r --include=*.py x .", "landlock") == "allow"
