"""`ollm compare run`: tasks worked on by models in repositories of their own, checked and measured."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import click
from msgspec.structs import replace

from ollm import __version__
from ollm.app.conversation import open_conversation
from ollm.app.process import ProcessScope
from ollm.cli.commands import complete_late
from ollm.cli.compare import TIMED_OUT, CompareSpace
from ollm.cli.compare_results import print_comparison
from ollm.cli.machine import inspect_hardware, measure_power
from ollm.cli.models import load_model
from ollm.cli.options import parse_pairs, shared_options, warn
from ollm.cli.text_printer import WaitLine
from ollm.config.change import parse_setting
from ollm.config.roles import parse_role
from ollm.domain.clock import format_stamp
from ollm.domain.errors import ModelError, NoServerError, OllmError, UsageError
from ollm.domain.events import Event, MessageRecorded, ToolFinished, TurnFinished
from ollm.domain.text import format_seconds, format_suggestion
from ollm.providers.local_models.gguf import read_shape
from ollm.runtime.base import ConversationOptions
from ollm.runtime.changes import update_tools
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.model.server_queue import in_background
from ollm.services.compare import (
    TASK_FILE,
    ComparePlan,
    CompareRun,
    CompareTask,
    add_result,
    begin_comparison,
    estimate_seconds,
    list_runs,
    load_comparisons,
    load_newest,
    load_tasks,
    parse_limit,
)

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
def run(tasks: tuple[str, ...], workspace: Path, as_json: bool, **options: Any) -> None:
    """Run tasks (default: all) with models, one after the other. Ctrl-C stops; the same command goes on later."""
    space = CompareSpace(workspace)
    known = load_tasks(workspace)
    for name in (name for name in tasks or known or ("",) if name not in known):
        action = format_suggestion(name, known, "see `ollm compare list` and `ollm compare add`.")
        raise UsageError(f"There is no task {name}".rstrip() + ".", action=action)
    if not space.process.trusted:
        raise UsageError(f"{TASK_FILE} is not trusted.", action="Read it, then run `ollm trust`.")
    parse_limit(options["limit"] or "1s")
    plan = ComparePlan(
        tasks={name: replace(known[name], limit=options["limit"] or known[name].limit) for name in tasks or known},
        models=[*dict.fromkeys(name.strip() for name in options["models"].split(",") if name.strip())],
        times=options["times"],
        settings=parse_pairs(options["settings"], "=", "--set"),
        limit=options["limit"],
        network=options["network"],
        about={
            "project": workspace.name,
            "started": format_stamp(space.process.clock()),
            "hardware": inspect_hardware().describe(),
            "version": f"ollm {__version__}",
        },
    )
    if not plan["models"]:
        raise UsageError("--models names no model.", action="See `ollm models list`.")
    for name, task in plan["tasks"].items():
        space.repository.require_files(name, task)
    with space.lock():
        try:
            asyncio.run(_TaskRuns(space, plan).run())
        except (asyncio.CancelledError, KeyboardInterrupt):
            warn("stopped. The same command goes on with the next run.")
            raise
    print_comparison(load_newest(space.results), as_json=as_json)
    warn("`ollm compare show --html FILE` makes a page, `ollm compare best` names the best model for each role.")


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
        if not done:
            warn("running the checks at the start, where they must fail")
        for name in plan["tasks"] if not done else ():
            await self._space.require_failing_start(name, plan["tasks"][name], network=plan["network"])
        in_background.set(True)  # Chats of the user come first at the server.
        whole = list_runs(plan)
        left = [one for one in whole if one not in done]
        for count, (model, number, name) in enumerate(left):
            seconds = estimate_seconds((one[0] for one in left[count:]), load_comparisons(file))
            time = f", about {format_seconds(seconds)} left" if seconds is not None else ""
            if model not in (one[0] for one in left[:count]):
                await self._load(model)
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

    async def _load(self, model: str) -> None:
        """Load a model before its first run if the server can do that, so that no run is charged for it."""
        process = ProcessScope(workspace=self._process.workspace, flags={"roles": {"main": model}})
        with suppress(OllmError):
            await load_model(process, parse_role(model).get("model", model))

    def _forget_stopped(self) -> None:
        """Erase the sessions of runs that were stopped: they are no result."""
        kept = {run["sessionId"] for _, runs in load_comparisons(self._space.results) for run in runs}
        listed, place = self._process.library.list_summaries(tasks=True), str(self._process.workspace)
        ours = (one.session_id for one in listed if (one.origin, one.workspace) == (ORIGIN, place))
        self._process.library.delete_many([session_id for session_id in ours if session_id not in kept])

    async def _run_task(self, name: str, model: str, number: int) -> CompareRun:
        """Let a model work on a task, and check its changes."""
        task = self._plan["tasks"][name]
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
        with WaitLine(f"{name} with {model}"):
            async with open_conversation(options) as conversation:
                finished, figures = await work_on(task, conversation, flags)
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
            ended["reason"] = "check-timeout" if code == TIMED_OUT else ended["reason"]
        return ended


async def work_on(
    task: CompareTask, conversation: LocalConversation, flags: dict[str, Any]
) -> tuple[TurnFinished | None, dict[str, float]]:
    """Let the model work on a task. Returns how its turn ended, None if the time was over, and its figures."""
    for unfit in ("memory", *(NETWORK_TOOLS if flags["sandbox"]["network"] == "none" else ())):
        conversation.parts.registry.get().unregister(unfit)
    update_tools(conversation.parts)
    events, began = list[Event](), monotonic()
    with measure_power(conversation.parts.state.model.provider.base_url) as read_watts:
        with suppress(TimeoutError):
            async with asyncio.timeout(parse_limit(task.limit)), conversation.turn(task.request) as stream:
                async for event in stream:
                    events.append(event)
        figures = measure_run(conversation, events, monotonic() - began, read_watts())
    return next((event for event in events if isinstance(event, TurnFinished)), None), figures


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
