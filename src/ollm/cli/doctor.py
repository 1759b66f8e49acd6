"""`ollm doctor`: findings, their reasons, and the one next step."""

from __future__ import annotations

import asyncio
import shlex
import sqlite3
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import click
import msgspec

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.cli.machine import inspect_hardware, suggest_models
from ollm.cli.model_card import MARKS, describe_calls, describe_faults, describe_speed, run_trials
from ollm.cli.options import print_result, shared_options, warn
from ollm.cli.text_printer import WaitLine
from ollm.config.environment import Home
from ollm.config.roles import find_role
from ollm.domain.errors import ModelError, OllmError
from ollm.domain.model_facts import ModelFacts
from ollm.domain.text import format_count, format_names
from ollm.providers.base import is_called, name_model
from ollm.providers.registry import ROLES
from ollm.providers.server_errors import lists_no_models
from ollm.providers.window import FALLBACK_WINDOW_TOKENS, choose_window
from ollm.runtime.model.choice import drop_stale, limit_window
from ollm.runtime.model.probe import measure_speed
from ollm.runtime.observers.server_memory import describe_memory
from ollm.services.compare import find_new_models, find_results
from ollm.store.model_facts import make_facts_key
from ollm.system.folders import measure_bytes
from ollm.system.install_command import describe_extra_install
from ollm.system.sandbox.caches import clean_cache, measure_cache
from ollm.system.sandbox.confined import find_bundled_program
from ollm.system.terminal_text import make_printable, wrap_words
from ollm.tools.ls import format_size

MAX_DISK_ROWS = 8
MAX_MOVED_NAMES = 5
MAX_NEW = 3
LABEL_CELLS = 10
PROBE_BYTES = 4096  # A session of a few words takes as much.
RECOMMENDED_WINDOW_TOKENS = 8192
NO_SERVERS = (
    "no language server found (one that runs code of the project needs `ollm trust`); "
    "edited files are only parsed (docs/diagnostics.md lists the servers)"
)
COPIED_ROWS = ("ollama", "llama.cpp")  # People copy these commands.
TINY_MODEL = "embedded", "smollm2"
TINY_MODEL_STEP = (
    "SmolLM2 135M is for trying ollm, not for work. Start a real model with one of the commands above, or"
    " `ollm models get qwen2.5-coder-1.5b`."
)
PURPOSES = {"rg": "finds files and text", "shfmt": "parses shell commands for the policy"}
EXTRAS = {
    "code": "tree_sitter",
    "daemon": "litestar",
    "embedded": "xllamacpp",
    "mcp": "mcp",
    "postgres": "psycopg",
    "search": "ddgs",
}
Row = tuple[str, str]
T = TypeVar("T")


@click.command()
@click.option("--clean", is_flag=True, help="Delete what package managers and servers keep in the sandbox.")
@click.option("--measure", is_flag=True, help="Also measure the model's speed with a short request.")
@click.option("--model", is_flag=True, help="Also find faults of the server and the model's template (a minute).")
@shared_options("process", "json")
def doctor(clean: bool, measure: bool, model: bool, process: ProcessScope, as_json: bool) -> int:
    """Check your setup: which model is used and why, what is missing, and what to do next.

    Exits with 4 if --model finds a fault.
    """
    if clean:
        removed = clean_cache(process.home.cache)
        print_result({"removed": removed}, f"Deleted {format_size(removed)}.", as_json=as_json)
        return 0
    return asyncio.run(_run_doctor(process, measured=measure, tested=model, as_json=as_json))


async def _run_doctor(process: ProcessScope, *, measured: bool, tested: bool, as_json: bool) -> int:
    failures: list[OllmError] = []

    async def try_step(work: Coroutine[Any, Any, T]) -> T | None:
        try:
            return await work
        except OllmError as error:
            failures.append(error)
            return None

    card = await try_step(run_trials(process, None, faults_only=True)) if tested else None
    with WaitLine("asking the model server"):
        server, facts = await try_step(_inspect_server(process, measured=measured)) or (None, None)
        failure = failures[-1] if failures else None
        report = {"server": server, "error": failure.message if failure else None, "facts": facts}
        found = {**report, "trials": card.trials if card else (), **await _inspect_setup(process, server)}
    found["next"] = _suggest_next_step(found, failure)
    is_faulty = any(trial.fault for trial in found["trials"])
    document = {"ok": failure is None and not is_faulty, **msgspec.to_builtins(found, enc_hook=str)}
    rows = (*_describe_server(found), *_describe_machine(found))
    print_result(document, "\n".join(_wrap_row(name, make_printable(text)) for name, text in rows), as_json=as_json)
    return failure.exit_code if failure else ModelError.exit_code if is_faulty else 0


