"""What a person is told of the copies in the team archive when they delete sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ollm.app.archive_process import ArchiveProcess
from ollm.store.team_archive.state import ArchiveState

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope


class ArchivedCopies:
    """Made before sessions are deleted, because what is known of their copies goes with them; asked afterwards."""

    def __init__(self, process: ProcessScope, ids: Sequence[str]) -> None:
        self._process = process
        with contextlib.closing(ArchiveState(process.home.archive_state, process.clock)) as state:
            sent = state.list_sent()
        self._owners = {name: sent[name].owner for name in ids if name in sent and sent[name].owner}
        self._has_own = any(name not in self._owners for name in ids)

    def explain_deletion(self) -> str:
        """What becomes of the copies, and have it done where sessions are sent without being asked for."""
        settings = self._process.settings.archive
        if not (settings.url or settings.url_env):
            return ""
        return (self._explain_own(settings.deletes) if self._has_own else "") + self._explain_others()

    def _explain_own(self, deletes: str) -> str:
        if deletes == "keep":
            return " Copies in the archive stay (archive.deletes: keep); `ollm archive forget ID` deletes one."
        shipping = ArchiveProcess(self._process)
        if shipping.is_wanted:
            shipping.wake()
            return " What you have of it in the archive is deleted too."
        return " The next `ollm archive push` deletes what you have of it in the archive."

    def _explain_others(self) -> str:
        if not self._owners:
            return ""
        if len(self._owners) > 1:
            return (
                f" {len(self._owners)} were copies of other people's sessions; those stay in the archive and in lists."
            )
        (owner,) = self._owners.values()
        return f" It was a copy: {owner}'s session stays in the archive and in lists; only {owner} can delete it there."
