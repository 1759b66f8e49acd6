"""`ollm daemon`: started, found, refused twice, stopped."""

import socket
from pathlib import Path

import pytest

from ollm.cli.daemon import get_run_files, is_listening
from tests.cli.inside import Inside


def test_without_a_daemon_it_is_said_with_the_way_to_one(inside: Inside) -> None:
    assert inside.read("daemon") == "The daemon is not running; start it with `ollm daemon start`.\n"
    assert inside.read("daemon", "stop") == "The daemon is not running.\n"
    assert inside.read_json("daemon", "status") == {
        "running": False,
        "pid": None,
        "socket": None,
        "url": None,
        "tokenFile": None,
    }


def test_a_socket_nobody_listens_at_is_no_daemon(inside: Inside) -> None:
    files = get_run_files()
    files.prepare()
    assert files.directory == inside.home / "run"
    assert not is_listening(files)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(files.socket))
        assert not is_listening(files)
        server.listen()
        assert is_listening(files)


def test_it_is_started_found_and_stopped(inside: Inside) -> None:
    started = inside.read("daemon", "start", "--tcp")
    try:
        status = inside.read_json("daemon", "status")
        assert started == f"The daemon is running (process {status['pid']}).\n"
        assert status["running"]
        assert status["url"].startswith("http://127.0.0.1:")
        assert status["tokenFile"] == str(inside.home / "run" / "token")
        said = inside.read("daemon", "status")
        assert (
            f"(process {status['pid']}) on {inside.home / 'run' / 'daemon.sock'}, {status['url']} with the token"
            in said
        )
        assert f"The daemon is already running (process {status['pid']})." in inside.fail("daemon", "start", code=2)
    finally:
        assert inside.read("daemon", "stop") == "The daemon stopped.\n"
    assert not inside.read_json("daemon", "status")["running"]


def test_one_that_cannot_start_says_why(inside: Inside) -> None:
    inside.configure("provider: [unfinished\n")
    done = inside.run("daemon", "start")

    assert done.code != 0
    assert "The daemon did not start" in done.err
    assert "Run `ollm daemon run` to see the error." in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_on_a_full_disk_the_reason_is_said_at_once(inside: Inside) -> None:
    logs = inside.home / "logs"
    logs.mkdir(parents=True)
    (logs / "daemon.out").symlink_to("/dev/full")
    done = inside.run("daemon", "start")

    assert done.code == 1
    assert "The daemon did not start" in done.err
    assert "No space left on device" in done.err