def _wrap_row(name: str, text: str) -> str:
    """Wrap a row between words to fit the terminal, unless it is copied or read by a program."""
    label = f"{name:<{LABEL_CELLS}}"
    if name in COPIED_ROWS or not text or text[0] == " " or not sys.stdout.isatty():
        return label + text
    return wrap_words(label + text, " " * LABEL_CELLS)


async def _inspect_setup(process: ProcessScope, server: Mapping[str, Any] | None) -> dict[str, Any]:
    """Inspect everything but the server in use."""
    answering, hardware = await _find_answering_servers(process), inspect_hardware()
    is_wanting = server is None or (server["type"], server["model"]) == TINY_MODEL
    problems = [str(problem) for problem in process.loaded_settings.problems]
    scope = WorkspaceScope(process, process.workspace or Path.cwd())
    sandbox = _inspect_sandbox(scope)
    models = [*(name for other in answering for name in other["models"]), *([server["model"]] if server else ())]
    return {
        "answering": answering,
        "roles": await _inspect_roles(process) if server else {},
        "hardware": hardware,
        "models": suggest_models(hardware) if is_wanting else {},
        "problems": problems,
        "comparison": find_new_models(find_results(process.home.root, scope.path), models),
        "unmatched": [] if problems else await process.providers.list_unmatched_settings(process.settings),
        **sandbox,
        **_inspect_home(process.home),
        "machine": check_machine(),
        "languageServers": _find_language_servers(scope, sandbox["visible"]),
    }


def _describe_server(found: Mapping[str, Any]) -> Iterator[Row]:
    if server := found["server"]:
        yield "server", f"{server['kind']} at {server['baseUrl']}: {server['why']}"
        yield "model", f"{server['model']} ({server['state']})" if server["state"] else server["model"]
        if server["memory"]:
            yield "memory", f"what the server read of a session is {server['memory']}"
        yield "window", f"{server['window']} tokens: {server['windowWhy']}"
        yield "", f"serving: {server['served'] or 'unknown'}, trained for: {server['trained'] or 'unknown'}"
    yield from (("role", f"{role}: {text}") for role, text in found["roles"].items())
    yield from (("server", error) for error in (found["error"],) if error)
    for other in found["answering"]:
        if server is None or other["baseUrl"] != server["baseUrl"]:
            yield "also", f"{other['label']} at {other['baseUrl']}, {format_count(len(other['models']), 'model')}"
    if facts := found["facts"]:
        imported = "; from an imported card, not measured here" if facts.imported else ""
        yield "calls", describe_calls(facts) + imported
        yield "speed", describe_speed(facts)
        yield from (("test", f"{MARKS[trial.ok]:<3}{trial.name}: {trial.told}") for trial in found["trials"])
        yield from (("" if line[0] == " " else "fault", line) for line in describe_faults(found["trials"]))
    yield "machine", found["hardware"].describe()
    yield from found["models"].items()


def _describe_machine(found: Mapping[str, Any]) -> Iterator[Row]:
    yield "sandbox", found["sandbox"]
    yield from (("", line) for line in _describe_box(found))
    yield "here", ", ".join(check["name"] for check in found["machine"] if check["ok"])
    yield "code", "; ".join(f"{name}: {program}" for name, program in found["languageServers"].items()) or NO_SERVERS
    yield from (("missing", f"{check['name']}: {check['detail']}") for check in found["machine"] if not check["ok"])
    yield from (("config", problem) for problem in (*found["problems"], *found["unmatched"]))
    yield "log", f"{found['log']} ({format_size(found['logBytes'])})"
    disk = found["disk"]
    yield "disk", f"{found['home']}: {format_size(sum(part['bytes'] for part in disk))}"
    yield from (("", f"cannot be written: {problem}") for problem in (found["homeProblem"],) if problem)
    small = [part for part in disk[MAX_DISK_ROWS:] if part["name"] == "checkpoints"]
    yield from (("", f"{format_size(part['bytes']):>10}  {part['name']}") for part in (*disk[:MAX_DISK_ROWS], *small))
    yield "next", found["next"]


def _describe_box(found: Mapping[str, Any]) -> Iterator[str]:
    if found["visible"]:
        parts = ", ".join(dict.fromkeys(map(_find_folder, found["visible"])))
        more = "(full list: `ollm doctor --json`; add with sandbox.readable)"
        yield f"outside the workspace, programs in it can read some files below {parts} {more}"
    if found["leftOut"]:
        left_out = ", ".join(found["leftOut"])
        yield f"they cannot read these folders of your PATH, which hold more than programs: {left_out}"
    if kept := found["boxCache"]:
        yield f"they keep {format_size(kept)} of downloads (`ollm doctor --clean` deletes them)"
    for folder, files in found["movedAside"].items():
        command = f"cp -RP {shlex.quote(folder)}/. PROJECT{'/.git' if '/parked/' in folder else ''}"
        yield f"an earlier version moved aside {files}; put back with: {command}"


