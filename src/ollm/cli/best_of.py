"""`ollm -p TASK --best-of N`: attempts in copies of the files, of which the best one is shown and applied."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle, islice
from typing import Any

import click
import msgspec

from ollm.app import ProcessScope, open_conversation
from ollm.app.worktrees import WorktreeManager
from ollm.cli.oneshot import collect_attachments, find_theme, warn_if_untrusted
from ollm.cli.options import print_json, warn
from ollm.cli.start import ChatArguments, Question
from ollm.cli.text_printer import Printer
from ollm.config.settings import ModelSettings
from ollm.domain.errors import ExitCode, OllmError, UsageError
from ollm.domain.events import ConfirmationRequested, Event, TextDelta, ToolStarted
from ollm.domain.struct import Data
from ollm.domain.text import format_count, format_seconds
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.commands.base import fence_text
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.model.model import Model
from ollm.services.worktrees import Worktrees
from ollm.system.terminal_text import clean_lines, make_printable

MAX_PARALLEL_ATTEMPTS = 4
CHECK_TIMEOUT_SECONDS = 1800
MAX_CHECK_LINES = 10
TEMPERATURE = 0.6  # of all attempts but the first, unless one is set: at 0 they would all be the same
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class BestOf(Data, frozen=True):
    """The options: number of attempts, command that judges each, and models to take in turn."""

    count: int
    check: str = ""
    models: tuple[str, ...] = ()

    @staticmethod
    def from_options(options: Any) -> BestOf | None:
        models = tuple(filter(None, (name.strip() for name in (options["models"] or "").split(","))))
        if options["best_of"] is None and not models:
            if options["check"] is not None:
                raise UsageError(
                    "--check needs --best-of.", action="Use `ollm -p TASK --best-of 3 --check 'make test'`."
                )
            return None
        if options["check"] is not None and not options["check"].strip():
            raise UsageError("--check needs a command.", action="Use `--check 'make test'`.")
        names = {"schema": "--schema", "review": "--review", "session": "--session", "newest": "--continue"}
        unfit = [given for name, given in names.items() if options.get(name) not in (None, False)]
        if unfit or options["output"] == "stream-json":
            given = unfit[0] if unfit else "-o stream-json"
            raise UsageError(f"--best-of does not work with {given}.", action="Leave one of them out.")
        return BestOf(count=options["best_of"] or len(models), check=options["check"] or "", models=models)


class Attempt(Data, frozen=True):
    """The outcome of an attempt. `passed` is None without a check; `problem` is why there is no outcome."""

    number: int
    model: str = ""
    session_id: str = ""
    reason: str = "model-error"
    passed: bool | None = None
    files: int = 0
    changed_lines: int = 0
    seconds: float = 0.0
    answer: str = ""
    check_output: str = ""
    problem: str = ""
    exit_code: int = ExitCode.DONE
    patch: bytes = b""
    commit: str = ""

    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """Return a key that is smallest for the best attempt."""
        return (not self.passed, not self.patch, self.reason != "answered", self.changed_lines, self.number)

    def describe(self) -> str:
        check = {True: "check passed, ", False: "check failed, ", None: ""}[self.passed]
        changes = f"{format_count(self.changed_lines, 'line')} in {format_count(self.files, 'file')} changed"
        ended = f"ended early: {self.problem or self.reason}" if self.reason != "answered" else ""
        return ", ".join(filter(None, (f"{check}{changes}", ended, format_seconds(self.seconds))))


def run_best_of(start: ChatArguments, question: Question, output: str, best: BestOf) -> int:
    """Run the attempts, show the best diff and apply it after a question. Returns the exit code."""
    received: list[int] = []
    try:
        attempts = asyncio.run(_run_all(start, question, best, received))
    except asyncio.CancelledError:
        return 128 + received[0]
    chosen = min(attempts, key=Attempt.rank)
    _archive_others(start, attempts, chosen)
    if chosen.passed is False or (chosen.reason != "answered" and not chosen.patch):
        return _report_failure(attempts, chosen, output)
    applied = False
    if output == "json":
        applied = start.yes and _apply(start, chosen)
        _print_document(attempts, chosen, applied=applied)
        return ExitCode.DONE
    warn(f"chose attempt {chosen.number} of {len(attempts)}.")
    print(clean_lines(chosen.answer.strip()), file=sys.stderr)
    if not chosen.patch:
        warn("it changed no files.")
        return chosen.exit_code
    _show_diff(start, chosen.patch.decode(errors="replace"))
    if not start.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        warn("not applied. Add --yes to apply it, or pipe this output to `git apply`.")
    elif start.yes or _confirm(start):
        _apply(start, chosen)
        warn(f"applied to {format_count(chosen.files, 'file')}; nothing is committed.")
    else:
        raise OllmError("Not applied.", action=_keep(_open_worktrees(start), chosen))
    return ExitCode.DONE


def _confirm(start: ChatArguments) -> bool:
    with suppress(click.Abort):
        return click.confirm(f"Apply this to {start.workspace}?", err=True)
    return False


async def _run_all(start: ChatArguments, question: Question, best: BestOf, received: list[int]) -> list[Attempt]:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()

    def stop(number: int) -> None:
        received.append(number)
        if task and len(received) == 1:  # the copies are removed, however often it is pressed
            warn("stopping; removing the copies.")
            task.cancel()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    if question.text.startswith("/") and not question.text.startswith("//"):
        raise UsageError("--best-of needs a task, not a command.", action="Write the task in words.")
    warn_if_untrusted(start)
    start = _accept_edits(start)
    process = ProcessScope(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
    manager = WorktreeManager(process, start.workspace, warn)
    base = await asyncio.to_thread(manager.worktrees.take_snapshot)
    places = asyncio.Semaphore(await _count_places(process, best))
    names = [*islice(cycle(best.models or ("",)), best.count)]
    work = [_Attempt(start, question, best, manager, number) for number in range(1, best.count + 1)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run(base, name, places)) for one, name in zip(work, names, strict=True)]
    return [task.result() for task in tasks]


def _accept_edits(start: ChatArguments) -> ChatArguments:
    """Let attempts edit files without a question, since these are copies, unless the person set more or less."""
    settings = ProcessScope(workspace=start.workspace, flags=start.flags).settings
    if settings.policy.approval != "ask" or "policy" in start.flags:
        return start
    return msgspec.structs.replace(start, flags={**start.flags, "policy": {"approval": "accept-edits"}})


async def _count_places(process: ProcessScope, best: BestOf) -> int:
    """Count the attempts to run side by side. Several models take turns, so that a server loads each only once."""
    if len(set(best.models)) > 1:
        return 1
    model = await process.choose_model(*best.models[:1])
    try:
        return min(await model.count_places(), MAX_PARALLEL_ATTEMPTS)
    finally:
        await model.provider.close()


class _Attempt:
    """One running attempt."""

    def __init__(
        self, start: ChatArguments, question: Question, best: BestOf, manager: WorktreeManager, number: int
    ) -> None:
        self._start = start
        self._question = question
        self._best = best
        self._manager = manager
        self._number = number
        self._printer = Printer()
        self._text = ""

    async def run(self, base: str, model: str, places: asyncio.Semaphore) -> Attempt:
        async with places:
            began = time.monotonic()
            self._say("started" + (f" with {model}" if model else ""))
            try:
                done = await self._work(base, model)
            except (OllmError, OSError) as error:
                code = error.exit_code if isinstance(error, OllmError) else ExitCode.FAILED
                done = Attempt(number=self._number, model=model, problem=str(error), exit_code=code)
            done = msgspec.structs.replace(done, seconds=round(time.monotonic() - began, 1))
            self._say(done.describe())
            return done

    async def _work(self, base: str, model: str) -> Attempt:
        async with self._manager.open_copy(base) as (copy, folder):
            flags = {**self._start.flags}
            if model:
                flags["provider"] = {**flags.get("provider", {}), "model": model}
            options = msgspec.structs.replace(
                self._start.for_one_shot(), workspace=folder, works_for=self._start.workspace, flags=flags
            )
            async with open_conversation(options) as conversation:
                used = conversation.parts.state.model
                if again := (self._number - 1) // max(len(self._best.models), 1):
                    _vary_sampling(used, again)
                await self._take_turn(conversation, options)
                session_id = conversation.session_id or ""
            worktrees = self._manager.worktrees
            title = f"Attempt {self._number}"  # before the check leaves files of its own
            commit = await asyncio.to_thread(worktrees.commit_changes, copy, title)
            patch = await asyncio.to_thread(worktrees.read_patch, copy, commit)
            counts = await asyncio.to_thread(worktrees.diff, copy, "--numstat", "--no-renames", tree=commit)
            lines = [line.split("\t") for line in counts.splitlines()]
            passed, said = None, ""
            if self._best.check:
                passed, said = await self._manager.run_command(folder, self._best.check, CHECK_TIMEOUT_SECONDS)
            return Attempt(
                number=self._number,
                model=used.name,
                session_id=session_id,
                reason=self._printer.reason,
                passed=passed,
                files=len(lines),
                changed_lines=sum(int(count) for line in lines for count in line[:2] if count.isdigit()),
                answer=self._text,
                check_output=said,
                problem=self._printer.message,
                exit_code=self._printer.exit_code,
                patch=patch,
                commit=commit,
            )

    async def _take_turn(self, conversation: LocalConversation, options: ChatArguments) -> None:
        text = self._question.text.removeprefix("/")
        attachments = await collect_attachments(text, self._question, options, conversation)
        async with conversation.turn(text, attachments) as events:
            async for event in events:
                if isinstance(event, ConfirmationRequested):
                    await conversation.respond(event.correlation_id, ConfirmationAnswer(approved=False))
                self._show(event)

    def _show(self, event: Event) -> None:
        self._printer.show(event)
        if isinstance(event, TextDelta):
            self._text += event.text
        elif isinstance(event, ToolStarted):
            self._text = ""  # what was said on the way to the answer
            self._say(f"· {event.summary}")

    def _say(self, text: str) -> None:
        warn(f"attempt {self._number}: {make_printable(text)}")


def _vary_sampling(model: Model, again: int) -> None:
    """Give another attempt of a model its own seed, and a temperature at which that makes a difference."""
    own = model.settings or ModelSettings()
    seed, temperature = (own.seed or 0) + again, own.temperature or TEMPERATURE
    model.settings = msgspec.structs.replace(own, seed=seed, temperature=temperature)


def _archive_others(start: ChatArguments, attempts: Sequence[Attempt], chosen: Attempt) -> None:
    """Archive the sessions of the other attempts, so that `-c` continues with the chosen one."""
    library = ProcessScope(workspace=start.workspace, warn=lambda _: None).library
    for one in attempts:
        if one is not chosen and one.session_id:
            with suppress(OllmError):
                library.archive(one.session_id, True)


def _report_failure(attempts: Sequence[Attempt], chosen: Attempt, output: str) -> int:
    if output == "json":
        _print_document(attempts, None, applied=False)
    if chosen.passed is None:
        warn("no attempt finished.")
        return int(chosen.exit_code) or ExitCode.FAILED
    lines = chosen.check_output.strip().splitlines()[-MAX_CHECK_LINES:]
    warn(f"no attempt passed the check. The check of attempt {chosen.number} ended with:")
    print("\n".join(f"  {make_printable(line)}" for line in lines), file=sys.stderr)
    return ExitCode.FAILED


def _apply(start: ChatArguments, chosen: Attempt) -> bool:
    worktrees = _open_worktrees(start)
    try:
        worktrees.apply_patch(chosen.patch)
    except OllmError as error:
        action = f"The files changed in the meantime. {_keep(worktrees, chosen)}"
        raise OllmError(f"Not applied: {error.message}", action=action) from error
    return True


def _open_worktrees(start: ChatArguments) -> Worktrees:
    process = ProcessScope(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
    return WorktreeManager(process, start.workspace).worktrees


def _keep(worktrees: Worktrees, chosen: Attempt) -> str:
    kept = worktrees.keep_dropped("best-of", chosen.commit)
    return f"{kept} has the changes: `git diff {kept}^ {kept}`."


def _show_diff(start: ChatArguments, diff: str) -> None:
    if theme := find_theme(start):
        from ollm.cli.screen.paint import create_terminal_painter

        print(create_terminal_painter(theme).paint_markdown(fence_text(clean_lines(diff), "diff")).rstrip("\n"))
    else:
        print(diff if not sys.stdout.isatty() else clean_lines(diff), end="")
    sys.stdout.flush()


def _print_document(attempts: Sequence[Attempt], chosen: Attempt | None, *, applied: bool) -> None:
    listed = [
        {key: value for key, value in msgspec.to_builtins(one).items() if key not in ("patch", "commit")}
        for one in attempts
    ]
    diff = chosen.patch.decode(errors="replace") if chosen else ""
    text = chosen.answer.strip() if chosen else ""
    number = chosen.number if chosen else None
    print_json({"chosen": number, "text": text, "diff": diff, "applied": applied, "attempts": listed})
