"""Rendering of events on the screen: printed once above the input, or live just above it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from msgspec.structs import replace

from ollm.cli.screen.live import LiveOutput
from ollm.cli.screen.paint import Painter
from ollm.domain.events import (
    CheckpointCreated,
    Compressed,
    ConfirmationRequested,
    ConfirmationResolved,
    ContextUsage,
    Event,
    LoopDetected,
    MessageRecorded,
    ModeChanged,
    TextDelta,
    TodosChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    make_notice,
)
from ollm.domain.text import fold_lines, format_count
from ollm.domain.tools import ConfirmationDetails, Todo, ToolResult, describe_answer
from ollm.runtime.base import Status
from ollm.runtime.small_models.blocks import SHELL_LABELS

OUTCOME_CELLS = 25  # This space holds the call's mark and its outcome.
PREVIEW_HEAD_LINES, PREVIEW_TAIL_LINES = 1, 3
EXIT_NOTE = re.compile(r"\[(?:no output; )?exit code -?\d+.*\]|\[no output\]|Exit code: -?\d+")
STYLES = {"info": "dim", "warning": "yellow", "error": "red"}
RETRIED_REASONS = ("no-server", "model-error", "timeout")


class Transcript:
    """Transcript of events. Prints through `out` and holds live output, independent of the terminal."""

    def __init__(self, painter: Painter, out: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self.fill = ContextUsage(used=0, limit=0, window=0, trigger=0)
        self.todos: tuple[Todo, ...] = ()
        self.live = LiveOutput(painter, now)
        self._model = ""
        self._painter = painter
        self._out = out
        self._last_thought = ""
        self._after_call = False
        self._wants_gap = False  # True if the last printed text has no blank line below it.
        self._outputs: list[tuple[str, str]] = []  # Pairs of summary and output of the last turn's calls.
        self._outputs_past = False  # True if they belong to an earlier turn.
        self._in_turn = False
        self._shows_command = False  # True if an answer of this turn has a command for Alt-R.
        self._asked: dict[str, ConfirmationDetails] = {}
        self._shown_diffs: set[str] = set()

    def show(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._begin_turn()
            case TextDelta(text=text):
                self._add_text(text)
            case ToolStarted():
                self._flush()
            case ToolFinished():
                self._show_finished_tool(event)
            case ContextUsage():
                self.fill = event
                self.live.speed.finish_answer()
            case TodosChanged():
                self.todos = event.todos
                for todo in self.todos:
                    done = todo.status == "done"
                    self._print_aside(f"{'☑' if done else '☐'} {todo.text}", "dim" if done else "")
            case ConfirmationRequested() | ConfirmationResolved():
                self._note_question(event)
            case MessageRecorded(role="assistant"):
                self._flush()
            case TurnFinished():
                self._finish_turn(event)
            case _:
                self._show_aside(event)
        self.live.show(event)

    def _show_aside(self, event: Event) -> None:
        if notice := make_notice(event):
            self._print_aside(notice.text, STYLES[notice.level])
        match event:
            case ModeChanged():
                self._print_aside(f"mode {event.from_} → {event.to} ({event.trigger})", "dim")
            case Compressed():
                self.live.progress = None
            case CheckpointCreated():
                self._print_aside(f"replaced {format_count(len(event.message_ids), 'message')} with a summary", "dim")
            case LoopDetected():
                self._print_aside("/continue resumes and warns the model", "dim")

    def _note_question(self, event: ConfirmationRequested | ConfirmationResolved) -> None:
        """Track a question, which is printed beside its keys, and print its answer, wherever it was given."""
        if isinstance(event, ConfirmationRequested):
            if self._after_call:
                self._out("\n")
            self._asked[event.correlation_id] = event.details
            self._shown_diffs.add(event.details.call_id)
        elif (details := self._asked.pop(event.correlation_id, None)) and event.outcome != "cancelled":
            self._out(self._painter.paint_reply(describe_answer(details, event.answer)))

    def _begin_turn(self) -> None:
        self.live.begin()
        self._in_turn = self._outputs_past = True
        self._shows_command = False
        self._after_call = False
        self._last_thought = ""

    def apply_status(self, status: Status) -> None:
        """Apply a status received between turns, since a command may have changed it."""
        if status.model != self._model and self._model:  # A new model has its own speed and cache.
            self.fill, self.live.speed.value = replace(self.fill, reused_share=None), 0.0
        self._model = status.model
        self.fill = replace(self.fill, used=status.used, limit=status.limit, trigger=status.trigger, fixed=status.fixed)
        self.todos = status.todos

    def unfold(self) -> None:
        """Show the newest folded output in full, and all later output. A second call folds again."""
        self.live.unfolded = not self.live.unfolded
        if not self.live.unfolded:
            return
        if (outputs := [] if self._in_turn and self._outputs_past else self._outputs) or self._last_thought:
            if self._last_thought:
                self._out(self._painter.paint_output(self._last_thought))
            for summary, output in outputs:
                self._print_aside(summary, "bold")
                self._out(self._painter.paint_output(output or "(no output)"))
        else:
            self._print_aside("showing tool output and thinking in full; Ctrl-O collapses them", "dim")
        if not self._in_turn:
            self._out("\n")  # The next input begins below the output.

    def _add_text(self, text: str) -> None:
        if self.live.thinking:
            self._fold_thinking()
        for block in self.live.add_answer(text):
            self._print_block(block)

    def _flush(self) -> None:
        if self.live.thinking:
            self._fold_thinking()
        if block := self.live.blocks.finish():
            self._print_block(block)

    def _print_block(self, block: str) -> None:
        gap = "\n" if self._after_call else ""
        self._out(gap + self._painter.paint_answer(block, first=self.live.at_start) + "\n")
        self._shows_command |= block.partition("\n")[0].strip("`~ \n").lower() in SHELL_LABELS
        self.live.at_start = self._after_call = self._wants_gap = False

    def _fold_thinking(self) -> None:
        thought = self.live.thinking.strip()
        self.live.thinking = ""
        self._last_thought = thought
        said = thought if self.live.unfolded else f"thought for {self.live.thought_seconds:.0f} s (Ctrl-O to show)"
        self._out(self._painter.paint_aside(said, "dim"))

    def _show_finished_tool(self, event: ToolFinished) -> None:
        tool = self.live.end_tool(event.call_id)
        summary, result = " ".join((tool.summary if tool else event.name).split()), event.result
        summary = self._painter.fit_line(summary, OUTCOME_CELLS)
        output = choose_output(result)
        self._outputs, self._outputs_past = [] if self._outputs_past else self._outputs, False
        self._outputs.append((summary, output))
        self._after_call = self._wants_gap = True
        lasted = f" · {event.seconds:.1f} s" if event.seconds else ""
        if result.error:
            self._out(self._painter.paint_call("✗", "red", summary, f" · {result.error.message}"))
        elif result.exit_code:
            self._out(self._painter.paint_call("✗", "red", summary, f" · exit {result.exit_code}{lasted}"))
        else:
            self._out(self._painter.paint_call("✓", "green", summary, lasted))
        for image in result.images:
            size = len(image.data) * 3 // 4 // 1024 + 1  # The data is Base64.
            self._print_aside(f"▣ {image.media_type}, {size} kB", "dim")
        if result.diff and event.call_id not in self._shown_diffs:
            self._out(self._painter.paint_diff(result.diff))
        elif self.live.unfolded and output:
            self._out(self._painter.paint_output(output))
        elif preview := choose_preview(result):
            self._out(self._painter.paint_preview(preview))

    def _print_aside(self, text: str, style: str) -> None:
        self._out(self._painter.paint_aside(text, style))
        self._wants_gap = True

    def _finish_turn(self, event: TurnFinished) -> None:
        self._in_turn = False
        self._flush()
        for tool in self.live.end():
            self._print_aside(f"✗ {tool.summary} · stopped", "red")
        if event.reason == "cancelled" and not event.message:
            self._out(self._painter.paint_aside("stopped", "yellow") + "\n")
        elif event.message and event.reason != "loop":
            hint = "\n/retry sends it again." if event.reason in RETRIED_REASONS else ""
            self._out(self._painter.paint_aside(event.message + hint, "red") + "\n")
        elif self._shows_command:
            self._out(self._painter.paint_aside("Alt-R runs the command shown", "dim") + "\n")
        elif self._wants_gap:
            self._out("\n")
        self._wants_gap = False


def choose_output(result: ToolResult) -> str:
    if result.error and result.error.type == "Denied":
        return result.error.message
    shown = result.return_display if result.exit_code is not None else ""
    return result.full_output or shown or result.llm_content or result.return_display


def choose_preview(result: ToolResult) -> list[str]:
    """Choose the first and last lines of a command's output."""
    if result.exit_code is None or result.error:
        return []
    text = result.return_display or result.full_output or result.llm_content
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    lines = lines[:-1] if lines and EXIT_NOTE.fullmatch(lines[-1]) else lines
    return fold_lines(lines, PREVIEW_HEAD_LINES, PREVIEW_TAIL_LINES, " (Ctrl-O)")
