"""Whether the words of a command name places that may be read or written without a question."""

import pytest

from tests.policy.conftest import Place
from tests.policy.told_verdicts import check_told
from tests.policy.verdict_table import Row, check_row, judge, rows

LINES = r"""
allow: cat a src/a.py
lock: cat src/link-out
lock: cat src/dir-out/passwd
lock: cat out/passwd
lock: cat ../secret
allow: cat src/../a
allow: cat -
allow: cat /dev/null
lock: cat /dev/sda
ask: cat /dev/tcp/a/1
lock: cat .env
allow: cat .env.example
lock: cat src/*
allow: cat src/*.py
lock: cat */link-out
lock: ls o*/
allow: echo *
lock: echo /etc/*
lock: echo ../*
ask: cat $x
lock: cat /etc/$x
lock: cat ~/$x
ask: cat "a$x"
lock: rm -r ..
lock: rm -rf "$PWD"
lock: rm -r src/..
ask: rm -r src
lock: rm -rf ./*
lock: tee ~/x
lock: cat ~other/x
allow: cat <(ls)
lock: grep -R x .
lock: rg -u x
lock: rg --glob .env* x
allow: rg --glob *.py x src
lock: cat /dev/fd/../environ
lock: cat /dev/fd/../cwd/.env
lock: cat < /dev/fd/../root/etc/passwd
lock: cat /dev/fd/1x
lock: cat /dev/nullx
allow: cat /dev/fd/13 /dev/tty /dev/zero
ask: cat a > /dev/fd/3
lock: tee "$x".env
ask: tee "a/$x"
lock: tee ~/.ssh/"$x"
lock: cat ~/"$x".ssh
ask: cat "$x"/.ssh/id
lock: rm -r "/etc/$x"
ask: rm -r "$x"
lock: rm -f .e*
lock: cp a .e*
lock: echo x > .e*
lock: tee src/l*
lock: cp a ~/x*
ask: cp a *.md
lock: cd $x; tee .env
lock: cd $x; rm -r ..
lock: cd $x; rm .e*
ask: cd $x; tee a
ask: cd $x; cat *.py
ask: cd $x; git log
lock: cd src/../.. && git log
allow: cd src && git log
ask: frob ""
ask: frob "$x"
lock: frob @.env .git/config ~/.ssh/id
lock: frob .env .env
ask: frob ".env$x"
lock: grep -R x s*
lock: ls -LR s*
allow: grep -r x s*
allow: grep -R x *.md
lock: grep -R x ~/*
ask: grep -R x "$y"
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_place_outside_or_protected_locks(place: Place, row: Row) -> None:
    check_row(place, row)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Repositories inside, links, names like options, and as many files as are looked at, and one more."""
    place = Place(tmp_path_factory.mktemp("large").resolve())
    work = place.workspace
    for name in (
        *("sub/.git", "sub/deep/er", "bare/objects", "bare/refs", "half/objects", "half/refs", "links", "options"),
        *("few", "many", "near/sub", "far/sub", "short/sub", "long/sub", "pack/node_modules", "kept/deep", ".git"),
    ):
        (work / name).mkdir(parents=True)
    (work / "bare/HEAD").write_text("x")
    (work / "links/in").symlink_to(work / "a")
    (work / "pack/node_modules/out").symlink_to("/etc")
    (work / "kept/deep/.env").write_text("x")
    (work / "options/-v").write_text("x")
    for name, count in (("few", 499), ("many", 500), ("near", 1498), ("far", 1499), ("short", 1499), ("long", 1500)):
        for number in range(count):
            (work / name / f"f{number}").touch()
    (work / "near/sub/.env").write_text("x")
    (work / "far/sub/.env").write_text("x")
    return place


LARGE = r"""
allow: cat few/*
ask: cat many/*
allow: cat options/*
ask: cd options && cat *
allow: git log
ask: cd sub && git log
ask: cd sub/deep/er && git log
ask: cd bare && git log
allow: cd half && git log
allow: cd src && git log
allow: grep -R x links
lock: grep -R x src
lock: grep -R x kept/..
allow: grep -R x pack
lock: rg -uuu x near
allow: rg -uuu x far
allow: grep -R x short
ask: grep -R x long
ask: grep -r x kept
ask: grep -r x kep*
ask: grep -r x k*/*
allow: grep -r x links
lock: rm -r kept/../..
"""


@pytest.mark.parametrize("row", rows(LARGE), ids=lambda row: row.line)
def test_what_a_directory_holds_counts_as_far_as_it_is_looked_at(large: Place, row: Row) -> None:
    verdict = judge(large, row.line)
    assert ("lock" if verdict.locked else verdict.decision) == row.wanted
    check_told(verdict, large, row.line, "large")
