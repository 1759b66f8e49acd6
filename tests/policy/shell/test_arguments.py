"""What among a command's arguments no grant covers, and protected files named to programs nobody knows."""

import pytest

from ollm.policy.grants import Grant
from ollm.policy.shell.arguments import list_path_candidates
from ollm.policy.shell.verdict import ShellJudge
from ollm.policy.shell.words import make_literal
from tests.policy.conftest import Place
from tests.policy.verdict_table import decide

GRANTED = ["pytest", "git commit", "make", "npm run", "cargo build", "go test", "frob"]
COVERED = [
    "pytest tests/x.py", "pytest -k 'a or b'", "git commit -m 'see /etc/passwd'", "git commit -m x a", "make test",
    "npm run test", "cargo build --release", "go test ./...", "frob a=b", "pytest -x", "git commit --author=me -am ok",
    "frob http://x/y", "pytest src:a", "frob -m /etc/x", "frob 'see /etc/x'", "git commit -m http://x",
]  # fmt: skip
UNCOVERED = [
    "pytest /etc/x.py", "pytest ../x", "git commit -F ~/.ssh/id", "git commit -F.env", "pytest -c x", "pytest -p x",
    "make -f x", "make -C x", "make CC=x", "npm run test --script-shell=x", "cargo build --config x", "cargo build -Zx",
    "go test -exec x", "go test -toolexec=x", "go test -C x", "frob --config=x", "frob @/etc/x", "frob a:/etc/x",
    "frob a,/etc/x", "frob -o/etc/x", "frob $x", "pytest $x", "frob --rcfile x", "frob a=~/.ssh/id", "git commit -t x",
    "pytest --rootdir=/", "pytest --junitxml x", "frob -I/etc", "frob ~/x", "frob src/link-out", "frob .env",
    "git commit -am $x",
]  # fmt: skip


def is_granted(place: Place, line: str) -> bool:
    judge = ShellJudge(place.engine().rules, place.boundary, trusted=True)
    grants = [Grant(tool="shell", text=text) for text in GRANTED]
    return judge.judge({"command": line}, grants, "ask").verdict.decision == "allow"


@pytest.mark.parametrize("line", COVERED)
def test_a_grant_covers_ordinary_arguments(place: Place, line: str) -> None:
    assert is_granted(place, line)


@pytest.mark.parametrize("line", UNCOVERED)
def test_no_grant_covers_a_place_outside_or_an_option_that_steers(place: Place, line: str) -> None:
    assert not is_granted(place, line)


@pytest.mark.parametrize(
    "line", ["frob .env", "frob --x=.env", "frob x=.git/config", "frob @.env", "frob -x ~/.ssh/id"]
)
def test_a_protected_file_locks_whatever_the_program(place: Place, line: str) -> None:
    assert decide(place, line) == "lock"


@pytest.mark.parametrize(
    "line",
    ["frob -m .env", "frob 'see .env here'", "frob envy", "frob --message .env", "frob -m '.env'", "frob '.env or so'"],
)
def test_a_text_is_no_file(place: Place, line: str) -> None:
    assert decide(place, line) == "ask"


def test_the_paths_that_a_word_may_hold() -> None:
    held = {text: [word.text for word in list_path_candidates(make_literal(text))] for text in ("a", "a=b/c", "-Ib/c")}

    assert held == {"a": [], "a=b/c": ["a=b/c", "b/c"], "-Ib/c": ["-Ib/c", "b/c"]}
    assert [word.text for word in list_path_candidates(make_literal("x@.a:~b,/c"))][1:] == [".a", "~b", "/c"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("git commit .env", "lock"),
        ("git commit -m .env", "ask"),
        ("git commit -m x .env", "lock"),
        ("git commit '.env'", "lock"),
        ("git commit 'my .env'", "ask"),
        ("git stash push .env", "lock"),
        ("git commit -m '.env x'", "ask"),
        ("git commit --author .env", "ask"),
        ("git push .env", "lock"),
        ("git commit -m", "ask"),
        ("git commit x -m .env", "ask"),
        ("git stash -- .env", "lock"),
        ("frob '.env'", "lock"),
        ("frob 'a .env'", "ask"),
        ("frob -m .env a", "ask"),
        ("frob a -m", "ask"),
        ("frob -m a .env", "lock"),
        ("frob x=.env", "lock"),
        ("frob '--x=.env'", "lock"),
        ("frob --x .env", "lock"),
        ("frob -x.env", "lock"),
        ("frob a,.env", "lock"),
        ("frob .env:a", "lock"),
        ("frob /etc/passwd", "ask"),
        ("frob ../x", "ask"),
        ("frob ~/.ssh/id", "lock"),
        ('frob "$x" .env', "lock"),
    ],
)
def test_a_file_named_among_arguments_is_told_from_text(place: Place, line: str, wanted: str) -> None:
    assert decide(place, line) == wanted


@pytest.mark.parametrize(
    ("line", "granted"),
    [
        ("frob '/etc/x'", False),
        ('frob "/etc/x"', False),
        ("frob -x /etc/passwd", False),
        ("git commit -m x /etc/x", False),
        ("frob -m x -m /etc/y", True),
        ("frob -m", True),
        ("frob a -m b /etc/x", False),
        ("frob 'a b'", True),
        ("frob a=/etc/x", False),
        ("frob a=b=/etc/x", False),
        ("frob http://a/etc", True),
        ("frob x:/etc", False),
        ("frob a@b", True),
        ("frob -Iinc", True),
        ("frob -I..", False),
        ("frob -I../inc", False),
        ("frob --I../inc", True),
        ("frob -1/etc", True),
        ("frob ./a", True),
        ("frob /dev/null", True),
        ("frob -m $x", False),
        ("frob $x -m", False),
        ("frob -m $x y", False),
        ('frob -m "$x"', True),
        ("frob *", True),
        ("frob {a,b}", True),
        ("make X=1", False),
        ("make X:=1", False),
        ("make -k", True),
        ("make --file=x", False),
        ("make --directory x", False),
        ("just a:=1", False),
        ("frob X=1", True),
        ("npm run a -- --config x", False),
        ("pytest -q -p x", False),
        ("pytest -qp", False),
        ("pytest -x --pdb", True),
        ("frob --Config=x", False),
        ("frob -config x", False),
        ("frob --my-config=x", False),
        ("frob --configx", True),
        ("frob -e --config", True),
        ("cargo build -Z x", False),
        ("git commit -F x", False),
        ("git commit -sF x", False),
        ("git commit --file x", False),
    ],
)
def test_what_a_grant_covers_of_a_line(place: Place, line: str, granted: bool) -> None:
    assert is_granted(place, line) is granted
