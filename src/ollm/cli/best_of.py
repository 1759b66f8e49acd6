"""`ollm -p TASK --best-of N`: attempts in copies of the files, of which the best one is shown and applied."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from ollm.app.conversation import open_conversation
from ollm.app.process import ProcessScope
from ollm.app.worktrees import WorktreeManager
from ollm.cli.oneshot import collect_attachments, find_painter, warn_if_untrusted
from ollm.cli.options import print_json, warn
from ollm.cli.start import ChatArguments, Question
from ollm.cli.text_printer import Printer, show_turn
from ollm.config.settings import ModelSettings
from ollm.domain.errors import ExitCode, OllmError, UsageError
from ollm.domain.events import Event, ToolStarted
from ollm.domain.struct import Data
from ollm.domain.text import format_count, format_seconds
from ollm.runtime.commands.base import fence_text
from ollm.services.worktrees import Worktree
from ollm.system.terminal_text import clean_lines, make_printable

MAX_PARALLEL_ATTEMPTS = 4
CHECK_TIMEOUT_SECONDS = 1800
MAX_CHECK_LINES = 10
TEMPERATURE = 0.6  # At 0, all attempts would be the same.


class BestOf(Data, frozen=True):
    """The options: number of attempts, command that judges each, and models to take in turn."""

    count: int
    check: str = ""
    models: tuple[str, ...] = ()

    @staticmethod
    def from_options(options: Any) -> BestOf | None:
        models = tuple(filter(None, (name.strip() for name in (options["models"] or "").split(","))))
        if not (options["check"] or "").strip() and (options["check"], options["check_rounds"]) != (None, None):
            raise UsageError("--check needs a command.", action="Use `--check 'make test'`.")
        if options["best_of"] is None and not models:
            return None
        names = {
            "schema": "--schema",
            "review": "--review",
            "session": "--session",
            "newest": "--continue",
            "check_rounds": "--check-rounds",
        }
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
        return (not self.passed, not self.patch, self.reason != "answered", self.changed_lines, self.number)

    def describe(self) -> str:
        check = {True: "check passed, ", False: "check failed, ", None: ""}[self.passed]
        changes = f"{format_count(self.changed_lines, 'line')} in {format_count(self.files, 'file')} changed"
        ended = f"ended early: {self.problem or self.reason}" if self.reason != "answered" else ""
        return ", ".join(filter(None, (f"{check}{changes}", ended, format_seconds(self.seconds))))


def run_best_of(start: ChatArguments, question: Question, output: str, best: BestOf) -> int:
    """Run the attempts, show the best diff and apply it after a question. Returns the exit code."""
    runner = _BestOfRunner(start, question, best)
    attempts = asyncio.run(runner.run())
    chosen = min(attempts, key=Attempt.rank)
    runner.archive([one.session_id for one in attempts if one is not chosen])
    if chosen.passed is False or (chosen.reason != "answered" and not chosen.patch):
        return _report_failure(attempts, chosen, output)
    if output == "json":
        if start.yes:
            runner.apply(chosen)
        _print_document(attempts, chosen, applied=start.yes)
        return ExitCode.DONE
    return _offer(runner, start, chosen, len(attempts))


def _offer(runner: _BestOfRunner, start: ChatArguments, chosen: Attempt, count: int) -> int:
    warn(f"chose attempt {chosen.number} of {count}.")
    print(clean_lines(chosen.answer.strip()), file=sys.stderr)
    if not chosen.patch:
        warn("it changed no files.")
        return chosen.exit_code
    _show_diff(start, chosen.patch.decode(errors="replace"))
    if not start.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        warn("not applied. Add --yes to apply it, or pipe this output to `git apply`.")
    elif start.yes or _confirm(start):
        runner.apply(chosen)
        warn(f"applied to {format_count(chosen.files, 'file')}; nothing is committed.")
    else:
        raise OllmError("Not applied.", action=runner.keep(chosen))
    return ExitCode.DONE


def _confirm(start: ChatArguments) -> bool:
    with suppress(click.Abort):
        return click.confirm(f"Apply this to {start.workspace}?", err=True)
    return False


class _BestOfRunner:
    """The attempts of one task, and what becomes of their changes."""

    def __init__(self, start: ChatArguments, question: Question, best: BestOf) -> None:
        if question.text.startswith("/") and not question.text.startswith("//"):
            raise UsageError("--best-of needs a task, not a command.", action="Write the task in words.")
        self._process = ProcessScope(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
        self._manager = WorktreeManager(self._process, start.workspace, warn)
        self._question = question
        self._best = best
        self._start = start
        if self._process.settings.policy.approval == "ask" and "policy" not in start.flags:
            # the attempts edit copies
            self._start = replace(start, flags={**start.flags, "policy": {"approval": "accept-edits"}})

    async def run(self) -> list[Attempt]:
        warn_if_untrusted(self._start)
        base = await asyncio.to_thread(self._manager.worktrees.take_snapshot)
        places = asyncio.Semaphore(await self._count_places())
        names = islice(cycle(self._best.models or ("",)), self._best.count)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run_attempt(*one, base, places)) for one in enumerate(names, start=1)]
        return [task.result() for task in tasks]

    async def _count_places(self) -> int:
        if len(set(self._best.models)) > 1:
            return 1
        model = await self._process.model_chooser.choose(*self._best.models[:1])
        try:
            return min(await model.count_places(), MAX_PARALLEL_ATTEMPTS)
        finally:
            await model.provider.close()

    async def _run_attempt(self, number: int, model: str, base: str, places: asyncio.Semaphore) -> Attempt:
        async with places:
            began, printer = time.monotonic(), AttemptPrinter(number)
            printer.say("started" + (f" with {model}" if model else ""))
            try:
                async with self._manager.open_copy(base) as (copy, folder):
                    done = await self._ask(number, model, folder, printer)
                    done = await self._judge(done, copy, folder)
            except (OllmError, OSError) as error:
                code = error.exit_code if isinstance(error, OllmError) else ExitCode.FAILED
                done = Attempt(number=number, model=model, problem=str(error), exit_code=code)
            done = replace(done, seconds=round(time.monotonic() - began, 1))
            printer.say(done.describe())
            return done

    async def _ask(self, number: int, model: str, folder: Path, printer: Printer) -> Attempt:
        """Let the model work in a copy. Another attempt of the same model gets its own seed."""
        flags, text = self._start.flags, self._question.text.removeprefix("/")
        if model:
            flags = {**flags, "provider": {**flags.get("provider", {}), "model": model}}
        options = replace(self._start.for_one_shot(), workspace=folder, works_for=self._start.workspace, flags=flags)
        async with open_conversation(options) as conversation:
            used = conversation.parts.state.model
            if again := (number - 1) // max(len(self._best.models), 1):
                own = used.settings or ModelSettings()
                seed, temperature = (own.seed or 0) + again, own.temperature or TEMPERATURE
                used.settings = replace(own, seed=seed, temperature=temperature)
            attachments = await collect_attachments(text, self._question, options, conversation)
            await show_turn(conversation, text, attachments, printer)
            return Attempt(
                number=number,
                model=used.name,
                session_id=conversation.session_id or "",
                reason=printer.reason,
                answer=printer.last_text,
                problem=printer.message,
                exit_code=printer.exit_code,
            )

    async def _judge(self, done: Attempt, copy: Worktree, folder: Path) -> Attempt:
        """Commit and measure the changes, before the check leaves files of its own, and run it."""
        trees = self._manager.worktrees
        commit = await asyncio.to_thread(trees.commit_changes, copy, f"Attempt {done.number}")
        patch = await asyncio.to_thread(trees.read_patch, copy, commit)
        counts = await asyncio.to_thread(trees.diff, copy, "--numstat", "--no-renames", tree=commit)
        lines = [line.split("\t") for line in counts.splitlines()]
        changed = sum(int(count) for line in lines for count in line[:2] if count.isdigit())
        passed, said = None, ""
        if self._best.check:
            code, said = await self._manager.run_command(folder, self._best.check, CHECK_TIMEOUT_SECONDS)
            passed = code == 0
        found = {"files": len(lines), "changed_lines": changed, "passed": passed, "check_output": said}
        return replace(done, commit=commit, patch=patch, **found)

    def archive(self, session_ids: Iterable[str]) -> None:
        """Archive the sessions of the other attempts, so that `-c` continues with the chosen one."""
        for session_id in filter(None, session_ids):
            with suppress(OllmError):
                self._process.library.archive(session_id, True)

    def apply(self, chosen: Attempt) -> None:
        try:
            self._manager.worktrees.apply_patch(chosen.patch)
        except OllmError as error:
            action = f"The files changed in the meantime. {self.keep(chosen)}"
            raise OllmError(f"Not applied: {error.message}", action=action) from error

    def keep(self, chosen: Attempt) -> str:
        """Keep the changes as a commit, and return a sentence that names it."""
        kept = self._manager.worktrees.keep_dropped("best-of", chosen.commit)
        return f"{kept} has the changes: `git diff {kept}^ {kept}`."


class AttemptPrinter(Printer):
    """Printer of the calls of an attempt."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def show(self, event: Event) -> None:
        super().show(event)
        if isinstance(event, ToolStarted):
            self.say(f"· {event.summary}")

    def say(self, text: str) -> None:
        warn(f"attempt {self._number}: {make_printable(text)}")


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


def _show_diff(start: ChatArguments, diff: str) -> None:
    if painter := find_painter(start):
        print(painter.paint_markdown(fence_text(clean_lines(diff), "diff")).rstrip("\n"))
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
