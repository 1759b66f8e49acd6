"""What tests of the screen are made of: a painter without colour, questions, a clock, a status."""

from ollm.cli.screen.paint import Painter
from ollm.cli.screen.themes import THEMES
from ollm.domain.events import (
    ConfirmationRequested,
)
from ollm.domain.tools import ConfirmationDetails, Risk
from ollm.runtime.base import Status

PLAIN = Painter(lambda: 80, THEMES["plain"])


def details(**more: object) -> ConfirmationDetails:
    return ConfirmationDetails(
        **{"call_id": "c1", "tool": "shell", "description": "Run it", "risk": Risk.HIGH, "reason": "why", **more}  # type: ignore[arg-type]
    )


def asked(name: str, **more: object) -> ConfirmationRequested:
    return ConfirmationRequested(correlation_id=name, details=details(**more))


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def status(**more: object) -> Status:
    known = {
        "session_id": "s",
        "title": "A 日本 title",
        "model": "qwen3",
        "provider": "openai",
        "base_url": "http://user:secret@box:8080/v1",
        "window": 8192,
        "mode": "code",
        "approval": "ask",
        "workspace": "/w",
        "used": 10,
        "limit": 100,
        "trigger": 80,
    }
    return Status(**{**known, **more})  # type: ignore[arg-type]
