"""The agent's own notes (T11): values by key and a todo list, in SQLite, shared by any number of processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ollm.domain.clock import Clock, now, to_epoch_ms
from ollm.domain.lazy import Lazy
from ollm.domain.tools import Todo
from ollm.store.workspace_place import PERSONAL_MARK

if TYPE_CHECKING:
    from ollm.store.database import Database

PERSONAL_PREFIX = "note-"  # Every session's prompt contains the user's own notes.


class NoteStore:
    """Store of notes, whose values are JSON texts. The database is opened on first use."""

    def __init__(self, find_database: Callable[[], Database], *, clock: Clock = now) -> None:
        self._lazy = Lazy(find_database)
        self._clock = clock
        self.get_todo_owner: Callable[[], str] = lambda: ""

    def set(self, key: str, value: str) -> None:
        """Store a value, replacing any under the same key."""
        self._database.write(
            "INSERT INTO memory (key, value, updated_at) VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
            key,
            value,
            to_epoch_ms(self._clock()),
        )
        if key.startswith(PERSONAL_PREFIX):
            self._database.path.with_name(PERSONAL_MARK).touch(mode=0o600)

    def list_personal(self) -> list[tuple[str, str]]:
        """List the keys and texts of the person's own notes, oldest first."""
        query = "SELECT key, value FROM memory WHERE key GLOB ? ORDER BY length(key), key"
        return [(row["key"], row["value"]) for row in self._database.fetch(query, f"{PERSONAL_PREFIX}*")]

    def get(self, key: str) -> str | None:
        found = self._database.fetch("SELECT value FROM memory WHERE key = ?", key)
        return str(found[0]["value"]) if found else None

    def delete(self, key: str) -> bool:
        """Delete a value. Returns False if there is none under that key."""
        return self._database.write("DELETE FROM memory WHERE key = ?", key).rowcount > 0

    def list_keys(self) -> list[str]:
        return [row["key"] for row in self._database.fetch("SELECT key FROM memory ORDER BY key")]

    def add_todo(self, text: str) -> Todo:
        """Append a todo. Numbers are never reused."""
        query = "INSERT INTO todos (text, session_id) VALUES (?, ?)"
        return Todo(id=str(self._database.write(query, text, self.get_todo_owner()).lastrowid), text=text)

    def complete_todo(self, todo_id: str) -> bool:
        """Return False if there is no todo with that number."""
        query = "UPDATE todos SET status = 'done' WHERE id = ? AND session_id = ?"
        return self._database.write(query, _parse_number(todo_id), self.get_todo_owner()).rowcount > 0

    def remove_todo(self, todo_id: str) -> bool:
        """Return False if there is no todo with that number."""
        query = "DELETE FROM todos WHERE id = ? AND session_id = ?"
        return self._database.write(query, _parse_number(todo_id), self.get_todo_owner()).rowcount > 0

    def list_todos(self) -> tuple[Todo, ...]:
        """List the todos in the order they were added."""
        query = "SELECT id, text, status FROM todos WHERE session_id = ? ORDER BY id"
        rows = self._database.fetch(query, self.get_todo_owner())
        return tuple(Todo(id=str(row["id"]), text=row["text"], status=row["status"]) for row in rows)

    def restore_todos(self, todos: Sequence[tuple[str, bool]]) -> None:
        """Add the steps of a plan, each with its done flag, if there are no todos yet."""
        with self._database.begin_write() as connection:
            owner = self.get_todo_owner()
            if connection.execute("SELECT 1 FROM todos WHERE session_id = ?", (owner,)).fetchone() is None:
                rows = [(text, "done" if done else "open", owner) for text, done in todos]
                connection.executemany("INSERT INTO todos (text, status, session_id) VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        if opened := self._lazy.built:
            opened.close()

    @property
    def _database(self) -> Database:
        return self._lazy.get()


def _parse_number(todo_id: str) -> int:
    """Parse a todo id; -1 if it is not a number."""
    return int(todo_id) if todo_id.isdecimal() and len(todo_id) < 18 else -1
