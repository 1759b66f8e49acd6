"""Shells, builtins that change them, interpreters and editors ask; their version is told."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
ask: bash a
ask: bash -c ls
ask: sh
ask: zsh -s
allow: bash --version
ask: bash --version x
ask: export A=b
ask: declare x
ask: read x
ask: mapfile x
ask: alias a=b
ask: hash -r
ask: set -e
ask: source a
ask: . a
ask: eval ls
ask: trap ls EXIT
ask: python3 -c 1
ask: perl -e 1
lock: perl -i -pe 1 .git/config
ask: ruby x
ask: vim a
lock: vim .git/config
lock: emacs .env
lock: ed .git/config
lock: ex -c q .git/config
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_what_runs_code_asks(place: Place, row: Row) -> None:
    check_row(place, row)
