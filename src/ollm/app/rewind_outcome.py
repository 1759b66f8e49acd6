"""What came of going back or forward in a session that is not open: for the shell and the daemon alike."""

from __future__ import annotations

from typing import Any, Literal

from ollm.domain.struct import Data

NOTHING: dict[str, Any] = {"files": [], "skipped": []}


class RewindOutcome(Data, frozen=True):
    """What was done, or would be; `text` says it to a person."""

    session_id: str
    message_id: int
    what: Literal["talk", "files", "both"]
    dry_run: bool
    files: list[dict[str, str]]
    skipped: list[dict[str, str]]
    text: str
