"""Lists and probes models for `ollm models` and the daemon, and exchanges their cards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.app.toolbox import create_tool_registry
from ollm.domain.clock import format_stamp
from ollm.domain.errors import NotFoundError, OllmError, UsageError
from ollm.domain.model_facts import MODEL_FIELDS, TEMPLATE_FIELDS, ModelFacts, convert_facts
from ollm.providers.base import ChatRequest, ModelInfo, find_model, is_called, name_model, name_models
from ollm.providers.local_models.model_files import CATALOGUE, list_installed
from ollm.providers.server_errors import make_unknown_model_error
from ollm.providers.server_kind import identify_server
from ollm.providers.window import choose_window
from ollm.runtime.model.probe import ModelCard, Probe, Trial
from ollm.runtime.prompt.prefix import count_instruction_tokens
from ollm.services.model_cards import SharedCard
from ollm.store.model_facts import make_facts_key, split_facts_key
from ollm.tools.framework.tool_selection import select_tools

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope
    from ollm.domain.tools import ToolSchema


async def collect_models(process: ProcessScope, report: Callable[[str], None]) -> dict[str, Any]:
    """List installed models, those of running servers, and those available for download."""
    files = list_installed(process.home.models)
    names = {file.name for file in files}
    servers = await process.providers.list_servers(report)
    for server in servers:
        await server.provider.close()
    return {
        "files": [{"name": file.name, "size": file.size, "path": str(file.path)} for file in files],
        "servers": [
            {
                "label": server.place.label,
                "baseUrl": server.provider.base_url,
                "models": [
                    {"name": info.name, "size": _find_size(info), "state": info.state, "window": info.window}
                    for info in server.models
                ],
            }
            for server in servers
        ],
        "catalogue": [
            {"name": model.name, "about": model.about, "size": model.size, "installed": model.name in names}
            for model in CATALOGUE
        ],
    }


def _find_size(info: ModelInfo) -> int | None:
    with suppress(OSError):
        return info.size or (Path(info.file).stat().st_size if info.file else None)
    return None


async def change_loaded(process: ProcessScope, name: str, *, load: bool) -> tuple[str, str]:
    """Load a model into its server's memory, or unload it. Returns its name and the server."""
    registry = process.create_registry(process.settings.provider, name)
    provider = (await registry.choose()).provider
    try:
        infos = await provider.models()
        if (found := find_model(infos, name)) is None:
            raise make_unknown_model_error(provider.base_url, name, [info.name for info in infos])
        if not load and found.state == "unloaded":
            raise NotFoundError(f"{name} is not loaded at {provider.base_url}.")
        window, _ = await choose_window(provider, found.name, process.settings.provider) if load else (0, "")
        await provider.set_loaded(found.name, loaded=load, window=window)
    finally:
        await provider.close()
    names = [info.name for info in infos]
    return name_models(names)[names.index(found.name)], provider.base_url


MAX_PROBE_WINDOW_TOKENS = 8192  # The tools are tried in the form for a window of this size at most.


async def find_facts(process: ProcessScope, name: str) -> ModelFacts:
    """Find what is known about a model of the server in use. While that does not answer, the name must be clear."""
    every = {facts.key: (facts, *split_facts_key(facts.key)[1:]) for facts in process.model_facts.list_all()}
    known = {key: place for key, place in every.items() if is_called(place[2], name)}
    address = (process.settings.provider.base_url or "").rstrip("/")
    if address or len(known) > 1:
        try:
            known = {key: known[key] for key in await _list_used_keys(process, name) if key in known}
        except OllmError:
            known = {key: place for key, place in known.items() if place[1].startswith(address)}
            if len(known) > 1:
                said = " and ".join(f"{model} at {url}" for _, url, model in known.values())
                raise UsageError(
                    f"{name} is known as {said}.", action="Write the full name, or start its server."
                ) from None
    if not known:
        where = f" at {address}" if address else ""
        raise NotFoundError(f"Nothing is known about {name}{where} yet.", action=f"Run `ollm models probe {name}`.")
    return next(iter(known.values()))[0]


async def _list_used_keys(process: ProcessScope, name: str) -> list[str]:
    """List the keys of a model of the server in use: by its full name, and by the given one."""
    choice = await process.create_registry(process.settings.provider, name).choose()
    try:
        found = find_model(await choice.provider.models(), name)
    finally:
        await choice.provider.close()
    names = (found.name if found else choice.model, name)
    return [make_facts_key(choice.provider.name, choice.provider.base_url, each) for each in names]


async def import_card(process: ProcessScope, card: SharedCard, name: str | None) -> tuple[ModelFacts, str]:
    """Take over someone's card for a model of the current server, with the address of that server. Speeds and the
    window are those of another machine and stay unknown; the forms of another kind of server do too."""
    model = await process.model_chooser.choose(name or card.model, anew=True)
    try:
        kind = await identify_server(model.provider)
        names = [info.name for info in await model.provider.models()]
    finally:
        await model.provider.close()
    if names and model.name not in names:
        raise make_unknown_model_error(model.provider.base_url, model.name, names)
    known = process.model_facts.get(model.facts.key)
    if known.probed:
        raise UsageError(
            f"{name_model(model.name)} was measured here ({known.probed}), which counts more than a card.",
            action=f"To measure it again: `ollm models probe {name_model(model.name)}`.",
        )
    theirs = convert_facts({**card.facts, "key": known.key})
    tested = known.server is not None and not known.imported  # Measured by `ollm doctor --model`.
    fields = (*MODEL_FIELDS, *(TEMPLATE_FIELDS if theirs.server == kind and not tested else ()))
    changes = {field: getattr(theirs, field) for field in fields}
    stamp = format_stamp(process.clock())
    found = process.model_facts.update(known.key, changes, dict.fromkeys(changes, "card"))
    return process.model_facts.update(found.key, {"server": kind, "imported": stamp}, {}), model.provider.base_url


async def probe_model(
    process: ProcessScope,
    name: str | None,
    report: Callable[[Trial], None],
    announce: Callable[[str], None],
    *,
    faults_only: bool = False,
) -> ModelCard:
    """Measure the model and replace its stored facts by the dated results. `faults_only` runs only the trials that
    find faults of the server and its template."""
    model = await process.model_chooser.choose(name, anew=True)
    known = create_tool_registry(process.workspace or Path.cwd()).list()
    window = min(MAX_PROBE_WINDOW_TOKENS, model.window)
    instructions = count_instruction_tokens(window, "code")

    def select(count: int) -> tuple[ToolSchema, ...]:
        return select_tools("code", known, window, count, instruction_tokens=instructions)

    try:
        request = ChatRequest(model=model.name, messages=(), window=model.window, settings=model.settings)
        probe = Probe(model.provider, request, select, report, announce)
        card = await probe.run(process.model_facts.get(model.facts.key), faults_only=faults_only)
    finally:
        await model.provider.close()
    found = msgspec.structs.asdict(card.facts)
    key, _ = found.pop("key"), found.pop("learnt")
    if not faults_only:
        found["probed"] = format_stamp(process.clock())
    return msgspec.structs.replace(card, facts=process.model_facts.update(key, found, dict.fromkeys(found, "probe")))