def _find_folder(path: str) -> str:
    """Find the folder of the home that a path belongs to, such as `~/.cargo`, or of another place."""
    home = str(Path.home())
    if path.startswith(f"{home}/"):
        return "~/" + path[len(home) + 1 :].partition("/")[0]
    return "/".join(path.split("/")[:3])


async def _inspect_roles(process: ProcessScope) -> dict[str, str]:
    """Name the model and server of each role, or what is wrong."""
    found = {}
    for role in ROLES[1:]:
        server = find_role(process.settings, role)
        if server is None or not getattr(process.settings.roles, role):
            continue
        try:
            model = await process.model_chooser.choose(role=server)
            with suppress(ModelError):  # An error of the model means that the server answers.
                await model.provider.models()
            found[role] = f"{name_model(model.name)} at {model.provider.base_url}"
            await model.provider.close()
        except OllmError as error:
            found[role] = str(error)
    return found


def _inspect_sandbox(scope: WorkspaceScope) -> dict[str, Any]:
    """Describe the sandbox level, tested now, the visible parts of the home, and the hidden parts of PATH."""
    taken = scope.process.home.taken
    folders = [folder for folder in taken.glob("*/*") if folder.is_dir() and folder.parent.name != "open"]
    moved = {
        str(folder): format_names(sorted(path.name for path in folder.iterdir()), MAX_MOVED_NAMES)
        for folder in sorted(folders)
    }
    found: dict[str, Any] = {
        "visible": (),
        "leftOut": (),
        "boxCache": sum(measure_cache(scope.process.home.cache).values()),
        "movedAside": moved,
    }
    try:
        sandbox = scope.create_sandbox()
        if sandbox.mode != "off" and sandbox.unboxable is None:
            sandbox.level = sandbox.probe()
        seen = {} if sandbox.level == "none" else {"visible": sandbox.visible, "leftOut": sandbox.left_out}
        return {**found, "sandbox": sandbox.description, **seen}
    except (OllmError, OSError) as error:
        return {**found, "sandbox": f"unknown: {error}"}


def _inspect_home(home: Home) -> dict[str, Any]:
    """Describe the log, and the disk usage by part, largest first."""
    root, log = home.root, home.log
    parts = [{"name": entry.name, "bytes": measure_bytes(entry)} for entry in root.iterdir()] if root.is_dir() else []
    return {
        "log": log,
        "logBytes": log.stat().st_size if log.exists() else 0,
        "home": root,
        "disk": sorted(parts, key=lambda part: (-part["bytes"], part["name"])),
        "homeProblem": check_writable(root),
    }


def check_writable(root: Path) -> str | None:
    """Return why a directory, which may not exist yet, is not writable, or None if it is."""
    place = next((above for above in (root, *root.parents) if above.is_dir()), root)
    try:
        with TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    return None


def check_machine() -> list[dict[str, Any]]:
    """Check for each program and extra if it is here, with its place or its purpose."""
    found = []
    for name, purpose in PURPOSES.items():
        place = find_bundled_program(name)
        found.append({"name": name, "ok": place is not None, "detail": place or purpose})
    with sqlite3.connect(":memory:") as database:
        has_search = ("ENABLE_FTS5",) in database.execute("PRAGMA compile_options")
    needs = "searches sessions; needs SQLite with FTS5 in this Python"
    extras = [
        {"name": f"[{extra}]", "ok": find_spec(module) is not None, "detail": describe_extra_install(extra)}
        for extra, module in EXTRAS.items()
    ]
    return [*found, {"name": "FTS5", "ok": has_search, "detail": needs}, *extras]


def _find_language_servers(scope: WorkspaceScope, visible: Sequence[str]) -> dict[str, str]:
    try:
        finder = scope.create_server_finder()
    except OllmError:  # Unusable settings are reported already.
        return {}
    found = {language.name: finder.find_server(language, scope.path) for language in finder.languages}
    return {
        name: server.argv[0] + _describe_hidden(Path(server.argv[0]).resolve(), visible)
        for name, server in found.items()
        if server is not None
    }


def _describe_hidden(program: Path, visible: Sequence[str]) -> str:
    """Name the setting for a script of the home whose package the sandbox hides: it shows the script alone."""
    if not visible or not program.is_relative_to(Path.home()) or program.read_bytes()[:2] != b"#!":
        return ""
    if any(program.parent.is_relative_to(shown) for shown in visible):
        return ""
    return f" (hidden by the sandbox: add {program.parent} to sandbox.readable)"


