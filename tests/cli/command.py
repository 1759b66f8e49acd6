"""Runs the installed command as a person would, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cli.forked import finish

SCRIPT = str(Path(sys.executable).parent / "ollm")


def ollm(
    *arguments: str, home: Path | None = None, cwd: Path | None = None, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """The finished process; its home is the one given, its environment ours plus `variables`."""
    environment: Mapping[str, str] = {**os.environ, **({"OLLM_HOME": str(home)} if home else {}), **variables}
    code, out, err = finish(arguments, cwd, environment, stdin.encode(), seconds=120)
    return subprocess.CompletedProcess([SCRIPT, *arguments], code, _read_text(out), _read_text(err))


def _read_text(data: bytes) -> str:
    """As a stream in text mode reads it: every end of a line is a newline."""
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")
