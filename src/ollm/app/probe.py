"""`ollm models probe`: the trials on the model a conversation would use, and what they showed kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.run_tool import tools_of

if TYPE_CHECKING:
    from ollm.app.process import Process
    from ollm.domain.tools import ToolSchema
    from ollm.runtime.model.probe import Card, Trial

SHOWN = 8192  # the tools are tried in the words of a window of this size at most


async def probe_model(process: Process, name: str | None, report: Callable[[Trial], None]) -> Card:
    """Try the model out; its facts are replaced by what was found, with the date."""
    import msgspec

    from ollm.domain.clock import stamp
    from ollm.providers.base import ChatRequest
    from ollm.runtime.model.probe import Probe
    from ollm.tools.framework.tool_selection import tool_set

    model = await process.model(name)
    schemas = tools_of(process.workspace or Path.cwd()).get_function_schemas()

    def tools(count: int) -> tuple[ToolSchema, ...]:
        return tool_set("code", schemas, min(SHOWN, model.window), count)

    try:
        request = ChatRequest(model=model.name, messages=(), window=model.window)
        card = await Probe(model.provider, request, tools, report).run(model.facts)
    finally:
        await model.provider.close()
    found = msgspec.structs.asdict(msgspec.structs.replace(card.facts, probed=stamp(process.clock())))
    key = found.pop("key")
    return msgspec.structs.replace(card, facts=process.model_facts.update(key, **found))
