"""Where a command runs, followed through cd, and what variables hold."""

from pathlib import Path

import pytest

from ollm.policy.shell.scope import merge_directories
from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, decide, rows

LINES = r"""
allow: cd src; ls ..
lock: cd src; ls ../..
lock: cd; ls
lock: cd ~; ls
ask: cd -; ls
ask: cd $x; ls
ask: popd; ls
ask: pushd src; ls
lock: command cd ..; ls
lock: builtin cd ..; ls
lock: cd -P ..; ls
ask: cd s*; ls
lock: cd ~root; ls
lock: cd missing; ls ../..
lock: cat ~/x
allow: LC_ALL=C ls
allow: NODE_ENV=x ls
ask: LD_LIBRARY_PATH=x ls
allow: cd $PWD && ls
allow: cd "$PWD/src" && ls
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_command_is_judged_where_it_runs(place: Place, row: Row) -> None:
    assert decide(place, row.line) == row.wanted


@pytest.mark.parametrize(("count", "known"), [(8, True), (9, False)])
def test_where_a_command_may_run_is_followed_to_eight_directories(count: int, known: bool) -> None:
    places = tuple(Path("/w", str(number)) for number in range(count))

    assert merge_directories(places[:5], places[3:]) == (places if known else None)
