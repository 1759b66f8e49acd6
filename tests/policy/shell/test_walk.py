"""Every simple command and redirection of a line is found, wherever it stands."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, decide, rows

LINES = r"""
lock: ls; cat /etc/passwd
lock: ls & cat /etc/passwd
lock: ls && cat /etc/passwd
lock: ls || cat /etc/passwd
lock: ls | cat /etc/passwd
lock: (cat /etc/passwd)
lock: { cat /etc/passwd; }
lock: if cat /etc/passwd; then ls; fi
lock: if true; then cat /etc/passwd; fi
lock: while cat /etc/passwd; do ls; done
lock: until ls; do cat /etc/passwd; done
lock: for x in 1; do cat /etc/passwd; done
lock: for x in $(cat /etc/passwd); do ls; done
lock: for ((;;)); do cat /etc/passwd; done
lock: case x in x) cat /etc/passwd;; esac
lock: select x in a; do cat /etc/passwd; done
lock: f() { cat /etc/passwd; }
ask: coproc ls
lock: coproc cat /etc/passwd
lock: ! cat /etc/passwd
lock: echo $(cat /etc/passwd)
lock: echo `cat /etc/passwd`
lock: cat <(cat /etc/passwd)
lock: cat <<< $(cat /etc/passwd)
lock: [[ -n $(cat /etc/passwd) ]]
lock: CI=$(cat /etc/passwd) ls
ask: X=1 ls
allow: CI=1 ls
ask: CI+=1 ls
ask: CI[0]=1 ls
ask: CI=(1) ls
ask: ls > x
lock: ls > .git/x
allow: ls > /dev/null 2>&1
lock: cat < /etc/passwd
allow: cat < a
ask: ls {x}< a
ask: ls 2> x
ask: let x=1
ask: declare x=1
allow: cd src && ls
lock: cd .. && ls
lock: cd src; cat ../../x
allow: cd src; cat ../a
allow: (cd src); cat src/a.py
lock: if true; then cd ..; fi; cat x
lock: cd src || cd ..; cat ../a
lock: while true; do cd src; cat ../a; done
lock: for d in src ..; do cat $d/../x; done
allow: for f in a b; do cat $f; done
ask: for f in $x; do cat $f; done
ask: for PATH in a; do ls; done
allow: for TERM in a; do ls; done
lock: for f in a /etc/passwd; do cat $f; done
ask: for f in a; do :; done; cat $f
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_command_is_found_wherever_it_stands(place: Place, row: Row) -> None:
    check_row(place, row)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("false && cd src; cat ../a", "lock"),
        ("false && cd src; cat ../../a", "lock"),
        ("test -d x || cd src; cat ../a", "lock"),
        ("cd src && cat ../a", "allow"),
        ("cd src; cat ../a", "allow"),
        ("cd src | true; cat ../a", "lock"),
        ("(cd src); cat ../a", "lock"),
        ("bash <(echo ls)", "ask"),
        ("bash >(echo ls)", "ask"),
        ('bash "$(echo ls)"', "ask"),
        ("cat <(echo x)", "allow"),
        ("cat < <(echo x)", "allow"),
    ],
)
def test_a_directory_that_may_have_been_entered_or_not_counts_both_ways(place: Place, line: str, wanted: str) -> None:
    assert decide(place, line) == wanted
