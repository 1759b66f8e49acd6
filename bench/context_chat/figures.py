"""What a turn of the chat came to, by the requests that passed and the events the command printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.context_chat.relay import Exchanged
from bench.context_chat.script import ChatTurn

SUMMARY_MARKS = ("clerk of a coding session", "Write the minutes")


@dataclass
class TurnFigures:
    """One line of the log; sums of them are the table at the end."""

    number: int
    kind: str
    requests: int = 0
    summaries: int = 0
    refused: int = 0
    uncounted: int = 0  # requests of which the server told no count
    over: int = 0  # prompts over the window by the server's count, or refused
    sum_over: int = 0  # prompt + max_tokens over it
    largest: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_known: bool = False
    compressions: int = 0
    calls: int = 0
    seconds: float = 0.0
    ended: str = ""
    right: bool | None = None
    visible: bool | None = None  # whether the fact asked for stood in a request of this turn
    recalled: bool = False
    answer: str = ""
    notices: list[str] = field(default_factory=list)

    def to_line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def measure_turn(
    turn: ChatTurn, seen: Sequence[Exchanged], events: Iterable[dict[str, Any]], window: int
) -> TurnFigures:
    figures = TurnFigures(turn.number, turn.kind, requests=len(seen))
    for one in seen:
        _add_request(figures, one, window)
    for event in events:
        _add_event(figures, event)
    if turn.expected:
        figures.right = turn.expected.lower() in figures.answer.lower()
        asked = [json.dumps(one.body.get("messages"), ensure_ascii=False) for one in seen if not is_summary(one)]
        figures.visible = any(turn.expected in text for text in asked)
    return figures


def is_summary(one: Exchanged) -> bool:
    messages = one.body.get("messages") or [{}]
    return any(mark in str(messages[at].get("content")) for at in (0, -1) for mark in SUMMARY_MARKS)


def _add_request(figures: TurnFigures, one: Exchanged, window: int) -> None:
    prompt = one.prompt_tokens or 0
    figures.summaries += is_summary(one)
    figures.refused += one.status >= 400
    figures.uncounted += one.prompt_tokens is None and one.status == 200
    figures.over += prompt > window
    figures.sum_over += prompt + one.max_tokens > window
    figures.largest = max(figures.largest, prompt)
    if one.cached_tokens is not None:
        figures.cache_known = True
        figures.prompt_tokens += prompt
        figures.cached_tokens += one.cached_tokens


def _add_event(figures: TurnFigures, event: dict[str, Any]) -> None:
    match event.get("type"):
        case "text-delta":
            figures.answer += event["text"]
        case "compressed":
            figures.compressions += 1
        case "tool-started":
            figures.calls += 1
            figures.recalled |= event.get("name") == "recall"
        case "turn-finished":
            figures.ended = event["reason"]
        case "notice":
            figures.notices.append(event["text"])


def describe_turn(figures: TurnFigures, window: int) -> str:
    reuse = f"{figures.cached_tokens / max(1, figures.prompt_tokens):.0%}" if figures.cache_known else "?"
    right = {True: "right", False: "wrong", None: ""}[figures.right]
    if figures.right is False and figures.visible is not None:
        right += " (was in the prompt)" if figures.visible else " (was not in the prompt)"
    said = " ".join(figures.answer.split())[:60]
    return (
        f"{figures.number:>4} {figures.kind:<6} {figures.requests:>2} requests {figures.calls:>2} calls "
        f"largest {figures.largest:>5} ({figures.largest / window:.0%}) over {figures.over}+{figures.sum_over} "
        f"compressions {figures.compressions} reused {reuse:>4} {figures.seconds:>5.0f} s {figures.ended:<9} "
        f"{right} | {said}"
    )


def describe_chat(turns: Sequence[TurnFigures], window: int) -> list[str]:
    """The table at the end."""
    asked = [one for one in turns if one.kind == "ask"]
    done = [one for one in turns if one.kind in ("edit", "output", "read") and one.right is not None]
    prompt = sum(one.prompt_tokens for one in turns)
    failed = [one for one in turns if one.ended != "answered"]
    rows = {
        "turns": len(turns),
        "requests": sum(one.requests for one in turns),
        "of them without a count by the server": sum(one.uncounted for one in turns),
        "prompts over the window": sum(one.over for one in turns),
        "prompt + max_tokens over the window": sum(one.sum_over for one in turns),
        "refused by the server": sum(one.refused for one in turns),
        "largest prompt, of the window": f"{max((one.largest for one in turns), default=0) / window:.2f}",
        "compressions": sum(one.compressions for one in turns),
        "compressions a turn": f"{sum(one.compressions for one in turns) / max(1, len(turns)):.3f}",
        "summary requests": sum(one.summaries for one in turns),
        "prompt tokens read from the cache": f"{sum(one.cached_tokens for one in turns) / prompt:.1%}"
        if prompt
        else "not said by the server",
        "facts asked for": len(asked),
        "facts answered": sum(one.right is True for one in asked),
        "facts that stood in the prompt": sum(one.visible is True for one in asked),
        "questions in which recall was called": sum(one.recalled for one in asked),
        "files changed and outputs read as asked": f"{sum(one.right is True for one in done)} of {len(done)}",
        "turns that failed": ", ".join(f"{one.number} ({one.ended})" for one in failed) or "0",
        "seconds": f"{sum(one.seconds for one in turns):.0f}",
    }
    return [f"{name:<44}{value}" for name, value in rows.items()]
