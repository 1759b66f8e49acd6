"""`ollm compare`: tasks of your own, run with several models in their own repositories, and a table of who passed."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import click
from msgspec import convert
from msgspec.structs import replace

from ollm import __version__
from ollm.app import ProcessScope, open_conversation
from ollm.app.worktrees import WorktreeManager
from ollm.cli.commands import CommandTable, LazyGroup, complete_late
from ollm.cli.compare_results import print_comparison
from ollm.cli.machine import inspect_hardware, measure_power
from ollm.cli.options import (
    confirm_or_fail,
    format_table,
    parse_pairs,
    print_result,
    resolve_workspace,
    shared_options,
    warn,
)
from ollm.cli.text_printer import show_waiting
from ollm.config.change import parse_setting
from ollm.config.roles import parse_role
from ollm.config.settings import Check
from ollm.domain.clock import format_stamp
from ollm.domain.errors import ModelError, NoServerError, OllmError, UsageError
from ollm.domain.events import Event, MessageRecorded, ToolFinished, TurnFinished
from ollm.domain.messages import PromptMessage
from ollm.domain.text import format_count, format_seconds, format_suggestion, shorten_line
from ollm.providers.local_models.gguf import read_shape
from ollm.runtime.base import ConversationOptions
from ollm.runtime.changes import update_tools
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.model.model import iterate_text
from ollm.runtime.model.server_queue import in_background
from ollm.services.chat_compression.summary import clean_answer
from ollm.services.compare import (
    KEPT_FILES,
    MAX_TOLD_LINES,
    NEWEST,
    TASK_FILE,
    ComparePlan,
    CompareRun,
    CompareTask,
    TaskRepository,
    add_result,
    add_tasks,
    begin_comparison,
    estimate_seconds,
    find_results,
    format_tasks,
    list_runs,
    load_comparisons,
    load_newest,
    load_tasks,
    parse_limit,
)
from ollm.system.atomic import make_private_directory
from ollm.system.locks import OwnerLock
from ollm.system.terminal_text import clean_lines

COMMANDS: CommandTable = {
    "add": ("ollm.cli.compare:add", "Add a task."),
    "list": ("ollm.cli.compare:list_tasks", "List the tasks."),
    "run": ("ollm.cli.compare:run", "Run tasks with models; goes on where it was stopped."),
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
def list_tasks(workspace: str | None, as_json: bool) -> None:
    """List the tasks of this project."""
    tasks = load_tasks(resolve_workspace(workspace))
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
def add(name: str | None, workspace: str | None, yes: bool, **options: Any) -> None:
    """Add a task: a request, the commit to start from, and a check. It is shown before it is written."""
    place = resolve_workspace(workspace)
    load_tasks(place)  # a mistake in the file comes first
    parse_limit(options["limit"])
    space, options["keep"] = CompareSpace(place), options["keep"] or KEPT_FILES
    session, commits, writer = (options.pop(key) for key in ("from_session", "from_commits", "rewrite"))
    if writer and not commits:
        raise UsageError("--rewrite goes with --from-commits.")
    options |= space.read_session(session, options) if session else {}
    tasks = space.make_tasks(commits, name, options, writer) if commits else _make_task(space, name, options)
    write_tasks(space.process, tasks, yes=yes)


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


def write_tasks(process: ProcessScope, tasks: dict[str, CompareTask], *, yes: bool) -> None:
    """Show tasks, and write them after a question. The workspace stays trusted if it was."""
    place = process.workspace
    assert place is not None
    print(clean_lines(format_tasks(tasks)), end="", flush=True)
    confirm_or_fail(f"Add {format_count(len(tasks), 'task')} to {place / TASK_FILE}?", yes)
    before = process.trust_book.get_state(place)
    add_tasks(place, tasks)
    if before.trusted or not before.files:
        process.trust_book.trust(place)
    warn(f"added {format_count(len(tasks), 'task')}. Next: `ollm compare run --models A,B`.")


FAULTS = {0: "passes at the start", 124: "does not end in time", 126: "cannot run", 127: "cannot run"}  # by exit code
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
        self._folder = trees.here.with_name(f".{trees.here.name}.compare")  # the same for all: the prompt names it

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others out. One comparison runs at a time: two would share a server, and measure each other."""
        make_private_directory(self.process.home.run)
        lock = OwnerLock(self.process.home.run / "compare.lock")
        lock.acquire("`ollm compare`")
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores one.
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
        dropped = await asyncio.to_thread(self.repository.take_changes, task, worked, top) if worked else ()
        folder, seconds = top / self.repository.prefix, parse_limit(task.limit)
        return *(await self._manager.run_command(folder, task.check, seconds, flags)), dropped

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
        with self.lock():
            tried = ((name, asyncio.run(self._try_commit(name, task, writer))) for name, task in new.items())
            if found := {name: task for name, task in tried if task}:
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
        warn(f"{name}: fails before the change, passes after it")
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
            answer = "".join([piece async for piece in iterate_text(model.stream(messages, (), MAX_REWRITE_TOKENS))])
        finally:
            await model.provider.close()
        return clean_lines(clean_answer(answer)).strip()


