"""The status line: who answers, how full the window is, what it costs, where the work stands."""

from __future__ import annotations

from ollm.cli.screen.transcript import Transcript
from ollm.runtime.base import Status

BAR = 10


def status_line(status: Status | None, transcript: Transcript, branch: str, queued: int, width: int) -> str:
    """As many parts as fit; the first ones matter most."""
    if status is None:
        return " connecting…"
    usage = transcript.usage
    used = usage.used if usage else status.used
    limit = usage.limit if usage else status.limit
    trigger = usage.trigger if usage else status.trigger
    parts = [
        f" {status.model}",
        f"{bar(used, limit, trigger)} {percent(used, limit)}",
        f"{status.mode}·{status.approval}",
    ]
    if queued:
        parts.insert(0, f" {queued} queued")
    if usage and usage.reused_share is not None:
        parts.append(f"{usage.reused_share:.0%} reused")
    if transcript.speed:
        parts.append(f"{transcript.speed:.0f} tok/s")
    if transcript.todos:
        done = sum(todo.status == "done" for todo in transcript.todos)
        parts.append(f"todo {done}/{len(transcript.todos)}")
    if branch:
        parts.append(f"⎇ {branch}")
    if status.title:
        parts.append(status.title)
    return joined(parts, width)


def joined(parts: list[str], width: int) -> str:
    line = parts[0]
    for part in parts[1:]:
        if len(line) + len(part) + 3 > width - 1:
            break
        line += f" · {part}"
    return line[: width - 1]


def bar(used: int, limit: int, trigger: int) -> str:
    """How full it is, with a mark where compression starts."""
    if limit <= 0:
        return ""
    filled = min(BAR, round(BAR * used / limit))
    mark = min(BAR - 1, round(BAR * trigger / limit))
    cells = ["█" if place < filled else "░" for place in range(BAR)]
    if cells[mark] == "░":
        cells[mark] = "┊"
    return "".join(cells)


def percent(used: int, limit: int) -> str:
    return f"{100 * used // limit}%" if limit > 0 else ""
