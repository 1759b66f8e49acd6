"""Which session a conversation is to go on with, as its options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.app.storage import Storage
from ollm.domain.errors import NotFoundError
from ollm.domain.lazy import Lazy

if TYPE_CHECKING:
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext


def find_wanted_session(storage: Storage, sessions: Lazy[WorkspaceContext]) -> str | None:
    """The id of the session to resume; None for a new one."""
    options, files = storage.options, storage.process.session_files
    if options.session:
        return find_named_session(storage, options.session)
    if not options.newest:
        return None
    unarchived = [found for found in sessions.get().list_sessions() if found.status != "archived"]
    if options.beside:
        unarchived = [found for found in unarchived if not files.is_open(found.session_id)]
    if options.interactive and unarchived:
        one_shots = sessions.get().list_one_shot_ids()
        unarchived = [found for found in unarchived if found.session_id not in one_shots] or unarchived
    if not unarchived:
        storage.notices.append("No session in this workspace yet; starting a new one.")
        report_unused_memory(storage)
    return unarchived[0].session_id if unarchived else None


def find_named_session(storage: Storage, prefix: str) -> str:
    """The session of this id, here or in the team archive."""
    try:
        return storage.process.session_files.places.find(prefix)
    except NotFoundError:
        from ollm.app.archived_sessions import pull_when_archived

        if pulled := pull_when_archived(storage.process, prefix, storage.scope.path):
            return pulled
        raise


def report_unused_memory(storage: Storage) -> None:
    """A folder that was moved or came from elsewhere brings its memory along: say why it does not count."""
    from ollm.store.workspace_place import find_untrusted_memory

    if found := find_untrusted_memory(storage.scope.path, storage.process.home):
        storage.notices.append(
            f"{found} came with this folder and is not used. If the folder is yours (moved, say), run `ollm trust`."
        )
