"""Helper programs of our own, judged by what they could change, read and reach."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from ollm.system.sandbox.confined import make_helper_environment, start_confined
from tests.ordinary_user import as_ordinary_user

SECRET = "canary-c0f1"


def run_confined(line: str, *readable: Path) -> str:
    command = ["/bin/bash", "-c", line]

    def start() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    return start_confined(start, "bash", map(str, readable)).stdout


def furnish(root: Path) -> Path:
    home = root / "home"
    for path, text in {
        ".ssh/id_rsa": SECRET,
        "notes": "notes",
        "sub/file": "text",
        ".config/gh/hosts.yml": SECRET,
    }.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    return home


def test_a_helper_reads_and_changes_nothing() -> None:
    def body(root: Path) -> None:
        home = furnish(root)
        lines = (
            f"cat {home}/notes {home}/sub/file; echo; echo x > {home}/notes; echo x > {home}/new; chmod 777 {home}/notes; "
            f"touch {home}/sub/file; mv {home}/sub {home}/gone; ln -s x {home}/link; truncate -s 0 {home}/notes; "
            f"mkdir {home}/d; rm -rf {home}/sub; echo x > /dev/null && echo still"
        )
        before = sorted((str(path), path.stat().st_mode, path.stat().st_mtime_ns) for path in home.rglob("*"))

        said = run_confined(lines)

        assert said == "\nstill\n", "helpers see what is named"
        assert sorted((str(path), path.stat().st_mode, path.stat().st_mtime_ns) for path in home.rglob("*")) == before

    as_ordinary_user(body)


def test_a_helper_does_not_cut_a_file_that_it_opens_to_read(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    for mode in range(4):
        code = f"import os; os.open('{kept}', 0); print('read'); os.open('{kept}', {mode} | os.O_TRUNC)"
        assert run_confined(f'{sys.executable} -I -S -c "{code}"', tmp_path) == "read\n"
        assert kept.read_text() == "kept"


def test_a_helper_reads_what_is_named_and_the_system_alone() -> None:
    def body(root: Path) -> None:
        home = furnish(root)

        said = run_confined(f"cat {home}/notes {home}/sub/file; ls {home}; cat /etc/passwd", home / "sub")

        assert said == "text"

    as_ordinary_user(body)


def test_a_helper_in_a_folder_of_its_own_finds_its_libraries(tmp_path: Path) -> None:
    for name in ("tool/bin/helper", "tool/lib/part", "tool/etc/login"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'#!/bin/sh\ncat "{tmp_path}/tool/lib/part" "{tmp_path}/tool/etc/login" | wc -l\n')
    helper = tmp_path / "tool/bin/helper"
    helper.chmod(0o700)

    ran = start_confined(lambda: subprocess.run([helper], capture_output=True, text=True, check=False), str(helper))

    assert ran.stdout == "2\n"


def test_a_helper_does_not_see_the_secrets_of_the_home() -> None:
    def body(root: Path) -> None:
        home = furnish(root)
        (home / "sub" / "way").symlink_to(home / ".ssh" / "id_rsa")

        said = run_confined(f"cat {home}/.ssh/id_rsa {home}/.config/gh/hosts.yml {home}/sub/way; ls -R {home}/.ssh")

        assert said == ""
        assert run_confined(f"cat {home}/.ssh/id_rsa", home / ".ssh") == SECRET  # a search that was approved

    as_ordinary_user(body)


def test_a_helper_reaches_no_network_and_no_process() -> None:
    def body(_root: Path) -> None:
        bystander = subprocess.Popen(["sleep", "1000"])
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            port = server.getsockname()[1]
            run_confined(f"echo x > /dev/tcp/127.0.0.1/{port}; kill -9 {bystander.pid}; unshare -Ur true && echo")
            try:
                server.accept()
                reached = True
            except BlockingIOError:
                reached = False
        assert not reached
        assert bystander.poll() is None
        bystander.kill()
        bystander.wait()

    as_ordinary_user(body)


def test_the_agent_itself_stays_free(tmp_path: Path) -> None:
    run_confined("true")

    (tmp_path / "written").write_text("x")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
    assert (tmp_path / "written").read_text() == "x"


def test_what_fails_to_start_is_told() -> None:
    try:
        start_confined(lambda: subprocess.run(["/no/such/program"], check=False), "/no/such/program")
    except FileNotFoundError:
        return
    raise AssertionError("nothing was raised")


def test_a_helper_is_told_no_secret() -> None:
    given = make_helper_environment(
        {**os.environ, "PATH": "/bin", "API_KEY": SECRET, "BASH_ENV": "/x", "LD_PRELOAD": "x"}
    )

    assert given["PATH"] == "/bin"
    assert not {"API_KEY", "BASH_ENV", "LD_PRELOAD"} & given.keys()


def test_our_own_interpreter_runs_wherever_it_is_installed() -> None:
    code = "import ollm.system.path_names; print('ran')"
    command = [sys.executable, "-c", code]

    def start() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/usr")

    assert start_confined(start, sys.executable).stdout == "ran\n"
