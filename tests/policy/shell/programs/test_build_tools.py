"""Programs that build and test ask, also for the version of one that a home brings."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
ask: npm test
ask: cargo build
ask: cargo --version
ask: go version
ask: make
ask: make -n
allow: make --version
ask: make --version x
ask: pytest
ask: gcc -o x a
lock: gcc -o .git/x a
ask: gcc -B. a
ask: gcc -wrapper x a
ask: gh pr list
ask: yarn exec ls
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_none_runs_unasked(place: Place, row: Row) -> None:
    check_row(place, row)
