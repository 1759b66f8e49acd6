"""`ollm -p`: one turn, no screen. The answer goes to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from typing import Any

import msgspec

from ollm.cli.start import ChatArguments
from ollm.domain.errors import ExitCode
from ollm.domain.events import (
    AnyEvent,
    ConfirmationRequested,
    LoopDetected,
    Notice,
    PromptTruncated,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnReason,
)
from ollm.domain.tools import ConfirmationAnswer, ToolResult
from ollm.runtime.base import Attachment, CommandReply, Conversation
from ollm.system.terminal_text import strip_controls

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


def ask_once(start: ChatArguments, question: tuple[str, str], output: str) -> int:
    return asyncio.run(run_once(start, question, output))


async def run_once(start: ChatArguments, question: tuple[str, str], output: str) -> int:
    from ollm.app import open_conversation

    text, piped = question
    attachments = (Attachment(name="stdin", text=piped),) if piped.strip() else ()
    warn_if_untrusted(start)
    async with open_conversation(start.build_options(one_shot=True)) as conversation:
        gc.freeze()  # what is there now stays to the end: nothing in it to look for
        for notice in (await conversation.status()).notices:
            sys.stderr.write(f"ollm: {strip_controls(notice)}\n")
        if text.startswith("/") and not text.startswith("//") and not piped.strip():
            reply = await run_slash_command(conversation, text)
            if reply.follow_up != "send":
                print_reply(reply, output, conversation.session_id)
                return int(ExitCode.DONE if reply.ok else ExitCode.FAILED)
            text = reply.argument
        text = text[1:] if text.startswith("//") else text
        printer = TextPrinter(counts_seconds=True) if output == "text" else PRINTERS[output]()
        received = stop_on_signals(conversation)
        async with conversation.turn(text, attachments) as events:
            async for event in events:
                if isinstance(event, ConfirmationRequested):
                    await conversation.respond(event.correlation_id, ConfirmationAnswer(approved=False))
                printer.show(event)
        printer.close(conversation.session_id or "")
        return 128 + received[0] if received else int(printer.exit_code)


async def run_slash_command(conversation: Conversation, text: str) -> CommandReply:
    name, _, arguments = text[1:].partition(" ")
    return await conversation.command(name, arguments.strip())


def print_reply(reply: CommandReply, output: str, session_id: str | None) -> None:
    """What a command says is the result, and goes to stdout: as text, or as one document."""
    if output != "text":
        document = {"sessionId": session_id or "", "text": reply.text, "data": reply.data, "ok": reply.ok}
        print(msgspec.json.encode(document).decode())
    elif reply.text:
        print(strip_controls(reply.text))


def warn_if_untrusted(start: ChatArguments) -> None:
    """Nobody can be asked here: the workspace's own files are not used, which is said."""
    from ollm.app import ProcessScope
    from ollm.cli.trust_question import describe_untrusted

    if sentence := describe_untrusted(ProcessScope(workspace=start.workspace).trust_book, start.workspace):
        sys.stderr.write(f"ollm: {sentence}\n")


