"""Observers of every conversation: model facts, embeddings, file states before and after changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ollm.domain.errors import OllmError
from ollm.domain.events import Event, Notice
from ollm.domain.model_facts import Source
from ollm.domain.text import format_count
from ollm.providers.base import name_model
from ollm.runtime.base import ChangeWatch, TurnObserver, TurnReport, WriteFacts
from ollm.runtime.parts import ConversationState
from ollm.runtime.prompt.prompt import Prompt
from ollm.runtime.prompt.token_meter import DOUBT_SHARES

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.runtime.session import OpenSession
    from ollm.services.file_checkpoints.records import CheckpointRecord
    from ollm.services.file_checkpoints.service import FileCheckpoints
    from ollm.services.message_search.embeddings import SessionEmbedder


MIN_TOKEN_FACTOR_CHANGE = 0.02  # A smaller difference is not worth a write.

# How facts are learnt beside what is measured in use; what the look at a template finds comes with its faults.
SOURCES: dict[str, Source] = {
    **dict.fromkeys(("served_window", "said_window", "takes_tools", "takes_thinking"), "error"),
    **dict.fromkeys(("server_mark", "parameters", "first_form"), "server"),
    **dict.fromkeys(("shown_thinking", "faults", "system_form"), "template"),
}
TEMPLATE_SOURCES: dict[str, Source] = dict.fromkeys(("takes_tools", "call_form", "result_form"), "template")
PROBE_SOURCES: dict[str, Source] = dict.fromkeys((*TEMPLATE_SOURCES, "faults", "written_form"), "probe")
REFUSAL_SOURCES: dict[str, Source] = dict.fromkeys(TEMPLATE_SOURCES, "error")


class ModelFactsObserver(TurnObserver):
    """Saves learnt model facts. `write` takes the key of the model and the changed fields."""

    def __init__(
        self, state: ConversationState, prompt: Prompt, emit: Callable[[Event], None], write: WriteFacts
    ) -> None:
        self._state = state
        self._prompt = prompt
        self._emit = emit
        self._write = write

    async def after_turn(self, report: TurnReport) -> None:
        self._update_token_factor()
        model = self._state.model
        model.facts = replace(model.facts, shown_thinking=self._prompt.meter.shown_thinking)
        if self._prompt.window_learnt and self._prompt.model.window < self._state.model.window:
            self._prompt.window_learnt = False
            await self._state.model.learn_served_window(self._prompt.model.window)
        if news := self._state.model.take_replacement():
            self._emit(Notice(level="warning", text=news))
        if news := self._state.model.pictures.take_news():
            self._emit(Notice(level="warning", text=f"{name_model(self._state.model.name)}: {news}"))
        facts, known = self._state.model.facts, self._state.model.known
        if not (changes := facts.list_changes(known)):
            return
        speeds = () if known.prefill_per_second is None else ("prefill_per_second", "decode_per_second")
        told = {name: value for name, value in changes.items() if name not in speeds}
        if news := describe_changes(told, self._state.model.advice):
            self._emit(Notice(level="info", text=f"{name_model(self._state.model.name)}: {news}"))
        self._state.model.known = facts
        refused = {} if changes.get("takes_tools") is not False else REFUSAL_SOURCES
        by_probe = "parser" in (changes.get("faults") or ())
        found = PROBE_SOURCES if by_probe else TEMPLATE_SOURCES if changes.get("faults") else refused
        self._write(facts.key, changes, SOURCES | found)

    def _update_token_factor(self) -> None:
        known = self._state.model.facts
        factor, samples = self._prompt.counter.factor, self._prompt.counter.samples
        moved = abs(factor - known.token_factor) > MIN_TOKEN_FACTOR_CHANGE * known.token_factor
        surer = any(known.token_samples < needed <= samples for needed, _ in DOUBT_SHARES)
        if samples > known.token_samples and (moved or surer):
            self._state.model.facts = replace(known, token_factor=round(factor, 4), token_samples=samples)


class TemplateObserver(TurnObserver):
    """Looks at the model's chat template once its first answer came. The next request uses what it found."""

    def __init__(self, state: ConversationState, update_tools: Callable[[], None]) -> None:
        self._state = state
        self._update_tools = update_tools

    async def before_request(self) -> None:
        model = self._state.model
        if model.answered and not model.looked:
            before = model.facts.forms
            await model.look_at_template()
            if model.facts.forms != before:
                self._update_tools()

    async def after_turn(self, report: TurnReport) -> None:
        await self.before_request()


NEWS = {
    ("call_form", "blocks"): "it writes fenced commands and files, which ollm runs as tool calls",
    ("call_form", "text"): "it writes tool calls as text, which ollm parses",
    ("takes_thinking", False): "the server refuses messages with thinking, so none is sent back",
}


