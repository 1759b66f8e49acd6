"""Programs that run another command: harmless ones are seen through, the others ask."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: timeout 5 ls
allow: timeout -k 1 5 ls
ask: timeout 5
ask: timeout $x ls
allow: nice -n 5 ls
allow: nice ls
allow: time ls
ask: time -o x ls
allow: nohup ls
allow: stdbuf -o0 ls
ask: stdbuf -o0 rm x
ask: env ls
ask: setsid ls
ask: gtimeout 5 ls
ask: sudo ls
ask: xargs ls
ask: ssh x ls
ask: exec ls
lock: timeout 5 cat /etc/passwd
lock: nice -n 5 -- cat /etc/passwd
ask: ./timeout 5 ls
ask: busybox ls
ask: -- ls
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_harmless_wrapper_is_seen_through(place: Place, row: Row) -> None:
    check_row(place, row)
