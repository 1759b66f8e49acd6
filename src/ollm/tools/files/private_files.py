"""What reading many files at once leaves out: files that a person would have to be asked about."""

from __future__ import annotations

from pathlib import Path

from ollm.system.paths import explain_read_protection, is_environment_file
from ollm.tools.framework.base import ToolContext


def drop_private_files(context: ToolContext, root: Path, paths: list[str]) -> list[str]:
    """Those of the paths below a root that may be read without asking."""
    places = context.boundary.places
    if any(place and place.is_relative_to(root) for place in (places.user_home, places.ollm_home)):
        return [path for path in paths if explain_read_protection(root / path, places) is None]
    if _is_harmless("\0".join(paths)):
        return paths
    return [path for path in paths if not _may_hold_secrets(path)]


def describe_skipped(count: int) -> str:
    files = "1 file that may contain secrets (.env and the like) was"
    if count > 1:
        files = f"{count:,} files that may contain secrets (.env and the like) were"
    return f"{files} skipped; name one to read it"


def _may_hold_secrets(path: str) -> bool:
    return not _is_harmless(path) and any(is_environment_file(part) for part in path.split("/"))


def _is_harmless(text: str) -> bool:
    """Whether no name in it can be one of those, seen at a glance: for one path, or for all of them together."""
    return text.isascii() and ".env" not in text.lower()
