"""`ollm doctor`: findings, their reasons, and the one next step."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import replace

from ollm.app import ProcessScope
from ollm.app.models import probe_model
from ollm.app.workspace import WorkspaceScope
from ollm.cli.machine import (
    DiskUsage,
    Hardware,
    MachineCheck,
    check_machine,
    check_writable,
    inspect_hardware,
    measure_disk_usage,
    suggest_models,
)
from ollm.cli.model_card import MARKS, TrialPrinter, describe_calls, describe_faults, describe_speed
from ollm.cli.options import json_option, print_result, resolve_workspace, workspace_option
from ollm.cli.text_printer import show_waiting
from ollm.config.roles import find_role
from ollm.domain.errors import ModelError, OllmError
from ollm.domain.model_facts import ModelFacts
from ollm.domain.struct import Data
from ollm.domain.text import format_count, format_names
from ollm.providers.base import is_called, name_model
from ollm.providers.server_errors import lists_no_models
from ollm.providers.window import FALLBACK_WINDOW_TOKENS, choose_window
from ollm.runtime.model.probe import Trial, measure_speed
from ollm.runtime.observers.server_memory import describe_memory
from ollm.store.model_facts import make_facts_key
from ollm.system.sandbox.caches import clean_cache, measure_cache
from ollm.system.terminal_text import make_printable, wrap_words
from ollm.tools.ls import format_size

if TYPE_CHECKING:
    from ollm.providers.base import Provider

MAX_DISK_ROWS = 8
MAX_MOVED_NAMES = 5
LABEL_CELLS = 10
NO_SERVERS = "no language server found; edited files are only parsed (docs/diagnostics.md lists the servers)"
COPIED_ROWS = ("ollama", "llama.cpp")  # commands


@click.command()
@click.option("--clean", is_flag=True, help="Delete what package managers and servers keep in the sandbox.")
@click.option("--measure", is_flag=True, help="Also measure the model's speed with a short request.")
@click.option("--model", is_flag=True, help="Also find faults of the server and the model's template (a minute).")
@workspace_option
@json_option
def doctor(clean: bool, measure: bool, model: bool, workspace: str | None, as_json: bool) -> int:
    """Check your setup: which model is used and why, what is missing, and what to do next.

    Exits with 4 if --model finds a fault.
    """
    process = ProcessScope(workspace=resolve_workspace(workspace))
    if clean:
        removed = clean_cache(process.home.cache)
        print_result({"removed": removed}, f"Deleted {format_size(removed)}.", as_json=as_json)
        return 0
    diagnosis, error = asyncio.run(_diagnose_visibly(process, measured=measure, tested=model))
    faulty = any(trial.fault for trial in diagnosis.trials)
    document = {"ok": error is None and not faulty, **msgspec.to_builtins(diagnosis, enc_hook=str)}
    rows = [_wrap_row(name, make_printable(text)) for name, text in _describe_diagnosis(diagnosis)]
    print_result(document, "\n".join(rows), as_json=as_json)
    return error.exit_code if error else ModelError.exit_code if faulty else 0


async def _diagnose_visibly(
    process: ProcessScope, *, measured: bool, tested: bool
) -> tuple[Diagnosis, OllmError | None]:
    card, failure = None, None
    if tested:
        printer = TrialPrinter()
        try:
            card = await probe_model(process, None, printer.report, printer.announce, faults_only=True)
        except OllmError as error:
            failure = error
        finally:
            printer.stop()
    with show_waiting("asking the model server"):
        return await diagnose(process, measured=measured, trials=card.trials if card else (), failure=failure)


def _wrap_row(name: str, text: str) -> str:
    """Wrap a row between words to fit the terminal, unless it is copied or read by a program."""
    label = f"{name:<{LABEL_CELLS}}"
    if name in COPIED_ROWS or not text or text[0] == " " or not sys.stdout.isatty():
        return label + text
    return wrap_words(label + text, " " * LABEL_CELLS)


def _describe_diagnosis(found: Diagnosis) -> Iterator[tuple[str, str]]:
    yield from _describe_server(found)
    yield from _describe_model(found)
    yield "machine", found.hardware.describe()
    yield from found.models.items()
    yield "sandbox", found.sandbox
    yield from _describe_box(found)
    yield "here", ", ".join(check.name for check in found.machine if check.ok)
    yield "code", "; ".join(f"{name}: {program}" for name, program in found.language_servers.items()) or NO_SERVERS
    yield from (("missing", f"{check.name}: {check.detail}") for check in found.machine if not check.ok)
    yield from (("config", problem) for problem in found.problems)
    yield "log", f"{found.log} ({format_size(found.log_bytes)})"
    yield "disk", f"{found.home}: {format_size(sum(part.bytes for part in found.disk))}"
    yield from (("", f"cannot be written: {problem}") for problem in (found.home_problem,) if problem)
    small = [part for part in found.disk[MAX_DISK_ROWS:] if part.name == "checkpoints"]
    yield from (("", f"{format_size(part.bytes):>10}  {part.name}") for part in (*found.disk[:MAX_DISK_ROWS], *small))
    yield "next", found.next


def _describe_server(found: Diagnosis) -> Iterator[tuple[str, str]]:
    if server := found.server:
        yield "server", f"{server.type} at {server.base_url}: {server.why}"
        yield "model", f"{server.model} ({server.state})" if server.state else server.model
        yield from (("memory", f"what the server read of a session is {told}") for told in (server.memory,) if told)
        yield "window", f"{server.window} tokens: {server.window_why}"
        yield "", f"serving: {server.served or 'unknown'}, trained for: {server.trained or 'unknown'}"
    yield from (("role", f"{role}: {text}") for role, text in found.roles.items())
    yield from (("server", error) for error in (found.error,) if error)
    for other in found.answering:
        if server is None or other.base_url != server.base_url:
            yield "also", f"{other.label} at {other.base_url}, {format_count(len(other.models), 'model')}"


def _describe_model(found: Diagnosis) -> Iterator[tuple[str, str]]:
    if found.facts is None:
        return
    imported = "; from an imported card, not measured here" if found.facts.imported else ""
    yield "calls", describe_calls(found.facts) + imported
    yield "speed", describe_speed(found.facts)
    for trial in found.trials:
        yield "test", f"{MARKS[trial.ok]:<3}{trial.name}: {trial.told}"
    for line in describe_faults(found.trials):
        yield "" if line[0] == " " else "fault", line


def _describe_box(found: Diagnosis) -> Iterator[tuple[str, str]]:
    if found.visible:
        parts = ", ".join(dict.fromkeys(map(_find_folder, found.visible)))
        more = "(full list: `ollm doctor --json`; add with sandbox.readable)"
        yield "", f"outside the workspace, programs in it can read some files below {parts} {more}"
    if found.left_out:
        yield (
            "",
            f"they cannot read these folders of your PATH, which hold more than programs: {', '.join(found.left_out)}",
        )
    if kept := found.box_cache:
        yield "", f"they keep {format_size(kept)} of downloads (`ollm doctor --clean` deletes them)"
    for folder, files in found.moved_aside.items():
        command = f"cp -RP {shlex.quote(folder)}/. PROJECT{'/.git' if '/parked/' in folder else ''}"
        yield "", f"an earlier version moved aside {files}; put back with: {command}"


def _find_folder(path: str) -> str:
    """Find the folder of the home that a path belongs to, such as `~/.cargo`, or of another place."""
    home = str(Path.home())
    if path.startswith(f"{home}/"):
        return "~/" + path[len(home) + 1 :].partition("/")[0]
    return "/".join(path.split("/")[:3])


RECOMMENDED_WINDOW_TOKENS = 8192
TINY_MODEL_NOTE = "SmolLM2 135M is for trying ollm, not for work."
NEXT_MODEL = "qwen2.5-coder-1.5b"


class ServerReport(Data, frozen=True):
    """The server in use. `served` is the window it reports; `window` is the one requested."""

    type: str
    base_url: str
    why: str
    model: str
    window: int
    window_why: str
    served: int | None
    trained: int | None
    guessed: bool = False
    state: str = ""  # of the model, on a server that loads several
    memory: str = ""  # if sessions are saved with the server's cache; "" where it cannot


class ReachableServer(Data, frozen=True):
    """A server that answers at its default address, whether or not it is in use."""

    label: str
    base_url: str
    models: tuple[str, ...]


class Diagnosis(Data, frozen=True):
    server: ServerReport | None
    error: str | None
    facts: ModelFacts | None
    answering: tuple[ReachableServer, ...]
    machine: tuple[MachineCheck, ...]
    hardware: Hardware
    models: dict[str, str]  # by server, commands for a model that fits; empty where a good one is in use
    sandbox: str
    problems: tuple[str, ...]
    log: Path
    log_bytes: int
    home: Path
    disk: tuple[DiskUsage, ...]
    next: str
    home_problem: str | None = None  # why nothing can be saved there
    visible: tuple[str, ...] = ()  # what boxed programs see of the home beside the workspace
    left_out: tuple[str, ...] = ()  # folders of PATH that they do not see
    language_servers: Mapping[str, str] = {}  # programs by language
    box_cache: int = 0  # bytes that package managers keep in the sandbox
    moved_aside: Mapping[
        str, str
    ] = {}  # folders of files that earlier versions took out of a project, with their names
    trials: tuple[Trial, ...] = ()  # of the model's server and template
    roles: Mapping[str, str] = {}  # their models and servers, or what is wrong


async def diagnose(
    process: ProcessScope, *, measured: bool, trials: tuple[Trial, ...] = (), failure: OllmError | None = None
) -> tuple[Diagnosis, OllmError | None]:
    """Diagnose the setup. An error found, or the `failure` of the trials, is returned with the results, not raised."""
    server, facts, error = None, None, failure
    try:
        server, facts = await _inspect_server(process, measured=measured)
    except OllmError as found:
        error = found
    machine, hardware = check_machine(), inspect_hardware()
    wanting = server is None or (server.type == "embedded" and server.model == "smollm2")
    answering = await _find_reachable_servers(process)
    problems = tuple(str(problem) for problem in process.loaded_settings.problems)
    log = process.home.log
    sandbox, visible, left_out = _describe_sandbox(process)
    diagnosis = Diagnosis(
        server=server,
        error=error.message if error else None,
        facts=facts,
        answering=answering,
        machine=machine,
        hardware=hardware,
        models=suggest_models(hardware) if wanting else {},
        sandbox=sandbox,
        visible=visible,
        left_out=left_out,
        language_servers=_find_language_servers(process, visible),
        box_cache=sum(measure_cache(process.home.cache).values()),
        moved_aside=_find_moved_aside(process.home.taken),
        problems=problems,
        log=log,
        log_bytes=log.stat().st_size if log.exists() else 0,
        home=process.home.root,
        disk=measure_disk_usage(process.home.root),
        home_problem=check_writable(process.home.root),
        trials=trials,
        roles=await _inspect_roles(process) if server else {},
        next="",
    )
    return replace(diagnosis, next=suggest_next_step(diagnosis, error)), error


async def _inspect_roles(process: ProcessScope) -> dict[str, str]:
    found = {}
    for role in ("small", "summary", "tasks", "embedding"):
        server = find_role(process.settings, role)
        if server is None or not getattr(process.settings.roles, role):
            continue
        try:
            model = await process.choose_model(role=server)
            with suppress(ModelError):  # it answers
                await model.provider.models()
            found[role] = f"{model.name} at {model.provider.base_url}"
            await model.provider.close()
        except OllmError as error:
            found[role] = str(error)
    return found


def _describe_sandbox(process: ProcessScope) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Describe the sandbox level, tested now, the visible parts of the home, and the hidden parts of PATH."""
    try:
        sandbox = WorkspaceScope(process, process.workspace or Path.cwd()).create_sandbox()
        if sandbox.mode != "off" and sandbox.unboxable is None:
            sandbox.level = sandbox.probe()
        if sandbox.level == "none":
            return sandbox.description, (), ()
        return sandbox.description, sandbox.visible, sandbox.left_out
    except (OllmError, OSError) as error:
        return f"unknown: {error}", (), ()


