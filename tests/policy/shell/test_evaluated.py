"""Words that a builtin takes as code although they look like text."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: test -v HOME
allow: [ -v HOME ]
allow: [ -v "a[0]" ]
ask: test -v a[x]
ask: [ -R "a[$(ls)]" ]
ask: test "$x" a[b]
allow: test "$x" = a
ask: test $x
ask: [ $x ]
allow: [ "$x" ]
allow: test a -eq a[b]
ask: test -v *
ask: test $x -v
allow: printf %d 3
allow: printf "%s %d" a 3
ask: printf "%5n" a
ask: printf "%ln" a
ask: printf $x a
ask: printf "$x" a
ask: printf "$x"
allow: printf -- "$x"
ask: printf -- "$x" a
allow: printf
allow: exit
allow: exit 3
allow: exit "$?"
ask: exit a[b]
ask: exit 'a[$(ls)]'
ask: return 1 x
allow: jq .import package.json
ask: jq "import 1" package.json
ask: jq "include 1" package.json
ask: jq input_filename package.json
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_word_that_is_evaluated_asks(place: Place, row: Row) -> None:
    check_row(place, row)
