"""The prompt of a conversation: system prompt, context entries, checkpoints and messages, with a stable prefix.

A message is rendered and counted once, when it is recorded. Afterwards only a compression, a change of mode or a
changed context entry changes it; the ledger names the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ollm.config.settings import Settings
from ollm.domain.context import (
    ActiveContext,
    Budget,
    ContextView,
    GoalStack,
    ModeName,
    PromptModel,
    ReasoningStorage,
    ReasoningTrace,
    ReplayThinking,
    Usage,
)
from ollm.domain.errors import PromptTooLongError
from ollm.domain.events import ContextUsage, Event, Notice, PromptTruncated
from ollm.domain.messages import Message, PromptMessage, group_messages
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolCallRecord, ToolSchema
from ollm.runtime.prompt.messages import MessageHistory, adapt_message
from ollm.runtime.prompt.prefix import PrefixLedger, PromptPrefix, RequestBuilder, ToolChoice
from ollm.runtime.prompt.token_meter import PLAUSIBLE_TOKENS_PER_UNIT, Meter
from ollm.services import budget as rules
from ollm.services.context_manager import ContextManager
from ollm.services.goals import GoalKeeper, describe_goals
from ollm.services.snapshots import ContextState
from ollm.services.token_counting import TokenCounter

__all__ = ["Prompt", "PromptModel"]

MIN_WINDOW_TOKENS = 512
LONG_PROMPT_SHARE = 0.6  # A longer prompt may be refused for its length, whatever the server says.
Emit = Callable[[Event], None]
LoadUserMessages = Callable[[], Mapping[int, str]]
MAX_FULL_TRACES = 5
MAX_SHORT_CHARS = 200
MAX_TRACES = 100


class Prompt:
    """The active context of one conversation. `goals` are shared with the goal tool. `Compactor` makes it smaller."""

    def __init__(
        self,
        model: PromptModel,
        settings: Settings,
        counter: TokenCounter,
        entries: ContextManager,
        *,
        goals: GoalKeeper | None = None,
    ) -> None:
        self.model = model
        self.entries = entries
        self.goals = goals or GoalKeeper()
        self._settings = settings
        self.counter = counter
        self.meter = Meter(counter)
        self._notices: list[Notice] = []
        self._warned: set[str] = set()
        self.ledger = PrefixLedger()  # It records how much of each request the server had read before.
        self._context = ActiveContext(mode=model.mode)
        self._history = MessageHistory(counter, self.meter, self._warn, self._adapt_message)
        self._prefix = PromptPrefix(counter, entries, self._warn_once)
        self._parts = RequestBuilder(counter, self.ledger, self._prefix)
        self.load_words: LoadUserMessages = dict
        self._told_goals = self.goals.stack
        self.just_compressed = False
        self.window_learnt = False  # The next process should know it too.
        self.sent_as_restored = False  # A restored context is sent once before it is compacted.
        self.snapshot_armed = True  # Passing the threshold takes a snapshot.
        self._request: int | None = None
        self._cause: str | None = None
        self.revision = 0
        self._budget, self._budgeted = rules.compute_budget(model.window, 0, 0), (0, 0.0, 0.0, 0.0)
        self.refresh_system_prompt()

    def get_system_prompt(self) -> str:
        """Return the instructions and context entries as of the start of the turn."""
        return self._prefix.system.content

    def refresh_system_prompt(self) -> None:
        """Read the context entries again, when a turn starts and when the mode changes."""
        if self._prefix.write_system_prompt(self.model.window, self._context.mode):
            self._cause = self._cause or "context entry"
        self._count_prefix()

    def set_tools(self, tools: Sequence[ToolSchema], when_folded: ToolChoice | None = None) -> None:
        """Set the tools shown to the model, and those shown after a compaction. That breaks the prompt's prefix anyway,
        so `recall` is offered then. Their schemas are part of every request."""
        self._prefix.set_tools(tools, when_folded)
        self._offer_recall()
        self._count_prefix()

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        return self._prefix.tools

    def set_forms(self, facts: ModelFacts) -> None:
        """Set the model's known forms of calls and results. One that writes its calls is shown examples."""
        if self._prefix.set_forms(facts):
            self._cause = self._cause or "call form"
            self.refresh_system_prompt()
        if not facts.takes_thinking:
            self.set_thinking(self.model.origin, "off")

    def correct_sent_forms(self, facts: ModelFacts) -> None:
        """Correct the forms of the request sent last: the server refused the original ones."""
        if self._prefix.set_forms(facts):
            self._cause = self._cause or "call form"
            self.meter.correct_sent_prefix(self._prefix.units)
            self._count_prefix()

    @property
    def forms(self) -> ModelFacts:
        return self._prefix.forms

    def render_prefix(self) -> tuple[tuple[PromptMessage, ...], tuple[ToolSchema, ...]]:
        """Render system prompt, worked calls and tool schemas in the model's forms."""
        return self._prefix.render_prefix()

    def _offer_recall(self) -> None:
        if self._context.folded:
            self._prefix.offer_recall()

    def set_mode(self, mode: ModeName) -> None:
        self._context = msgspec.structs.replace(self._context, mode=mode)
        self._cause = "mode"
        self.refresh_system_prompt()

    @property
    def mode(self) -> ModeName:
        return self._context.mode

    def set_session_id(self, session_id: str) -> None:
        """Set the session id, which is known only from the first message on."""
        self.model = msgspec.structs.replace(self.model, session_id=session_id)

    def set_window(self, window: int, model: str | None = None) -> None:
        """Change the window or model. This is always a recorded step of the conversation."""
        self._cause = "window" if model in (None, self.model.model) else "model"
        self.model = msgspec.structs.replace(self.model, window=window, model=model or self.model.model)
        self.refresh_system_prompt()

    def set_thinking(self, origin: str, replay: ReplayThinking) -> None:
        """Set whose thinking goes back, and how much of it. The thinking of other models is removed."""
        if (self.model.origin, self.model.replay) != (origin, replay):
            self.model = msgspec.structs.replace(self.model, origin=origin, replay=replay)
            self._parts.restart()
            self._history.replace_messages(self._history.messages)

    def _count_prefix(self) -> None:
        self._parts.count_prefix()
        self.meter.set_prefix_units(self._prefix.units)

    def add_message(self, message: Message, calls: Mapping[str, ToolCallRecord], primed: str = "") -> None:
        """Add a message that was just recorded. `primed` has names and texts of files for a user message. The cost does
        not depend on the length of the context."""
        if message.role == "user":
            self._begin_turn(message)
        if message.role == "assistant":
            reasoning = add_trace(self._context.reasoning, message.id, message.thinking, self.counter)
            self._context = msgspec.structs.replace(self._context, reasoning=reasoning)
        aside = self._render_aside() if message.role == "user" else ""
        if message.role != "user":
            self._told_goals = self.goals.stack
        cut = self._history.add_message(message, calls, self.compute_budget(), aside, primed)
        self.revision += 1
        if cut and not self._context.folded:
            self._context = msgspec.structs.replace(self._context, folded=True)
            self._offer_recall()
            self._count_prefix()

    def _adapt_message(self, message: PromptMessage) -> PromptMessage:
        return adapt_message(message, self.model) if message.role == "assistant" else message

    def _begin_turn(self, message: Message) -> None:
        self._request, self.just_compressed = message.id, False
        self.meter.begin_turn()
        if self.model.replay == "turn" and self._history.drop_answered_thinking():
            self._parts.restart()
            self._cause = "thinking"
        for key in self.entries.begin_turn():
            self._notices.append(Notice(level="info", text=f"Context entry {key!r} has expired."))
        self.refresh_system_prompt()

    def _render_aside(self) -> str:
        """Render volatile entries, and goals the user changed since the model's last answer."""
        changed = "" if self.goals_told else describe_goals(self.goals.stack)
        return "\n\n".join(filter(None, (self.entries.render_volatile_entries(), changed)))

    @property
    def goals_told(self) -> bool:
        """True if the model has received the current goals."""
        return self._told_goals is self.goals.stack

    def tell_goals_again(self) -> None:
        """Include the goals in the user's next message."""
        self._told_goals = GoalStack()

    def build_request_messages(self) -> tuple[PromptMessage, ...]:
        """Build the next request: the last one plus new messages."""
        cause, self._cause = self._cause, None
        self.sent_as_restored = False
        self.meter.mark_sent()
        return self._parts.build_request_messages(self._history.messages, cause)

    def preview_request(self) -> tuple[PromptMessage, ...]:
        """Return the messages of the next request without sending it."""
        return self._parts.preview_messages(self._history.messages)

    def preview_read(self) -> tuple[tuple[PromptMessage, ...], int]:
        """Return the messages that the server has read or written, and the number of the last: all but the newest
        message of the user, or the newest results with their calls."""
        groups = group_messages(self._history.messages)
        unread = groups[-1:] if groups and groups[-1][-1].role != "assistant" else []
        messages = [message for group in groups[: len(groups) - len(unread)] for message in group]
        last = max((number for message in messages for number in message.sources), default=0)
        return self._parts.preview_messages(messages), last

    def observe_usage(self, usage: Usage, exact: int | None = None, *, said_so: bool = False) -> PromptTruncated | None:
        """Observe the server's counts of the last request. Return an event if they prove that the prompt was cut: the
        window is then smaller than assumed, and the budget is corrected."""
        proof, most = self.meter.observe_usage(usage, exact, said_so=said_so), self.meter.most_read
        if proof is not None and proof.read_tokens:
            self.learn_window(max(proof.read_tokens, most), proved=said_so and proof.read_tokens >= most)
        return proof

    def learn_from_rejection(self, error: PromptTooLongError) -> None:
        """Learn from a refused request: use the server's numbers, as far as it gave them and they fit what was sent. If
        only the answer does not fit, a shorter one is requested, based on the count of the prompt."""
        window, counted, most = error.window, error.prompt_tokens, self.meter.most_read
        if counted > PLAUSIBLE_TOKENS_PER_UNIT[1] * self.used_tokens:
            window = counted = 0  # The numbers are about something else.
        if counted and not error.prompt_at_least:
            self.observe_usage(Usage(prompt_tokens=counted))
            self.meter.most_read = most
        self.learn_window(window or (0 if counted else self.model.window * 3 // 4), proved=window > most)
        if error.prompt_at_least or not counted:
            self.meter.distrust()

    def learn_window(self, tokens: int, *, proved: bool) -> None:
        """Reduce the window to the most tokens the server accepts; 0 if unknown. `proved`: the server said so, and
        accepted no more before."""
        if 0 < tokens < self.model.window:
            self.set_window(max(tokens, MIN_WINDOW_TOKENS))
            self.window_learnt = proved and tokens >= MIN_WINDOW_TOKENS

    @property
    def is_suspiciously_long(self) -> bool:
        """True if a request refused for an unknown reason may be too long: it takes much of the window, or more
        than any accepted request."""
        taken = self.meter.most_read
        return self.used_tokens > LONG_PROMPT_SHARE * self.model.window or 0 < taken < self.used_tokens

    def compute_budget(self) -> Budget:
        known = self.model.window, self.meter.prefix_units, self._prefix.record_units, self.counter.factor
        if known != self._budgeted:  # A step asks for it many times.
            records = self.counter.convert_to_tokens(self._prefix.record_units)
            fixed = max(0, self.counter.convert_to_tokens(self.meter.prefix_units) - records)
            window, self._budgeted = self.model.window, known
            self._budget = rules.compute_budget(window, fixed, records, self._settings.compression.threshold)
        return self._budget

    @property
    def message_tokens(self) -> int:
        return self.meter.message_tokens

    @property
    def thinking_tokens(self) -> int:
        """Tokens of the thinking that goes back to the model, as far as its template shows it."""
        return self.counter.convert_to_tokens(self.meter.thinking_units)

    @property
    def used_tokens(self) -> int:
        return self.meter.total_tokens

    @property
    def max_answer_tokens(self) -> int:
        return self.meter.compute_answer_tokens(self.compute_budget())

    def measure_usage(self) -> ContextUsage:
        state, last = self.compute_budget(), self.ledger.last
        return ContextUsage(
            used=self.used_tokens,
            limit=state.limit,
            window=state.window,
            trigger=state.trigger,
            fixed=state.fixed + state.checkpoints,
            thinking=self.thinking_tokens,
            reused_share=last.server_share if last else None,
            broken_by=last.broken_by if last else None,
        )

    def view_context(self, *, with_recall: bool = False) -> ContextView:
        """Return the context with its budget, for compaction."""
        return ContextView(
            system=self._prefix.system,
            context=self.get_active_context(),
            budget=self.compute_budget(),
            system_tokens=self.counter.count_message(self._prefix.system),
            request=self._request,
            recall_tokens=self._prefix.recall_tokens if with_recall else 0,
        )

    def replace_context(self, context: ActiveContext, cause: str) -> None:
        """Replace the context with a compressed or a saved one."""
        self._context = context
        self._prefix.set_checkpoints(context.checkpoints)
        self._parts.restart()
        self._cause = cause
        self._offer_recall()
        self.revision += 1
        self._count_prefix()
        self._history.replace_messages(context.messages)
        if cause == "compression":
            self.just_compressed = True
            self._told_goals = self.goals.stack  # A record of their own tells them.

    def get_active_context(self) -> ActiveContext:
        return msgspec.structs.replace(self._context, messages=tuple(self._history.messages), goals=self.goals.stack)

    def restore(self, context: ActiveContext, cause: str = "restore") -> None:
        """Restore a saved context exactly."""
        self.goals.stack = context.goals
        self._told_goals = self.goals.stack
        self._context = context
        self.refresh_system_prompt()
        folded = context.folded or bool(context.checkpoints)
        self.replace_context(msgspec.structs.replace(context, folded=folded), cause)
        self._history.count_restored()
        self.sent_as_restored = cause != "resume"

    def capture_state(self) -> ContextState:
        """Capture the state for a snapshot."""
        return ContextState(
            session_id=self.model.session_id,
            model=self.model.model,
            window=self.model.window,
            token_count=self.used_tokens,
            context=self.get_active_context(),
            user_messages=dict(self.load_words()),
            archive_tokens=max(
                self.used_tokens, self.counter.convert_to_tokens(self.meter.prefix_units + self._history.units)
            ),
            reasoning_model=bool(self._context.reasoning.traces),
        )

    def emit_notes(self, emit: Emit) -> None:
        notices, self._notices = self._notices, []
        for notice in notices:
            emit(notice)

    def _warn(self, text: str) -> None:
        self._notices.append(Notice(level="warning", text=text))

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)


def add_trace(storage: ReasoningStorage, message_id: int, text: str, counter: TokenCounter) -> ReasoningStorage:
    """Return the storage with one more trace. The archive keeps all traces in full."""
    if not text.strip():
        return storage
    trace = ReasoningTrace(message_id=message_id, text=text, tokens=counter.count_text(text))
    older, newest = storage.traces[: -(MAX_FULL_TRACES - 1)], storage.traces[-(MAX_FULL_TRACES - 1) :]
    kept = (*map(_shorten_trace, older[-(MAX_TRACES - MAX_FULL_TRACES) :]), *newest, trace)
    return ReasoningStorage(traces=kept, total_tokens=storage.total_tokens + trace.tokens)


def _shorten_trace(trace: ReasoningTrace) -> ReasoningTrace:
    if len(trace.text) <= MAX_SHORT_CHARS:
        return trace
    return msgspec.structs.replace(trace, text=trace.text[: MAX_SHORT_CHARS - 1].rstrip() + "…")
