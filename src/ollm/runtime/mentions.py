"""Files that a message names with `@`."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import PICTURE_TYPES, ImagePart
from ollm.domain.text import suggest_names
from ollm.runtime.base import Attachment
from ollm.system.paths import join_path
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.system.paths import Boundary

MAX_TEXT_BYTES = 200_000
MAX_PICTURE_BYTES = 10_000_000

MAX_NEIGHBOURS = 2_000  # A mistyped name is compared with at most this many names.
_MENTION = re.compile(r'(?:^|(?<=[\s(]))@(?:"([^"\n]+)"|([^\s@"]+)(?=(\S*)))')


def find_mentions(text: str, workspace: Path) -> list[str]:
    """Return the unique names after each `@`, whether or not they are files."""
    found = dict.fromkeys(_MENTION.findall(text)) if "@" in text else {}
    return list(dict.fromkeys(quoted or choose_name(bare, rest, workspace) for quoted, bare, rest in found))


def choose_name(bare: str, rest: str, workspace: Path) -> str:
    """End the name before a quote or another `@`, unless a file has the whole name."""
    whole = strip_punctuation(bare + rest, workspace)
    return whole if rest and locate(whole, workspace) else strip_punctuation(bare, workspace)


def strip_punctuation(bare: str, workspace: Path) -> str:
    """Strip punctuation from the end of a name, unless a file has that exact name."""
    return bare if locate(bare, workspace) else bare.rstrip(".,;:)!?")


def looks_like_path(name: str) -> bool:
    """Return True if a name has the form of a path: `@src/a.py` does, `@alice` does not."""
    return "/" in name or "." in name.strip(".")


def describe_missing(name: str, workspace: Path) -> str:
    """Describe a missing file. Return "" for a word that resembles no file, such as `@alice`."""
    near = suggest_neighbour(name, workspace)
    if near:
        return f"no such file; did you mean @{near}?"
    return "no such file" if looks_like_path(name) else ""


def suggest_neighbour(name: str, workspace: Path) -> str:
    """Return the closest file or directory name in the named directory, or "" if none is close."""
    folder, _, last = name.rpartition("/")
    place = workspace / folder
    try:
        inside = place.resolve().is_relative_to(workspace.resolve())
        with os.scandir(place) as entries:
            names = [entry.name for entry in islice(entries, MAX_NEIGHBOURS)] if inside and last else []
    except (OSError, ValueError):
        return ""
    seen = [other for other in names if other.isprintable() and other.startswith(".") == last.startswith(".")]
    near = suggest_names(last, seen)
    return f"{folder}/{near[0]}" if near and folder else near[0] if near else ""


def locate(name: str, workspace: Path) -> Path | None:
    """Find an existing path by a name as tools show it. Returns None for an invalid name too."""
    try:
        path = Path(join_path(str(Path(name).expanduser()), workspace))
        return path if path.exists() else None
    except (ToolFailure, OSError, ValueError, RuntimeError):
        return None


def attach_file(name: str, boundary: Boundary) -> list[Attachment]:
    """Attach a text or image from the workspace. Return [] for other files and files that need permission."""
    try:
        with boundary.open_file(name) as file:
            return [read_attachment(name, file)]
    except (ToolFailure, OSError, ValueError):
        return []


def read_attachment(name: str, file: BinaryIO) -> Attachment:
    """Read a text or an image. Raises ValueError for another kind of file."""
    from ollm.tools.files.file_text import find_media_type

    content = file.read(MAX_TEXT_BYTES + 1)
    if (kind := find_media_type(content)) in PICTURE_TYPES:
        content += file.read(MAX_PICTURE_BYTES + 1 - len(content))
        if len(content) > MAX_PICTURE_BYTES:
            raise ValueError("the image is larger than 10 MB")
        return Attachment(name=name, image=ImagePart(media_type=kind, data=base64.b64encode(content).decode()))
    if b"\0" in content[:8192]:
        raise ValueError("not a text file")
    return make_text_attachment(name, content)


def make_text_attachment(name: str, content: bytes) -> Attachment:
    cut = " (truncated)" if len(content) > MAX_TEXT_BYTES else ""
    return Attachment(name=f"{name}{cut}", text=content[:MAX_TEXT_BYTES].decode("utf-8", "replace"))


def describe_missing_files(names: Iterable[str], workspace: Path) -> list[str]:
    """Describe the names that are not files, except words like `@alice`."""
    gone = [name for name in names if not locate(name, workspace)]
    said = [(name, describe_missing(name, workspace)) for name in gone]
    return [f"@{make_printable(name[:200])} was not attached: {why}" for name, why in said if why]
