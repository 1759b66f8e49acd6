"""The status line: who answers, how full the window is, what it costs, where the work stands."""

from __future__ import annotations

from urllib.parse import urlsplit

from prompt_toolkit.utils import get_cwidth

from ollm.cli.printable import printable
from ollm.cli.screen.cells import cut
from ollm.cli.screen.transcript import Transcript
from ollm.runtime.base import Status

BAR = 10


def status_line(status: Status | None, transcript: Transcript, branch: str, queued: int, width: int) -> str:
    """As many parts as fit; the first ones matter most."""
    if status is None:
        return " connecting…" + (f" · {queued} queued" if queued else "")
    usage = transcript.usage
    used, limit, trigger = (
        (usage.used, usage.limit, usage.trigger) if usage else (status.used, status.limit, status.trigger)
    )
    parts = [f"{queued} queued"] if queued else []
    parts += [
        f"{printable(status.model)} @ {server(status)}",
        f"{bar(used, limit, trigger)} {percent(used, limit)}",
        f"{status.mode}·{status.approval}",
    ]
    if usage and usage.reused_share is not None:
        parts.append(f"{usage.reused_share:.0%} reused")
    if transcript.live.speed.value:
        parts.append(f"{transcript.live.speed.value:.0f} tok/s")
    if transcript.todos:
        done = sum(todo.status == "done" for todo in transcript.todos)
        parts.append(f"todo {done}/{len(transcript.todos)}")
    parts += [f"⎇ {branch}"] if branch else []
    parts += [printable(status.title)] if status.title else []
    return joined(parts, width)


def server(status: Status) -> str:
    """Where the model runs, as short as it stays clear."""
    return urlsplit(status.base_url).netloc.rpartition("@")[2] or status.provider


def joined(parts: list[str], width: int) -> str:
    line = f" {parts[0]}"
    for part in parts[1:]:
        if get_cwidth(line) + get_cwidth(part) + 3 > width - 1:
            break
        line += f" · {part}"
    return cut(line, width - 1)


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