def _find_moved_aside(taken: Path) -> dict[str, str]:
    """Find the folders of files that earlier versions moved out of a project, and the names in them."""
    folders = [folder for folder in taken.glob("*/*") if folder.is_dir() and folder.parent.name != "open"]
    return {
        str(folder): format_names(sorted(path.name for path in folder.iterdir()), MAX_MOVED_NAMES)
        for folder in sorted(folders)
    }


def _find_language_servers(process: ProcessScope, visible: tuple[str, ...]) -> dict[str, str]:
    scope = WorkspaceScope(process, process.workspace or Path.cwd())
    try:
        finder = scope.create_server_finder()
    except OllmError:  # settings that cannot be used are reported already
        return {}
    found = {language.name: finder.find_server(language, scope.path) for language in finder.languages}
    return {
        name: server.argv[0] + _describe_hidden(Path(server.argv[0]).resolve(), visible)
        for name, server in found.items()
        if server is not None
    }


def _describe_hidden(program: Path, visible: tuple[str, ...]) -> str:
    """Name the setting for a script of the home whose package the sandbox hides: it shows the script alone."""
    if not visible or not program.is_relative_to(Path.home()) or program.read_bytes()[:2] != b"#!":
        return ""
    if any(program.parent.is_relative_to(shown) for shown in visible):
        return ""
    return f" (hidden by the sandbox: add {program.parent} to sandbox.readable)"


