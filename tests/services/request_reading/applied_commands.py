"""Runs a command that was read from a request, so that a test judges the file it leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path


def apply_command(folder: Path, path: str, text: str, command: str) -> str:
    """The file after the command, or after the one that a step names."""
    (folder / path).write_text(text)
    named = command.partition("Now run ")[2].removesuffix(".")
    subprocess.run(["sh", "-c", named or command], cwd=folder, check=True)
    return (folder / path).read_text()
