"""Files that a message names with `@`."""

from __future__ import annotations

import re
from pathlib import Path

_MENTION = re.compile(r'(?:^|(?<=[\s(]))@(?:"([^"\n]+)"|([^\s@"]+))')


def find_mentions(text: str, workspace: Path) -> list[str]:
    """The names after each `@`, once each; whether they are files is not said."""
    found = dict.fromkeys(_MENTION.findall(text)) if "@" in text else {}
    return list(dict.fromkeys(quoted or strip_punctuation(bare, workspace) for quoted, bare in found))


def strip_punctuation(bare: str, workspace: Path) -> str:
    """A name at the end of a sentence goes without its full stop, unless there is such a file."""
    return bare if is_there(workspace / bare) else bare.rstrip(".,;:)!?")


def looks_like_path(name: str) -> bool:
    """Whether a name that is no file was meant as one: `@src/a.py` was, `@alice` was not."""
    return "/" in name or "." in name.strip(".")


def is_there(path: Path) -> bool:
    """A name that no file can have is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
