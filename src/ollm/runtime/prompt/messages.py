"""Messages for the model: rendered once, cut to their share of the window, counted from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ollm.domain.context import Budget, PromptModel
from ollm.domain.messages import (
    ImagePart,
    Message,
    PromptMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResultPart,
    put_in_fence,
)
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.prompt.token_meter import Meter
from ollm.services import budget as rules
from ollm.services.chat_compression.folding import (
    add_companions,
    cut_text,
    format_recall_call,
    get_tail_share,
    shorten_message,
)
from ollm.services.token_counting import TokenCounter, estimate_doubt_units

INTERRUPTED = "[interrupted here]"
NO_RESULT = "Error Interrupted: the call did not finish; nothing is known of its outcome."


def render_message(message: Message, calls: Mapping[str, ToolCallRecord]) -> list[PromptMessage]:
    """Render a message: none for an empty answer, one for each result of a tool message, otherwise one."""
    if message.role == "tool":
        found = [_render_result(message, part.id, calls) for part in message.parts if isinstance(part, ToolResultPart)]
        if message.text and found:
            said = found[-1].content
            found[-1] = msgspec.structs.replace(found[-1], content=f"{said}\n\n{message.text}", own_chars=len(said))
        return found
    if message.role == "assistant":
        return _render_answer(message, calls)
    images = tuple(part for part in message.parts if isinstance(part, ImagePart))
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    content = "".join([*texts[:1], *map(_fence_attachment, texts[1:])])
    return [PromptMessage(role=message.role, content=content, images=images, sources=(message.id,))]


def render_messages(messages: Iterable[Message], calls: Iterable[ToolCallRecord]) -> list[PromptMessage]:
    """Render recorded messages with the calls of their session."""
    by_id = {call.id: call for call in calls}
    return [entry for message in messages for entry in render_message(message, by_id)]


def _fence_attachment(text: str) -> str:
    """Fence an attached file or piped text, so that none of its lines can pass for the user's words."""
    name, newline, content = text.removeprefix("\n\n[").partition("]\n")
    if not text.startswith("\n\n[") or not newline or "\n" in name:
        return f"\n\n{put_in_fence(text)}"
    return f"\n\n[{name}]\n{put_in_fence(content.removesuffix(chr(10)))}"


def _render_answer(message: Message, calls: Mapping[str, ToolCallRecord]) -> list[PromptMessage]:
    asked = tuple(
        ToolCall(id=record.id, name=record.name, arguments=record.args, wire_id=record.wire_id or "")
        for record in (calls[found] for found in message.call_ids if found in calls)
    )
    text = message.text
    if message.interrupted and not asked:
        text = f"{text}\n{INTERRUPTED}".strip()
    if not text.strip() and not asked:
        return []
    thoughts = [part for part in message.parts if isinstance(part, ThinkingPart) and part.field]
    return [
        PromptMessage(
            role="assistant",
            content=text,
            thinking="".join(part.text for part in thoughts),
            thinking_field=thoughts[0].field if thoughts else "",
            thinking_details=tuple(entry for part in thoughts for entry in part.details),
            origin=message.origin,
            calls=asked,
            sources=(message.id,),
            written=message.written,
        )
    ]


def _render_result(message: Message, call_id: str, calls: Mapping[str, ToolCallRecord]) -> PromptMessage:
    record = calls.get(call_id)
    return PromptMessage(
        role="tool",
        content=format_result_text(record) if record else NO_RESULT,
        call_id=call_id,
        tool_name=record.name if record else None,
        images=record.result.images if record and record.result else (),
        sources=(message.id,),
        failed=record is None or has_failed(record),
    )


def has_failed(record: ToolCallRecord) -> bool:
    """Return True if the call failed, or the command it ran did."""
    return record.error is not None or record.result is None or bool(record.result.exit_code)


def format_result_text(record: ToolCallRecord) -> str:
    """Format a result for the model: a failure starts with `Error TYPE:` or `Exit code: N`."""
    result = record.result or RecordedResult(llm_content="")
    said = result.llm_content
    if record.error is not None:
        if said.startswith("Error "):
            return said
        known = record.error.message in said
        return f"Error {record.error.type}: " + (said if known else f"{record.error.message}\n{said}".strip())
    if record.result is None:
        return NO_RESULT
    if result.exit_code and not said.startswith("Exit code:"):
        return f"Exit code: {result.exit_code}\n{said}"
    return said or "(no output)"


MIN_RESULT_TOKENS = 60  # A result always gets this many tokens.


