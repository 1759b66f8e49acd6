"""Work beside the conversation: titles, modes, and compaction in idle time.

Chores wait for the end of a turn and follow each other, so that a server that holds one model at a time changes it as
seldom as possible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, get_args

import msgspec

from ollm.domain.context import ModeName
from ollm.domain.errors import OllmError
from ollm.domain.messages import PromptMessage
from ollm.domain.text import shorten_line
from ollm.runtime.model.model import iterate_text
from ollm.runtime.model.server_queue import in_background
from ollm.services.chat_compression.summary import clean_answer
from ollm.services.chat_recording.service import MAX_TITLE_CHARS
from ollm.services.modes import MODES
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.runtime.model.role_models import RoleModels
    from ollm.runtime.parts import ConversationParts

MAX_QUOTED_CHARS = 1_000
MAX_ANSWER_TOKENS = 400  # A model may think before it answers.
MODE_SECONDS = 10.0
MODE_CONFIDENCE_SHARE = 0.75
TITLE_ORDER = (
    "Write a title for the conversation that begins with the messages below: at most six words, in the language of the "
    "user, without quotation marks. Answer with the title alone."
)
MODE_ORDER = 'Choose the mode of a coding agent for the user\'s message. Answer with JSON: {"mode": NAME}.'


async def work_while_idle(parts: ConversationParts, is_due: Callable[[], bool]) -> None:
    """Write the title. Then compact if that is due and the server that writes the summary is idle, and read ahead."""
    in_background.set(True)
    model, writer = parts.state.model, None
    is_idle = getattr(model.provider, "is_idle", None)
    if parts.roles:
        roles = parts.roles.get()
        async with roles.embedder.turn_end if roles.embedder else nullcontext():
            await _write_title(parts, roles)
            writer = await roles.find("summary", quietly=True) if is_due() else None
    if is_due() and (writer or (is_idle and await is_idle(model.name))):
        parts.compactor.use_model(model)
        smaller = await parts.compactor.compact_ahead(parts.prompt, model.summarise, by_role=writer is not None)
        if smaller and is_idle and await is_idle(model.name):
            await _read_ahead(parts)


async def _read_ahead(parts: ConversationParts) -> None:
    """Let the server read the compacted prompt now, up to an answer: a template may want a question after it."""
    messages = parts.prompt.preview_request()
    while messages[-1].role == "assistant":
        messages = messages[:-1]
    async for _ in parts.state.model.summarise_aside(messages, parts.prompt.tools, 1):
        break


async def _write_title(parts: ConversationParts, roles: RoleModels) -> None:
    session = parts.session
    if not session.title or session.title != session.draft_title:
        return
    if (model := await roles.find("small", quietly=True)) is None:
        return
    said = [(message.role, message.text[:MAX_QUOTED_CHARS]) for message in session.messages if message.text]
    asked = [text for role, text in said if role == "user"][:1]
    answers = [text for role, text in said if role == "assistant"][-1:]
    text = "\n\n".join((session.title, *(f"<message>\n{each}\n</message>" for each in (*asked, *answers))))
    messages = (PromptMessage(role="system", content=TITLE_ORDER), PromptMessage(role="user", content=text))
    answer = clean_answer(await roles.ask("small", model, messages, MAX_ANSWER_TOKENS))
    title = " ".join(answer.partition("\n")[0].split()).strip("\"'`*#“”„ ")
    session.draft_title = ""
    if title:
        await session.rename(make_printable(shorten_line(title, MAX_TITLE_CHARS)))


async def choose_mode(parts: ConversationParts, text: str) -> ModeName | None:
    """Let the small model choose the mode for a message, or the main one if that is on the same server: a change of
    models would cost more than it is worth. Return None without an answer in time."""
    main, roles = parts.state.model, parts.roles.get() if parts.roles else None
    small = await roles.find("small", quietly=True) if roles else None
    modes = "\n".join(f"{name}: {mode.role}" for name, mode in MODES.items())
    order = f"{MODE_ORDER}\n{modes}\nThe mode is {parts.prompt.mode} now. Keep it unless another fits clearly better."
    messages = (
        PromptMessage(role="system", content=order),
        PromptMessage(role="user", content=text[:MAX_QUOTED_CHARS]),
    )
    names = list(get_args(ModeName))
    schema = {"type": "object", "properties": {"mode": {"enum": names}}, "required": ["mode"]}
    with suppress(OllmError, TimeoutError, msgspec.MsgspecError):
        async with asyncio.timeout(MODE_SECONDS):
            if roles and small and small.provider.base_url != main.provider.base_url:
                answer = await roles.ask("small", small, messages, MAX_ANSWER_TOKENS, schema)
            else:
                stream = main.stream(messages, (), MAX_ANSWER_TOKENS, schema=schema)
                answer = "".join([piece async for piece in iterate_text(stream)])
        return msgspec.json.decode(clean_answer(answer), type=dict[str, ModeName]).get("mode")
    return None
