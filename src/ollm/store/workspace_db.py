"""`memory.db` of a workspace: the records of its sessions (W: `chat_sessions`), episodes, identity."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import make_id
from ollm.domain.session import ChatSession, Episode, PlanState, PlanStep, SessionStatus
from ollm.store.database import WORKSPACE_MIGRATIONS, Database

if TYPE_CHECKING:
    import sqlite3
    from contextlib import AbstractContextManager

SESSION_COLUMNS = (
    "session_id, title, model, status, created_at, updated_at, summary, recent_messages, plan_steps,"
    " current_step_index, awaiting_continuation, paused"
)
UPSERT = f"INSERT OR REPLACE INTO chat_sessions ({SESSION_COLUMNS}) VALUES ({', '.join('?' * 12)})"  # noqa: S608 - our own names


class WorkspaceDatabase:
    """Records that several processes may use at once. The archive is authoritative: they can be rebuilt from it."""

    def __init__(self, directory: Path, shared: Database | None = None) -> None:
        self.database = shared or Database(directory / "memory.db", WORKSPACE_MIGRATIONS)

    @property
    def directory(self) -> Path:
        return self.database.path.parent

    def close(self) -> None:
        self.database.close()

    def begin_transaction(self) -> AbstractContextManager[object]:
        """Write everything inside as one transaction, with one wait for the disk."""
        return self.database.begin_write()

    def list_sessions(self) -> list[ChatSession]:
        """List all records, newest first."""
        order = "ORDER BY updated_at DESC, session_id"
        query = f"SELECT {SESSION_COLUMNS} FROM chat_sessions {order}"  # noqa: S608 - constants
        return [*map(make_session, self.database.fetch(query))]

    def get_session(self, session_id: str) -> ChatSession | None:
        query = f"SELECT {SESSION_COLUMNS} FROM chat_sessions WHERE session_id = ?"  # noqa: S608
        return next(map(make_session, self.database.fetch(query, session_id)), None)

    def put_session(self, session: ChatSession) -> None:
        self.database.write(UPSERT, *session_to_columns(session))

    def set_status(self, session_id: str, status: SessionStatus, updated_at: int) -> bool:
        query = "UPDATE chat_sessions SET status = ?, updated_at = max(updated_at, ?) WHERE session_id = ?"
        return self.database.write(query, status, updated_at, session_id).rowcount > 0

    def add_episodes(self, episodes: Iterable[Episode]) -> None:
        with self.database.begin_write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO episodes VALUES (?, ?, ?, ?)",
                (
                    (found.session_id, found.number, found.timestamp, msgspec.json.encode(found).decode())
                    for found in episodes
                ),
            )

    def list_episodes(self, session_id: str, newest: int = 200) -> list[Episode]:
        """List the newest episodes, oldest first."""
        query = "SELECT body FROM episodes WHERE session_id = ? ORDER BY number DESC LIMIT ?"
        decoded = (
            decode_column(row["body"], Episode) for row in reversed(self.database.fetch(query, session_id, newest))
        )
        return [episode for episode in decoded if episode]

    def save_context(self, session_id: str, body: bytes) -> None:
        """Save the active context at the end of a turn, so that a resume can send exactly that."""
        self.database.write("INSERT OR REPLACE INTO active_contexts VALUES (?, ?)", session_id, body.decode())

    def load_context(self, session_id: str) -> bytes | None:
        found = self.database.fetch("SELECT body FROM active_contexts WHERE session_id = ?", session_id)
        return found[0]["body"].encode() if found else None

    def erase(self, session_id: str) -> None:
        """Erase every trace of a session; SQLite overwrites deleted data."""
        with self.database.begin_write() as connection:
            for table in ("chat_sessions", "episodes", "active_contexts", "todos"):
                connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608

    def get_fact(self, name: str) -> str | None:
        found = self.database.fetch("SELECT value FROM identity WHERE name = ?", name)
        return os.fsdecode(found[0]["value"]) if found else None

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact. One that is not ASCII, such as a path in any encoding, is stored as bytes."""
        kept = value if value.isascii() else os.fsencode(value)
        self.database.write("INSERT OR REPLACE INTO identity VALUES (?, ?)", name, kept)

    def get_or_create_id(self) -> str:
        """Return the workspace's own id, creating it on the first call."""
        with self.database.begin_write() as connection:
            connection.execute("INSERT OR IGNORE INTO identity VALUES ('id', ?)", (make_id(),))
            return str(connection.execute("SELECT value FROM identity WHERE name = 'id'").fetchone()["value"])


def session_to_columns(session: ChatSession) -> tuple[Any, ...]:
    plan = session.plan
    return (
        session.session_id,
        session.title,
        session.model,
        session.status,
        session.created_at,
        session.updated_at,
        session.summary,
        msgspec.json.encode(session.recent_messages).decode(),
        msgspec.json.encode(plan.steps).decode(),
        plan.current_step_index,
        int(plan.awaiting_continuation),
        int(plan.paused),
    )


def decode_column(text: str | None, type: Any) -> Any:  # noqa: A002 - as msgspec calls it
    """Decode a stored value, or return an empty one if it is unreadable, since the archive has all of it."""
    try:
        return msgspec.json.decode(text or "[]", type=type)
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        return ()


def make_session(row: sqlite3.Row) -> ChatSession:
    return ChatSession(
        session_id=row["session_id"],
        title=row["title"] or "",
        model=row["model"] or "",
        status=row["status"] or "closed",
        created_at=row["created_at"] or 0,
        updated_at=row["updated_at"] or 0,
        summary=row["summary"] or "",
        recent_messages=decode_column(row["recent_messages"], tuple[dict[str, Any], ...]),
        plan=PlanState(
            steps=decode_column(row["plan_steps"], tuple[PlanStep, ...]),
            current_step_index=row["current_step_index"] or 0,
            awaiting_continuation=bool(row["awaiting_continuation"]),
            paused=bool(row["paused"]),
        ),
    )