def limit_user_message(entry: PromptMessage, budget: Budget, counter: TokenCounter) -> PromptMessage:
    """Cut a user message if it takes more than half of the available tokens."""
    cap = rules.compute_user_cap(budget)
    if counter.count_text(entry.content) <= cap:
        return entry
    return shorten_message(entry, max(MIN_RESULT_TOKENS, cap // 2), counter.count_text)


def cut_message(entry: PromptMessage, cap: int, counter: TokenCounter) -> PromptMessage:
    """Cut a message to `cap` tokens, with a hint how to recall the rest."""
    way = format_recall_call(entry.sources[0] if entry.sources else None, entry.call_id)
    content = cut_text(entry.content, cap, counter.count_text, way, get_tail_share(entry))
    return entry if content == entry.content else msgspec.structs.replace(entry, content=content, written="")


def adapt_message(message: PromptMessage, model: PromptModel) -> PromptMessage:
    """Remove from an answer what only another model or server understands: thinking and the ids of calls."""
    if model.origin and message.origin != model.origin:
        return message.without_ids().without_thinking()
    return message.without_thinking() if model.replay == "off" else message


def drop_answered_thinking(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Remove the thinking up to the last final answer. An interrupted turn keeps its own: its work goes on."""
    ends = (place for place in range(len(messages), 0, -1) if _is_final_answer(messages[place - 1]))
    end = next(ends, 0)
    return [*(message.without_thinking() for message in messages[:end]), *messages[end:]]


def _is_final_answer(message: PromptMessage) -> bool:
    return message.role == "assistant" and not message.calls and not message.content.endswith(INTERRUPTED)


def shed_thinking(messages: Sequence[PromptMessage], excess: int, counter: TokenCounter) -> tuple[PromptMessage, ...]:
    """Remove the thinking of earlier turns, then the oldest of this one until `excess` tokens are free. The prompt
    changes near its beginning anyway, so the earlier turns give up all."""
    kept = list(messages)
    asked = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    for place, message in enumerate(messages):
        if place > asked and excess <= 0:
            break
        kept[place] = message.without_thinking()
        excess -= counter.count_message(message) - counter.count_message(kept[place])
    return tuple(kept)


MESSAGE_TOO_LONG = (
    "Your message takes more than half of the room in the context window: the model sees its beginning and end, and "
    "can look up the rest."
)


class MessageHistory:
    """The messages after the prefix. `adapt` removes what the model does not take. `warn` gets notices for the user
    about their own messages."""

    def __init__(
        self,
        counter: TokenCounter,
        meter: Meter,
        warn: Callable[[str], None],
        adapt: Callable[[PromptMessage], PromptMessage],
    ) -> None:
        self.messages: list[PromptMessage] = []
        self.units = 0.0  # Counts everything said, whatever the context keeps of it.
        self._counter = counter
        self._meter = meter
        self._warn = warn
        self._adapt = adapt
        self._step_left = 0  # The results of a step share its remaining tokens.

    def add_message(
        self, message: Message, calls: Mapping[str, ToolCallRecord], budget: Budget, aside: str = "", primed: str = ""
    ) -> bool:
        """Add a message that was just recorded. `aside` and `primed` accompany a user message. Return True if it was
        shortened. The cost does not depend on the length of the context."""
        cut = False
        new = [self._adapt(entry) for entry in render_message(message, calls)]
        if message.role == "user":
            new = [self._take_back_repeated(new[0])]
        if message.role == "tool":
            self._step_left = rules.compute_step_cap(budget, self._meter.message_tokens)
        for place, entry in enumerate(new):
            units = self._counter.count_message_units(entry)
            self.units += units
            shown = self._limit_user_message(entry, budget, aside, primed) if entry.role == "user" else entry
            if entry.role == "tool":
                shown = self._limit_result(entry, budget, len(new) - place)
            cut = cut or len(shown.content) < len(entry.content)
            self.messages.append(shown)
            units = units if shown is entry else self._counter.count_message_units(shown)
            thought = self._counter.count_units(shown.thinking) if shown.thinking else 0.0
            self._meter.add_units(units - thought, estimate_doubt_units(shown.content), thought)
        return cut

    def drop_answered_thinking(self) -> bool:
        """Drop the thinking of answered turns. Return True if there was any."""
        before, self.messages = self.messages, drop_answered_thinking(self.messages)
        if before == self.messages:
            return False
        self._recount_units()
        return True

    def replace_messages(self, messages: Sequence[PromptMessage]) -> None:
        """Replace the messages after a compression, or with those of a saved context."""
        self.messages = list(map(self._adapt, messages))
        self._recount_units()

    def count_restored(self) -> None:
        """Count the restored messages as the total so far, unless a higher total is known."""
        self.units = max(self.units, self._meter.message_units)

    def _take_back_repeated(self, entry: PromptMessage) -> PromptMessage:
        """Replace an unanswered message if the user sends it again."""
        last = self.messages[-1] if self.messages else entry
        if not self.messages or last.role != "user" or last.split_content()[0] != entry.content:
            return entry
        self.messages.pop()
        self._meter.add_units(-self._counter.count_message_units(last), -estimate_doubt_units(last.content))
        return msgspec.structs.replace(entry, sources=(*last.sources, *entry.sources))

    def _limit_result(self, entry: PromptMessage, budget: Budget, waiting: int) -> PromptMessage:
        """Cut a tool result. `waiting` results, including this one, share the remaining tokens of the step."""
        most = rules.compute_result_cap(budget, self._meter.message_tokens)
        short = cut_message(entry, max(MIN_RESULT_TOKENS, min(most, self._step_left // waiting)), self._counter)
        self._step_left -= self._counter.count_text(short.content)
        return short

    def _limit_user_message(self, entry: PromptMessage, budget: Budget, aside: str, primed: str) -> PromptMessage:
        """Cut a user message to its share of the window. The archive keeps the full text."""
        shown = limit_user_message(entry, budget, self._counter)
        if shown is not entry:
            self._warn(MESSAGE_TOO_LONG)
        return add_companions(shown, primed, aside) if primed or aside else shown

    def _recount_units(self) -> None:
        doubt = sum(estimate_doubt_units(message.content) for message in self.messages)
        thoughts = [self._counter.count_units(message.thinking) for message in self.messages]
        asked = max((at for at, message in enumerate(self.messages) if message.role == "user"), default=0)
        units = sum(map(self._counter.count_message_units, self.messages)) - sum(thoughts)
        self._meter.restart(units, doubt, (sum(thoughts[:asked]), sum(thoughts[asked:])))
