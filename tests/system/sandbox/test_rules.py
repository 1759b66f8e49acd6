"""What a box lets its processes write, name, connect to and read."""

import errno

import pytest

from ollm.system.sandbox.box import Box
from ollm.system.sandbox.rules import BoxDeniedError, BoxRules

WORKING = Box(kind="working", workspace="/w", home="/home/x", writable=("/extra",), approved=("/ok/file", "/w/.vscode"))
READING = Box(kind="reading", workspace="/home/x/w", home="/home/x", hidden=("/secret",), readable=("/secret/open",))


def make(box: Box = WORKING, *, hiding: bool = False) -> BoxRules:
    return BoxRules(box, ["/scratch"], ["/repo/.git"], hiding=hiding)


def is_denied(check: object, *paths: str) -> bool:
    try:
        check(*paths)  # type: ignore[operator]
    except BoxDeniedError as error:
        return (error.errno, error.filename in paths) == (errno.EACCES, True)
    return False


@pytest.mark.parametrize(
    ("path", "denied"),
    [
        ("/w/a.py", False),
        ("/extra/a", False),
        ("/scratch/a", False),
        ("/proc/self/x", False),
        ("/dev/null", False),
        ("/ok/file", False),
        ("/ok/other", True),
        ("/w/.git/config", True),
        ("/w/.git/index", False),
        ("/w/.vscode/settings.json", False),
        ("/w/.idea/x", True),
        ("/w/AGENTS.md", True),
        ("/repo/.git/index", False),
        ("/repo/.git/hooks/x", True),
        ("/repo/other", True),
        ("/etc/passwd", True),
        ("/wide", True),
        ("/scratch/.vscode", False),
    ],
)
def test_what_a_working_box_may_write(path: str, denied: bool) -> None:
    assert is_denied(make().check_write, path) is denied


def test_the_way_to_the_workspace_does_not_matter() -> None:
    rules = BoxRules(Box(kind="working", workspace="/x/.vscode/w", home="/h"), [], [], hiding=False)

    assert not is_denied(rules.check_write, "/x/.vscode/w/a")
    assert is_denied(rules.check_write, "/x/.vscode/w/.vscode/a")


def test_a_reading_box_writes_to_scratch_alone() -> None:
    rules = make(READING)

    assert not is_denied(rules.check_write, "/scratch/a")
    assert is_denied(rules.check_write, "/home/x/w/a")


@pytest.mark.parametrize("hiding", [True, False])
def test_where_nothing_hides_the_devices_only_plain_ones_can_be_written(hiding: bool) -> None:
    rules = make(hiding=hiding)

    assert not is_denied(rules.check_write, "/dev/null")
    assert is_denied(rules.check_write, "/dev/sda") is hiding


@pytest.mark.parametrize(
    ("source", "target", "outcome"),
    [
        ("/w/a", "/w/b", "allowed"),
        ("/scratch/a", "/w/b", "other device"),
        ("/w/a", "/scratch/b", "allowed"),
        ("/w/.github", "/w/b", "denied"),
        ("/w/b", "/w/.github", "denied"),
        ("/w/.git/modules/x", "/w/b", "denied"),
        ("/scratch/.github", "/scratch/b", "allowed"),
    ],
)
def test_a_directory_does_not_come_in_from_where_names_are_not_looked_at(
    source: str, target: str, outcome: str
) -> None:
    try:
        make().check_move_directory(source, target)
        found = "allowed"
    except BoxDeniedError:
        found = "denied"
    except OSError as error:
        found = "other device" if error.errno == errno.EXDEV else str(error)

    assert found == outcome


@pytest.mark.parametrize(
    ("path", "denied"),
    [("/w/link", False), ("/w/.github", True), ("/w/.vscode", False), ("/w/.idea", True), ("/etc/x", True)],
)
def test_where_a_link_may_be_made(path: str, denied: bool) -> None:
    assert is_denied(make().check_link, path) is denied


@pytest.mark.parametrize(
    ("path", "denied"),
    [
        ("/w/socket", False),
        ("/scratch/s", False),
        ("/ok/file", False),
        ("/run/docker.sock", True),
        ("/home/x/agent", True),
    ],
)
def test_only_the_boxs_own_sockets_can_be_connected_to(path: str, denied: bool) -> None:
    assert is_denied(make().check_connect, path) is denied


def test_what_mounts_hide_need_not_be_judged() -> None:
    assert not is_denied(make(hiding=False).check_read, "/home/x/.ssh/id_rsa")


@pytest.mark.parametrize(
    ("path", "denied"),
    [
        ("/home/x/w/a.py", False),
        ("/home/x/w/.env", True),
        ("/home/x/w/.env.example", False),
        ("/home/x/notes", True),
        ("/home/x/.ssh/id_rsa", True),
        ("/secret/a", True),
        ("/secret/open/a", False),
        ("/usr/bin/python3", False),
        ("/etc/shadow", True),
        ("/dev/null", False),
        ("/dev/urandom", False),
        ("/dev/sda", True),
        ("/scratch/a", False),
    ],
)
def test_what_a_reading_box_may_see(path: str, denied: bool) -> None:
    assert is_denied(make(READING, hiding=True).check_read, path) is denied


@pytest.mark.parametrize(
    ("path", "denied"),
    [("/home/x/notes", False), ("/home/x/.ssh/id_rsa", True), ("/w/.env", False), ("/dev/sda", True)],
)
def test_what_a_working_box_may_see(path: str, denied: bool) -> None:
    assert is_denied(make(hiding=True).check_read, path) is denied
