"""git: what lists and shows runs, what changes, runs or reads elsewhere asks."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: git
allow: git --version
allow: git status
allow: git --no-pager log -3
ask: git -c a=b log
ask: git -C src log
ask: git --frob
lock: git diff /etc/passwd
lock: git blame --contents=/etc/x a
lock: git blame --contents /etc/x a
lock: git ls-files -X/etc/x
lock: git show HEAD:../x
allow: git show HEAD:src/a.py
lock: git config --list --file ../x
ask: git log --output=x
ask: git log --outp=x
allow: git log --text
ask: git log --format=%G
ask: git grep -O x
ask: git rebase -x ls
ask: git archive -o x HEAD
ask: git filter-branch x
ask: git bisect run ls
allow: git bisect log
ask: git bisect view
ask: git merge-tree a b
allow: git branch
allow: git branch -a --sort=x
allow: git branch --list x
ask: git branch x
ask: git branch --sort=a x
ask: git branch -D x
allow: git tag -l "v*"
ask: git tag v1
allow: git remote -v
ask: git remote add x y
allow: git remote get-url x
allow: git reflog
ask: git reflog expire
allow: git stash list
ask: git stash
allow: git symbolic-ref HEAD
ask: git symbolic-ref HEAD x
ask: git symbolic-ref -d HEAD
allow: git config user.name
lock: git config user.name x
lock: git config --unset user.name
lock: git config --get x --edit
lock: git checkout .env
lock: git mv a .git/x
ask: git mv a b
lock: git commit -F .env
lock: git add .env
ask: git add a
ask: git log --frob
allow: git log --no-merges
ask: git log $x
allow: git log -- a
ask: git log -- $x
ask: git $x
ask: git --no-pager
allow: git --version --help
ask: git log --$x
ask: git log --"$x" -- a
lock: git log --$x -- ../x
ask: git show --$x
ask: git branch --$x
ask: for x in $(cat a); do git log --$x; done
allow: git show HEAD:a -- HEAD:../x
allow: git show HEAD:a -- HEAD:x
lock: git rm .env
lock: git rm -- .env
ask: git -c a=b
ask: git bisect run
ask: git submodule foreach ls
ask: git -C a submodule foreach ls
ask: git --no-pager bisect run ls
ask: git bundle -ox
allow: git log -ox
ask: git fast-export -ox
ask: git commit -m submodule foreach
lock: git -c a=b mv .env x
ask: git -c a=b mv x y
ask: git -C .git mv x y
allow: git grep -e x -- -O
ask: git grep -Ox y
ask: git log --output x
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_what_changes_or_runs_asks(place: Place, row: Row) -> None:
    check_row(place, row)
