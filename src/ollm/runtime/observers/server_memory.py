"""The model server's memory of a session, for llama.cpp: saved to a file before it is lost, and restored if the server
may not find the session in its slots or in its cache in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from operator import attrgetter, eq
from typing import TYPE_CHECKING, Literal

import msgspec

from ollm.domain.errors import OllmError
from ollm.domain.events import Notice
from ollm.domain.text import format_count
from ollm.providers.base import Provider
from ollm.providers.llama_slots import NO_TASK, LlamaSlots
from ollm.runtime.base import TurnObserver, TurnReport
from ollm.store.saved_slots import SavedSlot, SavedSlots, read_slot_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.runtime.model.model import Model
    from ollm.runtime.parts import ConversationParts

log = logging.getLogger("ollm.server_memory")
MIN_SAVED_TOKENS = 1024  # The server quickly reads a shorter session again.
IDLE_SECONDS = 60.0  # The session is saved this long after a turn, in case the server stops.
IDLE_GROWTH = 1.25  # A pause does not rewrite the file for a few new tokens.
OWN_SHARE = 0.9  # A slot with this share of the session's tokens belongs to the session.
USED_SHARE = 0.5  # The server must reuse this share of a restored session.
KNOWN_SHARE = 0.75  # A running server may hold more in memory than a file with less of the request.


class ServerMemory(TurnObserver):
    """Saves a session that pauses, ends or changes its model, if it `keeps`. Restores it before the first request of a
    resumed session, to a model that was changed to, or to a restarted server."""

    def __init__(self, parts: ConversationParts, saved: SavedSlots, folder: Path, *, keeps: bool) -> None:
        self._parts = parts
        self._saved = saved
        self._folder = folder
        self._keeps = keeps
        self._model: Model | None = None if parts.session.id else parts.state.model  # A resumed session has none yet.
        self._newest_task = NO_TASK
        self._unsaved = self._asked = self._is_useless = False
        self._restored: tuple[SavedSlot, int] | None = None  # The next answer may reuse this many tokens of it.
        self._idle: asyncio.Task[None] | None = None
        parts.state.before_model_change, parts.state.count_unread = self.save, self.count_unread

    async def before_turn(self, text: str) -> None:
        self._asked = False
        if self._idle:
            self._idle.cancel()

    async def before_request(self) -> None:
        model, look = self._parts.state.model, None
        known = self._model is model
        if not (self._asked or self._is_useless) and not (known and self._newest_task == NO_TASK):
            look = partial(self._look, self._newest_task if known else NO_TASK)
            await look()
        if set_before_retry := getattr(model.provider, "set_before_retry", None):
            set_before_retry(look)  # A restarted server may have lost the session.
        self._asked = True

    async def _look(self, last_task: int) -> None:
        with suppress(OllmError, OSError):  # The request itself reports a missing server.
            if self._restored is None:
                await self._restore_if_lost(last_task)

    async def after_turn(self, report: TurnReport) -> None:
        self._unsaved = True
        self._check_reuse()
        with suppress(OllmError, OSError):
            await self._note_slot(report.session_id)
        if report.reason == "answered":
            self._model = self._parts.state.model
        if self._keeps:
            self._idle = asyncio.create_task(self._save_when_idle(), name="save server memory")

    async def session_closed(self, session_id: str) -> None:
        if self._idle:
            self._idle.cancel()
        await self.save()

    async def count_unread(self) -> int | None:
        """Count the tokens of the next request that the server reads after a restore, or None without a saved file."""
        session_id, model = self._parts.session.id, self._parts.state.model
        with suppress(OllmError, OSError):
            slots = await open_slots(model.provider, model.name) if session_id else None
            if slots and session_id and (saved := self._saved.get(session_id, await slots.identify_model())):
                tokens = await self._tokenize(slots)
                return len(tokens) - count_common(read_slot_tokens(saved.path), tokens) if tokens else None
        return None

    async def save(self, growth: float = 0) -> None:
        """Save the session, if a slot holds it and it grew by this factor since it was saved. A failure is only logged:
        it costs time, no data."""
        session_id, model = self._parts.session.id, self._parts.state.model
        if not (self._keeps and self._unsaved and session_id and model is self._model) or self._saved.find_problem():
            return
        try:
            if (slots := await open_slots(model.provider, model.name)) and (key := await slots.identify_model()):
                await self._save_slot(slots, session_id, key, growth)
        except (OllmError, OSError) as error:
            log.warning("The server's memory was not saved: %s", error, extra={"operation": "save"})

    async def _save_slot(self, slots: LlamaSlots, session_id: str, key: str, growth: float) -> None:
        tokens, before = await self._tokenize(slots), self._saved.get(session_id, key)
        if len(tokens) < max(MIN_SAVED_TOKENS, growth * before.tokens if before else 0):
            return
        enough, written = OWN_SHARE * len(tokens), self._folder / f"ollm-{session_id}-{key}.new"
        for slot in sorted(await slots.list_slots(), key=attrgetter("task"), reverse=True):
            if slot.busy or slot.tokens < enough or not (size := await slots.save(slot.id, written.name)):
                continue
            if not written.exists():
                told = f"The model server saved this session elsewhere than in {self._folder}"
                self._tell(f"{told}: set provider.slotSavePath to its --slot-save-path.", "warning")
                return
            try:
                if written.stat().st_size == size and count_common(read_slot_tokens(written), tokens) >= enough:
                    await asyncio.to_thread(self._saved.add, session_id, key, written, slot.task)
                    self._unsaved = False
                    return
            finally:
                written.unlink(missing_ok=True)

    async def _restore_if_lost(self, last_task: int) -> None:
        """Restore the session unless the server holds it. `last_task` is the last of this process, if any."""
        model = self._parts.state.model
        if (slots := await open_slots(model.provider, model.name)) is None:
            return
        listed = await slots.list_slots()
        if not listed and self._saved.folder:  # A server of several models may have unloaded this one.
            await model.provider.prepare(model.name, lambda text: self._tell(f"The server unloaded the model: {text}."))
            listed = await slots.list_slots()
        if not listed:
            return
        newest = max(slot.task for slot in listed)
        if NO_TASK < last_task <= newest:
            return  # The server was not restarted: a slot or its cache still holds the last request.
        saved = self._saved.get(self._parts.session.require_id(), await slots.identify_model())
        if saved is None or saved.tokens >= listed[0].window:
            return
        if not any(slot.task == saved.task and slot.tokens == saved.held for slot in listed):
            await self._restore(slots, saved, restarted=newest < max(last_task, saved.task))

    async def _restore(self, slots: LlamaSlots, saved: SavedSlot, *, restarted: bool) -> None:
        """Restore a file that fits the next request. One that does not fit or was changed is never sent."""
        tokens = await self._tokenize(slots)
        common = count_common(read_slot_tokens(saved.path), tokens)
        if common < max(MIN_SAVED_TOKENS, 0 if restarted else KNOWN_SHARE * len(tokens)):
            return
        if not await asyncio.to_thread(saved.is_intact):
            self._saved.remove(saved)
            self._tell("The saved memory of the model server is damaged; it reads the session again.", "warning")
        elif (slot := await slots.free_slot(tokens[-1])) is not None:
            if await slots.restore(slot, saved.path.name) == saved.tokens:
                model, prompt = self._parts.state.model, self._parts.prompt
                model.reading.note_read(model.format_like_last(prompt.preview_request()[:-1], prompt.tools))
                self._restored = saved, common
                self._tell(f"Restored {format_count(common, 'token')} of this session to the model server.")
                return
            self._saved.remove(saved)
            log.warning("The server refused %s.", saved.path.name, extra={"operation": "restore"})

    def _check_reuse(self) -> None:
        """Tell the person if a restore had no effect, as with some builds, and with models with a sliding window."""
        restored, self._restored = self._restored, None
        reused = self._parts.state.model.reading.reuse_after_restore
        if restored is None or reused is None or reused >= USED_SHARE * restored[1]:
            return
        self._is_useless, self._keeps = True, False
        self._saved.remove(restored[0])
        text = f"The model server restored {restored[1]:,} tokens but reused {reused:,}: it read the session again."
        self._tell(f"{text} If that happens each time, unset provider.slotSavePath for this model.", "warning")

    async def _note_slot(self, session_id: str) -> None:
        """Note the newest request, by which a restart and an unchanged slot are recognized."""
        slots = await open_slots(self._parts.state.model.provider, self._parts.state.model.name)
        if slots is None or not (listed := await slots.list_slots()):
            return
        newest = max(listed, key=attrgetter("task"))
        self._newest_task = newest.task
        if saved := self._saved.get(session_id, await slots.identify_model()):
            self._saved.write(msgspec.structs.replace(saved, task=newest.task, held=newest.tokens))

    async def _tokenize(self, slots: LlamaSlots) -> list[int]:
        """Return the tokens of the next request, or of the last one if it was answered."""
        prompt, model = self._parts.prompt, self._parts.state.model
        messages = prompt.preview_request()
        if messages and messages[-1].role == "assistant":
            messages = messages[:-1]
        with suppress(OllmError):
            rendered = await model.provider.render(model.format_like_last(messages, prompt.tools))
            return await slots.tokenize(rendered) if rendered else []
        return []

    async def _save_when_idle(self) -> None:
        await asyncio.sleep(IDLE_SECONDS)
        await self.save(IDLE_GROWTH)

    def _tell(self, text: str, level: Literal["info", "warning"] = "info") -> None:
        self._parts.stream.emit(Notice(level=level, text=text))


async def open_slots(provider: Provider, model: str) -> LlamaSlots | None:
    """Open the slots of a model on a llama.cpp server. Returns None for any other server."""
    opened = getattr(provider, "open_slots", None)
    return await opened(model) if opened else None


def count_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the equal elements at the beginning."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


async def describe_memory(provider: Provider, model: str, saved: SavedSlots) -> str:
    """Describe for `ollm doctor` if sessions are saved. Returns "" for a server that cannot."""
    slots = await open_slots(provider, model)
    if slots is None:
        return ""
    problem = saved.find_problem()
    if not problem and not await slots.list_slots():
        problem = "the server shows no slots: the model is not loaded, or it runs with --no-slots"
    if not problem and not await slots.takes_files():
        problem = f"start the server with --slot-save-path {saved.folder}"
    if problem:
        return f"not saved: {problem}"
    known = saved.list_all()
    return (
        f"saved in {saved.folder}: {format_count(len(known), 'file')}, {sum(each.size for each in known) >> 20:,} MiB"
    )
