"""Runs the installed command as a person would, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SCRIPT = str(Path(sys.executable).parent / "ollm")


def ollm(
    *arguments: str, home: Path | None = None, cwd: Path | None = None, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """The finished process; its home is the one given, its environment ours plus `variables`."""
    environment: Mapping[str, str] = {**os.environ, **({"OLLM_HOME": str(home)} if home else {}), **variables}
    return subprocess.run(
        [SCRIPT, *arguments],
        env=environment,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
