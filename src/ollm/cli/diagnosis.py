"""Collect the facts for `ollm doctor`: server and why it was chosen, model, machine, disk, next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

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
from ollm.domain.errors import OllmError
from ollm.domain.model_facts import ModelFacts
from ollm.domain.struct import Data
from ollm.system.sandbox.caches import measure_cache

if TYPE_CHECKING:
    from ollm.app import ProcessScope
    from ollm.providers.base import Provider

RECOMMENDED_WINDOW_TOKENS = 8192
TINY_MODEL_NOTE = "SmolLM2 135M is for trying ollm, not for work."
NEXT_MODEL = "qwen2.5-coder-1.5b"


class ServerReport(Data, frozen=True):
    """The server in use. `served` is the window it says it gives; `window` the one that is asked for."""

    type: str
    base_url: str
    why: str
    model: str
    window: int
    window_why: str
    served: int | None
    trained: int | None
    guessed: bool = False


class ReachableServer(Data, frozen=True):
    """A server that answers at its usual place, chosen or not."""

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
    box_cache: int = 0  # bytes that package managers keep in the sandbox


async def diagnose(process: ProcessScope, *, measured: bool) -> tuple[Diagnosis, OllmError | None]:
    """Never raises for what it is there to report: the error is returned beside what was found."""
    server, facts, error = None, None, None
    try:
        server, facts = await _inspect_server(process, measured=measured)
    except OllmError as found:
        error = found
    machine, hardware = check_machine(), inspect_hardware()
    wanting = server is None or (server.type == "embedded" and server.model == "smollm2")
    answering = await _find_reachable_servers(process)
    problems = tuple(str(problem) for problem in process.loaded_settings.problems)
    log = process.home.log
    sandbox, visible = _describe_sandbox(process)
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
        box_cache=sum(measure_cache(process.home.cache / "box").values()),
        problems=problems,
        log=log,
        log_bytes=log.stat().st_size if log.exists() else 0,
        home=process.home.root,
        disk=measure_disk_usage(process.home.root),
        home_problem=check_writable(process.home.root),
        next="",
    )
    return replace(diagnosis, next=suggest_next_step(diagnosis, error)), error


def _describe_sandbox(process: ProcessScope) -> tuple[str, tuple[str, ...]]:
    """Describe the sandbox level, tested now, and what sandboxed commands see of the home."""
    from ollm.app.workspace import WorkspaceScope
    from ollm.system.sandbox.sandbox import read_level

    try:
        sandbox = WorkspaceScope(process, process.workspace or Path.cwd()).create_sandbox()
    except OllmError as error:
        return f"unknown: {error.message}", ()
    read_level(process.home.cache / "sandbox.json", afresh=True)
    return sandbox.description, sandbox.visible


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
    from ollm.providers.window import FALLBACK_WINDOW_TOKENS, choose_window
    from ollm.store.model_facts import make_facts_key

    choice = await process.providers.choose()
    try:
        await check_model_list(choice.provider, choice.model)
        info = await choice.provider.describe(choice.model)
        tokens, why = await choose_window(choice.provider, choice.model, process.settings.provider)
        key = make_facts_key(choice.provider.name, choice.provider.base_url, choice.model)
        facts = process.model_facts.get(key)
        if measured:
            from msgspec.structs import asdict

            from ollm.providers.window import measure_speed

            facts = process.model_facts.update(
                key, **asdict(await measure_speed(choice.provider, choice.model, tokens))
            )
    finally:
        await choice.provider.close()
    report = ServerReport(
        type=choice.provider.name,
        base_url=choice.provider.base_url,
        why=choice.why,
        model=choice.model,
        window=tokens,
        window_why=why,
        served=info.window,
        trained=info.trained_window,
        guessed=tokens == FALLBACK_WINDOW_TOKENS
        and info.window is None
        and process.settings.provider.context_window is None,
    )
    return report, facts


async def check_model_list(provider: Provider, model: str) -> None:
    """Report a server that refuses to list its models, or a model that is not on the list."""
    from ollm.domain.errors import ModelError
    from ollm.providers.server_errors import lists_no_models, make_unknown_model_error

    try:
        names = [info.name for info in await provider.models()]
    except ModelError as error:
        if lists_no_models(error):
            return
        raise
    serves_any = getattr(provider, "kind", None) == "llama.cpp" or provider.name != "openai"
    if names and model not in names and not serves_any:
        raise make_unknown_model_error(provider.base_url, model, names)


def suggest_next_step(found: Diagnosis, error: OllmError | None) -> str:
    """The one thing that helps most."""
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
    return _suggest_improvement(found.server, found.facts) if found.server and found.facts else "Start a model server."


def _suggest_improvement(server: ServerReport, facts: ModelFacts) -> str:
    if server.type == "embedded" and server.model == "smollm2":
        return (
            f"{TINY_MODEL_NOTE} Start a real model with one of the commands above, or `ollm models get {NEXT_MODEL}`."
        )
    if server.guessed:
        return "The server does not say its context window: set provider.contextWindow to what it serves."
    if server.served and server.window > server.served:
        return (
            f"provider.contextWindow is {server.window}, the server gives {server.served}: set it to {server.served}."
        )
    if server.window < RECOMMENDED_WINDOW_TOKENS and (server.trained or RECOMMENDED_WINDOW_TOKENS) > server.window:
        return f"The context window is small ({server.window:,}): serve {RECOMMENDED_WINDOW_TOKENS:,} tokens or more."
    if facts.probed is None:
        return "Run `ollm`. To test what this model can do first: `ollm models probe` (about a minute)."
    return "All set: run `ollm`."
