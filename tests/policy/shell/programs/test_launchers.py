"""Programs that start another one: what they start is found, and none of them runs unasked."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
ask: docker run x ls
ask: npx x
ask: tmux new ls
ask: man ls
ask: less a
ask: at now
ask: kubectl exec x ls
ask: uv run x
ask: psql -c x
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_none_runs_unasked(place: Place, row: Row) -> None:
    check_row(place, row)
