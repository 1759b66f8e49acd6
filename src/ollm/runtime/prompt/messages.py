"""What was said, as the model is sent it: rendered and cut once, when it is added, and counted from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ollm.domain.context import Budget
from ollm.domain.messages import Message, PromptMessage
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.prompt.message_limits import MessageLimiter
from ollm.runtime.prompt.rendering import render_message
from ollm.runtime.prompt.token_meter import Meter
from ollm.services.chat_compression.users import add_aside, add_primed
from ollm.services.token_counting import TokenCounter, estimate_doubt_units

MESSAGE_TOO_LONG = (
    "Your message takes more than half of the room in the context window: the model sees its beginning and end, and "
    "can look up the rest."
)


class MessageHistory:
    """The messages behind the prefix. `warn` hears what the user should know about their own."""

    def __init__(self, counter: TokenCounter, meter: Meter, warn: Callable[[str], None]) -> None:
        self.messages: list[PromptMessage] = []
        self.units = 0.0  # of everything said, whatever became of it in the context
        self._counter = counter
        self._meter = meter
        self._warn = warn
        self._limiter = MessageLimiter(counter)

    def add_message(
        self, message: Message, calls: Mapping[str, ToolCallRecord], budget: Budget, aside: str = "", primed: str = ""
    ) -> bool:
        """A message that was just recorded; `aside` and `primed` go with a user's. Whether it is shortened. What
        this costs does not depend on how long the context is."""
        cut = False
        new = render_message(message, calls)
        if message.role == "tool":
            self._limiter.begin_step(budget, self._meter.message_tokens)
        for place, entry in enumerate(new):
            units = self._counter.count_message_units(entry)
            self.units += units
            shown = self._limit_user_message(entry, budget, aside, primed) if entry.role == "user" else entry
            if entry.role == "tool":
                shown = self._limiter.limit_result(entry, budget, len(new) - place, self._meter.message_tokens)
            cut = cut or len(shown.content) < len(entry.content)
            self.messages.append(shown)
            units = units if shown is entry else self._counter.count_message_units(shown)
            self._meter.add_units(units, estimate_doubt_units(shown.content))
        return cut

    def replace_messages(self, messages: Sequence[PromptMessage]) -> None:
        """Others take their place: a compression, or a context that was kept."""
        self.messages = list(messages)
        self._recount_units()

    def count_restored(self) -> None:
        """What is here now was said before: it counts, if nothing more is known."""
        self.units = max(self.units, self._meter.message_units)

    def _limit_user_message(self, entry: PromptMessage, budget: Budget, aside: str, primed: str) -> PromptMessage:
        """Cut to what one message may take of the window; the whole is in the archive."""
        shown = self._limiter.limit_user_message(entry, budget)
        if shown is not entry:
            self._warn(MESSAGE_TOO_LONG)
        return msgspec.structs.replace(shown, content=add_aside(add_primed(shown.content, primed), aside))

    def _recount_units(self) -> None:
        doubt = sum(estimate_doubt_units(message.content) for message in self.messages)
        self._meter.restart(sum(map(self._counter.count_message_units, self.messages)), doubt)
