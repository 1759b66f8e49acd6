"""What leaves this machine and what is written on it: the model server alone, and places of ours (H513-515)."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from bench.servers import InstantServer

from tests.cli.command import SCRIPT, ollm
from tests.covers import covers
from tests.ordinary_user import without_capabilities

WATCH = """
import os, sys
report = os.open(os.environ["WATCH_REPORT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        os.write(report, f"connect {arguments[1]}\\n".encode())
    elif event == "socket.getaddrinfo":
        os.write(report, f"resolve {arguments[0]}\\n".encode())
    elif event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        os.write(report, f"write {os.path.abspath(os.fsdecode(arguments[0]))}\\n".encode())
sys.addaudithook(watch)
"""


class Watched:
    """One `ollm -p` with an eye on its sockets and files."""

    def __init__(self, directory: Path, server: InstantServer) -> None:
        self.port = server.base_url.split(":")[2].split("/")[0]
        self.home, self.workspace, self.user = directory / "home", directory / "work", directory / "user"
        for path in (self.workspace, self.user, directory / "site"):
            path.mkdir()
        (directory / "site" / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "PYTHONPATH": str(directory / "site"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "WATCH_REPORT": str(directory / "report"),
            "OLLM_HOME": str(self.home),
            "OLLM_PROVIDER": "openai",
            "OLLM_BASE_URL": server.base_url,
            "OLLM_MODEL": "instant",
        }
        subprocess.run([SCRIPT, "-p", "hi"], env=environment, cwd=self.workspace, check=True, capture_output=True)
        self.lines = (directory / "report").read_text(encoding="utf-8").splitlines()

    def targets(self, verb: str) -> set[str]:
        return {line.partition(" ")[2] for line in self.lines if line.startswith(verb + " ")}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    with InstantServer() as server:
        return Watched(tmp_path, server)


@covers("H514", "H515")
def test_a_turn_talks_to_the_model_server_and_to_nobody_else(watched: Watched) -> None:
    assert watched.targets("connect") == {f"('127.0.0.1', {watched.port})"}
    assert watched.targets("resolve") <= {"127.0.0.1"}


@covers("H513")
def test_everything_that_is_kept_is_under_our_home_or_in_the_workspace(watched: Watched) -> None:
    ours = (str(watched.home), str(watched.workspace / ".ollm"), "/dev/", "/proc/")

    assert sorted(path for path in watched.targets("write") if not path.startswith(ours)) == []
    assert list(watched.user.iterdir()) == []


@covers("H628")
def test_the_doctor_shows_what_is_on_the_disk_by_part(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / "one.json").write_bytes(b"x" * 3_000_000)
    (home / "trash").mkdir()

    found = json.loads(ollm("doctor", "--json", home=home, cwd=tmp_path, OLLM_BASE_URL="http://127.0.0.1:9").stdout)

    assert {"name": "sessions", "bytes": 3_000_000} in found["disk"]
    assert found["log"] == str(home / "logs" / "ollm.log")


@covers("D366")
def test_variables_that_are_kept_back_are_logged_by_name_and_at_debug_level_only(tmp_path: Path) -> None:
    def logged(level: str) -> str:
        home = tmp_path / level
        ollm("env", "check", home=home, cwd=tmp_path, OLLM_LOG_LEVEL=level, MY_SECRET="value-of-it")
        log = home / "logs" / "ollm.log"
        return log.read_text(encoding="utf-8") if log.exists() else ""

    assert "MY_SECRET" in logged("DEBUG")
    assert "value-of-it" not in logged("DEBUG")
    assert "MY_SECRET" not in logged("INFO")


def test_from_its_first_request_on_an_agent_gives_its_environment_to_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        agent = subprocess.Popen(
            [SCRIPT, "-p", "hi", "--provider", "openai", "--model", "m", "--base-url", address],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "APP_PASSWORD": "sesame"},
            preexec_fn=without_capabilities,  # noqa: PLW1509 - no thread runs here
        )
        try:
            server.settimeout(60)
            server.accept()[0].close()
            reader = subprocess.run(
                ["cat", f"/proc/{agent.pid}/environ"], capture_output=True, preexec_fn=without_capabilities, check=False
            )
        finally:
            agent.kill()
            agent.wait()

    assert reader.returncode != 0
    assert b"sesame" not in reader.stdout
