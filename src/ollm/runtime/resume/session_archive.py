"""The session under way as `recall` reads it: every message and the whole output of every call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import MessagePage
from ollm.tools.recall import Passage

if TYPE_CHECKING:
    from ollm.services.message_search import SearchedMessage

SNIPPET_CHARS = 240
BESIDE_CHARS = 160  # of what was asked before a message, or answered to it
WHOLE_EXCHANGES = 3  # so many of the first hits show both sides
RECALL = "recall"  # whose own calls and results answer nothing


class SessionArchive:
    """`load` gives the session as it is on disk, or at least a page of it; None before there is one."""

    def __init__(self, load: Callable[[MessagePage | None], Awaitable[Session | None]]) -> None:
        self._load = load

    async def read_message(self, number: int) -> str | None:
        session = await self._load(MessagePage(before=number + 1, limit=1))
        found = next((message for message in session.messages if message.id == number), None) if session else None
        return None if session is None or found is None else render_archived_message(found, session.tool_calls)

    async def read_call_output(self, call_id: str) -> str | None:
        session = await self._load(None)
        calls = session.tool_calls if session else ()
        found = next((call for call in calls if call.id == call_id), None)
        return None if found is None else get_call_output(found)

    async def search(self, query: str, limit: int) -> list[Passage]:
        session = await self._load(None)
        return find_passages(session, query, limit) if session else []


def find_passages(session: Session, query: str, limit: int) -> list[Passage]:
    """The messages that answer the query best, those of the user first, the one being worked on last; earlier results
    of recall are left out."""
    from ollm.services.message_search import find_passage, search_messages

    working = _find_request(session.messages)
    found = search_messages(_list_searched(session), query, limit + 1)
    found = sorted(found, key=lambda hit: hit.message.number == working)[:limit]
    return [
        Passage(
            message_id=hit.message.number,
            role=hit.message.role,
            snippet=find_passage(hit.message.text, hit.words, SNIPPET_CHARS),
            beside=tuple(map(_show_beside, hit.beside)) if place < WHOLE_EXCHANGES else (),
        )
        for place, hit in enumerate(found)
    ]


def _show_beside(message: SearchedMessage) -> Passage:
    from ollm.services.message_search import find_passage

    return Passage(message_id=message.number, role=message.role, snippet=find_passage(message.text, (), BESIDE_CHARS))


def _list_searched(session: Session) -> list[SearchedMessage]:
    from ollm.services.message_search import SearchedMessage

    calls = {call.id: call for call in session.tool_calls if call.name != RECALL}
    found = []
    for message in session.messages:
        mine = tuple(calls[name] for name in message.call_ids if name in calls)
        text = render_archived_message(message, mine)
        if text.strip():
            found.append(SearchedMessage(number=message.id, role=message.role, text=text))
    return found


def _find_request(messages: Sequence[Message]) -> int | None:
    """The number of the request being worked on: it is in the context already, and would match itself best."""
    if not messages or (messages[-1].role == "assistant" and not messages[-1].call_ids):
        return None
    return next((message.id for message in reversed(messages) if message.role == "user"), None)


def get_call_output(call: ToolCallRecord) -> str:
    if call.result is None:
        return ""
    return call.result.full_output if call.result.full_output is not None else call.result.llm_content


def render_archived_message(message: Message, calls: tuple[ToolCallRecord, ...]) -> str:
    """A message's text; an answer with what it called, a tool's message with what the calls gave back."""
    wanted = set(message.call_ids)
    if message.role != "tool":
        return "\n".join([message.text, *(render_archived_call(call) for call in calls if call.id in wanted)])
    outputs = [f"[{call.name} {call.id}]\n{get_call_output(call)}" for call in calls if call.id in wanted]
    return "\n".join([*outputs, *([message.text] if message.text else [])])


def render_archived_call(call: ToolCallRecord) -> str:
    """A call with its arguments whole, texts as they are."""
    given = [f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in call.args.items()]
    return "\n".join([f"[called {call.name} {call.id}]", *given])
