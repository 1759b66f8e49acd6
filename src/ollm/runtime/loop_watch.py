"""What the loop asks of loop detection, and the one that finds nothing: for `loopDetection.enabled: false`."""

from __future__ import annotations

from typing import Any, Protocol


class Pattern(Protocol):
    """A loop that was found: its kind, what repeats, how often."""

    @property
    def type(self) -> str: ...

    @property
    def details(self) -> str: ...

    @property
    def count(self) -> int: ...


class LoopWatch(Protocol):
    def reset(self) -> None: ...

    def record_turn(self) -> None: ...

    def record_tool_call(self, name: str, args: dict[str, Any]) -> None: ...

    def record_text(self, text: str) -> Pattern | None: ...

    def check_for_loop(self) -> Pattern | None: ...

    def warning(self) -> Pattern | None: ...


class Unwatched:
    def reset(self) -> None:
        """Nothing was kept."""

    def record_turn(self) -> None:
        """Nothing is counted."""

    def record_tool_call(self, name: str, args: dict[str, Any]) -> None:
        """Nothing is compared."""

    def record_text(self, text: str) -> Pattern | None:
        return None

    def check_for_loop(self) -> Pattern | None:
        return None

    def warning(self) -> Pattern | None:
        return None