def describe_changes(changes: dict[str, Any], advice: str = "") -> str:
    """Describe new facts about the model in one line. The usual form of calls is not mentioned.
    `advice` describes how to make a server that refused tools accept them."""
    read, write, faults = (changes.get(name) for name in ("prefill_per_second", "decode_per_second", "faults"))
    left_out = ["the system prompt" if fault == "system" else fault for fault in faults or () if fault != "parser"]
    told = ", ".join(left_out)
    news = [f"its chat template leaves out or refuses {told}; ollm works around it"] if told else []
    news += [text for (name, value), text in NEWS.items() if changes.get(name) == value]
    if advice and "parser" in (faults or ()):
        news.append(f"the server does not recognize them (to fix it: {advice})")
    news += [f"prompt {read:.0f} tok/s, output {write:.0f} tok/s"] if read and write else []
    more = "Run `ollm doctor --model` to see what fixes it." if told else "Run `ollm models probe` for more."
    line = f"{'; '.join(news)}. {more}" if news else ""
    if changes.get("takes_tools") is False and not faults:
        line = f"the server takes no tools, so they are listed in the prompt. {advice} {line}"
    return " ".join(line.split())


class EmbeddingObserver(TurnObserver):
    """Embeds new messages between turns."""

    def __init__(self, embedder: SessionEmbedder, get_session_id: Callable[[], str | None]) -> None:
        self._embedder = embedder
        self._get_session_id = get_session_id

    async def before_turn(self, text: str) -> None:
        await self._embedder.stop()

    async def after_turn(self, report: TurnReport) -> None:
        await self._embedder.stop()
        if session_id := self._get_session_id():
            self._embedder.start(session_id)

    async def session_closed(self, session_id: str) -> None:
        await self._embedder.stop()


SLOW_CHECKPOINT_SECONDS = 3.0


class FileCheckpointObserver(TurnObserver, ChangeWatch):
    """Takes file checkpoints. A turn without changes costs nothing. Warns once if no checkpoints are taken here."""

    def __init__(
        self,
        checkpoints: Lazy[FileCheckpoints],
        session: OpenSession,
        emit: Callable[[Event], None],
        *,
        enabled: bool,
    ) -> None:
        self._checkpoints = checkpoints
        self._enabled = enabled
        self._session = session
        self._emit = emit
        self._missed = False  # Nobody knows the state before this turn.
        self._beginning: asyncio.Future[CheckpointRecord] | None = None
        self._ending: asyncio.Future[None] | None = None
        self._said: set[str] = set()

    async def before_change(self, names: Sequence[str] | None) -> None:
        """Record the state before a change. A failure does not stop the call."""
        if self._missed or self._session.id is None:
            return
        await self._settle()
        loop = asyncio.get_running_loop()
        began, users = loop.time(), (message.id for message in self._session.messages if message.role == "user")
        message_id = next(users, 0)
        if not self._enabled:
            await self._note_missed(self._session.id, message_id)
            return
        try:
            begin = asyncio.to_thread(self._checkpoints.get().begin, self._session.id, message_id, "turn", names)
            self._beginning = asyncio.ensure_future(begin)
            record = await asyncio.shield(self._beginning)
        except (OllmError, OSError) as error:
            self._report(error)
            await self._note_missed(self._session.id, message_id)
            return
        if loop.time() - began > SLOW_CHECKPOINT_SECONDS:
            saved = format_count(record.files, "file")
            text = f"Saved {saved} before the first change; later turns save only what changed."
            self._emit(Notice(level="info", text=text))

    async def after_changes(self) -> None:
        """Record the state after the changes while the model continues."""
        if (checkpoints := self._checkpoints.built) and checkpoints.begun:
            await self._settle()
            self._ending = asyncio.ensure_future(self._take_end(checkpoints))

    async def before_question(self) -> None:
        """End the turn's changes before a question: changes until the next call are the user's."""
        await self._settle()
        await self.after_changes()
        await self._settle()

    async def after_turn(self, report: TurnReport) -> None:
        self._missed = False
        await self.before_question()

    async def _settle(self) -> None:
        """Wait for checkpoints in progress, so that a cancelled turn also has its start and its end."""
        if under_way := [one for one in (self._beginning, self._ending) if one and not one.done()]:
            await asyncio.wait(under_way)

    async def _take_end(self, checkpoints: FileCheckpoints) -> None:
        try:
            await asyncio.to_thread(checkpoints.end)
        except (OllmError, OSError) as error:
            self._report(error)

    async def _note_missed(self, session_id: str, message_id: int) -> None:
        self._missed = True
        with suppress(OllmError, OSError):
            await asyncio.to_thread(self._checkpoints.get().note_missed, session_id, message_id)

    def _report(self, error: Exception) -> None:
        text = f"{error} /rewind cannot bring files back."
        if text not in self._said:
            self._said.add(text)
            self._emit(Notice(level="warning", text=text))


class UnwatchedFiles(FileCheckpointObserver):
    """Takes no checkpoints, of a copy that is removed after its use."""

    async def before_change(self, names: Sequence[str] | None) -> None:
        return
