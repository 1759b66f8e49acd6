"""Programs that search: the pattern is none of their files, and options that run or leave ask."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: grep -rn x src
allow: grep /etc/passwd a
lock: grep x /etc/passwd
lock: grep -e x /etc/passwd
lock: grep -f /etc/x a
lock: grep -R x src
lock: grep --include=.env -r x .
allow: egrep x a
allow: zgrep x a
ask: zgrep -f a b
allow: jq . package.json
ask: jq -L . . package.json
ask: jq --rawfile a b . package.json
lock: jq -f /etc/x a
lock: jq -4 /etc/x
allow: rg x src
lock: rg x /etc
lock: rg --hidden x
ask: rg --pre cat x
ask: rg -L x
ask: rg -z x
lock: rg -g .env x
lock: rg --ignore-file /etc/x y
allow: fd x src
lock: fd x /etc
ask: fd -x rm
lock: fd --search-path /etc x
allow: ag x src
ask: ag --pager less x
lock: ag -u x
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_search_stays_inside_and_runs_nothing(place: Place, row: Row) -> None:
    check_row(place, row)