async def _find_reachable_servers(process: ProcessScope) -> tuple[ReachableServer, ...]:
    try:
        found = await process.providers.discover()
    except OllmError:  # settings that cannot be used are reported already
        return ()
    for server in found:
        await server.provider.close()
    return tuple(
        ReachableServer(
            label=server.place.label,
            base_url=server.provider.base_url,
            models=tuple(info.name for info in server.models),
        )
        for server in found
    )


async def _inspect_server(process: ProcessScope, *, measured: bool) -> tuple[ServerReport, ModelFacts]:
    choice = await process.providers.choose()
    try:
        await check_model_list(choice.provider)
        info = await choice.provider.describe(choice.model)
        choice = replace(choice, model=info.name if is_called(info.name, choice.model) else choice.model)
        tokens, why = await choose_window(choice.provider, choice.model, process.settings.provider)
        key = make_facts_key(choice.provider.name, choice.provider.base_url, choice.model)
        facts = process.model_facts.get(key)
        memory = await describe_memory(choice.provider, choice.model, process.saved_slots)
        if measured:
            read, write = await measure_speed(choice.provider, choice.model, tokens)
            found = {"prefill_per_second": read, "decode_per_second": write}
            facts = process.model_facts.update(key, found, dict.fromkeys(found, "probe"))
    finally:
        await choice.provider.close()
    report = ServerReport(
        type=choice.provider.name,
        base_url=choice.provider.base_url,
        why=choice.why,
        model=name_model(choice.model),
        state=info.state,
        window=tokens,
        window_why=why,
        served=info.window,
        trained=info.trained_window,
        memory=memory,
        guessed=tokens == FALLBACK_WINDOW_TOKENS
        and info.window is None
        and process.settings.provider.context_window is None,
    )
    return report, facts


