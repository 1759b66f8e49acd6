"""`ollm compare`: tasks of your own, run with several models in their own repositories, and a table of who passed."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import click
from msgspec import convert
from msgspec.structs import replace

from ollm.app.process import ProcessScope
from ollm.app.worktrees import WorktreeManager
from ollm.cli.commands import CommandTable, LazyGroup
from ollm.cli.options import confirm_or_fail, format_table, print_result, shared_options, warn
from ollm.cli.text_printer import WaitLine
from ollm.config.settings import Check
from ollm.domain.errors import OllmError, UsageError
from ollm.domain.messages import PromptMessage
from ollm.domain.text import format_count, shorten_line
from ollm.runtime.model.model import iterate_text
from ollm.services.chat_compression.summary import clean_answer
from ollm.services.compare import (
    KEPT_FILES,
    MAX_TOLD_LINES,
    NEWEST,
    TASK_FILE,
    CompareTask,
    TaskRepository,
    add_tasks,
    find_new_modules,
    find_results,
    format_tasks,
    load_tasks,
    parse_limit,
)
from ollm.system.atomic import make_private_directory
from ollm.system.locks import OwnerLock
from ollm.system.terminal_text import clean_lines

COMMANDS: CommandTable = {
    "add": ("ollm.cli.compare:add", "Add a task."),
    "list": ("ollm.cli.compare:list_tasks", "List the tasks."),
    "run": ("ollm.cli.compare_run:run", "Run tasks with models; goes on where it was stopped."),
    "best": ("ollm.cli.compare_results:best", "Name the best model for each role, and set it."),
    "show": ("ollm.cli.compare_results:show", "Show the newest results."),
}


@click.command(cls=LazyGroup, table=COMMANDS)
def compare() -> None:
    """Compare models by your own tasks, on your own machine.

    The tasks are in .ollm/tasks.yaml. Each run works in a repository of its own; your files stay as they are.
    """


@click.command("list")
@shared_options("workspace", "json")
def list_tasks(workspace: Path, as_json: bool) -> None:
    """List the tasks of this project."""
    tasks = load_tasks(workspace)
    rows = [(name, one.start[:12], one.limit, shorten_line(one.request, 60)) for name, one in tasks.items()]
    empty = "No tasks yet: `ollm compare add` makes one."
    print_result(tasks, format_table(("task", "start", "limit", "request"), rows, empty), as_json=as_json)


@click.command()
@click.argument("name", required=False)
@click.option("--request", metavar="TEXT", help="What the model is asked.")
@click.option("--check", metavar="COMMAND", help="Passes when the work is done, and fails before.")
@click.option("--start", metavar="COMMIT", help="Where the work begins (default: the last commit).")
@click.option("--from-session", metavar="ID", help="Take request, start and check from a session.")
@click.option(
    "--from-commits", is_flag=False, flag_value=NEWEST, metavar="[RANGE]", help="Make tasks of commits with tests."
)
@click.option("--rewrite", metavar="MODEL", help="Let a model write requests from commit messages.")
@click.option("--setup", metavar="COMMAND", multiple=True, help="Run before the work and before the check.")
@click.option("--keep", metavar="GLOB", multiple=True, help="Files whose changes do not count (default: tests).")
@click.option("--limit", default="10m", show_default=True, metavar="TIME", help="For the work, and for the check.")
@click.option("--allow-network", "network", is_flag=True, help="It needs a network; `run --network` allows it.")
@shared_options("workspace", "yes")
def add(name: str | None, workspace: Path, yes: bool, **options: Any) -> None:
    """Add a task: a request, the commit to start from, and a check. It is shown before it is written."""
    load_tasks(workspace)  # It reports a mistake in the file before anything runs.
    parse_limit(options["limit"])
    space, options["keep"] = CompareSpace(workspace), options["keep"] or KEPT_FILES
    session, commits, writer = (options.pop(key) for key in ("from_session", "from_commits", "rewrite"))
    if writer and not commits:
        raise UsageError("--rewrite goes with --from-commits.")
    options |= space.read_session(session, options) if session else {}
    tasks = space.make_tasks(commits, name, options, writer) if commits else _make_task(space, name, options)
    print(clean_lines(format_tasks(tasks)), end="", flush=True)
    confirm_or_fail(f"Add {format_count(len(tasks), 'task')} to {workspace / TASK_FILE}?", yes)
    trust_book = space.process.trust_book
    before = trust_book.get_state(workspace)
    add_tasks(workspace, tasks)
    if before.trusted or not before.files:  # The workspace stays trusted if it was.
        trust_book.trust(workspace)
    warn(f"added {format_count(len(tasks), 'task')}. Next: `ollm compare run --models A,B`.")


def _make_task(space: CompareSpace, name: str | None, options: dict[str, Any]) -> dict[str, CompareTask]:
    if options["start"] is None and (changed := space.repository.list_uncommitted()):
        raise UsageError(
            f"Not committed: {shorten_line(', '.join(changed), 60)}. A task starts from a commit.",
            action="Commit your work, or choose the start with --start HEAD.",
        )
    start = space.repository.resolve(options["start"] or "HEAD")
    name = name or _ask("Name of the task")
    asked = {key: options[key] or _ask(key.capitalize()) for key in ("request", "check")}
    task = CompareTask(**{**options, **asked, "start": start})
    with space.lock():
        done = asyncio.run(space.require_failing_start(name, task, network=True))
    warn(f"the check fails at the start, as it should:\n{clean_lines(cut_output(done))}")
    return {name: task}


def _ask(what: str) -> str:
    if not sys.stdin.isatty():
        raise UsageError(f"{what} is missing.", action="Give NAME, --request TEXT and --check COMMAND.")
    return str(click.prompt(what, err=True)).strip()


TIMED_OUT = 124
FAULTS = {
    0: "passes at the start",
    TIMED_OUT: "does not end in time",
    126: "cannot run",
    127: "cannot run",
}  # These are exit codes of shells.
FIND_MODULES = "import sys, importlib.machinery as m; print(*filter(m.PathFinder.find_spec, sys.argv[1:]))"
MAX_SHOWN_LINES = 8
MAX_REWRITE_TOKENS = 800  # A model may think before it answers.
REWRITE_ORDER = (
    "Below are the message of a commit and what its tests say without it. Write the request of a user who wants this "
    "change: what the program should do, with each name and value that the tests need, but not how to change the code. "
    "Two to six sentences, without code. Answer with the request alone."
)


class CompareSpace:
    """The place for the runs of one workspace's tasks: a folder beside its repository, removed afterwards."""

    def __init__(self, workspace: Path) -> None:
        self.process = ProcessScope(workspace=workspace)
        self.results = find_results(self.process.home.root, workspace)
        self._manager = WorktreeManager(self.process, workspace)
        trees = self._manager.worktrees
        self.repository = TaskRepository(trees.here, trees.prefix, self.process.environment)
        self._hidden = [str(trees.here), str(trees.top), str(trees.directory)]
        self._folder = trees.here.with_name(
            f".{trees.here.name}.compare"
        )  # The prompt names it, so all runs have the same.

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others out. One comparison runs at a time: two would share a server, and measure each other."""
        make_private_directory(self.process.home.run)
        lock = OwnerLock(self.process.home.run / "compare.lock")
        lock.acquire("`ollm compare`")
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # Under `nohup`, SIGHUP stays ignored.
                signal.signal(number, signal.default_int_handler)
        try:
            yield
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            lock.release()

    def make_flags(self, task: CompareTask, *, network: bool) -> dict[str, Any]:
        """Return the settings of a run: it sees nothing of the workspace, and has a network only if both allow it."""
        own = self.process.settings.sandbox
        sandbox = {
            "mode": "off" if own.mode == "off" else "require",
            "network": "all" if network and task.network else "none",
            "hidden": [*own.hidden, *self._hidden],
        }
        return {"sandbox": sandbox, "checkpoints": {"enabled": False}}

    async def prepare(self, task: CompareTask, name: str, flags: dict[str, Any]) -> Path:
        """Make a repository for a task, run its set-up, and return its top."""
        top, seconds = self._folder / name / self.repository.top.name, parse_limit(task.limit)
        await asyncio.to_thread(self.repository.create, task, top)
        for command in task.setup:
            code, output = await self._manager.run_command(top / self.repository.prefix, command, seconds, flags)
            if code:
                raise OllmError(f"The set-up failed: {command}\n{cut_output(output)}", action="Correct `setup`.")
        return top

    async def check(
        self, task: CompareTask, flags: dict[str, Any], worked: Path | None = None
    ) -> tuple[int, str, tuple[str, ...]]:
        """Run the check at the start of a task, or with the changes made in the repository `worked`. Returns its exit
        code, its output, and the changed files that it did not get."""
        top = await self.prepare(task, "check", flags)
        task = await self._keep_modules(task, flags, worked, top) if worked else task
        dropped = await asyncio.to_thread(self.repository.take_changes, task, worked, top) if worked else ()
        folder, seconds = top / self.repository.prefix, parse_limit(task.limit)
        return *(await self._manager.run_command(folder, task.check, seconds, flags)), dropped

    async def _keep_modules(self, task: CompareTask, flags: dict[str, Any], worked: Path, fresh: Path) -> CompareTask:
        """Add the new modules to `keep` that would stand in for those of the check's own Python."""
        folder = fresh / self.repository.prefix
        new = find_new_modules(task.check, worked / self.repository.prefix, folder)
        python = re.search(r"[\w./-]*\bpython[\d.]*", task.check)
        words = (python[0] if python else "python", "-c", FIND_MODULES, *new)
        known = await self._manager.run_command(folder, shlex.join(words), 60, flags) if new else (0, "")
        shadows = new.keys() & {*sys.stdlib_module_names, *known[1].split()}
        return replace(task, keep=(*task.keep, *sorted(one for name in shadows for one in new[name])))

    async def require_failing_start(self, name: str, task: CompareTask, *, network: bool) -> str:
        """Run the check at the start of a task and return its output. Raises UsageError unless it fails there."""
        code, output, _ = await self.check(task, self.make_flags(task, network=network))
        if code in FAULTS:
            action = "Choose an earlier start, or a check that ends, and fails until the work is done."
            raise UsageError(f"{name}: the check {FAULTS[code]}: {task.check}\n{cut_output(output)}", action=action)
        return output

    def read_session(self, session: str, given: dict[str, Any]) -> dict[str, str]:
        """Return what is not given: the first request of a session, what was checked out then, the settings' check."""
        files, checks = self.process.session_files, convert(self.process.settings.checks, tuple[Check, ...])
        begun, runs = files.read(files.places.find(session)).session, (one.run for one in checks if one.when == "turn")
        found = {
            "request": next((one.text for one in begun.messages if one.role == "user"), ""),
            "start": f"HEAD@{{{begun.start_time}}}",
            "check": next((command for command in runs if "{files}" not in command), ""),
        }
        return {key: given[key] or value for key, value in found.items()}

    def make_tasks(
        self, commits: str, name: str | None, options: dict[str, Any], writer: str | None
    ) -> dict[str, CompareTask]:
        """Make tasks of commits. Those are kept whose check fails at the start and passes after the change. A model
        can rewrite their requests."""
        if name or options["request"] or options["start"]:
            raise UsageError("--from-commits names the tasks itself, and takes request and start from each commit.")
        given = CompareTask(**{key: value for key, value in options.items() if value is not None})
        used = {task.files_from for task in load_tasks(self.process.workspace or Path()).values()}
        read = self.repository.read_commits(commits, given)
        new = {name: task for name, task in read.items() if task.files_from not in used}
        found = dict[str, CompareTask]()
        warn(f"trying {format_count(len(new), 'commit')}; Ctrl-C stops, and offers the tasks found so far")
        with self.lock(), suppress(KeyboardInterrupt) if sys.stdin.isatty() else nullcontext():
            for title, task in new.items():
                if kept := asyncio.run(self._try_commit(title, task, writer)):
                    found[title] = kept
                    warn(f"{title}: fails before the change, passes after it")
        if found:
            return found
        raise UsageError(
            f"{format_count(len(new), 'new commit')} of {commits} tried, none makes a task.",
            action="A commit must change source and tests. Give another range, or --check 'COMMAND {tests}'.",
        )

    async def _try_commit(self, name: str, task: CompareTask, writer: str | None) -> CompareTask | None:
        """Run the check of a task before and after the change, and return the task with the failure in its request."""
        try:
            before = await self.require_failing_start(name, task, network=True)
            done = replace(task, start=task.files_from, files=())
            code, output, _ = await self.check(done, self.make_flags(task, network=True))
            if code:
                raise OllmError(f"{name}: the check fails after the change too: {task.check}\n{cut_output(output)}")
        except OllmError as error:
            warn(f"left out: {clean_lines(error.message)}")
            return None
        before = before.replace(f"{self._folder / 'check' / self.repository.top.name}/", "")
        told = "\n".join(clean_lines(before).strip().splitlines()[-MAX_TOLD_LINES:])
        request = (writer and await self._rewrite(task.request, told, writer)) or task.request
        return replace(task, request=f"{request}\n\n`{task.check}` fails now and must pass:\n\n{told}")

    async def _rewrite(self, request: str, told: str, writer: str) -> str:
        """Let a model write the request of a commit: the message may say too little, or give the solution away."""
        process = ProcessScope(workspace=self.process.workspace, flags={"roles": {"main": writer}})
        model = await process.model_chooser.choose()
        text = f"<message>\n{request}\n</message>\n\n<failing>\n{told}\n</failing>"
        messages = (PromptMessage(role="system", content=REWRITE_ORDER), PromptMessage(role="user", content=text))
        try:
            with WaitLine(f"{writer} writes the request"):
                stream = model.stream(messages, (), MAX_REWRITE_TOKENS)
                answer = "".join([piece async for piece in iterate_text(stream)])
        finally:
            await model.provider.close()
        return clean_lines(clean_answer(answer)).strip()


def cut_output(output: str) -> str:
    return "\n".join(f"  {line}" for line in output.strip().splitlines()[-MAX_SHOWN_LINES:])
