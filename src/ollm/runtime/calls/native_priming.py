"""Files that go with a request to a small model which calls natively, as they do with one that writes blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy import Lazy
from ollm.runtime.model.model import Model

if TYPE_CHECKING:
    from ollm.runtime.calls.project_files import ProjectFiles


async def prime_native_request(files: Lazy[ProjectFiles], model: Model, request: str) -> str:
    """The names and texts for this request; nothing for a model that is not known to be small."""
    if model.facts.call_form not in ("native", "unknown"):
        return ""
    from ollm.providers.model_families import BLOCKS_BELOW, read_size

    size = model.facts.parameters or read_size(model.name)
    if size is None or size >= BLOCKS_BELOW:
        return ""
    from ollm.runtime.calls.turn_guide import TurnGuide

    return await TurnGuide(files.get(), model.window).prime_request(request)