async def _find_answering_servers(process: ProcessScope) -> list[dict[str, Any]]:
    """Find servers that answer at their default address, whether or not they are in use."""
    try:
        found = await process.providers.discover()
    except OllmError:  # Unusable settings are reported already.
        return []
    for server in found:
        await server.provider.close()
    return [
        {
            "label": server.place.label,
            "baseUrl": server.provider.base_url,
            "models": [info.name for info in server.models],
        }
        for server in found
    ]


async def _inspect_server(process: ProcessScope, *, measured: bool) -> tuple[dict[str, Any], ModelFacts]:
    """Describe the server in use. `served` is the window it reports; `window` is the one requested."""
    choice = await process.providers.choose(lambda doing: warn(f"The server is {doing}; waiting for it."))
    provider = choice.provider
    try:
        try:
            await provider.models()
        except ModelError as refused:
            if not lists_no_models(refused):
                raise
        info = await provider.describe(choice.model)
        model = info.name if is_called(info.name, choice.model) else choice.model
        wanted = process.settings.provider
        key = make_facts_key(provider.name, provider.base_url, model)
        said, why = await choose_window(provider, model, wanted)
        is_set = wanted.context_window is not None
        facts = drop_stale(process.model_facts.get(key), provider, None if is_set else said)
        tokens, why = (said, why) if is_set else limit_window(facts, said, why, wanted)
        memory = await describe_memory(provider, model, process.saved_slots)
        if measured:
            read, write = await measure_speed(provider, model, tokens)
            found = {"prefill_per_second": read, "decode_per_second": write}
            facts = process.model_facts.update(key, found, dict.fromkeys(found, "probe"))
    finally:
        await provider.close()
    kind = getattr(provider, "kind", None)
    report = {
        "type": provider.name,
        "kind": provider.name if kind in (None, "other") else kind,
        "baseUrl": provider.base_url,
        "why": choice.why,
        "model": name_model(model),
        "state": info.state,
        "window": tokens,
        "windowWhy": why,
        "served": info.window,
        "trained": info.trained_window,
        "memory": memory,
        "guessed": tokens == FALLBACK_WINDOW_TOKENS and info.window is None and not is_set,
    }
    return report, facts


def _suggest_next_step(found: Mapping[str, Any], error: OllmError | None) -> str:
    if error is not None:
        other = next(iter(found["answering"]), None)
        elsewhere = f" Or use {other['label']}, running at {other['baseUrl']}." if other else ""
        action = error.action.replace("; `ollm doctor` lists the servers it finds", "")
        return action.replace(": `ollm doctor` says how", ", as above") + elsewhere
    if found["homeProblem"]:
        return f"Make {found['home']} writable (sessions could not be saved), or set OLLM_HOME to another directory."
    if found["problems"]:
        return "Run `ollm config check` to list the problems."
    for check in found["machine"]:
        if not check["ok"] and not check["name"].startswith("["):
            return f"Install {check['name']} ({check['detail']})."
    if faults := [trial for trial in found["trials"] if trial.fault]:
        remedy = next((trial.remedy for trial in faults if trial.remedy), f"{faults[0].name}: {faults[0].told}")
        undo = f"`ollm models forget {shlex.quote(found['server']['model'])}` undoes what was learnt."
        return f"Fix the server ({remedy}), then run `ollm doctor --model` again. {undo}"
    return _suggest_improvement(found["server"], found["facts"], found["comparison"])


def _suggest_improvement(server: Mapping[str, Any], facts: ModelFacts, comparison: Mapping[str, list[str]]) -> str:
    window, served = server["window"], server["served"]
    if (server["type"], server["model"]) == TINY_MODEL:
        return TINY_MODEL_STEP
    if server["guessed"]:
        unknown = "The server does not say its context window: set provider.contextWindow to what it serves."
        return f"Load the model: `ollm models load {server['model']}`." if server["state"] == "unloaded" else unknown
    if served and window > served:
        return (
            f"provider.contextWindow is {window:,}, the server gives {served:,}: "
            f"`ollm config set provider.contextWindow {served}`."
        )
    if window < RECOMMENDED_WINDOW_TOKENS and (server["trained"] or RECOMMENDED_WINDOW_TOKENS) > window:
        return f"The context window is small ({window:,}): serve {RECOMMENDED_WINDOW_TOKENS:,} tokens or more."
    if new := comparison["new"]:
        command = f"ollm compare run --models {shlex.quote(','.join((*comparison['compared'], *new)))}"
        return f"All set. Not compared with your other models: {format_names(new, MAX_NEW)}. `{command}` does."
    return "All set." if facts.probed else "All set. To test what this model can do: `ollm models probe` (minutes)."
