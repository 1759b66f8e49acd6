"""Loops a model gets into, found before they cost (S4): repeated calls, cycles, outputs and text, and more
steps than allowed.

Everything counts from the user's last message (`reset`). The runtime records each step in the order it happens:
`record_turn`, `record_text` while the answer streams, `record_output` when it is complete, `record_tool_call` for each
call before it runs, then `check_for_loop`, and `record_tool_result` when a result is there. A loop stays found until
`reset`. `check_for_warning` says what is about to become one, so that the model can be told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ollm.config.settings import LoopSettings
from ollm.domain.events import Event, LoopDetected, LoopWarning
from ollm.services.loop_detection.calls import CallTracker
from ollm.services.loop_detection.outputs import OutputTracker
from ollm.services.loop_detection.pattern import LoopPattern
from ollm.services.loop_detection.streamed_text import StreamTracker

__all__ = ["LoopDetectionService", "LoopPattern", "format_advice"]

Channel = Literal["text", "thinking"]
_log = logging.getLogger("ollm.loop_detection")


class LoopDetectionService:
    """Watches one conversation. `emit` gets `LoopDetected` once a loop, `LoopWarning` once a warning."""

    def __init__(self, settings: LoopSettings | None = None, emit: Callable[[Event], None] | None = None) -> None:
        self._emit = emit or (lambda _: None)
        self.configure(settings or LoopSettings())

    def configure(self, config: LoopSettings | Mapping[str, Any]) -> None:
        """Use these limits; what a mapping (with the YAML names) holds wrongly is replaced by its default (D615)."""
        self.settings = config if isinstance(config, LoopSettings) else _read_settings(config)
        self.reset()

    def reset(self) -> None:
        """The user has spoken: forget everything, go on."""
        self._turns = 0
        self._calls = CallTracker(self.settings.repeat_threshold)
        self._outputs = OutputTracker(self.settings.repeat_threshold)
        self._texts: dict[Channel, StreamTracker] = {}
        self._found: LoopPattern | None = None
        self._warned: set[str] = set()

    def record_turn(self) -> None:
        """A step begins: one more request to the model."""
        self._turns += 1
        self._texts = {}

    def record_tool_call(self, tool_name: str, args: Mapping[str, Any], result: str | None = None) -> None:
        """The model asked for this call. A result that is known already may be given at once."""
        is_new = self._calls.add(tool_name, args)
        self._outputs.record_call(brought_news=is_new)
        if result is not None:
            self.record_tool_result(tool_name, args, result)

    def record_tool_result(self, tool_name: str, args: Mapping[str, Any], result: str) -> None:
        """What the earliest such call that still waits for its result brought."""
        if self._calls.complete(tool_name, args, result):
            self._outputs.record_call(brought_news=True)

    def record_output(self, output: str) -> None:
        """The text of a step, complete."""
        self._outputs.add(output)

    def record_text(self, delta: str, channel: Channel = "text") -> LoopPattern | None:
        """A piece of an answer or a thought as it streams; a pattern as soon as it repeats itself."""
        if channel not in self._texts:
            self._texts[channel] = StreamTracker(channel, self.settings.repeat_threshold)
        pattern = self._texts[channel].add(delta)
        return self._keep(pattern) if pattern and self.settings.enabled else None

    def check_for_loop(self) -> LoopPattern | None:
        """The loop the conversation is in, if any. It stays until `reset`: nothing more is to be run."""
        if not self.settings.enabled:
            return None
        return self._found or self._keep(
            self._check_turn_limit() or self._calls.find_loop() or self._outputs.find_loop()
        )

    def check_for_warning(self) -> LoopPattern | None:
        """What is about to become a loop; each said once."""
        if not self.settings.enabled or self._found:
            return None
        pattern = self._calls.find_warning() or self._outputs.find_warning()
        if (
            pattern is None
            or (key := pattern.type if pattern.type == "repeated-cycle" else pattern.details) in self._warned
        ):
            return None
        self._warned.add(key)
        self._emit(LoopWarning(pattern=pattern.type, details=pattern.details, count=pattern.count))
        return pattern

    def _check_turn_limit(self) -> LoopPattern | None:
        if self._turns <= self.settings.max_turns:
            return None
        details = f"{self.settings.max_turns} model requests for one message"
        return LoopPattern(type="turn-limit", details=details, count=self._turns)

    def _keep(self, pattern: LoopPattern | None) -> LoopPattern | None:
        if pattern is not None and self._found is None:
            self._found = pattern
            self._emit(LoopDetected(pattern=pattern.type, details=pattern.details, count=pattern.count))
        return self._found


def format_advice(pattern: LoopPattern) -> str:
    """What the model is told when it is about to loop, or goes on after one."""
    return f"You are repeating yourself: {pattern.details}. Try something else, or say what is blocking you."


def _read_settings(config: Mapping[str, Any]) -> LoopSettings:
    good: dict[str, Any] = {}
    for name, value in config.items() if isinstance(config, Mapping) else ():
        try:
            msgspec.convert({name: value}, LoopSettings)
        except msgspec.ValidationError as error:
            _log.warning("loopDetection.%s: %s; the default is used", name, error)
        else:
            good[name] = value
    return msgspec.convert(good, LoopSettings)
