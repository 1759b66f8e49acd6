"""Keeps the workspace's record of a session: actions, progress of the plan, and the last messages (W).

The archive is authoritative and can rebuild this, so a long record is not written after every short turn. It is
written after each turn while it is small, then when it has grown by half or the context was compressed, and at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.config.settings import ResumeSettings
from ollm.domain.clock import parse_epoch_ms, to_epoch_ms
from ollm.domain.context import NOTE_PRIORITY, ActiveContext, ContextEntry, ModeName
from ollm.domain.model_facts import ModelFacts, ShownThinking
from ollm.domain.session import ChatSession, Episode
from ollm.domain.struct import Data
from ollm.runtime.base import TurnObserver, TurnReport
from ollm.runtime.changes import get_plan
from ollm.runtime.parts import ConversationParts
from ollm.runtime.prompt.messages import render_messages
from ollm.runtime.prompt.prefix import LedgerEntry
from ollm.runtime.prompt.token_meter import CountedPrompt
from ollm.services.workspace_memory import RecentWindow, from_records, make_episode, render_rolling_summary, to_record
from ollm.tools.catalogue import list_categories

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.store.workspace_db import WorkspaceDatabase

SMALL_RECORD_CHARS = 16_384
RESUMED_ENTRY_KEY = "resumed"  # This context entry tells where a session was left.


class WorkspaceMemory(TurnObserver):
    """Writes the workspace record. A new session is written with its first turn: until then only the archive has it.

    `resumed_at` is the number of the newest message when the session was opened. With `at_end`, for a session of a
    single turn, everything is written when it closes."""

    def __init__(
        self,
        database: Lazy[WorkspaceDatabase],
        settings: ResumeSettings,
        conversation: ConversationParts,
        *,
        resumed_at: int,
        at_end: bool,
    ) -> None:
        self._database = database
        self._settings = settings
        self._conversation = conversation
        self._resumed_at = resumed_at
        self._at_end = at_end
        self._window = RecentWindow(settings)
        self._record: ChatSession | None = None
        self._episodes: list[Episode] = []
        self._said = 0
        self._written = 0
        self._last_number = 0

    async def session_resumed(self, session_id: str) -> None:
        if (known := self._database.get().get_session(session_id)) is not None:
            at, model = to_epoch_ms(self._conversation.clock()), self._conversation.state.model.name
            self._window = RecentWindow(self._settings, from_records(known.recent_messages))
            self._save_record(msgspec.structs.replace(known, status="active", model=model, updated_at=at))

    def _get_record(self, session_id: str, begun: int) -> ChatSession:
        """Return the record of the session, which is made when there is first something to write."""
        return self._record or ChatSession(
            session_id=session_id,
            title="",
            model=self._conversation.state.model.name,
            status="active",
            created_at=begun,
            updated_at=begun,
        )

    async def after_turn(self, report: TurnReport) -> None:
        if report.request is None:
            return
        now, begun = to_epoch_ms(self._conversation.clock()), parse_epoch_ms(report.request.timestamp)
        self._add_turn(report, now)
        plan = get_plan(self._conversation)
        waiting = report.reason != "answered" or plan.done_count < len(plan.steps)
        self._record = msgspec.structs.replace(
            self._get_record(report.session_id, begun),
            title=self._conversation.session.title,
            model=self._conversation.state.model.name,
            updated_at=now,
            plan=msgspec.structs.replace(plan, awaiting_continuation=waiting),
        )
        if not self._at_end:
            grown = self._written < SMALL_RECORD_CHARS or self._said * 2 >= self._written
            self._write(whole=grown or self._conversation.prompt.just_compressed)

    def _add_turn(self, report: TurnReport, now: int) -> None:
        asked, calls = report.request, report.calls
        assert asked is not None
        writing = list_writing_tools() if calls else ()
        self._episodes.append(
            make_episode(report.session_id, asked.id, now, asked.text, report.answer, report.reason, calls, writing)
        )
        for prompt_message in render_messages(report.messages, calls):
            self._window.add(prompt_message)
            self._said += len(prompt_message.content)
        self._last_number = report.messages[-1].id

    async def context_changed(self) -> None:
        if session_id := self._conversation.session.id:
            self._last_number = self._last_number or self._resumed_at
            context = SavedContext.from_prompt(self._conversation.prompt, self._last_number)
            with self._database.get().begin_transaction():
                self._save_record(self._get_record(session_id, to_epoch_ms(self._conversation.clock())))
                self._database.get().save_context(session_id, msgspec.json.encode(context))

    async def session_closed(self, session_id: str) -> None:
        if self._record is not None and (self._last_number or self._database.built):
            now = to_epoch_ms(self._conversation.clock())
            plan = msgspec.structs.replace(
                get_plan(self._conversation), awaiting_continuation=self._record.plan.awaiting_continuation
            )
            self._record = msgspec.structs.replace(self._record, status="closed", updated_at=now, plan=plan)
            self._write(whole=True)

    def _write(self, *, whole: bool) -> None:
        """Write the new episodes, and with `whole` also the record made from all of them."""
        with self._database.get().begin_transaction():
            self._database.get().add_episodes(self._episodes)
            if whole:
                self._write_record()
        self._episodes.clear()

    def _write_record(self) -> None:
        assert self._record is not None
        episodes = self._database.get().list_episodes(self._record.session_id)
        summary = render_rolling_summary(episodes, self._record.plan, self._settings.summary_chars)
        recent = tuple(to_record(message) for message in self._window.collect_messages())
        if self._last_number:
            context = SavedContext.from_prompt(self._conversation.prompt, self._last_number)
            self._database.get().save_context(self._record.session_id, msgspec.json.encode(context))
        self._save_record(msgspec.structs.replace(self._record, summary=summary, recent_messages=recent))

    def _save_record(self, record: ChatSession) -> None:
        self._database.get().put_session(record)
        self._record = record
        self._written = sum(len(str(message)) for message in record.recent_messages)
        self._said = 0


def list_writing_tools() -> frozenset[str]:
    """List the tools that declare that they change files."""
    return frozenset(name for name, category in list_categories().items() if category == "write")


class SavedContext(Data, frozen=True):
    """The context at the end of a turn. `last_number` is the number of its newest message."""

    model: str
    window: int
    mode: ModeName
    last_number: int
    context: ActiveContext
    token_factor: float = 1.0
    forms: ModelFacts | None = None  # The model called and took results in these forms.
    ledger: LedgerEntry | None = None  # It describes the last request.
    entries: tuple[ContextEntry, ...] = ()  # Only the user's entries are saved; resume makes the others again.
    goals_told: bool = True  # The model has been told the current goals.
    armed: bool = True  # An automatic snapshot is still due for this usage.
    counted: CountedPrompt | None = None  # Holds the server's count of the last request.
    shown_thinking: ShownThinking | None = None

    @property
    def counted_factor(self) -> float:
        """Tokens per unit of this context if the server counted it, else the learnt factor of the model."""
        known = self.counted
        return known.tokens / (known.prefix_units + known.message_units) if known else self.token_factor

    @staticmethod
    def from_prompt(prompt: Prompt, last_number: int) -> SavedContext:
        whom, context = prompt.model, prompt.get_active_context()
        known = (number for entry in context.messages for number in entry.sources)  # Notes between turns count too.
        return SavedContext(
            model=whom.model,
            window=whom.window,
            mode=prompt.mode,
            last_number=max((last_number, *known)),
            context=context,
            token_factor=prompt.counter.factor,
            forms=prompt.forms,
            ledger=prompt.ledger.last,
            entries=tuple(
                entry for entry in prompt.entries.get_context_by_source("user") if entry.priority != NOTE_PRIORITY
            ),
            goals_told=prompt.goals_told,
            armed=prompt.snapshot_armed,
            counted=prompt.meter.counted_prompt,
            shown_thinking=prompt.meter.shown_thinking,
        )


def read_saved_context(kept: bytes | None) -> SavedContext | None:
    """Read a saved context. Return None if there is none, or if it comes from another version."""
    try:
        return msgspec.json.decode(kept or b"", type=SavedContext)
    except msgspec.MsgspecError:
        return None


class _LastNumber(Data, frozen=True):
    last_number: int


def read_last_number(kept: bytes | None) -> int:
    """Return the number of the newest message in a saved context, or 0 without one."""
    try:
        return msgspec.json.decode(kept or b"", type=_LastNumber).last_number
    except msgspec.MsgspecError:
        return 0
