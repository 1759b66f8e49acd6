"""The flags and settings of each model server that fix a fault found by `ollm doctor --model`.

`docs/providers.md` cites the page of each server's documentation.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from ollm.domain.errors import ModelError
from ollm.domain.model_facts import Fault, ServerKind
from ollm.providers.base import Provider

TEMPLATE_FAULTS = ("system", "users", "results", "calls", "tools")
OWN_KINDS = ("ollama", "embedded")

REMEDIES = Path(__file__).with_name("server_remedies.json")  # Remedies by server, for templates and other faults.


def find_remedy(kind: ServerKind, fault: Fault) -> str:
    """Return the server's own way to fix a fault, or "" if none is documented."""
    known: dict[str, dict[str, str]] = msgspec.json.decode(REMEDIES.read_bytes())
    return known.get(kind, {}).get("template" if fault in TEMPLATE_FAULTS else fault, "")


async def identify_server(provider: Provider) -> ServerKind:
    """Identify the kind of server by its model list."""
    if provider.name in OWN_KINDS:
        return cast("ServerKind", provider.name)
    with suppress(ModelError):
        await provider.models()
    return getattr(provider, "kind", None) or "other"
