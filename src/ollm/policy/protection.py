"""Paths that stay a question whatever rules, grants and approval levels say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import Access, Location
from ollm.system.paths import Boundary

_GLOB_CHARACTERS = frozenset("*?[")


class PathConcern(Data, frozen=True):
    """Why a path is asked about, or refused; `resolved` is what a yes would open."""

    decision: Literal["ask", "deny"]
    text: str
    error_type: str = "Denied"
    resolved: tuple[str, ...] = ()


def find_strictest_concern(boundary: Boundary, locations: Iterable[Location]) -> PathConcern | None:
    """The most serious thing to say about the places a call touches, with all the paths a yes would open."""
    concerns = [found for location in locations if (found := find_concern(boundary, location.target, location.access))]
    refused = next((found for found in concerns if found.decision == "deny"), None)
    if refused is not None or not concerns:
        return refused
    paths = tuple(dict.fromkeys(path for found in concerns for path in found.resolved))
    return PathConcern(decision="ask", text="; ".join(dict.fromkeys(found.text for found in concerns)), resolved=paths)


def find_concern(boundary: Boundary, target: str, access: Access) -> PathConcern | None:
    """What is to be said about one place. Reading outside and protected names ask; writing outside, and running a
    command there, is refused."""
    if "://" in target:
        return None
    try:
        judged = boundary.judge(target)
        fixed = judged if not _GLOB_CHARACTERS & set(target) else boundary.judge(_find_glob_base(target))
    except ToolFailure as failure:
        return PathConcern(decision="ask", text=str(failure))
    inside = judged.inside and fixed.inside
    reason = None if access == "run" else judged.read_protection if access == "read" else judged.write_protection
    if inside and reason is None:
        return None
    if access == "read" and boundary.is_readable(judged) and boundary.is_readable(fixed):
        return None
    if not inside:
        return _make_outside_concern(boundary, target, access, str(fixed.resolved))
    verb = "reading" if access == "read" else "writing"
    return PathConcern(decision="ask", text=f"{verb} {target}: {reason}", resolved=(str(judged.resolved),))


def _make_outside_concern(boundary: Boundary, target: str, access: Access, resolved: str) -> PathConcern:
    if access == "read":
        return PathConcern(decision="ask", text=f"{target} is outside the workspace", resolved=(resolved,))
    text = f"{target} is outside the workspace {boundary.workspace}; writing and running there is not allowed"
    return PathConcern(decision="deny", text=text, error_type="OutsideWorkspace")


def _find_glob_base(target: str) -> str:
    """The directory a pattern starts from."""
    kept = []
    for part in target.split("/"):
        if _GLOB_CHARACTERS & set(part):
            break
        kept.append(part)
    return "/".join(kept) or ("/" if target.startswith("/") else ".")
