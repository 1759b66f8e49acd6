"""The shipper process as the rest of the program sees it: started when there is something to send, never waited for."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ollm.archive.state import ArchiveState
from ollm.domain.errors import BusyError
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.locks import read_owner

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.archive.host import ArchiveHost

CHECK_TIMEOUT_SECONDS = 4.0
COMMAND = (sys.executable, "-m", "ollm", "archive")
HELD_EXIT_CODE = 5  # The command `archive status ID` exits so if another machine has the session.
LOCK_NAME, WAKE_NAME, TROUBLE_NAME = "archive.lock", "archive.wake", "archive.trouble"
ANNOUNCED_NAME = "archive.announced"


class ArchiveProcess:
    """Control of a home's shipper: start it, wake it, and read its messages."""

    def __init__(self, process: ArchiveHost) -> None:
        self._process = process
        self._run = process.home.run
        self._looked = False

    @property
    def is_wanted(self) -> bool:
        """True if the settings send sessions automatically."""
        return self._process.settings.archive.is_pushed

    def wake(self, *, keeper: int | None = None) -> None:
        """Start the shipper, or make it check again. With `keeper` it stays as long as that process lives."""
        make_private_directory(self._run)
        (self._run / WAKE_NAME).write_text(str(keeper or ""), encoding="ascii")
        if read_owner(self._run / LOCK_NAME) is None:
            words = ["push", "--watch", *(["--keeper", str(keeper)] if keeper else [])]
            nothing = subprocess.DEVNULL
            subprocess.Popen([*COMMAND, *words], stdout=nothing, stderr=nothing, start_new_session=True, **self._place)

    @property
    def _place(self) -> dict[str, Any]:
        """Options for every archive process: no standard input, and `/` as working directory."""
        return {"stdin": subprocess.DEVNULL, "cwd": "/", "env": dict(self._process.environment)}

    def pull(self, session_id: str, workspace: Path) -> None:
        """Pull a session from the archive into a workspace. Raises BusyError with that process's error message."""
        words = ["pull", session_id, "--workspace", str(workspace)]
        done = subprocess.run([*COMMAND, *words], capture_output=True, check=False, **self._place)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").removeprefix("ollm: ").strip()
            message, _, action = said.partition("\n")
            raise BusyError(message, action=action.strip())

    def take_trouble(self) -> str:
        """Return the shipper's message and delete it, or return "" if there is none."""
        path = self._run / TROUBLE_NAME
        if not path.exists():
            return ""
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        path.unlink(missing_ok=True)
        return text

    def tell(self, text: str) -> None:
        """Show a message at the end of the next turn."""
        make_private_directory(self._run)
        replace_file(self._run / TROUBLE_NAME, text.encode(), durable=False)

    def announce(self) -> str:
        """Describe what will be sent, or return "" if this home has used an archive this way before."""
        marker, way = self._run / ANNOUNCED_NAME, self._describe_way()
        if self._looked or (marker.exists() and marker.read_text(encoding="ascii", errors="replace") == way):
            return ""
        self._looked = True
        from ollm.archive.team_archive import TeamArchive

        archive = TeamArchive(self._process)
        try:
            text = archive.announce()
            if archive.is_announced:
                make_private_directory(self._run)
                marker.write_text(way, encoding="ascii")
            return text
        finally:
            archive.close()

    def _describe_way(self) -> str:
        import hashlib

        settings = self._process.settings.archive
        text = f"{settings.url}|{settings.url_env}|{settings.owner}|{settings.redact}"
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    async def require_lease(self, session_id: str, *, force: bool) -> None:
        """Raise BusyError if another machine is continuing the session, or has continued it since. A server that
        does not answer in time does not block the session. The lease is taken only if sessions are sent
        automatically, because otherwise no process would renew it."""
        if not self._process.home.archive_state.exists() or (force and not self.is_wanted):
            return
        words = ["status", session_id, *(["--take"] if self.is_wanted else []), *(["--force"] if force else [])]
        child = await asyncio.create_subprocess_exec(
            *COMMAND, *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **self._place
        )
        try:
            out, _ = await asyncio.wait_for(child.communicate(), CHECK_TIMEOUT_SECONDS)
        except TimeoutError:
            child.kill()
            await child.wait()
            return
        if child.returncode == HELD_EXIT_CODE:
            raise BusyError(out.decode("utf-8", "replace").strip())


class ArchivedCopies:
    """Explanation of what a deletion means for archived copies. Create it before the deletion, use it after."""

    def __init__(self, process: ArchiveHost, ids: Sequence[str]) -> None:
        self._process = process
        with contextlib.closing(ArchiveState(process.home.archive_state, process.clock)) as state:
            sent = state.list_sent()
        self._owners = {name: sent[name].owner for name in ids if name in sent and sent[name].owner}
        self._has_own = any(name not in self._owners for name in ids)

    def explain_deletion(self) -> str:
        """Explain what happens to the copies, and wake the shipper if sessions are sent automatically."""
        settings = self._process.settings.archive
        if not settings.is_set:
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
