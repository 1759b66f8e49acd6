"""`ollm -p`: one turn, no screen. The answer goes to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.app.conversation import keep_unsent, open_conversation
from ollm.app.process import ProcessScope
from ollm.cli.start import TAKEOVER_MESSAGE, ChatArguments, Question
from ollm.cli.text_printer import Printer, TextPrinter, WaitLine, show_turn
from ollm.config.environment import copy_environment, wants_plain
from ollm.domain.context import Usage
from ollm.domain.errors import ExitCode, OllmError, UsageError
from ollm.domain.events import Event, Notice, ToolFinished, ToolStarted, TurnFinished
from ollm.runtime.base import Attachment, CommandReply, Conversation
from ollm.system.process_tree import wake_on_signals
from ollm.system.terminal_text import escape_controls, escape_json

if TYPE_CHECKING:
    from ollm.cli.answer_schema import AnswerSchema
    from ollm.cli.screen.paint import Painter

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def ask_once(start: ChatArguments, question: Question, output: str, schema: AnswerSchema | None = None) -> int:
    received: list[signal.Signals] = []
    warn_if_untrusted(start)
    try:
        code = asyncio.run(run_once(start, question, output, received, schema))
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
    if signal.SIGUSR1 in received:
        sys.stderr.write(f"ollm: {TAKEOVER_MESSAGE}\n")
    return 128 + received[0] if received else code  # A signal during the close counts too.


def keep_question(start: ChatArguments, question: Question, error: OllmError) -> None:
    """Save a prompt that could not be sent in a session, and add its id to the error."""
    piped = (Attachment(name="stdin", text=question.piped),) if question.piped.strip() else ()
    with suppress(OllmError, OSError):
        options = start.for_one_shot()
        error.session_id = asyncio.run(keep_unsent(question.text, piped, options, error))
        error.action = f"{error.action}\nYour prompt is saved: `ollm -r {error.session_id[:8]}`.".lstrip()


async def run_once(
    start: ChatArguments, question: Question, output: str, received: list[signal.Signals], schema: AnswerSchema | None
) -> int:
    """Run one turn and return the exit code, without regard to signals added to `received`."""
    if (reply := render_help_alone(start, question)) is not None:
        print_reply(reply, output, None, start)
        return int(ExitCode.DONE)
    async with AsyncExitStack() as stack:
        with WaitLine("connecting to the model server", shown=output == "text") as line:
            options = msgspec.structs.replace(start.for_one_shot(), announce=line.tell)
            conversation = await stack.enter_async_context(open_conversation(options))
        gc.freeze()  # These objects live to the end, so they need no garbage collection.
        print_notices(conversation.parts.notices)
        reply = await run_slash_command(conversation, question)
        if reply is not None and reply.follow_up != "send" and schema is None:
            print_reply(reply, output, conversation.session_id, start)
            return int(ExitCode.DONE if reply.ok else ExitCode.FAILED)
        text = (reply.argument or f"{question.text}\n\n{reply.text}") if reply else question.text
        text = text.removeprefix("/") if text.startswith("//") else text
        attachments = await collect_attachments(text, question, start, conversation)
        if output == "text":
            printer: Printer = TextPrinter(None if schema else find_painter(start), counts_seconds=True)
        else:
            printer = PRINTERS[output]()
        stop_on_signals(conversation, received)
        run = schema.run if schema else show_turn
        await run(conversation, text, attachments, printer)
        printer.cost, printer.signal = conversation.cost, next(iter(received), 0)
        printer.close(conversation.session_id or "")
    print_notices(event.text for event in conversation.parts.stream.unheard)
    return int(printer.exit_code)


def start_detached(start: ChatArguments, question: Question | None, *, alone: bool) -> int:
    """Start a turn in the daemon beside other sessions, and print the id of its session. Its questions wait."""
    if question is None or not alone:
        raise UsageError("--detach needs -p, without --schema, --check or --best-of.", action="Use `ollm -p TEXT`.")
    print(asyncio.run(send_detached(msgspec.structs.replace(start, beside=True), question)))
    return 0


async def send_detached(start: ChatArguments, question: Question) -> str | None:
    from ollm.cli.daemon import open_remote_conversation, refuse_local_flags

    refuse_local_flags(start)
    async with open_remote_conversation(start) as conversation:
        reply = await run_slash_command(conversation, question)
        text = reply.argument if reply and reply.follow_up == "send" else question.text
        attachments = await collect_attachments(text, question, start, conversation)
        async with conversation.turn(text, attachments) as events:
            await anext(aiter(events))
            await conversation.close()  # The turn goes on in the daemon.
        return conversation.session_id


async def collect_attachments(
    text: str, question: Question, start: ChatArguments, conversation: Conversation
) -> tuple[Attachment, ...]:
    """Collect piped input, and files and MCP resources named with `@`, except in piped text."""
    found = [Attachment(name="stdin", text=question.piped)] if question.piped.strip() else []
    if question.typed and "@" in text:
        from ollm.cli.screen.composing import attach_mentions

        mentioned, problems = await attach_mentions(text, start.workspace, conversation)
        found += mentioned
        print_notices(problems)
    return tuple(found)


def print_notices(texts: Iterable[str]) -> None:
    sys.stderr.writelines(f"ollm: {escape_controls(text)}\n" for text in texts)


def render_help_alone(start: ChatArguments, question: Question) -> CommandReply | None:
    """Render `/help` without a model server; None for other questions, and if MCP servers add commands."""
    name, _, arguments = question.text.partition(" ")
    if name != "/help" or question.piped.strip():
        return None
    from ollm.runtime.commands.help_text import render_help

    process = ProcessScope(workspace=start.workspace)
    if any(process.mcp_entries):
        return None
    return render_help(process.find_directories("commands", start.workspace), arguments)


async def run_slash_command(conversation: Conversation, question: Question) -> CommandReply | None:
    """Run a question that is a command; None if it is a message."""
    text = question.text
    if not text.startswith("/") or text.startswith("//") or question.piped.strip():
        return None
    name, _, arguments = text[1:].partition(" ")
    return await conversation.command(name, arguments.strip())


def find_painter(start: ChatArguments) -> Painter | None:
    """Make the painter of Markdown for a terminal; None if Markdown is printed unchanged, as for a program."""
    if not sys.stdout.isatty() or wants_plain(copy_environment()):
        return None
    from ollm.cli.screen.paint import create_terminal_painter
    from ollm.cli.screen.themes import choose_theme
    from ollm.cli.terminal import load_screen_settings

    process = ProcessScope(workspace=start.workspace, warn=lambda _: None)
    return create_terminal_painter(choose_theme(load_screen_settings(process).theme, process.environment))


def print_reply(reply: CommandReply, output: str, session_id: str | None, start: ChatArguments) -> None:
    if output != "text":
        document = {"sessionId": session_id or "", "text": reply.text, "data": reply.data, "ok": reply.ok}
        print(escape_json(msgspec.json.encode(document).decode()))
    elif reply.text and (painter := find_painter(start)):
        print(painter.paint_markdown(reply.text).rstrip("\n"))
    elif reply.text:
        print(escape_controls(reply.text))


def warn_if_untrusted(start: ChatArguments) -> None:
    """Warn that the workspace's own files are not used, since no question can be asked here."""
    state = ProcessScope(workspace=start.workspace).trust_book.get_state(start.workspace)
    if state.unanswered:
        from ollm.cli.trust import describe_untrusted

        sys.stderr.write(f"ollm: {describe_untrusted(state)}\n")


