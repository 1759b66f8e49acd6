"""Numbered steps that bring a database to the form this version reads; each runs once, in its own transaction."""

from __future__ import annotations

NOTES_SCHEMA = """
CREATE TABLE memory (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE todos (
    id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done'))
);
"""

SESSIONS_SCHEMA = """
CREATE TABLE chat_sessions (
    session_id TEXT PRIMARY KEY,
    title TEXT,
    model TEXT,
    status TEXT CHECK (status IN ('active', 'closed', 'archived')),
    created_at INTEGER,
    updated_at INTEGER,
    summary TEXT,
    recent_messages TEXT,
    plan_steps TEXT,
    current_step_index INTEGER,
    awaiting_continuation INTEGER,
    paused INTEGER
);
CREATE INDEX chat_sessions_newest ON chat_sessions (updated_at DESC);
CREATE TABLE episodes (
    session_id TEXT NOT NULL, number INTEGER NOT NULL, timestamp INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
);
CREATE TABLE active_contexts (session_id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

TODOS_BY_SESSION = """
ALTER TABLE todos ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
CREATE INDEX todos_by_session ON todos (session_id);
"""

ARCHIVE_STATE_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sent (
    session_id TEXT PRIMARY KEY, stamp TEXT NOT NULL, target TEXT NOT NULL, seq INTEGER NOT NULL, owner TEXT NOT NULL
);
CREATE TABLE tombstones (session_id TEXT PRIMARY KEY, at INTEGER NOT NULL);
"""

WORKSPACE_MIGRATIONS = (NOTES_SCHEMA, SESSIONS_SCHEMA, TODOS_BY_SESSION)  # <workspace>/.ollm/memory.db
GLOBAL_MIGRATIONS = (NOTES_SCHEMA,)  # ~/.ollm/global.db
ARCHIVE_STATE_MIGRATIONS = (ARCHIVE_STATE_SCHEMA,)  # ~/.ollm/archive.db
