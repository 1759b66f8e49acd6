"""The settings that come from environment variables and flags, as entries like those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ollm.config.yaml_tree import SourcePosition, YamlEntry

VARIABLES = {
    "OLLM_PROVIDER": "provider.type",
    "OLLM_BASE_URL": "provider.baseUrl",
    "OLLM_MODEL": "provider.model",
    "OLLM_API_KEY": "provider.apiKey",
    "OLLM_CONTEXT_WINDOW": "provider.contextWindow",
    "OLLM_CALL_FORM": "provider.callForm",
}
OLLAMA_PORT = 11434


def read_variables(environment: Mapping[str, str]) -> YamlEntry:
    """What our own variables set; one that is empty counts as unset."""
    named = {key: (name, environment.get(name, "").strip()) for name, key in VARIABLES.items()}
    return build_entry_tree(
        {key: (SourcePosition(file=name), _parse_number(key, text)) for key, (name, text) in named.items() if text}
    )


def find_variable(environment: Mapping[str, str], key: str) -> str | None:
    """The variable that sets this key here, whatever the files say."""
    return next((name for name, sets in VARIABLES.items() if sets == key and environment.get(name, "").strip()), None)


def read_flags(flags: Mapping[str, Any]) -> YamlEntry:
    """What the command line set, by dotted key; None counts as not given."""
    return build_entry_tree(
        {key: (SourcePosition(file="the command line"), value) for key, value in flags.items() if value is not None}
    )


def parse_ollama_host(host: str) -> str:
    """OLLAMA_HOST as Ollama reads it: scheme, port, even the host may be missing; a wildcard means loopback."""
    text = host.strip().strip("\"'").strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    port = {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT) if separator else OLLAMA_PORT
    address, slash, path = rest.partition("/")
    name, found = _split_host_port(address)
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - replaced, not bound
    shown = f"[{name}]" if ":" in name else name
    return f"{scheme}://{shown}:{found or port}{(slash + path).rstrip('/')}"


def _split_host_port(address: str) -> tuple[str, int | None]:
    if address.count(":") > 1 and not address.startswith("["):
        return address, None
    host, colon, port = address.rpartition(":") if not address.endswith("]") else (address, "", "")
    if not colon:
        host, port = address, ""
    number = int(port) if port.isascii() and port.isdigit() and int(port) <= 65535 else None
    return host.strip("[]"), number


def _parse_number(key: str, text: str) -> Any:
    return int(text) if key.endswith("contextWindow") and text.isascii() and text.isdigit() else text


def build_entry_tree(values: Mapping[str, tuple[SourcePosition, Any]]) -> YamlEntry:
    """Entries nested as their dotted keys say."""
    root: dict[str, YamlEntry] = {}
    for key, (place, value) in values.items():
        *sections, last = key.split(".")
        into = root
        for section in sections:
            into = into.setdefault(section, YamlEntry(place=place, value={})).value
        into[last] = YamlEntry(place=place, value=_build_entries(place, value))
    return YamlEntry(place=SourcePosition(file=""), value=root)


def _build_entries(place: SourcePosition, value: Any) -> Any:
    """Lists and mappings of plain values, each with the place of the whole."""
    if isinstance(value, list | tuple):
        return [YamlEntry(place=place, value=_build_entries(place, item)) for item in value]
    if isinstance(value, Mapping):
        return {str(key): YamlEntry(place=place, value=_build_entries(place, item)) for key, item in value.items()}
    return value
