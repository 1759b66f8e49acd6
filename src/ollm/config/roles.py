"""Servers and models for the kinds of work in `roles`: `SERVER/MODEL`, or the keys of `provider`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from ollm.config.settings import ProviderSettings, ServerType, Settings
from ollm.config.yaml_tree import YamlEntry

SUBSTITUTES = {"summary": "small", "tasks": "small"}  # The second role replaces the first if it is not set.
SERVER_KEYS = ("type", "extension", "baseUrl")
OLD_NAMES = {"embeddingModel": "model"}  # The settings of `search` became `roles.embedding`.


def parse_role(value: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `provider` that a role sets. A name without a server is a model of the main server."""
    if not isinstance(value, str):
        return dict(value)
    scheme, separator, rest = value.partition("://")
    if separator:
        address, _, model = rest.partition("/")
        before, version, after = rest.partition("/v1")
        if version and after[:1] in ("", "/"):
            address, model = before + version, after[1:]
        return {"baseUrl": f"{scheme}://{address}", **({"model": model} if model else {})}
    server, _, model = value.partition("/")
    if server in get_args(ServerType):
        return {"type": server, **({"model": model} if model else {})}
    return {"model": value}


def find_role(settings: Settings, role: str) -> ProviderSettings | None:
    """Find the server and model of a role, or None if it is main's work."""
    value = getattr(settings.roles, role) or getattr(settings.roles, SUBSTITUTES.get(role, role))
    if not value:
        return None
    keys, main = parse_role(value), settings.provider
    own = msgspec.convert(keys, ProviderSettings)
    if all(getattr(own, name) in (None, getattr(main, name)) for name in ("type", "extension", "base_url")):
        fields = zip(ProviderSettings.__struct_encode_fields__, ProviderSettings.__struct_fields__, strict=True)
        return msgspec.structs.replace(main, **{name: getattr(own, name) for key, name in fields if key in keys})
    return own if "timeouts" in keys else msgspec.structs.replace(own, timeouts=main.timeouts)


def move_search(entry: YamlEntry) -> YamlEntry:
    """Move the keys of `search`, as older files have them, to `roles.embedding`."""
    search, roles = entry.value["search"], entry.value.get("roles")
    known = roles.value if roles is not None and isinstance(roles.value, dict) else {}
    rest = {key: child for key, child in entry.value.items() if key != "search"}
    if not isinstance(search.value, dict) or "embedding" in known:
        return YamlEntry(place=entry.place, value=rest)
    keys = {OLD_NAMES.get(key, key): child for key, child in search.value.items()}
    embedding = YamlEntry(place=search.place, value=keys)
    return YamlEntry(
        place=entry.place,
        value={**rest, "roles": YamlEntry(place=search.place, value={**known, "embedding": embedding})},
    )
