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
allow: exit 1
allow: cd src && exit 1
allow: test -f a || exit 1
allow: ls || { echo none; exit 1; }
allow: if [ -f a ]; then exit 2; fi
allow: for f in a b; do [ -f "$f" ] || continue; break 2; done
ask: exit $(rm a)
ask: exit 1 > a
ask: exit 1; rm a
ask: ./exit 1
ask: exit() { rm a; }; exit 1
ask: trap 'rm a' EXIT; exit 1
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_it_only_tells(place: Place, row: Row) -> None:
    check_row(place, row)
