"""git: what lists and shows runs, what changes, runs or reads elsewhere asks."""

import pytest

from ollm.policy.shell.programs.git import GIT, parse_git
from ollm.policy.shell.words import ShellWord, make_literal
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


PARSED = r"""
git => None reads dangers - paths - unknown 0
git -v => None reads dangers - paths - unknown 0
git -h --version => None reads dangers - paths - unknown 0
git -v --frob => None acts dangers 2 paths - unknown 0
git -P => None acts dangers - paths - unknown 0
git -c a=b => None acts dangers 1 paths - unknown 0
git -C src log a => 3 reads dangers 1 paths a unknown 0
git --git-dir=x log => 2 reads dangers 1 paths - unknown 0
git --git-dir x log y => 3 reads dangers 1 paths y unknown 0
git -P --no-optional-locks status => 3 reads dangers - paths - unknown 0
git log => 1 reads dangers - paths - unknown 0
git log a b -- c -d => 1 reads dangers - paths a b c -d unknown 0
git log -n 3 HEAD:src/a :b => 1 reads dangers - paths 3 src/a b unknown 0
git log -- HEAD:a => 1 reads dangers - paths HEAD:a unknown 0
git log --oneline --frob --no-frob --frob=1 => 1 reads dangers - paths - unknown 3
git log -- --frob => 1 reads dangers - paths --frob unknown 0
git log --output=x --ext-diff => 1 reads dangers 2 3 paths - unknown 2
git log --out x => 1 reads dangers 2 paths x unknown 1
git log --o => 1 reads dangers 2 paths - unknown 1
git log --text --textconv --tex => 1 reads dangers 3 4 paths - unknown 2
git log --filter=x --filters => 1 reads dangers 3 paths - unknown 2
git log --format=%G? --pretty=%h => 1 reads dangers 2 paths - unknown 0
git log -Ofile a => 1 reads dangers - paths file a unknown 0
git log -O a => 1 reads dangers - paths a unknown 0
git diff --orderfile=x -Oy => 1 reads dangers - paths x y unknown 1
git diff --order=x => 1 reads dangers - paths x unknown 1
git diff --xorder=x => 1 reads dangers - paths - unknown 1
git grep -f x => 1 reads dangers - paths x unknown 0
git grep -fx y => 1 reads dangers - paths x y unknown 0
git grep -f=x => 1 reads dangers - paths =x unknown 0
git grep --f=x => 1 reads dangers 2 paths - unknown 1
git grep -nO y => 1 reads dangers 2 paths y unknown 0
git grep -eO y => 1 reads dangers - paths y unknown 0
git grep -O => 1 reads dangers 2 paths - unknown 0
git grep --open-files-in-pager => 1 reads dangers 2 paths - unknown 1
git blame --contents=x -Sy z => 1 reads dangers - paths x y z unknown 1
git blame --cont=x z => 1 reads dangers - paths x z unknown 1
git ls-files -Xx --exclude-from=y => 1 reads dangers - paths x y unknown 1
git show -v => 1 reads dangers - paths - unknown 0
git status -v => 1 reads dangers 2 paths - unknown 0
git status -sv => 1 reads dangers 2 paths - unknown 0
git status --verbose => 1 reads dangers 2 paths - unknown 0
git status --vers => 1 reads dangers 2 paths - unknown 1
git status -s => 1 reads dangers - paths - unknown 0
git rebase -xls => 1 acts dangers 2 paths - unknown 0
git rebase -x ls => 1 acts dangers 2 paths ls unknown 0
git difftool -x ls => 1 acts dangers 2 paths ls unknown 0
git log -x => 1 reads dangers - paths - unknown 0
git archive -o x => 1 acts dangers 2 paths x unknown 0
git archive -ox => 1 acts dangers 2 paths - unknown 0
git bundle -o x => 1 acts dangers 2 paths x unknown 0
git show -o x => 1 reads dangers - paths x unknown 0
git filter-branch => 1 acts dangers 1 paths - unknown 0
git bisect run ls => 1 acts dangers 1 paths run ls unknown 0
git bisect log => 1 reads dangers - paths log unknown 0
git bisect log -- run => 1 reads dangers - paths log run unknown 0
git submodule foreach ls => 1 acts dangers 1 paths foreach ls unknown 0
git submodule status => 1 reads dangers - paths status unknown 0
git submodule summary x => 1 reads dangers - paths summary x unknown 0
git daemon => 1 acts dangers 1 paths - unknown 0
git instaweb => 1 acts dangers 1 paths - unknown 0
git send-email => 1 acts dangers 1 paths - unknown 0
git branch => 1 reads dangers - paths - unknown 0
git branch -a => 1 reads dangers - paths - unknown 0
git branch -vv => 1 reads dangers - paths - unknown 0
git branch -avr => 1 reads dangers - paths - unknown 0
git branch -d x => 1 acts dangers - paths x unknown 0
git branch x => 1 acts dangers - paths x unknown 0
git branch -l x => 1 reads dangers - paths x unknown 0
git branch -al x => 1 reads dangers - paths x unknown 0
git branch --list x => 1 reads dangers - paths x unknown 0
git branch --contains x => 1 reads dangers - paths x unknown 0
git branch -a x => 1 acts dangers - paths x unknown 0
git branch --sort=x --format=y => 1 reads dangers - paths - unknown 0
git branch --show-current => 1 reads dangers - paths - unknown 0
git branch --merged => 1 reads dangers - paths - unknown 0
git branch --merge => 1 acts dangers - paths - unknown 0
git tag => 1 reads dangers - paths - unknown 0
git tag -n3 => 1 reads dangers - paths - unknown 0
git tag -l v* => 1 reads dangers - paths v* unknown 0
git tag -n5 x => 1 acts dangers - paths x unknown 0
git tag -d x => 1 acts dangers - paths x unknown 0
git tag x => 1 acts dangers - paths x unknown 0
git remote => 1 reads dangers - paths - unknown 0
git remote -v => 1 reads dangers - paths - unknown 0
git remote -v x => 1 acts dangers - paths x unknown 0
git remote --verbose => 1 reads dangers - paths - unknown 0
git remote get-url x => 1 reads dangers - paths get-url x unknown 0
git remote add x => 1 acts dangers - paths add x unknown 0
git reflog => 1 reads dangers - paths - unknown 0
git reflog show => 1 reads dangers - paths show unknown 0
git reflog x => 1 acts dangers - paths x unknown 0
git reflog expire => 1 acts dangers - paths expire unknown 0
git symbolic-ref HEAD => 1 reads dangers - paths HEAD unknown 0
git symbolic-ref -q HEAD => 1 reads dangers - paths HEAD unknown 0
git symbolic-ref => 1 acts dangers - paths - unknown 0
git symbolic-ref a b => 1 acts dangers - paths a b unknown 0
git symbolic-ref -d a => 1 acts dangers - paths a unknown 0
git symbolic-ref --delete a => 1 acts dangers - paths a unknown 0
git config a.b => 1 reads dangers - paths a.b unknown 0
git config ab => 1 acts dangers - paths ab unknown 0
git config a.b c => 1 acts dangers - paths a.b c unknown 0
git config --get a.b => 1 reads dangers - paths a.b unknown 0
git config --list => 1 reads dangers - paths - unknown 0
git config -l => 1 reads dangers - paths - unknown 0
git config -e => 1 acts dangers - paths - unknown 0
git config --edit => 1 acts dangers - paths - unknown 0
git config --get a --unset b => 1 acts dangers - paths a b unknown 0
git config get a --comment=x => 1 acts dangers - paths get a unknown 0
git config --show-origin a => 1 reads dangers - paths a unknown 0
git config --add a.b => 1 acts dangers - paths a.b unknown 0
git config -ef => 1 acts dangers - paths - unknown 0
git config => 1 acts dangers - paths - unknown 0
git stash => 1 acts dangers - paths - unknown 0
git stash list => 1 reads dangers - paths list unknown 0
git stash show x => 1 reads dangers - paths show x unknown 0
git stash pop => 1 acts dangers - paths pop unknown 0
git worktree list => 1 reads dangers - paths list unknown 0
git worktree add x => 1 acts dangers - paths add x unknown 0
git notes show => 1 reads dangers - paths show unknown 0
git notes add => 1 acts dangers - paths add unknown 0
git commit -m x => 1 acts dangers - paths x unknown 0
git add x -A => 1 acts dangers - paths x unknown 0
git push => 1 acts dangers - paths - unknown 0
"""


