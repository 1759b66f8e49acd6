"""The current session as `recall` reads it: every message and the full output of every call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.struct import Data
from ollm.domain.text import shorten_line
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.store import MessagePage

if TYPE_CHECKING:
    from ollm.services.message_search.search import MessageMatch
    from ollm.store.session_index.session_texts import Vector

    Search = Callable[[Sequence[str], int, Sequence[Vector]], tuple[list[MessageMatch], bool]]

EMBEDDING_SECONDS = 4.0  # The search waits this long for the embeddings of queries.
BESIDE_CHARS = 160  # The question before a message, or the answer to it, is cut to this length.


class Passage(Data, frozen=True):
    """A text with its matching words; `beside` is the question before it, or the answer to it."""

    message_id: int
    role: str
    snippet: str
    words: tuple[str, ...] = ()
    call_id: str | None = None
    beside: str = ""

    def __str__(self) -> str:
        place = f"call {self.call_id} of message {self.message_id}" if self.call_id else f"message {self.message_id}"
        matched = f"; has {', '.join(self.words)}" if self.words else "; near in meaning, no word matches"
        return f"{place} ({self.role}{matched}): {self.snippet}"


class SessionArchive:
    """The archive of a session. `load` reads it from disk, or at least a page of it, and returns None before it exists.
    `search` finds messages and reports whether it searched all of them, in a thread. `embed` embeds queries. A message
    or a call that does not exist is None."""

    def __init__(
        self,
        load: Callable[[MessagePage | None], Awaitable[Session | None]],
        search: Search = lambda *_asked: ([], True),
        embed: Callable[[Sequence[str]], Awaitable[list[Vector]]] | None = None,
    ) -> None:
        self._load = load
        self._search = search
        self._embed = embed

    async def read_message(self, number: int) -> str | None:
        session = await self._load(MessagePage(before=number + 1, limit=1))
        found = next((message for message in session.messages if message.id == number), None) if session else None
        return None if session is None or found is None else render_archived_message(found, session.tool_calls)

    async def read_call_output(self, call_id: str) -> str | None:
        session = await self._load(None)
        calls = session.tool_calls if session else ()
        found = next((call for call in calls if call_id in (call.id, call.wire_id)), None)
        return None if found is None else get_call_output(found)

    async def search(self, queries: Sequence[str], limit: int) -> tuple[Sequence[Passage], bool]:
        vectors: list[Vector] = []
        if self._embed:
            with contextlib.suppress(TimeoutError):  # The search then finds messages by words alone.
                async with asyncio.timeout(EMBEDDING_SECONDS):
                    vectors = await self._embed(queries)
        found, complete = await asyncio.to_thread(self._search, queries, limit, vectors)
        return tuple(map(make_passage, found)), complete


def make_passage(match: MessageMatch) -> Passage:
    text, other = match.text, match.beside
    return Passage(
        message_id=text.number,
        call_id=text.call or None,
        role=text.role,
        snippet=match.passage,
        words=match.words,
        beside=f"message {other.number} ({other.role}): {shorten_line(other.text, BESIDE_CHARS)}" if other else "",
    )


def get_call_output(call: ToolCallRecord) -> str:
    if call.result is None:
        return ""
    return call.result.full_output if call.result.full_output is not None else call.result.llm_content


def render_archived_message(message: Message, calls: tuple[ToolCallRecord, ...]) -> str:
    """Render a message's text: an answer with its calls, a tool message with the results of the calls."""
    wanted = set(message.call_ids)
    if message.role != "tool":
        return "\n".join([message.text, *(render_archived_call(call) for call in calls if call.id in wanted)])
    outputs = [f"[{call.name} {call.id}]\n{get_call_output(call)}" for call in calls if call.id in wanted]
    return "\n".join([*outputs, *([message.text] if message.text else [])])


def render_archived_call(call: ToolCallRecord) -> str:
    """Render a call with its full arguments, strings unquoted."""
    import json

    given = [f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in call.args.items()]
    return "\n".join([f"[called {call.name} {call.id}]", *given])
