"""Print a turn of `ollm -p` as text: the answer to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from ollm.cli.start import TAKEOVER_MESSAGE
from ollm.domain.errors import ExitCode
from ollm.domain.events import (
    ConfirmationRequested,
    Event,
    LoopDetected,
    MessageRecorded,
    Notice,
    PrefillProgress,
    PromptTruncated,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnReason,
    make_notice,
)
from ollm.domain.text import format_seconds
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import Attachment, Conversation
from ollm.system.terminal_text import JOINERS, escape_controls

if TYPE_CHECKING:
    from ollm.cli.screen.paint import Painter

EXIT_CODES: dict[TurnReason, ExitCode] = {
    "answered": ExitCode.DONE,
    "no-server": ExitCode.NO_SERVER,
    "model-error": ExitCode.MODEL_FAILED,
    "context-full": ExitCode.FAILED,
    "loop": ExitCode.LOOP,
    "timeout": ExitCode.TIMED_OUT,
    "cancelled": ExitCode.INTERRUPTED,
    "denied": ExitCode.DENIED,
}


WAITING = "waiting for the model"
ACTIONS = {
    ExitCode.MODEL_FAILED: "Look at the server's log, then send it again: `ollm -p TEXT -c`.",
    ExitCode.DENIED: "Allow the calls with --allow GRANT, --approval accept-edits or --yes.",
    ExitCode.LOOP: "Say what to do differently with `ollm -p TEXT -c`.",
    ExitCode.SCHEMA: "Use a simpler schema or a larger model.",
    ExitCode.TIMED_OUT: "Raise provider.timeouts.firstToken or provider.timeouts.stall.",
}


class Printer:
    """Base of the three output formats, which tracks the outcome."""

    reason: TurnReason = "answered"
    denied = 0
    ran = 0
    message = ""
    signal = 0
    cost = 0.0  # The price in the settings applies.
    answers: tuple[Any, ...] = ()  # Holds the document that fits the answer's schema.
    unfit = ""  # Says why the answer does not fit its schema.
    failing = ""

    def __init__(self) -> None:
        self.texts = [""]  # The last one is the message in progress.

    def show(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self.texts[-1] += text
            case MessageRecorded(role="assistant") | ToolStarted() if self.texts[-1]:
                self.texts.append("")
            case TurnFinished():
                self.reason, self.message, self.failing = event.reason, event.message, event.failing
            case ToolFinished():
                self.denied += event.status == "denied"
                self.ran += event.status != "denied"

    @property
    def last_text(self) -> str:
        return next(filter(None, reversed(self.texts)), "")

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the turn. If all its calls were denied, it is not DONE."""
        if self.reason == "answered" and self.denied and not self.ran:
            return ExitCode.DENIED
        if self.reason == "answered" and self.unfit:
            return ExitCode.SCHEMA
        if self.reason == "answered" and self.failing:
            return ExitCode.FAILED
        return EXIT_CODES[self.reason]

    def describe_failure(self) -> dict[str, Any]:
        """Describe a failed turn for programs; {} after an answer."""
        code = ExitCode.INTERRUPTED if self.signal else self.exit_code
        if not code:
            return {}
        message = "All tool calls were denied." if code == ExitCode.DENIED else "Interrupted."
        message = f"Check still fails: {self.failing}" if self.failing and not self.signal else message
        if self.signal == signal.SIGUSR1:
            message = TAKEOVER_MESSAGE
        error = {"type": code.name.lower(), "message": self.message or message, "action": ACTIONS.get(code, "")}
        return {"exitCode": 128 + self.signal if self.signal else int(code), "error": error}

    def close(self, session_id: str) -> None:
        """Finish the output. Called once, after the turn."""