def split_words(line: str) -> list[ShellWord]:
    """An underscore is a blank inside a word."""
    return [make_literal(word.replace("_", " ")) for word in line.split(" ")]


def tell_parsed(line: str) -> str:
    """Where the subcommand stands, whether it reads, the places of dangerous words, the paths, how many options are
    unknown."""
    found = parse_git(split_words(line))
    dangers = " ".join(str(place) for place, _ in found.dangers) or "-"
    paths = " ".join(word.text for word in found.paths) or "-"
    kind = "reads" if found.reads else "acts"
    return f"{found.subcommand} {kind} dangers {dangers} paths {paths} unknown {len(found.unknown)}"


@pytest.mark.parametrize("line", PARSED.strip().splitlines())
def test_a_line_is_sorted_out_whole(line: str) -> None:
    assert f"{line.partition(' => ')[0]} => {tell_parsed(line.partition(' => ')[0])}" == line


@pytest.mark.parametrize(
    ("line", "scripts"),
    [
        ("git log", []),
        ("git -c alias.x=!rm_-rf_a log", ["rm -rf a?"]),
        ("git -c alias.x=log log", ["git log?"]),
        ("git -c core.pager=less log", ["less?"]),
        ("git -c core.editor=vi commit", ["vi?"]),
        ("git -c user.name=x log", []),
        ("git -c core.pager= log", []),
        ("git -c core.pager log", []),
        ("git config core.pager less", ["less?"]),
        ("git config user.name x", []),
        ("git config alias.co checkout", ["git checkout?"]),
        ("git core.pager less", []),
        ("git rebase -x make", ["make?"]),
        ("git rebase --exec make", ["make?"]),
        ("git rebase --exec=make", ["make?"]),
        ("git rebase -xmake", ["make?"]),
        ("git grep -Oless x", ["less?"]),
        ("git grep -O x", []),
        ("git clone -u x y", ["x?"]),
        ("git fetch -u x", []),
        ("git clone --upload-pack x y", ["x?"]),
        ("git fetch --upload-pack=x", ["x?"]),
        ("git push --receive-pack=y", ["y?"]),
        ("git filter-branch --tree-filter rm_-rf_a", ["rm -rf a?"]),
        ("git filter-branch --all", []),
        ("git clone ext::sh_-c_x", ["sh -c x?"]),
        ("git clone ext::sh%_-c", ["sh\\ -c?"]),
        ("git bisect run make test", ["make test"]),
        ("git submodule foreach --recursive ls a", ["ls a"]),
        ("git run ls", []),
        ("git submodule run ls", ["ls"]),
        ("git bisect foreach ls", ["ls"]),
        ("git difftool --extcmd=vi", ["vi?"]),
        ("git difftool --extcmd vi", ["vi?"]),
        ("git log --exec-path=x", []),
    ],
)
def test_the_commands_that_git_is_handed_are_found_one_that_may_be_none_as_a_guess(
    line: str, scripts: list[str]
) -> None:
    found = GIT.find_commands(GIT, split_words(line)) if GIT.find_commands else []
    assert [f"{one.script}?" if one.guess else one.script for one in found] == scripts
