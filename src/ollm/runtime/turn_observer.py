"""Those who want to know when a turn begins and ends: the workspace's memory, hooks."""

from __future__ import annotations

from ollm.domain.context import Usage
from ollm.domain.events import TurnReason
from ollm.domain.messages import Message
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord


class TurnReport(Data, frozen=True):
    """What a turn came to."""

    session_id: str
    messages: tuple[Message, ...]
    calls: tuple[ToolCallRecord, ...]
    reason: TurnReason
    usage: Usage = Usage()

    @property
    def request(self) -> Message | None:
        return next((message for message in self.messages if message.role == "user"), None)

    @property
    def answer(self) -> str:
        return next((m.text for m in reversed(self.messages) if m.role == "assistant" and m.text), "")


class TurnObserver:
    """Called in order; one that fails is told to the user and does not stop the turn. Each does what it needs to."""

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """The session is there: new, or resumed with its context restored."""

    async def before_turn(self, text: str) -> None:
        """The user's message is recorded, the model was not connected yet. Raises DeniedError to stop the turn."""

    async def before_request(self) -> None:
        """The model is asked next, for the first time in this turn or again."""

    async def after_turn(self, report: TurnReport) -> None:
        """Everything of the turn is recorded."""

    async def context_changed(self) -> None:
        """A command changed goals, context entries or the mode; what is to outlive a crash is on disk afterwards."""

    async def session_closed(self, session_id: str) -> None:
        """The conversation ends; its parts are still there."""
