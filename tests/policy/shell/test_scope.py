"""Where a command runs, followed through cd, and what variables hold."""

import os
from pathlib import Path

import pytest

from ollm.policy.shell.scope import expand_home, follow_cd, merge_directories
from ollm.policy.shell.words import make_literal
from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

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
    check_row(place, row)


@pytest.mark.parametrize(("count", "known"), [(8, True), (9, False)])
def test_where_a_command_may_run_is_followed_to_eight_directories(count: int, known: bool) -> None:
    places = tuple(Path("/w", str(number)) for number in range(count))

    assert merge_directories(places[:5], places[3:]) == (places if known else None)


@pytest.mark.parametrize(
    ("line", "start", "after"),
    [
        ("ls src", (".",), (".",)),
        ("cd src", (".",), ("src",)),
        ("command builtin cd src", (".",), ("src",)),
        ("command ls", (".",), (".",)),
        ("command", (".",), (".",)),
        ("cd -P src", (".",), ("src",)),
        ("cd src other", (".",), ("src",)),
        ("cd src", (".", "src"), (".", "src", "src/src")),
        ("cd missing", (".",), (".", "missing")),
        ("cd", (".",), ("~",)),
        ("cd ~", (".",), ("~",)),
        ("cd ~/.ssh", (".",), ("~/.ssh",)),
        ("cd ~other", (".",), None),
        ("cd -", (".",), None),
        ("cd +1", (".",), None),
        ("pushd", (".",), None),
        ("pushd src", (".",), ("src",)),
        ("popd", (".",), None),
        ("cd src", None, None),
        ("cd", None, None),
        ("cd /", None, ("/",)),
        ("popd /", None, None),
    ],
)
def test_where_a_command_leads(
    place: Place, line: str, start: tuple[str, ...] | None, after: tuple[str, ...] | None
) -> None:
    def locate(text: str) -> Path:
        return place.home / text[2:] if text.startswith("~") else Path(os.path.normpath(place.workspace / text))

    words = [make_literal(word) for word in line.split()]
    led = follow_cd(words, None if start is None else tuple(map(locate, start)), place.home)

    assert led == (None if after is None else tuple(map(locate, after)))
    assert follow_cd([make_literal("cd")], (place.workspace,), None) is None
    assert expand_home("~/x", None) is None
