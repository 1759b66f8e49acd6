"""How the next answer in blocks is asked for: what it begins with, and how freely it is written after failed steps.

Pure functions of the messages.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ollm.domain.messages import PromptMessage
from ollm.providers.base import AnyPiece, TextPiece

TEMPERATURES = (0.0, 0.4, 0.7, 0.9)  # by the steps that came to nothing since the last one that did not
_FENCE = re.compile(r"^```([^\n]*)\n", re.MULTILINE)
PRIMED = "\n\nFiles here: "
_NAMED = re.compile(r"(?:^|\. |\n)Now [^\n]+\.$|: mend it\.$")


def names_step(message: PromptMessage) -> bool:
    """Whether this is no message of the user's but the step that is left."""
    return PRIMED not in message.content and _NAMED.search(message.content) is not None


def list_turn(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """The messages from the user's last words on."""
    places = [place for place, message in enumerate(messages) if message.role == "user" and not names_step(message)]
    return list(messages[places[-1] :]) if places else []


def choose_temperature(messages: Sequence[PromptMessage]) -> float:
    """Asked again at 0, a model takes the step once more that came to nothing."""
    stalled = named = 0
    failing = last = ""
    for message in list_turn(messages):
        if message.calls:
            last = repr([(call.name, call.arguments) for call in message.calls])
        if message.role == "user" and names_step(message):
            named += 1
            stalled += named > 1
        elif message.role == "tool" and message.content.startswith("Error "):
            stalled += 1
        elif message.role == "tool" and message.failed:
            stalled += last == failing
            failing = last
        elif message.role == "tool":
            stalled = named = 0
    return TEMPERATURES[min(stalled, len(TEMPERATURES) - 1)]


def choose_beginning(messages: Sequence[PromptMessage]) -> str:
    """What the answer begins with; empty where the next step is not plain."""
    from ollm.services.request_reading.answer_beginnings import begin_first_step, begin_named_step

    turn = list_turn(messages)
    if not turn:
        return ""
    if len(turn) == 1:
        return begin_first_step(turn[0].content.partition(PRIMED)[0])
    return begin_named_step(turn[-1].content)


async def join_beginning(begun: str, pieces: AsyncGenerator[AnyPiece, None]) -> AsyncGenerator[AnyPiece, None]:
    """The answer with its beginning once, whatever the server does with it."""
    held: str | None = ""
    async with aclosing(pieces):
        async for piece in pieces:
            if held is None or not isinstance(piece, TextPiece):
                yield piece
                continue
            held += piece.text
            if (begun.startswith(held) and held != begun) or not (held.startswith(begun) or _FENCE.search(held)):
                continue
            whole, held = _join(begun, held), None
            yield TextPiece(whole)
    if held is not None:
        yield TextPiece(_join(begun, held))


def _join(begun: str, said: str) -> str:
    """Some servers repeat the beginning, others go on behind it; one that takes no notice opens a block of its own."""
    if said.startswith(begun):
        return said
    fence = _FENCE.search(said)
    anew = fence is not None and fence[1].strip()
    return said if anew else begun if begun.startswith(said) else begun + said