async def check_model_list(provider: Provider) -> None:
    """Raise an error if the server refuses to list its models."""
    try:
        await provider.models()
    except ModelError as error:
        if not lists_no_models(error):
            raise


def suggest_next_step(found: Diagnosis, error: OllmError | None) -> str:
    missing = next((check for check in found.machine if not check.ok and not check.name.startswith("[")), None)
    if error is not None:
        other = found.answering[0] if found.answering else None
        elsewhere = f" Or use {other.label}, running at {other.base_url}." if other else ""
        action = error.action.replace("; `ollm doctor` lists the servers it finds", "")
        return action.replace(": `ollm doctor` says how", ", as above") + elsewhere
    if found.home_problem:
        return f"Make {found.home} writable (sessions could not be saved), or set OLLM_HOME to another directory."
    if found.problems:
        return "Run `ollm config check` to list the problems."
    if missing is not None:
        return f"Install {missing.name} ({missing.detail})."
    if faults := [trial for trial in found.trials if trial.fault]:
        remedy = next((trial.remedy for trial in faults if trial.remedy), f"{faults[0].name}: {faults[0].told}")
        name = shlex.quote(found.server.model if found.server else "NAME")
        undo = f"`ollm models forget {name}` undoes what was learnt."
        return f"Fix the server ({remedy}), then run `ollm doctor --model` again. {undo}"
    return _suggest_improvement(found.server, found.facts) if found.server and found.facts else "Start a model server."


def _suggest_improvement(server: ServerReport, facts: ModelFacts) -> str:
    if server.type == "embedded" and server.model == "smollm2":
        return (
            f"{TINY_MODEL_NOTE} Start a real model with one of the commands above, or `ollm models get {NEXT_MODEL}`."
        )
    if server.guessed:
        unknown = "The server does not say its context window: set provider.contextWindow to what it serves."
        return f"Load the model: `ollm models load {server.model}`." if server.state == "unloaded" else unknown
    if server.served and server.window > server.served:
        return (
            f"provider.contextWindow is {server.window:,}, the server gives {server.served:,}: "
            f"`ollm config set provider.contextWindow {server.served}`."
        )
    if server.window < RECOMMENDED_WINDOW_TOKENS and (server.trained or RECOMMENDED_WINDOW_TOKENS) > server.window:
        return f"The context window is small ({server.window:,}): serve {RECOMMENDED_WINDOW_TOKENS:,} tokens or more."
    if facts.probed is None:
        return "All set. To test what this model can do: `ollm models probe` (minutes)."
    return "All set."
