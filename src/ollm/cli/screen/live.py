"""The live area: the block being written, a thought, running tools, or the spinner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.cells import truncate_cells
from ollm.cli.screen.markdown import MarkdownBlocks
from ollm.cli.screen.paint import Painter
from ollm.domain.events import Event, PrefillProgress, ThinkingDelta, ToolOutput, ToolStarted
from ollm.domain.text import format_count, format_seconds
from ollm.system.terminal_text import clean_lines


class OutputSpeedMeter:
    """Output speed. `value`: tokens per second of the last answer, 0 before one; `tokens`: count of this answer."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.value = 0.0
        self._now = now
        self._first: float | None = None
        self.tokens = 0

    def reset(self) -> None:
        self._first, self.tokens = None, 0

    def count(self) -> None:
        if self._first is None:
            self._first = self._now()
        self.tokens += 1

    def finish_answer(self) -> None:
        if self._first is not None and self.tokens > 5 and (seconds := self._now() - self._first) > 0.2:
            self.value = self.tokens / seconds
        self.reset()


TAIL_LINES = 5
MAX_TAIL_CHARS = 4_000
OPEN_LINES = 12
STOP_HINT = " · Esc stops"
WAITING_TEXT = "waiting for the model"
WAITING = {"connecting": "connecting", "loading": "loading the model"}
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
Phase = Literal["idle", "waiting", "thinking", "answering", "tools"]


class RunningTool:
    def __init__(self, started: ToolStarted, now: float) -> None:
        self.name = started.name
        self.summary = started.summary
        self.began = now
        self.tail = ""


class LiveOutput:
    """Live output, changed by events and painted at most ten times a second."""

    def __init__(self, painter: Painter, now: Callable[[], float]) -> None:
        self.phase: Phase = "idle"
        self.blocks = MarkdownBlocks()
        self.thinking = ""
        self._thought_since = 0.0
        self.unfolded = False  # True if each call shows as many lines as there is room for.
        self.at_start = True  # False once a block of the model's message is printed.
        self.progress: PrefillProgress | None = None
        self._heard = now()
        self.speed = OutputSpeedMeter(now)
        self._painter = painter
        self._now = now
        self._tools: dict[str, RunningTool] = {}
        self._began = now()
        self._doing = WAITING_TEXT

    def begin(self, doing: str = WAITING_TEXT) -> None:
        """Begin a turn or a command, or continue a turn after its tools."""
        self.phase = "waiting"
        self._doing = doing
        self._began = self._now()
        self.progress = None
        self.at_start = True
        self.speed.reset()

    def show(self, event: Event) -> None:
        """Show an event that changes only this area, or begins a tool in it."""
        match event:
            case PrefillProgress():
                self.progress, self._heard = event, self._now()
            case ThinkingDelta(text=text):
                self._thought_since = self._thought_since if self.thinking else self._now()
                self.phase = "thinking"
                self.thinking += text
                self.speed.count()
            case ToolStarted():
                self.phase = "tools"
                self._tools[event.call_id] = RunningTool(event, self._now())
            case ToolOutput(text=text) if tool := self._tools.get(event.call_id):
                tool.tail = (tool.tail + text)[-MAX_TAIL_CHARS:]

    @property
    def thought_seconds(self) -> float:
        return self._now() - self._thought_since

    def add_answer(self, text: str) -> list[str]:
        self.phase = "answering"
        self.speed.count()
        return self.blocks.feed(text)

    def end_tool(self, call_id: str) -> RunningTool | None:
        tool = self._tools.pop(call_id, None)
        if not self._tools:
            self.begin()
        return tool

    def end(self) -> list[RunningTool]:
        """End the turn, and return the tools that were still running."""
        left = list(self._tools.values())
        self._tools.clear()
        self.phase = "idle"
        return left

    def render_lines(self, width: int, height: int) -> list[str]:
        """Render at most `height` lines, newest last, with the painter's escape sequences."""
        if self.phase == "idle":
            return []
        if self._tools:
            lines = [truncate_cells(line, width - 1) for line in self._render_tools(height)][-height:]
            return [self._tint_spinner(line) if line[:1] in SPINNER else line for line in lines]
        waiting = self._render_waiting(width - 1)
        if self.blocks.open.strip():
            painted = self._painter.paint_answer(self.blocks.render_tail(OPEN_LINES), first=self.at_start)
            return [*painted.rstrip("\n").split("\n")[-max(1, height - 1) :], waiting]
        return [waiting]

    def _render_tools(self, height: int) -> list[str]:
        """Render each call with its last lines. A task shows only its latest step until it is unfolded."""
        lines: list[str] = []
        share, hint = height // len(self._tools) - 1, " · Ctrl-O shows all"
        for tool in self._tools.values():
            folded = tool.name == "task" and not self.unfolded
            most = min(share, 1 if folded else share if self.unfolded else TAIL_LINES)
            written = [line for line in clean_lines(tool.tail).split("\n") if line.strip()]
            steps = [f"  │ {step}{hint if folded else ''}" for step in written[-most:] if most > 0]
            hint = "" if steps and folded else hint
            lines.append(f"{self._pick_spinner_frame()} {clean_lines(tool.summary)} ({self._now() - tool.began:.0f} s)")
            lines += steps
        return lines

    def _render_waiting(self, cells: int) -> str:
        seconds, frame = self._now() - self._began, self._pick_spinner_frame()
        tokens = f" · ↓ {format_count(self.speed.tokens, 'token')}" if self.speed.tokens else ""
        if self.phase in ("answering", "thinking"):
            line = f"{frame} {'writing' if self.phase == 'answering' else 'thinking'} ({seconds:.0f} s{tokens})"
        else:
            line = f"{frame} {self._describe_wait()} ({seconds:.0f} s)"
        if get_cwidth(line + STOP_HINT) > cells:
            return self._tint_spinner(truncate_cells(line, cells))
        thought = clean_lines(self.thinking[-500:]).split("\n") if self.phase == "thinking" else []
        last = next((f" · {text}" for text in reversed(thought) if text.strip()), "")
        return self._tint_spinner(truncate_cells(line + STOP_HINT + last, cells))

    def _tint_spinner(self, line: str) -> str:
        return self._painter.paint_mark(line[:1], "cyan") + line[1:]

    def _describe_wait(self) -> str:
        progress = self.progress
        if progress is None:
            return self._doing
        if progress.stage == "queued":
            return f"waiting for the server: {format_count(progress.total, 'request')} ahead"
        if progress.stage in WAITING:
            return WAITING[progress.stage]
        done, new = progress.processed - progress.cached, progress.total - progress.cached
        share = f" {100 * done // new} %" if progress.processed and new > 0 else ""
        left = (progress.seconds_left or 0) - (self._now() - self._heard)
        rest = f", about {format_seconds(left)} left" if left >= 1 else ""
        tokens = f"{progress.priced_tokens:,} new tokens" if progress.priced_tokens else ""
        if progress.seconds_left is None and new > 0 == done:
            tokens = f"{new:,} new tokens, speed not known yet"
        if progress.stage == "compacting":
            return f"compacting older messages{share}" + (f": reads {tokens}{rest}" if tokens else "")
        if progress.seconds_left and left < -max(3.0, progress.seconds_left / 2):
            return WAITING_TEXT  # The model has read the prompt and writes hidden text.
        return f"reading {tokens or 'the prompt'}{share}{rest}"

    def _pick_spinner_frame(self) -> str:
        return SPINNER[int(self._now() * 10) % len(SPINNER)]