class TextPrinter(Printer):
    """Printer of the answer as it arrives; tools, notices and errors are single lines on stderr. With a painter, each
    paragraph, list, table or code block is rendered when it is complete."""

    def __init__(self, painter: Painter | None = None, *, counts_seconds: bool = False) -> None:
        super().__init__()
        self._painter = painter
        if painter:
            from ollm.cli.screen.markdown import MarkdownBlocks

            self._blocks = MarkdownBlocks()
        self.is_silent = False  # True if the answer is printed at the end.
        self._last = "\n"
        self._joiner = ""
        self._spoke = False  # True once text of the current message is printed.
        self._ended = False  # True between two messages of the model.
        self._running: dict[str, str] = {}  # Summaries of calls in progress.
        self._priced = False  # True once the time to read the prompt is printed.
        self._gap = ""
        self._wait = WaitLine(shown=counts_seconds)

    def show(self, event: Event) -> None:
        super().show(event)
        self._priced = self._priced and isinstance(event, PrefillProgress)
        if isinstance(event, MessageRecorded):
            self._wait.doing = WAITING
        match event:
            case PrefillProgress():
                self._print_price(event)
            case TextDelta(text=text) if not self.is_silent:
                self._print_text(self._show_hidden(text))
            case MessageRecorded(role="assistant"):
                self._end_message()
            case ToolStarted():
                self._end_message()
                self._running[event.call_id] = event.summary
                self._print_aside(f"· {event.summary}")
            case ToolFinished(result=result):
                several, summary = len(self._running) > 1, self._running.pop(event.call_id, event.name)
                exit_code = f"exit code {result.exit_code}" if result.exit_code else ""
                if outcome := result.error.message if result.error else exit_code:
                    self._print_aside(f"  {summary}: {outcome}" if several else f"  {outcome}")
            case Notice() | PromptTruncated() | LoopDetected():
                if notice := make_notice(event):
                    self._print_aside(f"ollm: {notice.text}")
            case TurnFinished(message=message) if message and event.reason != "loop":
                self._print_aside(f"ollm: {message}")

    def _show_hidden(self, text: str) -> str:
        """Escape hidden characters. A trailing joiner waits for the character that it may join."""
        text, self._joiner = self._joiner + text, ""
        if text.endswith(JOINERS):
            text, self._joiner = text[:-1], text[-1]
        return escape_controls(self._last + text)[len(self._last) :]

    def close(self, session_id: str) -> None:
        self._print_open_block()
        self._wait.stop()
        self._write(escape_controls(self._joiner))
        if self._last != "\n":
            self._write("\n")

    def _print_text(self, text: str) -> None:
        if self._painter:
            for block in self._blocks.feed(text):
                self._print_block(block)
            return
        if self._ended:
            text = text.lstrip("\n")
            if not text:
                return
            self._write("\n")
            self._ended = False
        self._spoke = self._spoke or bool(text)
        self._write(text)

    def _write(self, text: str) -> None:
        self._wait.clear()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._last = text[-1:] or self._last

    def _print_block(self, block: str) -> None:
        if self._painter and (painted := self._painter.paint_markdown(block)).strip():
            self._write(self._gap + painted)
            self._gap = "\n"

    def _print_open_block(self) -> None:
        if self._painter and (block := self._blocks.finish()):
            self._print_block(block)

    def _end_message(self) -> None:
        self._print_open_block()
        if self._spoke:
            self._write("" if self._last == "\n" else "\n")
            self._ended, self._spoke = True, False

    def _print_price(self, event: PrefillProgress) -> None:
        if event.priced_tokens and not self._priced:
            self._priced = True
            left = " left" if event.processed > event.cached else ""
            about = f"about {format_seconds(event.seconds_left or 0)}{left}"
            self._print_aside(f"· reads {event.priced_tokens:,} new tokens, {about}")
        elif event.stage == "reading" and event.seconds_left is None and event.total > event.processed:
            doing = f"reading {event.total - event.cached:,} new tokens, speed not known yet"
            before, self._wait.doing = self._wait.doing, doing
            if before != doing and sys.stderr.isatty() and not sys.stdout.isatty():
                self._print_aside(f"· {doing}")

    def _print_aside(self, line: str) -> None:
        self._print_open_block()
        self._wait.clear()
        if self._last != "\n" and sys.stderr.isatty():
            sys.stderr.write("\n")
        sys.stderr.write(escape_controls(line) + "\n")


async def show_turn(
    conversation: Conversation, text: str, attachments: tuple[Attachment, ...], printer: Printer
) -> None:
    """Run a turn, and refuse what would need a person."""
    async with conversation.turn(text, attachments) as events:
        async for event in events:
            if isinstance(event, ConfirmationRequested):
                await conversation.respond(event.correlation_id, ConfirmationAnswer(approved=False))
            printer.show(event)


class WaitLine:
    """A line that counts the seconds while there is no other output, if a person sees the output as it is printed."""

    def __init__(self, doing: str = WAITING, *, shown: bool = True) -> None:
        self.doing = doing
        self._began = time.monotonic()
        self._shown = False
        self._timer: asyncio.TimerHandle | None = None
        if shown and sys.stderr.isatty() and sys.stdout.isatty():
            self._tick()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def tell(self, doing: str) -> None:
        self.doing = doing

    def clear(self) -> None:
        """Restart the count before something else is printed."""
        self._began = time.monotonic()
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False

    def stop(self) -> None:
        self.clear()
        if self._timer:
            self._timer.cancel()

    def _tick(self) -> None:
        seconds = time.monotonic() - self._began
        if seconds >= 1:
            sys.stderr.write(f"\r\x1b[K\x1b[2m{self.doing} ({seconds:.0f} s) · Ctrl-C stops\x1b[0m")
            sys.stderr.flush()
            self._shown = True
        self._timer = asyncio.get_running_loop().call_later(1, self._tick)