def cut_output(output: str) -> str:
    return "\n".join(f"  {line}" for line in output.strip().splitlines()[-MAX_SHOWN_LINES:])


NETWORK_TOOLS = ("web_fetch", "web_search")
ORIGIN = "compare"
QUANT = r"\b(?:I?Q\d\w*|BF16|F16|F32|FP8|FP4|AWQ|GPTQ|MXFP4|INT[48])\b"


@click.command()
@click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=complete_late("complete_task"))
@click.option(
    "--models",
    required=True,
    metavar="A,B",
    shell_complete=complete_late("complete_models"),
    help="Models, or SERVER/MODEL as in `roles`.",
)
@click.option("--times", default=1, show_default=True, type=click.IntRange(1, 100), help="Runs of each task.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the models: temperature=0.2.")
@click.option("--limit", default="", metavar="TIME", help="For each run, in place of the tasks' own: 90s, 10m, 2h.")
@click.option("--network", is_flag=True, help="Let tasks that ask for it use the network.")
@shared_options("workspace", "json")
def run(tasks: tuple[str, ...], workspace: str | None, as_json: bool, **options: Any) -> None:
    """Run tasks (default: all) with models, one after the other. Ctrl-C stops; the same command goes on later."""
    space = CompareSpace(resolve_workspace(workspace))
    assert space.process.workspace is not None
    known = load_tasks(space.process.workspace)
    for name in (name for name in tasks or known or ("",) if name not in known):
        action = format_suggestion(name, known, "see `ollm compare list` and `ollm compare add`.")
        raise UsageError(f"There is no task {name}".rstrip() + ".", action=action)
    if not space.process.trusted:
        raise UsageError(f"{TASK_FILE} is not trusted.", action="Read it, then run `ollm trust`.")
    parse_limit(options["limit"] or "1s")
    plan = ComparePlan(
        tasks={name: known[name] for name in tasks or known},
        models=[name.strip() for name in options["models"].split(",") if name.strip()],
        times=options["times"],
        settings=parse_pairs(options["settings"], "=", "--set"),
        limit=options["limit"],
        network=options["network"],
        about={
            "project": space.process.workspace.name,
            "started": format_stamp(space.process.clock()),
            "hardware": inspect_hardware().describe(),
            "version": f"ollm {__version__}",
        },
    )
    with space.lock():
        try:
            asyncio.run(_TaskRuns(space, plan).run())
        except (asyncio.CancelledError, KeyboardInterrupt):
            warn("stopped. The same command goes on with the next run.")
            raise
    print_comparison(load_newest(space.results), as_json=as_json)


