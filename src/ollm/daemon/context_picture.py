"""The window as the pages draw it: its parts, each message and checkpoint in it, what was cut, how quick it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.app import ClosedSession
from ollm.daemon.turn_speeds import TurnSpeed
from ollm.domain.context import format_number_ranges
from ollm.domain.struct import Data
from ollm.runtime.prompt.breakdown import ContextPart, list_context_parts
from ollm.services.prefix_ledger import LedgerEntry

if TYPE_CHECKING:
    from ollm.daemon.service import DaemonService
    from ollm.runtime.prompt.prompt import Prompt

MAX_REQUESTS = 40  # of the newest, in the plot of what was reused
MAX_CHECKPOINT_CHARS = 4_000


class PictureCheckpoint(Data, frozen=True):
    """A record in the context: which messages it stands for, and what it says of them."""

    id: str
    tokens: int
    age: str
    messages: str
    text: str


class PictureMessage(Data, frozen=True):
    """A message in the context, by the numbers of what it stands for."""

    role: str
    tokens: int
    numbers: tuple[int, ...]


class ContextPicture(Data, frozen=True):
    """`recallable` are the numbers of messages that left the context: recall fetches any of them."""

    window: int
    limit: int
    available: int
    trigger: int
    used: int
    parts: list[ContextPart]
    messages: list[PictureMessage]
    checkpoints: list[PictureCheckpoint]
    recallable: str
    recallable_count: int
    reuse: list[LedgerEntry]
    turns: list[TurnSpeed]
    live: bool


async def draw_context(service: DaemonService, session_id: str) -> ContextPicture:
    """Of a session that is open here as it is, of another as it would be resumed."""
    held = service.hub.find(session_id)
    if held is not None:
        last = _find_last_number(service, session_id)
        return _make_picture(held.conversation.parts.prompt, last, list(held.speeds.turns), live=True)
    workspace = service.find_workspace(session_id) or service.process.user_home
    process = service.make_process(workspace)
    session = process.session_files.read(session_id).session
    prompt = await ClosedSession(process, workspace).build_prompt(session)
    return _make_picture(prompt, session.messages[-1].id if session.messages else 0, [], live=False)


def _find_last_number(service: DaemonService, session_id: str) -> int:
    from ollm.store.session_files import MessagePage

    newest = service.process.session_files.read(session_id, MessagePage(None, 1)).session.messages
    return newest[-1].id if newest else 0


def _make_picture(prompt: Prompt, last: int, turns: list[TurnSpeed], *, live: bool) -> ContextPicture:
    budget, context = prompt.compute_budget(), prompt.get_active_context()
    messages = [
        PictureMessage(role=one.role, tokens=prompt.counter.count_message(one), numbers=one.sources)
        for one in context.messages
    ]
    shown = {number for one in messages for number in one.numbers}
    gone = [number for number in range(1, last + 1) if number not in shown]
    return ContextPicture(
        window=budget.window,
        limit=budget.limit,
        available=budget.available,
        trigger=budget.trigger,
        used=prompt.used_tokens,
        parts=list_context_parts(prompt),
        messages=messages,
        checkpoints=[
            PictureCheckpoint(
                id=one.id,
                tokens=one.tokens,
                age=one.age,
                messages=format_number_ranges(one.message_ids),
                text=one.message.content[:MAX_CHECKPOINT_CHARS],
            )
            for one in context.checkpoints
        ],
        recallable=format_number_ranges(gone),
        recallable_count=len(gone),
        reuse=prompt.ledger.entries[-MAX_REQUESTS:],
        turns=turns,
        live=live,
    )
