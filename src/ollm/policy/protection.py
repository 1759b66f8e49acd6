"""Paths that stay a question whatever rules, grants and approval levels say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import Access, Location
from ollm.system.paths import Boundary

_GLOB = frozenset("*?[")


class Concern(Data, frozen=True):
    """Why a path is asked about, or refused; `resolved` is what a yes would open."""

    decision: Literal["ask", "deny"]
    text: str
    error_type: str = "Denied"
    resolved: tuple[str, ...] = ()


def strictest_concern(boundary: Boundary, locations: Iterable[Location]) -> Concern | None:
    """The most serious thing to say about the places a call touches, with all the paths a yes would open."""
    concerns = [found for location in locations if (found := concern(boundary, location.target, location.access))]
    refused = next((found for found in concerns if found.decision == "deny"), None)
    if refused is not None or not concerns:
        return refused
    paths = tuple(dict.fromkeys(path for found in concerns for path in found.resolved))
    return Concern(decision="ask", text="; ".join(dict.fromkeys(found.text for found in concerns)), resolved=paths)


def concern(boundary: Boundary, target: str, access: Access) -> Concern | None:
    """What is to be said about one place. Reading outside and protected names ask; writing outside, and running a
    command there, is refused."""
    if "://" in target:
        return None
    try:
        judged = boundary.judge(target)
        fixed = judged if not _GLOB & set(target) else boundary.judge(_before_glob(target))
    except ToolFailure as failure:
        return Concern(decision="ask", text=str(failure))
    if not (judged.inside and fixed.inside):
        return _outside(boundary, target, access, str(fixed.resolved))
    reason = judged.protected_reading if access == "read" else judged.protected_writing
    if reason is None or access == "run":
        return None
    verb = "reading" if access == "read" else "writing"
    return Concern(decision="ask", text=f"{verb} {target}: {reason}", resolved=(str(judged.resolved),))


def _outside(boundary: Boundary, target: str, access: Access, resolved: str) -> Concern:
    if access == "read":
        return Concern(decision="ask", text=f"{target} is outside the workspace", resolved=(resolved,))
    text = f"{target} is outside the workspace {boundary.workspace}; nothing is written or run there"
    return Concern(decision="deny", text=text, error_type="OutsideWorkspace")


def _before_glob(target: str) -> str:
    """The directory a pattern starts from."""
    kept = []
    for part in target.split("/"):
        if _GLOB & set(part):
            break
        kept.append(part)
    return "/".join(kept) or ("/" if target.startswith("/") else ".")