def stop_on_signals(conversation: Conversation) -> list[signal.Signals]:
    """The first Ctrl-C, SIGTERM or SIGHUP stops the turn and keeps what was said; those that came are in the list."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        tasks.add(loop.create_task(conversation.cancel()))

    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, stop, name)
    return received


class Printer:
    """What all three forms have in common: the outcome."""

    reason: TurnReason = "answered"
    denied = 0
    ran = 0

    def show(self, event: AnyEvent) -> None:
        if isinstance(event, TurnFinished):
            self.reason = event.reason
        elif isinstance(event, ToolFinished):
            self.denied += event.status == "denied"
            self.ran += event.status != "denied"

    @property
    def exit_code(self) -> ExitCode:
        """A turn whose calls were all denied is not done."""
        if self.reason == "answered" and self.denied and not self.ran:
            return ExitCode.DENIED
        return EXIT_CODES[self.reason]

    def close(self, session_id: str) -> None:
        """Called once, after the turn."""


class TextPrinter(Printer):
    """The answer as it comes; tools, notices and errors as single lines on stderr."""

    def __init__(self, *, counts_seconds: bool = False) -> None:
        self._last = "\n"
        self._ended = False  # a message of the model is over, and the next one has not begun
        seen = sys.stderr.isatty() and sys.stdout.isatty()
        self._wait = WaitLine() if counts_seconds and seen else None

    def show(self, event: AnyEvent) -> None:
        super().show(event)
        match event:
            case TextDelta(text=text):
                self._print_text(strip_controls(text))
            case ToolStarted():
                self._end_message()
                self._print_aside(f"· {event.summary}")
            case ToolFinished(result=result):
                self._print_outcome(result)
            case Notice():
                self._print_aside(f"ollm: {event.text}")
            case PromptTruncated():
                self._print_aside(f"ollm: the server read only {event.read_tokens} of {event.sent_tokens} tokens")
            case LoopDetected():
                self._print_aside(f"ollm: stopped, the model is looping: {event.details}")
            case TurnFinished(message=message) if message and event.reason != "loop":
                self._print_aside(f"ollm: {message}")
            case _:
                pass

    def close(self, session_id: str) -> None:
        if self._wait:
            self._wait.stop()
        if self._last != "\n":
            self._write("\n")

    def _print_text(self, text: str) -> None:
        """A blank line goes between two messages of the model."""
        if self._ended:
            text = text.lstrip("\n")
            if not text:
                return
            self._write("\n")
            self._ended = False
        self._write(text)

    def _write(self, text: str) -> None:
        if self._wait:
            self._wait.clear()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._last = text[-1:] or self._last

    def _end_message(self) -> None:
        if self._last != "\n":
            self._write("\n")
            self._ended = True

    def _print_outcome(self, result: ToolResult) -> None:
        if result.error:
            self._print_aside(f"  {result.error.message}")
        elif result.exit_code:
            self._print_aside(f"  exit code {result.exit_code}")

    def _print_aside(self, line: str) -> None:
        if self._wait:
            self._wait.clear()
        if self._last != "\n" and sys.stderr.isatty():
            sys.stderr.write("\n")
        sys.stderr.write(strip_controls(line) + "\n")


class WaitLine:
    """A line on the terminal that counts the seconds while nothing else comes."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = False
        self._timer: asyncio.TimerHandle | None = None
        self._tick()

    def clear(self) -> None:
        """Something else is printed now; the counting starts anew."""
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
            sys.stderr.write(f"\r\x1b[K\x1b[2mwaiting for the model ({seconds:.0f} s) · Ctrl-C stops\x1b[0m")
            sys.stderr.flush()
            self._shown = True
        self._timer = asyncio.get_running_loop().call_later(1, self._tick)


class JsonPrinter(Printer):
    """One document at the end: `{sessionId, text, toolCalls, usage, reason}`."""

    def __init__(self) -> None:
        self._text: list[str] = [""]  # one for each message of the model
        self._calls: list[dict[str, Any]] = []
        self._started: dict[str, ToolStarted] = {}
        self._usage: Any = {}
        self._message = ""

    def show(self, event: AnyEvent) -> None:
        super().show(event)
        match event:
            case TextDelta(text=text):
                self._text[-1] += text
            case ToolStarted():
                self._started[event.call_id] = event
                if self._text[-1]:
                    self._text.append("")
            case ToolFinished():
                self._calls.append(self._serialize_call(event))
            case Notice():
                sys.stderr.write(f"ollm: {strip_controls(event.text)}\n")
            case TurnFinished():
                self._usage, self._message = msgspec.to_builtins(event.usage), event.message
            case _:
                pass

    def close(self, session_id: str) -> None:
        document = {
            "sessionId": session_id,
            "text": "\n\n".join(text.strip("\n") for text in self._text if text.strip()),
            "toolCalls": self._calls,
            "usage": self._usage,
            "reason": self.reason,
        }
        if self._message:
            document["message"] = self._message
            sys.stderr.write(f"ollm: {strip_controls(self._message)}\n")
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")

    def _serialize_call(self, event: ToolFinished) -> dict[str, Any]:
        started = self._started.get(event.call_id)
        return {
            "id": event.call_id,
            "name": event.name,
            "args": started.args if started else {},
            "status": event.status,
            "result": msgspec.to_builtins(event.result),
        }


class StreamPrinter(Printer):
    """Every event, one JSON object a line."""

    def show(self, event: AnyEvent) -> None:
        super().show(event)
        sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
        sys.stdout.flush()


PRINTERS: dict[str, type[Printer]] = {"json": JsonPrinter, "stream-json": StreamPrinter}
