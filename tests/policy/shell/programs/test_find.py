"""find: tests only look; actions, links and places outside ask."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: find . -name x
allow: find src -type f -newer a
allow: find . -maxdepth 2 -printf %p
allow: find -H src -O2
ask: find . -exec ls {} +
ask: find . -delete
ask: find . -fls new
lock: find . -fprint .git/x
ask: find -L .
ask: find . -follow
lock: find . -files0-from /etc/x
lock: find /etc
lock: find . /etc -name x
allow: find . -name /etc
lock: find . -newer /etc/passwd
ask: find . -frob
allow: find . -newermt 2020-01-01
ask: find . $x
allow: find . -name "$HOME"
ask: find . -name $(ls)
lock: find . -samefile ../x
allow: find . ! -name x -o -name y
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_an_action_asks(place: Place, row: Row) -> None:
    check_row(place, row)
