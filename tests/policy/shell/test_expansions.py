"""What bash evaluates inside words asks, unless it is surely a number."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: echo $((1 + 2))
ask: echo $((x))
ask: echo $(( $(cat a) ))
allow: for x in 1 2; do echo $((x + 1)); done
ask: for x in 1 a; do echo $((x)); done
ask: echo $((1 + $x))
allow: echo $(( $(wc -l < a) + 1 ))
ask: echo $((PATH = 1))
ask: (( x ))
allow: (( 3 > 2 )) && ls
allow: echo ${HOME:0:3}
ask: echo ${HOME:x}
ask: echo ${HOME:0:x}
ask: echo ${a[x]}
allow: echo ${a[0]}
allow: echo ${a[@]}
ask: echo ${!x}
allow: echo ${!HO*}
ask: echo ${x:=1}
allow: echo ${TERM:=1}
ask: echo ${x@P}
allow: echo ${x@Q}
ask: [[ $x -eq 1 ]]
allow: [[ 2 -eq 1 ]] && ls
ask: [[ -v a[x] ]]
allow: [[ -v HOME ]] && ls
allow: [[ $x == 1 ]] && ls
ask: echo $(( "x" ))
lock: echo "${x:-$(cat /etc/passwd)}"
lock: echo ${x:-<(cat /etc/passwd)}
lock: echo "${x:-'$(cat /etc/passwd)'}"
lock: cat <<E⏎$(cat /etc/passwd)⏎E
allow: cat <<"E"⏎$(cat /etc/passwd)⏎E
ask: echo $(( 'a[$(rm x)]' ))
ask: for ((i = x; i < 2; i++)); do :; done
allow: for ((i = 0; i < 2; i++)); do :; done
ask: echo @($(rm x))
ask: cat <<E⏎${x:-'}⏎E⏎cat a #'}⏎E
allow: cat <<E⏎${x:-a}⏎E
allow: echo "${x:-$HOME}" "${x%.py}"
allow: echo ${x:-'a'}
ask: echo "${x:-'a'}"
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_value_that_is_evaluated_asks(place: Place, row: Row) -> None:
    check_row(place, row)
