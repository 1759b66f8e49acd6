"""The file that an export goes to: whether it can be written, and in which format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ollm.domain.errors import StorageError, UsageError
from ollm.system.atomic import replace_file

FORMATS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".json": "json"}


def check_target(target: Path, *, force: bool, otherwise: str) -> Path:
    """Return the target if an export can be written to it. `otherwise` says what to do if it exists."""
    try:
        is_folder, exists = target.is_dir(), target.exists()
    except OSError as error:  # The name is too long, for example.
        raise UsageError(
            f"Cannot write {target.name[:80]}: {error.strerror}.", action="Choose another name."
        ) from error
    if is_folder:
        raise UsageError(f"{target} is a directory.", action="Name a file inside it.")
    if exists and not force:
        raise UsageError(f"{target} already exists.", action=otherwise)
    if not target.parent.is_dir():
        raise UsageError(f"No such directory: {target.parent}.", action="Create it first, or choose another file.")
    return target


def check_output(output: str, *, force: bool) -> Path:
    """Check the target that a command names, which may also be a device or a pipe."""
    target = Path(output)
    return check_target(target, force=force or is_special(target), otherwise="Add --force to overwrite it.")


def choose_format(target: Path, otherwise: str = "Use .json, .md or .html.") -> str:
    """Return the format that the name of the file says. `otherwise` says what to do if it says none."""
    suffix = target.suffix.lower()
    if suffix in FORMATS or is_special(target):
        return FORMATS.get(suffix, "json")
    raise UsageError(f"Cannot tell the format from {str(target)!r}.", action=otherwise)


def is_special(target: Path) -> bool:
    """Return True for a device or a pipe, which is never replaced."""
    return target.exists() and not target.is_file()


def write_export(target: Path, chunks: Iterable[bytes], record: Path) -> None:
    """Write the chunks to the target, and remember in `record` where they went, so that a scrub can name the file."""
    try:
        if is_special(target):
            with target.open("wb") as file:
                file.writelines(chunks)
        else:
            replace_file(target, chunks)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error.strerror}.") from error
    with suppress(OSError):
        lines = record.read_bytes() if record.exists() else b""
        line = json.dumps(str(target.absolute())).encode() + b"\n"
        if line not in lines.splitlines(keepends=True):
            replace_file(record, lines + line)


def read_export_paths(record: Path) -> list[Path]:
    try:
        return [Path(json.loads(line)) for line in record.read_bytes().splitlines()]
    except (OSError, ValueError, TypeError):
        return []
