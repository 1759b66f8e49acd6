"""What events become on the screen: text printed once above the input, and what is alive just above it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from ollm.cli.screen.blocks import Blocks
from ollm.cli.screen.paint import Painter, clean
from ollm.domain.events import (
    AnyEvent,
    CheckpointCreated,
    Compressed,
    ContextUsage,
    LoopDetected,
    LoopWarning,
    ModeChanged,
    Notice,
    PrefillProgress,
    PromptTruncated,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.tools import Todo

TAIL_LINES = 5
OPEN_LINES = 12
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STYLES = {"info": "dim", "warning": "yellow", "error": "red"}
Phase = Literal["idle", "waiting", "thinking", "answering", "tools"]


class RunningTool:
    """A call under way, with the last lines it printed."""

    def __init__(self, started: ToolStarted, now: float) -> None:
        self.summary = started.summary
        self.began = now
        self.tail = ""

    def hear(self, text: str) -> None:
        self.tail = (self.tail + text)[-4000:]


class Transcript:
    """Feed it events; it prints through `out` and keeps what is alive. Knows nothing of the terminal."""

    def __init__(self, painter: Painter, out: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self.usage: ContextUsage | None = None
        self.todos: tuple[Todo, ...] = ()
        self.phase: Phase = "idle"
        self.speed = 0.0
        self.unfolded = False
        self.last_finished: ToolFinished | None = None
        self._painter = painter
        self._out = out
        self._now = now
        self._blocks = Blocks()
        self._thinking = ""
        self._tools: dict[str, RunningTool] = {}
        self._progress: PrefillProgress | None = None
        self._began = now()
        self._first: float | None = None
        self._pieces = 0

    def show(self, event: AnyEvent) -> None:  # noqa: C901, PLR0912 - one line an event
        match event:
            case TurnStarted():
                self._begin()
            case PrefillProgress():
                self._progress = event
            case TextDelta(text=text):
                self._text(text)
            case ThinkingDelta(text=text):
                self.phase = "thinking"
                self._thinking += text
                self._count()
            case ToolStarted():
                self._flush()
                self.phase = "tools"
                self._tools[event.call_id] = RunningTool(event, self._now())
            case ToolOutput() if event.call_id in self._tools:
                self._tools[event.call_id].hear(event.text)
            case ToolFinished():
                self._finished(event)
            case ContextUsage():
                self.usage = event
                self._answered()
            case TodosChanged():
                self.todos = event.todos
                self._todo_list()
            case Notice():
                self._aside(event.text, STYLES[event.level])
            case ModeChanged():
                self._aside(f"mode {event.from_} → {event.to} ({event.trigger})", "dim")
            case Compressed():
                self._aside(f"folded {event.original_token_count} → {event.compressed_token_count} tokens", "dim")
            case CheckpointCreated():
                self._aside(f"summary of {len(event.message_ids)} messages kept in their place", "dim")
            case LoopWarning():
                self._aside(f"the model seems to repeat itself: {event.details}", "yellow")
            case LoopDetected():
                self._aside(f"stopped, it runs in circles: {event.details}. /continue goes on.", "red")
            case PromptTruncated():
                self._aside(f"the server read only {event.read_tokens} of {event.sent_tokens} tokens", "yellow")
            case TurnFinished():
                self._end(event)
            case _:
                pass

    def live(self, width: int, height: int) -> list[str]:
        """The lines that are alive now, newest last; plain text."""
        if self.phase == "idle":
            return []
        lines: list[str] = []
        mark = SPINNER[int(self._now() * 10) % len(SPINNER)]
        seconds = self._now() - self._began
        if self._tools:
            for tool in self._tools.values():
                lines.append(f"{mark} {clean(tool.summary)} ({self._now() - tool.began:.0f} s)")
                tail = [line for line in clean(tool.tail).split("\n") if line.strip()][-TAIL_LINES:]
                lines += [f"  │ {line}" for line in tail]
        elif self._blocks.open.strip():
            lines += clean(self._blocks.open).split("\n")[-OPEN_LINES:]
        elif self.phase == "thinking":
            last = next((line for line in reversed(clean(self._thinking).split("\n")) if line.strip()), "")
            lines.append(f"{mark} thinking ({seconds:.0f} s) {last}")
        else:
            lines.append(f"{mark} {self._waiting_for()} ({seconds:.0f} s) · Esc stops")
        return [line[: width - 1] for line in lines[-height:]]

    def _begin(self) -> None:
        self.phase = "waiting"
        self._began = self._now()
        self._progress = None
        self._reset_counters()

    def _waiting_for(self) -> str:
        progress = self._progress
        if progress is None:
            return "waiting for the model"
        if progress.stage != "reading":
            return "connecting" if progress.stage == "connecting" else "the server loads the model"
        if progress.total:
            return f"reading the prompt {100 * progress.processed // progress.total} %"
        return "reading the prompt"

    def _text(self, text: str) -> None:
        if self._thinking:
            self._fold_thinking()
        self.phase = "answering"
        self._count()
        for block in self._blocks.feed(text):
            self._out(self._painter.markdown(block) + "\n")

    def _flush(self) -> None:
        if self._thinking:
            self._fold_thinking()
        if block := self._blocks.end():
            self._out(self._painter.markdown(block) + "\n")

    def _fold_thinking(self) -> None:
        lines = self._thinking.strip().count("\n") + 1
        text = self._thinking.strip() if self.unfolded else f"thought for {lines} line{'s' * (lines > 1)}"
        self._out(self._painter.dim(text))
        self._thinking = ""

    def _finished(self, event: ToolFinished) -> None:
        tool = self._tools.pop(event.call_id, None)
        self.last_finished = event
        summary = tool.summary if tool else event.name
        result = event.result
        if result.error:
            self._aside(f"✗ {summary} · {result.error.type}: {result.error.message}", "red")
        else:
            exit_code = f" · exit {result.exit_code}" if result.exit_code else ""
            self._aside(f"✓ {summary}{exit_code} · {event.seconds:.1f} s", "green" if not exit_code else "yellow")
        if result.diff:
            self._out(self._painter.diff(result.diff))
        elif self.unfolded and (result.return_display or result.llm_content):
            self._out(self._painter.dim(result.return_display or result.llm_content))
        if not self._tools:
            self.phase = "waiting"
            self._began = self._now()

    def _todo_list(self) -> None:
        for todo in self.todos:
            done = todo.status == "done"
            self._aside(f"{'☑' if done else '☐'} {todo.text}", "dim" if done else "")

    def _aside(self, text: str, style: str) -> None:
        self._out(self._painter.aside(text, style))

    def _end(self, event: TurnFinished) -> None:
        self._flush()
        for tool in self._tools.values():
            self._aside(f"✗ {tool.summary} · stopped", "red")
        self._tools.clear()
        self.phase = "idle"
        if event.reason == "cancelled" and not event.message:
            self._aside("stopped", "yellow")
        elif event.message and event.reason != "loop":
            self._aside(event.message, "red")

    def _reset_counters(self) -> None:
        self._first, self._pieces = None, 0

    def _count(self) -> None:
        if self._first is None:
            self._first = self._now()
        self._pieces += 1

    def _answered(self) -> None:
        """A piece is about a token: enough for a speed."""
        if self._first is not None and self._pieces > 5 and (seconds := self._now() - self._first) > 0.2:
            self.speed = self._pieces / seconds
        self._reset_counters()