def stop_on_signals(conversation: Conversation, received: list[signal.Signals]) -> None:
    """Stop the turn and keep its messages on Ctrl-C, SIGTERM, SIGHUP, or SIGUSR1 from a process that takes over.
    Signals are added to `received`. The loop's own handlers would list all signals of the system 8 times (1 % of a
    start)."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    reading = wake_on_signals(*STOP_SIGNALS)

    def stop() -> None:
        for number in filter(STOP_SIGNALS.__contains__, os.read(reading, 512)):
            received.append(signal.Signals(number))
            tasks.add(loop.create_task(conversation.cancel()))

    loop.add_reader(reading, stop)


class JsonPrinter(Printer):
    """Printer of one document at the end: `{sessionId, text, toolCalls, usage, reason}`."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, dict[str, Any]] = {}
        self._usage = Usage()

    def show(self, event: Event) -> None:
        super().show(event)
        match event:
            case ToolStarted():
                self._calls[event.call_id] = {"id": event.call_id, "name": event.name, "args": event.args}
            case ToolFinished():
                call = self._calls.setdefault(event.call_id, {"id": event.call_id, "name": event.name, "args": {}})
                call |= {"status": event.status, "result": msgspec.to_builtins(event.result)}
            case Notice():
                print_notices([event.text])
            case TurnFinished():
                self._usage = self._usage + event.usage

    def close(self, session_id: str) -> None:
        document = {
            "sessionId": session_id,
            "text": "\n\n".join(text.strip("\n") for text in self.texts if text.strip()),
            "toolCalls": [call for call in self._calls.values() if "status" in call],
            "usage": msgspec.to_builtins(self._usage),
            "reason": self.reason,
            **dict(zip(("answer",), self.answers, strict=False)),
            **self.describe_failure(),
        }
        if self.cost:
            document["cost"] = round(self.cost, 9)
        if self.message:
            document["message"] = self.message
            print_notices([self.message])
        sys.stdout.write(escape_json(msgspec.json.encode(document).decode()) + "\n")


class StreamPrinter(Printer):
    """Printer of every event as one JSON object per line."""

    def show(self, event: Event) -> None:
        super().show(event)
        sys.stdout.write(escape_json(msgspec.json.encode(event).decode()) + "\n")
        sys.stdout.flush()

    def close(self, session_id: str) -> None:
        if failure := self.describe_failure():
            failed = {"type": "error", "sessionId": session_id, "reason": self.reason, **failure}
            sys.stdout.write(escape_json(msgspec.json.encode(failed).decode()) + "\n")


PRINTERS: dict[str, type[Printer]] = {"json": JsonPrinter, "stream-json": StreamPrinter}
