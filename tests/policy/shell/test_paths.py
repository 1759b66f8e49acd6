"""Whether the words of a command name places that may be read or written without a question."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: cat a src/a.py
lock: cat src/link-out
lock: cat src/dir-out/passwd
lock: cat out/passwd
lock: cat ../secret
allow: cat src/../a
allow: cat -
allow: cat /dev/null
lock: cat /dev/sda
ask: cat /dev/tcp/a/1
lock: cat .env
allow: cat .env.example
lock: cat src/*
allow: cat src/*.py
lock: cat */link-out
lock: ls o*/
allow: echo *
lock: echo /etc/*
lock: echo ../*
ask: cat $x
lock: cat /etc/$x
lock: cat ~/$x
ask: cat "a$x"
lock: rm -r ..
lock: rm -rf "$PWD"
lock: rm -r src/..
ask: rm -r src
lock: rm -rf ./*
lock: tee ~/x
lock: cat ~other/x
allow: cat <(ls)
lock: grep -R x .
lock: rg -u x
lock: rg --glob .env* x
allow: rg --glob *.py x src
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_place_outside_or_protected_locks(place: Place, row: Row) -> None:
    check_row(place, row)
