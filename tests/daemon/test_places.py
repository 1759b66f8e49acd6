"""The files of a running daemon."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ollm.config.environment import Home
from ollm.daemon.places import DaemonProcess, RunFiles
from ollm.domain.errors import StorageError
from ollm.store.lease import get_process_start
from tests.cli.command import ollm
from tests.daemon.running import Daemon, daemon


async def test_its_files_are_for_the_user_alone_and_a_second_daemon_is_refused(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        run = found.home / "run"
        assert stat.S_IMODE(run.stat().st_mode) == 0o700
        assert stat.S_IMODE((run / "daemon.sock").stat().st_mode) == 0o600
        assert not (run / "token").exists()
        other = Daemon(tmp_path, found.server)
        other.socket = tmp_path / "never.sock"
        with pytest.raises(AssertionError, match="ended with 1"):
            await other.start()
        assert (await found.ask("GET", "/health")).status == 200


def test_a_daemon_that_was_killed_and_not_reaped_is_dead(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "OLLM_HOME": str(home)}
    killed = subprocess.Popen([sys.executable, "-m", "ollm", "daemon", "run"], env=environment, cwd="/")
    try:
        while not (home / "run" / "daemon.pid").exists():
            assert killed.poll() is None
            time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table of processes
        assert json.loads(ollm("daemon", "status", "--json", home=home).stdout)["running"] is False
        started = ollm("daemon", "start", home=home)
        assert started.returncode == 0, started.stderr
    finally:
        killed.wait()
        ollm("daemon", "stop", home=home)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(Home(root=tmp_path / "home"))


def test_the_directory_is_made_ours_alone(files: RunFiles) -> None:
    files.prepare()
    assert files.directory.stat().st_mode & 0o777 == 0o700
    files.directory.chmod(0o755)
    files.prepare()
    assert files.directory.stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_refused(files: RunFiles, tmp_path: Path) -> None:
    files.directory.parent.mkdir()
    files.directory.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="is not a directory of yours") as found:
        files.prepare()

    assert found.value.action == "Remove it, then try again."


def test_a_token_replaces_the_last_and_is_for_this_user_alone(files: RunFiles) -> None:
    files.prepare()
    files.write_token("first")
    files.token_file.chmod(0o644)
    files.write_token("second")

    assert files.token_file.read_text() == "second"
    assert files.token_file.stat().st_mode & 0o777 == 0o600


def test_a_daemon_is_running_while_it_holds_the_lock(files: RunFiles) -> None:
    files.prepare()
    assert files.find_running() is None
    me = DaemonProcess(pid=os.getpid(), started=get_process_start(os.getpid()) or 0.0, port=81)
    files.write_pid_file(me)
    assert files.pid_file.stat().st_mode & 0o777 == 0o600
    assert files.find_running() is None
    files.lock.touch()
    assert files.find_running() is None
    with files.lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert files.find_running() == me
        files.write_pid_file(DaemonProcess(pid=os.getpid(), started=1.0))
        assert files.find_running() is None
        files.pid_file.write_bytes(b"garbage")
        assert files.find_running() is None