class _TaskRuns:
    """The runs of a plan."""

    def __init__(self, space: CompareSpace, plan: ComparePlan) -> None:
        self._space, self._plan, self._process = space, plan, space.process
        chosen = {key: parse_setting(f"models.default.{key}", value) for key, value in plan["settings"].items()}
        self._flags: dict[str, dict[str, Any]] = {
            model: {"roles": {"main": model}, "models": {parse_role(model).get("model", model): chosen}}
            for model in plan["models"]
        }

    async def run(self) -> None:
        """Run what is not done yet."""
        plan, file = self._plan, self._space.results
        for model in plan["models"]:
            await self._require_model(model)
        done = begin_comparison(file, plan)
        self._forget_stopped()
        for name in plan["tasks"] if not done else ():
            await self._space.require_failing_start(name, plan["tasks"][name], network=plan["network"])
        in_background.set(True)  # chats come first
        whole = list_runs(plan)
        left = [one for one in whole if one not in done]
        for count, (model, number, name) in enumerate(left):
            seconds = estimate_seconds((one[0] for one in left[count:]), load_comparisons(file))
            time = f", about {format_seconds(seconds)} left" if seconds is not None else ""
            warn(f"{len(done) + count + 1} of {len(whole)}{time}: {name} with {model}")
            try:
                ended = await self._run_task(name, model, number)
            except NoServerError as error:
                action = "Start the server, then run the same command: it goes on with this run."
                raise NoServerError(f"{name} with {model} was stopped. {error.message}", action=action) from error
            add_result(file, ended)
            dropped = f"; its changes to {', '.join(ended['dropped'])} do not count" if ended["dropped"] else ""
            verdict = "passed" if ended["passed"] else f"not passed ({ended['reason']})"
            warn(f"  {verdict} in {format_seconds(ended['figures']['seconds'])}{dropped}")

    async def _require_model(self, model: str) -> None:
        """Raise an error if the server of a model does not answer, or does not have it."""
        flags = {"roles": {"main": model}}
        choice = await ProcessScope(workspace=self._process.workspace, flags=flags).providers.choose()
        await choice.provider.close()

    def _forget_stopped(self) -> None:
        """Erase the sessions of runs that were stopped: they are no result."""
        kept = {run["sessionId"] for _, runs in load_comparisons(self._space.results) for run in runs}
        listed, place = self._process.library.list_summaries(tasks=True), str(self._process.workspace)
        ours = (one.session_id for one in listed if (one.origin, one.workspace) == (ORIGIN, place))
        self._process.library.delete_many([session_id for session_id in ours if session_id not in kept])

    async def _run_task(self, name: str, model: str, number: int) -> CompareRun:
        """Let a model work on a task, and check its changes."""
        task, events = self._plan["tasks"][name], list[Event]()
        flags = self._space.make_flags(task, network=self._plan["network"]) | self._flags[model]
        top = await self._space.prepare(task, "work", flags)
        options = ConversationOptions(
            workspace=top / self._space.repository.prefix,
            works_for=self._process.workspace,
            one_shot=True,
            yes=True,
            origin=ORIGIN,
            flags=flags,
        )
        with show_waiting(f"{name} with {model}"):
            async with open_conversation(options) as conversation:
                for unfit in ("memory", *(NETWORK_TOOLS if flags["sandbox"]["network"] == "none" else ())):
                    conversation.parts.registry.get().unregister(unfit)
                update_tools(conversation.parts)
                began = monotonic()
                with measure_power(conversation.parts.state.model.provider.base_url) as read_watts:
                    with suppress(TimeoutError):
                        async with (
                            asyncio.timeout(parse_limit(self._plan["limit"] or task.limit)),
                            conversation.turn(task.request) as stream,
                        ):
                            async for event in stream:
                                events.append(event)
                    figures = measure_run(conversation, events, monotonic() - began, read_watts())
                finished = next((event for event in events if isinstance(event, TurnFinished)), None)
                ended = CompareRun(
                    task=name,
                    model=model,
                    number=number,
                    sessionId=conversation.session_id or "",
                    passed=False,
                    reason=finished.reason if finished else "timeout",
                    figures=figures,
                    server=describe_server(conversation),
                    dropped=(),
                )
        if finished and finished.reason == "no-server":
            raise NoServerError(finished.message)
        if ended["reason"] == "model-error":
            await self._require_model(model)
        if ended["reason"] != "timeout":
            code, _, ended["dropped"] = await self._space.check(task, flags, top)
            ended["passed"] = code == 0
        return ended


def measure_run(
    conversation: LocalConversation, events: list[Event], seconds: float, watts: float | None
) -> dict[str, float]:
    """Return the figures of a run. The time of requests is split by the speed at which the model writes."""
    state, calls = conversation.parts.state, [event for event in events if isinstance(event, ToolFinished)]
    speed = state.model.facts.decode_per_second
    writing = min(conversation.usage.completion_tokens / speed, state.seconds) if speed else 0.0
    figures = {
        "seconds": seconds,
        **({"reading": state.seconds - writing, "writing": writing} if speed else {}),
        "tools": sum(call.seconds for call in calls),
        "tokensRead": conversation.usage.prompt_tokens,
        "tokensWritten": conversation.usage.completion_tokens,
        "steps": sum(isinstance(event, MessageRecorded) and event.role == "assistant" for event in events),
        "failedCalls": sum(call.status != "ok" or bool(call.result.exit_code) for call in calls),
        **({} if watts is None else {"joules": watts * seconds}),
    }
    return {name: round(float(value), 1) for name, value in figures.items()}


def read_quant(file: str) -> str:
    """Read the quant from a model file on this machine, if it is there."""
    with suppress(ModelError):
        return read_shape(Path(file)).quant.strip("-")
    return ""


def describe_server(conversation: LocalConversation) -> dict[str, str]:
    """Describe the server and the model of a run, as far as they are known."""
    model = conversation.parts.state.model
    info = getattr(model.provider, "described", None)
    named = re.search(QUANT, f"{info.file if info else ''} {model.name}", re.IGNORECASE)
    known = {
        "server": f"{model.facts.server or model.provider.name} {info.build if info else ''}".strip(),
        "url": model.provider.base_url,
        "model": model.name,
        "quant": named[0].upper() if named else read_quant(info.file if info else ""),
        "window": f"{model.window}",
        "calls": model.facts.call_form,
    }
    return {name: value for name, value in known.items() if value}
