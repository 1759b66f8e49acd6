"""What events become on the screen: text printed once above the input, and what is alive just above it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ollm.cli.screen.live import LiveOutput
from ollm.cli.screen.paint import Painter
from ollm.domain.events import (
    AnyEvent,
    CheckpointCreated,
    Compressed,
    CompressionError,
    ConfirmationRequested,
    ContextUsage,
    LoopDetected,
    LoopWarning,
    ModeChanged,
    Notice,
    PrefillProgress,
    PromptTruncated,
    SnapshotError,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.messages import ImagePart
from ollm.domain.tools import Todo
from ollm.runtime.base import Status

STYLES = {"info": "dim", "warning": "yellow", "error": "red"}


class ContextFill(NamedTuple):
    """How full the window is, where compression starts, and the share of the last prompt that stood before."""

    used: int = 0
    limit: int = 0
    mark: int = 0
    reused: float | None = None


class Transcript:
    """Feed it events; it prints through `out` and keeps what is alive. Knows nothing of the terminal."""

    def __init__(self, painter: Painter, out: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self.room = ContextFill()
        self.todos: tuple[Todo, ...] = ()
        self.unfolded = False
        self.live = LiveOutput(painter, now)
        self._painter = painter
        self._out = out
        self._last_output = ""
        self._last_thought = ""
        self._shown_diffs: set[str] = set()  # calls whose change was shown with the question

    def show(self, event: AnyEvent) -> None:  # noqa: C901, PLR0912 - one line an event
        live = self.live
        match event:
            case TurnStarted():
                live.begin()
            case PrefillProgress():
                live.update_progress(event)
            case TextDelta(text=text):
                self._add_text(text)
            case ThinkingDelta(text=text):
                live.add_thinking(text)
            case ToolStarted():
                self._flush()
                live.start_tool(event)
            case ToolOutput():
                live.add_tool_output(event.call_id, event.text)
            case ToolFinished():
                self._show_finished_tool(event)
            case ContextUsage():
                self.room = ContextFill(event.used, event.limit, event.fixed + event.trigger, event.reused_share)
                live.speed.finish_answer()
            case TodosChanged():
                self.todos = event.todos
                self._print_todos()
            case Notice():
                self._print_aside(event.text, STYLES[event.level])
            case ModeChanged():
                self._print_aside(f"mode {event.from_} → {event.to} ({event.trigger})", "dim")
            case Compressed():
                self._print_aside(
                    f"compacted {event.original_token_count:,} → {event.compressed_token_count:,} tokens", "dim"
                )
            case CheckpointCreated():
                self._print_aside(f"replaced {len(event.message_ids)} messages with a summary", "dim")
            case CompressionError() | SnapshotError():
                self._print_aside(event.message, "yellow")
            case LoopWarning():
                self._print_aside(f"the model may be looping: {event.details}", "yellow")
            case LoopDetected():
                self._print_aside(f"stopped: the model is looping: {event.details} ({event.pattern})", "red")
                self._print_aside("/continue resumes and warns the model", "dim")
            case PromptTruncated():
                self._print_aside(f"the server read only {event.read_tokens} of {event.sent_tokens} tokens", "yellow")
            case ConfirmationRequested(details=details):
                self._shown_diffs.add(details.call_id)
            case TurnFinished():
                self._finish_turn(event)
            case _:
                pass

    def apply_status(self, status: Status) -> None:
        """What stands now, told between turns: a command may have changed it."""
        reused = self.room.reused
        self.room = ContextFill(status.used, status.limit, status.fixed + status.trigger, reused)
        self.todos = status.todos

    def unfold(self) -> None:
        """Show the newest folded thing in full, and everything from now on; again folds."""
        self.unfolded = not self.unfolded
        if not self.unfolded:
            self._print_aside("collapsed again", "dim")
        elif folded := self._last_output or self._last_thought:
            self._out(self._painter.paint_dim(folded))
        else:
            self._print_aside("showing tool output and thinking in full; Ctrl-O collapses them", "dim")

    def _add_text(self, text: str) -> None:
        if self.live.thinking:
            self._fold_thinking()
        for block in self.live.add_answer(text):
            self._out(self._painter.paint_markdown(block) + "\n")

    def _flush(self) -> None:
        if self.live.thinking:
            self._fold_thinking()
        if block := self.live.blocks.finish():
            self._out(self._painter.paint_markdown(block) + "\n")

    def _fold_thinking(self) -> None:
        thought = self.live.thinking.strip()
        self.live.thinking = ""
        self._last_thought, self._last_output = thought, ""
        lines = thought.count("\n") + 1
        said = thought if self.unfolded else f"thought for {lines} line{'s' * (lines > 1)} (Ctrl-O to show)"
        self._out(self._painter.paint_dim(said))

    def _show_finished_tool(self, event: ToolFinished) -> None:
        tool = self.live.end_tool(event.call_id)
        summary, result = tool.summary if tool else event.name, event.result
        self._last_output = result.full_output or result.return_display or result.llm_content
        if result.error:
            self._print_aside(f"✗ {summary} · {result.error.message}", "red")
        elif result.exit_code:
            self._print_aside(f"✗ {summary} · exit {result.exit_code} · {event.seconds:.1f} s", "red")
        else:
            self._print_aside(f"✓ {summary} · {event.seconds:.1f} s", "green")
        for image in result.images:
            self._print_aside(describe_picture(image), "dim")
        if result.diff and event.call_id not in self._shown_diffs:
            self._out(self._painter.paint_diff(result.diff))
        elif self.unfolded and self._last_output:
            self._out(self._painter.paint_dim(self._last_output))

    def _print_todos(self) -> None:
        for todo in self.todos:
            done = todo.status == "done"
            self._print_aside(f"{'☑' if done else '☐'} {todo.text}", "dim" if done else "")

    def _print_aside(self, text: str, style: str) -> None:
        self._out(self._painter.paint_aside(text, style))

    def _finish_turn(self, event: TurnFinished) -> None:
        self._flush()
        for tool in self.live.end():
            self._print_aside(f"✗ {tool.summary} · stopped", "red")
        if event.reason == "cancelled" and not event.message:
            self._print_aside("stopped", "yellow")
        elif event.message and event.reason != "loop":
            self._print_aside(event.message, "red")


def describe_picture(image: ImagePart) -> str:
    """An image by name and size: a terminal may not be able to show it."""
    return f"▣ {image.media_type}, {len(image.data) * 3 // 4 // 1024 + 1} kB"
