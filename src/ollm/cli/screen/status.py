"""The status line: who answers, how full the window is, what it costs, how far the work is."""

from __future__ import annotations

from urllib.parse import urlsplit

from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.cells import truncate_cells
from ollm.cli.screen.transcript import Transcript
from ollm.runtime.base import Status
from ollm.system.terminal_text import make_printable

BAR_CELLS = 10
NARROW_BAR_CELLS = 5
ALWAYS_SHOWN_PARTS = 3  # parts that are cut rather than left out
WIDE_COLUMNS = 60  # columns from which the server is named too
MIN_TITLE_CELLS = 12  # cells of a title that still say something


def format_status_line(
    status: Status | None, transcript: Transcript, branch: str, queued: int, width: int, waited: float = 0.0
) -> str:
    """As many parts as fit; the first ones matter most. Before there is a status: how long it was `waited` for."""
    if status is None:
        seconds = f" {waited:.0f} s" if waited >= 1 else ""
        return f" connecting…{seconds}" + (f" · {queued} queued" if queued else "")
    fill = transcript.fill
    parts = [f"{queued} queued"] if queued else []
    is_wide = width >= WIDE_COLUMNS
    bar = format_bar(fill.used, fill.limit, fill.mark, BAR_CELLS if is_wide else NARROW_BAR_CELLS)
    model = shorten_model(status.model)
    parts += [
        f"{bar} {format_percent(fill.used, fill.limit)}",
        f"{status.mode}·{status.approval}",
        f"{model} @ {format_server(status)}" if is_wide else model,
    ]
    parts += [f"sandbox {status.sandbox}"] if status.sandbox else []
    if fill.reused is not None:
        parts.append(f"cache {fill.reused:.0%}")
    if transcript.live.speed.value:
        parts.append(f"{transcript.live.speed.value:.0f} tok/s")
    if transcript.todos:
        done = sum(todo.status == "done" for todo in transcript.todos)
        parts.append(f"todo {done}/{len(transcript.todos)}")
    return fill_line(join_parts(parts, width), f"⎇ {branch}" if branch else "", make_printable(status.title), width)


def shorten_model(name: str) -> str:
    """A model file goes by its name, without its path."""
    name = name.replace("\\", "/").rpartition("/")[2] if name.lower().endswith(".gguf") else name
    return make_printable(name.removesuffix(".gguf"))


def format_server(status: Status) -> str:
    """Where the model runs, as short as it stays clear."""
    return urlsplit(status.base_url).netloc.rpartition("@")[2] or status.provider


def fill_line(line: str, branch: str, title: str, width: int) -> str:
    """The branch and as much of the title as fits at the right end of the line."""
    free_cells = width - 4 - get_cwidth(line)
    if branch and get_cwidth(branch) > free_cells:
        return line
    room = free_cells - (get_cwidth(branch) + 3 if branch else 0)
    if title and get_cwidth(title) > room:
        title = f"{truncate_cells(title, room - 1)}…" if room >= MIN_TITLE_CELLS else ""
    end = " · ".join(part for part in (title, branch) if part)
    return f"{line}{' ' * (width - 2 - get_cwidth(line) - get_cwidth(end))}{end} " if end else line


def join_parts(parts: list[str], width: int) -> str:
    """The parts that fit."""
    line = f" {parts[0]}"
    for number, part in enumerate(parts[1:], start=1):
        if get_cwidth(line) + get_cwidth(part) + 3 > width - 1:
            cut = number < ALWAYS_SHOWN_PARTS and width - 6 - get_cwidth(line) > 0
            short = f"{line} · {truncate_cells(part, width - 5 - get_cwidth(line))}…" if cut else line
            return truncate_cells(short, width - 1)
        line += f" · {part}"
    return truncate_cells(line, width - 1)


def format_bar(used: int, limit: int, starts: int, width: int = BAR_CELLS) -> str:
    """How full it is, with a mark where compaction starts."""
    if limit <= 0:
        return ""
    filled = min(width, round(width * used / limit))
    mark = min(width - 1, round(width * starts / limit))
    cells = ["█" if place < filled else "░" for place in range(width)]
    if cells[mark] == "░":
        cells[mark] = "┊"
    return "".join(cells)


def format_percent(used: int, limit: int) -> str:
    return f"{100 * used // limit}%" if limit > 0 else ""
