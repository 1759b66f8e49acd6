"""Programs and builtins that tell something: they set nothing, and evaluate nothing."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: echo hello
allow: true
allow: test -f a
ask: test -v "a[0]x"
ask: [ -v $x ]
allow: printf %s x
ask: printf -v x y
ask: printf %n x
allow: pwd
allow: id -un
allow: nproc
allow: basename /a/b
allow: seq 3
allow: which ls
allow: type ls
allow: uname -a
allow: tr a b
allow: date +%F
ask: date 01010000
ask: date -s x
lock: date -r /etc/passwd
allow: hostname
ask: hostname x
allow: ps aux
ask: ps auxe
ask: ps -E
allow: free -m
allow: cd src
lock: cd /etc
allow: command -v ls
ask: command -v
ask: command rm x
allow: sleep 1
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_it_only_tells(place: Place, row: Row) -> None:
    check_row(place, row)
