"""What a person is told of the copies in the team archive when they delete a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.app.archive_process import ArchiveProcess

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope


def explain_deletion(process: ProcessScope) -> str:
    """What becomes of the archived copies, and have it done where sessions are sent without being asked for."""
    settings = process.settings.archive
    if not (settings.url or settings.url_env):
        return ""
    if settings.deletes == "keep":
        return " Copies in the archive stay (archive.deletes: keep); `ollm archive forget ID` deletes one."
    shipping = ArchiveProcess(process)
    if shipping.is_wanted:
        shipping.wake()
        return " It is deleted from the archive too."
    return " The next `ollm archive push` deletes it from the archive too."
