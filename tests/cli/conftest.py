"""What tests of the command line share."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.policy.samples import RULES


@pytest.fixture
def inside(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    return Inside(tmp_path, capsys, monkeypatch)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace `work` with a file of rules in it."""
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a scripted server of the kind that the test names, in a process of its own."""
    command = [sys.executable, "-m", f"tests.servers.{request.param}", "--model", "qwen3:8b"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
