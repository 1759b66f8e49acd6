"""Lists and probes models for `ollm models` and the daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.app.toolbox import create_tool_registry
from ollm.domain.clock import format_stamp
from ollm.domain.errors import NoServerError
from ollm.providers.base import ChatRequest
from ollm.runtime.prompt.prefix import count_instruction_tokens

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope
    from ollm.domain.tools import ToolSchema
    from ollm.runtime.model.probe import ModelCard, Trial


async def collect_models(process: ProcessScope, report: Callable[[str], None]) -> dict[str, Any]:
    """List installed models, those of running servers, and those available for download."""
    from ollm.providers.local_models.model_files import CATALOGUE, list_installed

    files = list_installed(process.home.models)
    names = {file.name for file in files}
    try:
        servers = await process.providers.list_servers()
    except NoServerError as error:
        report(str(error))
        servers = await process.providers.discover()
    for server in servers:
        await server.provider.close()
    return {
        "files": [{"name": file.name, "size": file.size, "path": str(file.path)} for file in files],
        "servers": [
            {
                "label": server.place.label,
                "baseUrl": server.provider.base_url,
                "models": [{"name": info.name, "size": info.size} for info in server.models],
            }
            for server in servers
        ],
        "catalogue": [
            {"name": model.name, "about": model.about, "size": model.size, "installed": model.name in names}
            for model in CATALOGUE
        ],
    }


MAX_PROBE_WINDOW_TOKENS = 8192  # the tools are tried in the words of a window of this size at most


async def probe_model(process: ProcessScope, name: str | None, report: Callable[[Trial], None]) -> ModelCard:
    """Probe the model and replace its stored facts by the dated results."""
    import msgspec

    from ollm.runtime.model.probe import Probe
    from ollm.tools.framework.tool_selection import select_tools

    model = await process.choose_model(name, anew=True)
    known = create_tool_registry(process.workspace or Path.cwd()).list()
    window = min(MAX_PROBE_WINDOW_TOKENS, model.window)
    instructions = count_instruction_tokens(window, "code")

    def select(count: int) -> tuple[ToolSchema, ...]:
        return select_tools("code", known, window, count, instruction_tokens=instructions)

    try:
        request = ChatRequest(model=model.name, messages=(), window=model.window)
        card = await Probe(model.provider, request, select, report).run(model.facts)
    finally:
        await model.provider.close()
    found = msgspec.structs.asdict(msgspec.structs.replace(card.facts, probed=format_stamp(process.clock())))
    key = found.pop("key")
    return msgspec.structs.replace(card, facts=process.model_facts.update(key, **found))
