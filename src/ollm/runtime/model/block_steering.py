"""How the next answer in blocks is asked for: what it begins with, how freely it is written after failed steps, and
whether it is to be words alone.

Pure functions of the messages.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ollm.domain.messages import PromptMessage
from ollm.providers.base import AnyPiece, TextPiece
from ollm.providers.text_calls.block_edits import IDLE_SED
from ollm.runtime.model.mend_question import is_mending

TEMPERATURES = (0.0, 0.4, 0.7, 0.9)  # by the steps that came to nothing since the last one that did not
_FENCE = re.compile(r"^```([^\n]*)\n", re.MULTILINE)
PRIMED = "\n\nFiles here: "
NO_WORDS = "Now say in a sentence what was done or found."
MAX_SAID_OUTPUT_CHARS = 400
MAX_SHOWN_LINES = 2  # times that an answer begins with a line that seems wrong; then with the file
_TARGET = re.compile(r"Now (?:change|mend) (\S+?)(?: too)?\.$")
_OWN_TEST = re.compile(r"(?:^|\n)python3? (\S+) fails: [^\n]+ gives [^\n]+: mend it\.$")
_NAMED = re.compile(r"(?:^|\. |\n)Now [^\n]+\.$|: (?:mend it|remove it there)\.$")


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
    done: set[tuple[str, str]] = set()
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
        elif message.role == "tool" and ((last, message.content) in done or IDLE_SED in message.content):
            stalled += 1
        elif message.role == "tool":
            stalled = named = 0
            done.add((last, message.content))
    return TEMPERATURES[min(stalled, len(TEMPERATURES) - 1)]


def asks_for_words(messages: Sequence[PromptMessage]) -> bool:
    """Whether nothing is left to be done: blocks in the answer are no steps."""
    return bool(messages) and messages[-1].content.endswith(NO_WORDS)


def find_words_instead(messages: Sequence[PromptMessage]) -> str:
    """What is said where a model that is asked for words has none: what the last command printed."""
    from ollm.services.request_reading.asked_changes import asks_for_change
    from ollm.services.request_reading.plain_words import shorten_request

    turn = list_turn(messages)
    printed = next((said.content for said in reversed(turn) if said.tool_name == "shell" and not said.failed), "")
    output = printed.partition("\n\n")[0].strip()
    asked = turn[0].content.partition(PRIMED)[0] if turn else ""
    return "Done." if not output or asks_for_change(shorten_request(asked)) else output[:MAX_SAID_OUTPUT_CHARS]


def choose_beginning(messages: Sequence[PromptMessage], *, whole: bool = False) -> str:
    """What the answer begins with; empty where the next step is not plain. `whole`: for a tiny model, to which a step
    that is plain to its end is not left. A line that seems wrong is shown to it, and to others after a step without
    success."""
    from ollm.services.request_reading.answer_beginnings import (
        CLOSED,
        begin_first_step,
        begin_named_step,
        begin_question,
        begin_words,
    )
    from ollm.services.request_reading.begun_code import (
        add_tested_import,
        begin_lacking_function,
        begin_new_function,
    )
    from ollm.services.request_reading.plain_words import strip_courtesy

    turn = list_turn(messages)
    if not turn:
        return ""
    said, mark, primed = turn[0].content.partition(PRIMED)
    asked = strip_courtesy(said)
    told = turn[-1].content
    if len(turn) == 1:
        begun = begin_first_step(asked, mark + primed, whole=whole)
        begun = begun or begin_new_function(asked, mark + primed, whole=whole)
        begun = begun or begin_question(asked, mark + primed)
        return add_tested_import(begun, asked, mark + primed)
    if asks_for_words(messages):
        return begin_words(asked) if whole else ""
    if is_mending(turn[:-1]) and (run := begin_named_step(told, whole=True)).endswith(CLOSED):
        return run  # what was mended is tried as it was before
    stalled = whole or choose_temperature(messages) > 0
    begun = begin_lacking_function(asked, told) or begin_values(asked, turn)
    begun = begun or (begin_line(asked, turn) if stalled else "")
    return add_tested_import(begun or begin_named_step(told, whole=whole), asked, mark + primed)


def begin_values(asked: str, turn: Sequence[PromptMessage]) -> str:
    """The change of a test of this turn that expects other values than came, as it was shown with the step; up to the
    value where the code is new too."""
    from ollm.services.request_reading.own_tests import begin_own_test, begin_own_value
    from ollm.services.request_reading.shown_files import find_shown_text

    told = turn[-1].content
    outputs = [message.content for message in turn[1:] if message.tool_name == "shell"]
    if named := _TARGET.search(told):
        text = find_shown_text(named[1], told)
        return begin_own_test(asked, named[1], text, told, outputs) if text else ""
    ran = _OWN_TEST.search(told)
    written = [call.arguments for message in turn for call in message.calls if call.name == "write_file"]
    texts = [str(made.get("content", "")) for made in written if ran and made.get("path") == ran[1]]
    earlier = [message.content for message in turn[1:-1] if message.role == "user"]
    return begin_own_value(ran[1], texts[-1], told, outputs, earlier) if ran and texts else ""


def begin_line(asked: str, turn: Sequence[PromptMessage]) -> str:
    """The line that seems wrong in the file that is to change, with a minus."""
    from ollm.services.request_reading.shown_files import find_shown_text
    from ollm.services.request_reading.suspect_lines import find_suspect_line

    told = turn[-1].content
    named = _TARGET.search(told)
    if named is None or sum(message.content.endswith(named[0]) for message in turn) > MAX_SHOWN_LINES:
        return ""
    path, opening = named[1], f"{named[1]}:\n```\n"
    outputs = [message.content.partition(opening)[0] for message in turn[1:] if message.tool_name == "shell"]
    line = find_suspect_line(path, find_shown_text(path, told), "\n".join(outputs), asked)
    return f"{path}\n```diff\n-{line}\n+" if line else ""


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
