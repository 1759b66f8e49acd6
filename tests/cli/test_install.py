"""What a stranger installs, and forks of the command."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, ollm
from tests.cli.forked import finish
from tests.cli.running import running
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer
from tests.sizes import SOAK

ROOT = Path(__file__).parents[2]

UV = Path(sys.executable).parent / "uv"


def run(*words: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(archive: Path, place: Path) -> Path:
    """The command, in a new environment that has nothing but it and what it needs."""
    run(UV, "venv", "-q", "--python", sys.executable, place, cwd=ROOT)
    run(UV, "pip", "install", "-q", "--python", place / "bin" / "python", archive, cwd=ROOT)
    return place / "bin" / "ollm"


@pytest.mark.skipif(not SOAK, reason="downloads the dependencies: make soak")
async def test_the_wheel_and_the_source_archive_install_and_answer(tmp_path: Path) -> None:
    run(UV, "build", "-q", "--python", sys.executable, "--out-dir", tmp_path / "dist", cwd=ROOT)
    (wheel,), (source,) = (tmp_path / "dist").glob("*.whl"), (tmp_path / "dist").glob("*.tar.gz")
    workspace = tmp_path / "project"
    workspace.mkdir()
    async with ScriptedServer(["From the wheel.", "From the source archive."]) as server:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "OLLM_PROVIDER": "openai",
            "OLLM_BASE_URL": server.base_url,
            "OLLM_MODEL": "scripted",
        }
        for archive, answer in ((wheel, "From the wheel."), (source, "From the source archive.")):
            command = await asyncio.to_thread(install, archive, tmp_path / archive.suffix.strip("."))

            version = await asyncio.to_thread(run, command, "--version", cwd=workspace, environment=environment)
            said = await asyncio.to_thread(run, command, "-p", "hi", cwd=workspace, environment=environment)
            help_text = await asyncio.to_thread(run, command, "--help", cwd=workspace, environment=environment)

            assert version.startswith("ollm ")
            assert said == f"{answer}\n"
            assert "doctor" in help_text


@pytest.mark.parametrize(
    ("line", "stdin"),
    [
        (["--version"], b""),
        (["sessions", "view", "nowhere"], b""),
        (["redact"], b"password=hunter22 caf\xc3\xa9\r\n\xff"),
        (["redact"], b"much text, " * 50_000),
        (["confg"], None),
        (["env", "--json"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_ends_and_prints_as_the_script_does(tmp_path: Path, line: list[str], stdin: bytes | None) -> None:
    environment = {**os.environ, "OLLM_HOME": str(tmp_path / "home"), "MY_TOKEN": "x"}
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    script = subprocess.run(  # type: ignore[call-overload]
        [SCRIPT, *line], env=environment, cwd=tmp_path, capture_output=True, check=False, **given
    )

    assert finish(line, tmp_path, environment, stdin) == (script.returncode, script.stdout, script.stderr)


def test_what_an_interpreter_reads_when_it_starts_is_read(tmp_path: Path) -> None:
    done = ollm("--version", home=tmp_path, PYTHONPROFILEIMPORTTIME="1")

    assert "import time:" in done.stderr


async def test_many_run_at_once_each_with_its_own_text(tmp_path: Path) -> None:
    async with running(tmp_path, lambda request: Answer(text=request.body["messages"][-1]["content"])) as runner:
        ended = await asyncio.gather(*(runner.run("-p", f"number {number}") for number in range(8)))

    assert [done.out for done in ended] == [f"number {number}\n" for number in range(8)]
