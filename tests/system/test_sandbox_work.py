"""Ordinary work inside a box: it goes on as it would outside, and approved files are open."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.system.sandbox.box import Level
from tests.ordinary_user import as_ordinary_user
from tests.system.box_world import GIT, LEVELS, SECRET, World, find_place

PY = '"$PYTHON" -c '
COMMIT = " ".join(GIT)

WORK = {
    "files": ("mkdir -p a/b && echo 1 > a/b/f && echo 2 >> a/b/f && mv a/b/f a/g && cat a/g && rm -r a", "1\n2\n"),
    "usual umask": ("umask; echo > f; stat -c %a f; rm f", "0022\n644\n"),
    "umask": ("umask 027; echo > f; mkdir d; stat -c %a f d; rm -r f d", "640\n750\n"),
    "mode": ("echo > f; chmod 751 f; stat -c %a f; rm f", "751\n"),
    "times": ("touch -d @1000 f; stat -c %Y f; rm f", "1000\n"),
    "no clobber": ("set -C; echo 1 > f; (echo 2 > f) 2>/dev/null; cat f; rm f", "1\n"),
    "links": ("echo 1 > f; ln f g; ln -s f h; echo 2 > h; cat g; stat -c %h f; rm f g h", "2\n2\n"),
    "exchange": (
        PY + '\'import os;open("f","x").write("1");os.rename("f","g");print(open("g").read());os.remove("g")\'',
        "1\n",
    ),
    "truncate": ("echo 12345 > f; truncate -s 2 f; cat f; echo; : > f; stat -c %s f; rm f", "12\n0\n"),
    "pipe with a name": ("mkfifo p; (echo through > p &); cat p; rm p", "through\n"),
    "substitution": ("cat <(echo one) <(echo two); echo three | tee >(cat >/dev/null)", "one\ntwo\nthree\n"),
    "standard streams": (
        "echo out > /dev/stdout; echo err > /dev/stderr; echo again > /proc/self/fd/1; echo x > /dev/null",
        "out\nerr\nagain\n",
    ),
    "here document": ("cat <<X\nline $((1+1))\nX\nhead -c 100000 /dev/zero | wc -c", "line 2\n100000\n"),
    "temporary file": (
        "f=$(mktemp) && echo ok > $f && cat $f; rm $f; d=$(mktemp -d); echo 2 > $d/x; cat $d/x; rm -r $d",
        "ok\n2\n",
    ),
    "a repository of its own": (
        f"git init -q -b main n; cd n; echo x > f; git add f; {COMMIT} commit -qm two; git log --format=%s -1; cd ..; rm -rf n",
        "two\n",
    ),
    "the history is there to read": ("git log --format=%s -1; git status -s src | head -1", "one\n?? src/\n"),
    "socket of its own": (
        PY
        + '\'import socket;s=socket.socket(1);s.bind("s");s.listen();c=socket.socket(1);c.connect("s");c.send(b"hi");print(s.accept()[0].recv(9))\'; rm s',
        "b'hi'\n",
    ),
    "a socket is known by its path": (
        PY
        + '\'import socket,os;a=socket.socket(1);a.bind("s");b=socket.socket(1);b.bind(os.getcwd()+"/src/t");'
        + 'print(a.getsockname(),b.getsockname()==os.getcwd()+"/src/t",oct(os.stat("s").st_mode))\'; rm s src/t',
        "s True 0o140755\n",
    ),
    "managers": (
        PY + "'import multiprocessing as m\nwith m.Manager() as g:\n  d=g.dict(); d[1]=2; print(dict(d))'",
        "{1: 2}\n",
    ),
    "threads and processes": (
        PY
        + '\'import subprocess,threading\nt=[threading.Thread(target=lambda i=i:open("f%d"%i,"w").write("x")) for i in range(20)]\n'
        '[x.start() for x in t];[x.join() for x in t]\nprint(subprocess.check_output("ls f* | wc -l; rm f*",shell=True,text=True),end="")\'',
        "20\n",
    ),
    "a folder packed and unpacked": (
        (
            "mkdir -p z/y; echo 1 > z/y/f; chmod 640 z/y/f; touch -d @1000 z/y/f; tar cf t.tar z; rm -r z; tar xf t.tar; "
            "stat -c '%a %Y' z/y/f; cp -a z c; sed -i s/1/2/ c/y/f; cat c/y/f; chown $(id -u):$(id -g) c; rm -r z c t.tar"
        ),
        "640 1000\n2\n",
    ),
    "umask of each": (
        "(umask 077; echo > f); echo > g; mkdir -p d/e; (umask 0; sh -c 'echo > h'); stat -c %a f g d/e h; rm -r f g d h",
        "600\n644\n755\n666\n",
    ),
    "a folder that hands its group down": ("mkdir g; chmod g+s g; stat -c %a g; rmdir g", "2755\n"),
    "a socket of its own": (
        PY
        + '\'import socket\ns=socket.socket(1);s.bind("own.sock");s.listen();socket.socket(1).connect("own.sock");print(1)\'; rm own.sock',
        "1\n",
    ),
    "exit code": ("exit 3", ""),
    "example of an environment file": ("cat .env.example", "KEY="),
    "read outside": ("cat way-out/file", "untouched"),
}


def do_the_work(root: Path, level: Level) -> None:
    world = World(root, level)
    try:
        for name, (line, expected) in WORK.items():
            output = world.run(line)
            assert output.startswith(expected + "\n["), (name, output)
            assert "denied" not in output, (name, output)
            assert not world.judge(output, "working"), name
        assert "exited 3" in world.run("exit 3")
        assert "exited -15" in world.run("kill $$")
        assert world.run("echo $HOME; ls src", "reading").startswith(f"{world.home}\na.txt\n")
    finally:
        world.close()


@pytest.mark.parametrize("level", LEVELS)
def test_work_goes_on_as_an_ordinary_user(level: Level) -> None:
    as_ordinary_user(lambda root: do_the_work(root, level), within=find_place(level))


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory that is not in /tmp, of which boxes have one of their own."""
    place = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    with tempfile.TemporaryDirectory(dir=place, prefix="ollm-box-") as directory:
        yield Path(directory).resolve()


