"""What travels between a machine and the archive: records of a session, its line in a list, a hit of a search."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from ollm.domain.struct import Data
from ollm.store.session_index.texts import IndexEntry

RecordKind = Literal["head", "message", "call", "file"]
DIGEST_BYTES = 16


class ArchiveRecord(NamedTuple):
    """One thing a session holds, by its name (`kind`, `key`): the newest body of a name counts, None means it is gone.

    `text` is what a search finds of it. `position` orders messages and pieces of files; calls are as they came.
    """

    kind: RecordKind
    key: str
    body: bytes | None
    position: int | None = None
    text: IndexEntry | None = None

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(self.body or b"", digest_size=DIGEST_BYTES).digest()

    @property
    def size(self) -> int:
        return 200 + len(self.body or b"") + (len(self.text.text) if self.text else 0)


class ArchivedHead(Data, frozen=True):
    """What a list shows of a session, as its machine says it."""

    title: str
    model: str
    workspace: str | None
    origin: str | None
    start_time: str
    last_activity: str
    message_count: int
    token_count: int
    redacted: bool
    damaged: str | None


class ArchivedSession(Data, frozen=True):
    """A session in the archive. `in_use` names the machine that goes on with it now."""

    session_id: str
    owner: str
    host: str
    title: str
    model: str
    workspace: str | None
    origin: str | None
    start_time: str
    last_activity: str
    message_count: int
    token_count: int
    redacted: bool
    damaged: str | None
    last_seq: int
    writer: str
    in_use: str | None = None


class ArchiveHit(Data, frozen=True):
    """A message or call that a search found."""

    session_id: str
    message_id: int
    number: int
    role: str
    timestamp: str
    title: str
    snippet: str
    owner: str
    host: str
