"""Which names and words are surely numbers."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
ask: x=1; echo $((x))
allow: for n in {1..3}; do echo $((n * 2)); done
ask: for n in {1..3} x; do echo $((n * 2)); done
ask: for n in 1; do n=$(cat a); echo $((n)); done
ask: for n in 1; do n+=1; echo $((n)); done
ask: for n in 1; do n[0]=1; echo $((n)); done
ask: select n in 1; do echo $((n)); done
ask: for n in 1; do declare n=x; echo $((n)); done
allow: for n in -3 4; do echo $((n - 1)); done
allow: echo $((16#ff + 0x1f))
allow: echo $(( (1) * -2 ))
allow: echo $((${#HOME} + $# + $?))
ask: echo $((${#HOME} + HOME))
ask: for n in 1; do echo $((${n:-x})); done
allow: for n in 1; do echo $((${n} + "$n")); done
allow: echo $(( $(nproc) * 2 ))
allow: echo $(( $(ls | wc -l) ))
allow: echo $(( $(date +%s) ))
ask: echo $(( $(date +%N) ))
ask: echo $(( $(wc -l a) ))
ask: echo $(( $(wc -l; cat a) ))
ask: echo $(( $(TZ=x date +%s) ))
ask: echo $(( $(cat a) ))
allow: echo $(( $((1)) + 1 ))
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_only_numbers_are_sure(place: Place, row: Row) -> None:
    check_row(place, row)