@pytest.fixture(params=LEVELS)
def world(root: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(root, request.param)
    yield world
    world.close()


@pytest.mark.parametrize("level", LEVELS)
def test_work_goes_on_as_root(root: Path, level: Level) -> None:
    do_the_work(root, level)


def approve(world: World, line: str, *paths: Path) -> str:
    return world.run(line, approved=tuple(map(str, paths)))


def test_an_approved_file_is_open_for_one_run_and_no_other(world: World) -> None:
    script = world.workspace / "scripts" / "hook.sh"

    approve(world, "echo mine > scripts/hook.sh; echo a > s; mv s scripts/hook.sh", script)
    assert script.read_text() == "a\n"
    world.run("echo again > scripts/hook.sh; rm -f scripts/hook.sh; mv scripts other")
    assert script.read_text() == "a\n"


def test_approved_git_settings_can_be_written_by_git(world: World) -> None:
    config = world.workspace / ".git" / "config"

    output = approve(world, "git config user.name Somebody && git config user.name", config)

    assert output.startswith("Somebody\n")
    assert "Somebody" in config.read_text()


def test_an_approved_file_outside_can_be_written_and_its_neighbours_cannot(world: World) -> None:
    new, notes = world.outside / "new", world.home / "notes.txt"

    approve(world, f"echo 1 > {new}; echo 2 > {notes}; echo 3 > {world.outside}/file; echo 4 > ~/.bashrc", new, notes)

    assert (new.read_text(), notes.read_text()) == ("1\n", "2\n")
    assert (world.outside / "file").read_text() == "untouched"
    assert (world.home / ".bashrc").read_text() == "# start"


def test_an_approved_secret_is_seen_and_the_others_are_not(world: World) -> None:
    output = approve(world, "cat ~/.ssh/id_rsa; cat ~/.aws/credentials", world.home / ".ssh" / "id_rsa")

    assert output.count(SECRET) == 1


def test_commands_of_a_session_share_a_network_that_leads_nowhere_else(root: Path) -> None:
    world = World(root, "full")
    try:
        second = world.sibling()
        serve = PY + '\'import socket;s=socket.create_server(("127.0.0.1",8123));c=s.accept()[0];c.send(b"hello\\n")\' '
        ask = "for i in $(seq 100); do (cat < /dev/tcp/127.0.0.1/8123) 2>/dev/null && break; sleep 0.05; done"

        with second.running(serve, "loopback"):
            output = world.run(f"{ask}; echo x > /dev/tcp/127.0.0.1/{world.port}", network="loopback")

        assert output.startswith("hello\n")
        assert "refused" in output
        assert not world.judge(output, "working")
        second.close()
    finally:
        world.close()


def test_network_all_reaches_what_is_there(world: World) -> None:
    output = world.run("echo x > /dev/tcp/127.0.0.1/$PORT && echo reached", network="all")

    assert output.startswith("reached\n")
