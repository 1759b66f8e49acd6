"""sed and awk: what prints runs, what writes, reads elsewhere or runs a command asks."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: sed -n 1,5p a
allow: sed s/a/b/g a
allow: sed -e p -e d a
allow: sed "s|a|b|" a
allow: sed "s#a#b#;y/a/b/" a
allow: sed -n "/x/,+3p" a
allow: sed -E "1,3{s/a/b/}" a
ask: sed -i s/a/b/ a
lock: sed -i -e s/a/b/ .git/config
lock: sed -i s/a/b/ .git/config
ask: sed --in-place s/a/b/ a
ask: sed -f b a
ask: sed "w new" a
ask: sed "s/a/b/e" a
ask: sed "1r b" a
ask: sed p$x a
lock: sed p /etc/passwd
lock: sed -e p /etc/passwd
ask: sed --frob p a
ask: sed -Q p a
allow: awk "{print}" a
allow: awk -F: "{print}" x=1 a
allow: awk "3 > 2 {print}" a
allow: awk "{print; if (1 > 2) n++}" a
ask: awk "{print > 2}" a
ask: awk "{print 1,⏎2 > 3}" a
ask: awk "/x/{print 1; n = 2 > 1}" a
ask: awk "{print | 1}" a
allow: awk "1 || 2 {print}" a
ask: awk "{getline}" a
ask: awk "{system(1)}" a
ask: awk -f b a
ask: awk -f
lock: awk "{print}" /etc/passwd
lock: awk -f /etc/passwd a
ask: awk -Q "{print}" a
ask: awk $x a
ask: awk --lint --frob "{print}" a
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_what_does_more_than_print_asks(place: Place, row: Row) -> None:
    check_row(place, row)
