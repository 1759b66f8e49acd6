"""Sessions of a workspace as the picker shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import parse_epoch_ms
from ollm.domain.session import ShownSession, arrange_forks


class SessionListItem(ShownSession, frozen=True, kw_only=True):
    """One session. `origin` says where it comes from if this folder was moved or copied."""

    updated_at: int  # The time is in epoch milliseconds.
    archived: bool = False
    messages: int | None = None
    last: str = ""
    preview: str = ""
    origin: str = ""
    one_shot: bool = False


class SessionList:
    """Sessions from the workspace's records, also of those that are open in the daemon. A workspace without records
    is left untouched."""

    def __init__(self, scope: WorkspaceScope) -> None:
        self._scope = scope

    def load_items(self) -> list[SessionListItem]:
        """Load all sessions, newest first, including archived ones. Forks are under their parents."""
        archived = load_archived_items(self._scope.process, self._scope.main)
        return sorted([*self._load_local(), *archived], key=lambda item: item.updated_at, reverse=True)

    def _load_local(self) -> list[SessionListItem]:
        if not self._has_sessions():
            return []
        context, items = self._scope.context, list[SessionListItem]()
        copied, one_shots = context.load_origins(), context.list_one_shot_ids()
        for record, count in context.list_counted_sessions():
            moved = f"moved from {record.workspace}" if context.is_former(record.workspace) else ""
            worktree = self._scope.name_worktree(record.workspace)
            one = SessionListItem(
                session_id=record.session_id,
                title=f"[{worktree}] {record.title}" if worktree else record.title,
                model=record.model,
                updated_at=record.updated_at,
                archived=record.status == "archived",
                messages=count,
                last=extract_last_words(record.recent_messages),
                preview=record.summary,
                origin=f"from {copied[record.session_id]}" if record.session_id in copied else moved,
                one_shot=record.session_id in one_shots,
                parent=record.parent,
            )
            items.append(one)
        return items

    def _has_sessions(self) -> bool:
        from ollm.store.workspace_place import ensure_workspace_directory

        process = self._scope.process
        if (ensure_workspace_directory(self._scope.main, process.home) / "memory.db").exists():
            return True
        return next(process.sessions_directory.glob("*.j*"), None) is not None

    def archive(self, session_id: str, archived: bool) -> None:
        self._scope.process.library.archive(session_id, archived)
        self._scope.database.set_status(session_id, "archived" if archived else "closed", 0)

    def delete(self, session_id: str) -> None:
        self._scope.process.library.delete(session_id)
        self._scope.database.erase(session_id)


async def put_waiting_first(process: ProcessScope, items: list[SessionListItem]) -> list[SessionListItem]:
    """Mark the sessions that wait for an answer in the daemon, and put them first."""
    if not (process.home.run / "daemon.sock").exists():
        return items
    from ollm.cli.daemon import find_working_sessions

    working = await find_working_sessions()
    asks = {session for session, questions in working.items() if questions}
    marked = [msgspec.structs.replace(one, title=f"? {one.title}") if one.session_id in asks else one for one in items]
    return sorted(marked, key=lambda one: one.session_id not in asks)


def load_archived_items(process: ProcessScope, workspace: Path) -> list[SessionListItem]:
    """Load the project's sessions that are only in the team archive. Choosing one downloads it."""
    if not process.home.archive_state.exists():
        return []
    from ollm.archive.listing import describe_place, list_workspace_rows

    return [
        SessionListItem(
            session_id=row["sessionId"],
            title=f"☁ {row['title'] or '(no title)'}",
            model=row["model"],
            updated_at=parse_epoch_ms(row["lastActivity"]),
            messages=row["messageCount"],
            origin=f"from the archive: {describe_place(row)}",
            one_shot=row["origin"] == "one-shot",
        )
        for row in list_workspace_rows(process, str(workspace))
    ]


def extract_last_words(messages: Sequence[dict[str, Any]]) -> str:
    """Return the last words of the person or the model on one line, without Markdown."""
    texts = (str(message.get("content") or "") for message in reversed(messages) if message.get("role") != "tool")
    return flatten_markdown(next((text for text in texts if text.strip()), ""))[:200]


def flatten_markdown(text: str) -> str:
    """Flatten Markdown to one line, without its formatting marks."""
    words = (line.strip().lstrip("#>*-| ") for line in text.splitlines())
    return " ".join(" ".join(words).replace("**", "").replace("`", "").replace("## ", "").split())


def filter_sessions(lines: Iterable[SessionListItem], typed: str) -> list[SessionListItem]:
    words = typed.casefold().split()
    texts = {
        line: f"{line.title} {line.model} {line.last} {line.session_id} {line.origin}".casefold() for line in lines
    }
    return arrange_forks(line for line, text in texts.items() if all(word in text for word in words))
