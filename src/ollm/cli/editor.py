"""A file in the person's own editor."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ollm.domain.errors import OllmError, UsageError

EDITORS = ("nano", "vim", "vi")  # tried in this order where none is named


def edit_file(path: Path, environment: Mapping[str, str]) -> None:
    """Open it and wait; a file that is not there is made, for this person alone."""
    from ollm.system.atomic import make_private_directory

    command = shlex.split(find_editor(environment))
    make_private_directory(path.parent)
    path.touch(mode=0o600)
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise UsageError(f"Cannot run {command[0]}: {error.strerror}.", action="Set EDITOR to your editor.") from error
    if code:
        raise OllmError(f"{command[0]} ended with code {code}.")


def find_editor(environment: Mapping[str, str]) -> str:
    """The command of the editor: what VISUAL or EDITOR says, else the first one that is installed."""
    named = environment.get("VISUAL") or environment.get("EDITOR")
    found = named or next((name for name in EDITORS if shutil.which(name)), "")
    if not found.strip():
        raise UsageError("No editor found.", action="Set EDITOR to your editor.")
    return found
