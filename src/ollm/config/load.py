"""Settings from all their sources: built-in < user file < trusted workspace file < environment < flags (S8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ollm.config.checks import apply_safe_fallbacks, check_url
from ollm.config.discovery_memory import BUILTIN_IGNORES
from ollm.config.layers import Layer, drop_other_server, merge_layers, restrict_layer
from ollm.config.paths import Home
from ollm.config.settings import Settings
from ollm.config.source_file import read_config_file
from ollm.config.validation import Mistake, SettingsReader
from ollm.config.variables import parse_ollama_host, read_flags, read_variables
from ollm.config.yaml_tree import SourcePosition, YamlEntry
from ollm.domain.errors import UsageError
from ollm.domain.struct import Data

BASE_VALUES = {"fileDiscovery": {"builtinIgnores": list(BUILTIN_IGNORES)}, "policy": {"defaultAction": "ask"}}


class RulePlace(Data, frozen=True):
    """Which layer a policy rule comes from (user, workspace, flags), and where it is."""

    layer: str
    place: SourcePosition


class LoadedSettings(Data, frozen=True):
    """The settings, what was wrong, and where each key that is set comes from.

    `rule_places` goes with `settings.policy.rules`, rule by rule.
    """

    settings: Settings
    problems: tuple[Mistake, ...]
    sources: Mapping[str, SourcePosition]
    rule_places: tuple[RulePlace, ...]

    def require_settings(self) -> Settings:
        """The settings, unless something is so wrong that going on would surprise: then a `UsageError` names it all."""
        fatal = [str(problem) for problem in self.problems if problem.fatal]
        if fatal:
            raise UsageError("\n  ".join(fatal), action="Run `ollm config check` to list all problems.")
        return self.settings


def load_settings(
    home: Home,
    environment: Mapping[str, str],
    *,
    workspace: Path | None = None,
    trusted: bool = False,
    flags: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Read every source. Nothing wrong in a file raises: it is in `problems`, and `usable` decides."""
    reading = SettingsReader(fatal=("provider",))
    own = SourcePosition(file=str(home.config), name="config.yaml")
    layers = [_build_layer("user", read_config_file(own, reading, home.cache / "config.json"), reading)]
    if workspace is not None and trusted and (workspace / ".ollm").resolve() != home.root.resolve():
        theirs = SourcePosition(file=str(workspace / ".ollm" / "config.yaml"), name=".ollm/config.yaml")
        entry = read_config_file(theirs, reading, home.cache / "workspace-config.json")
        layers.append(restrict_layer(_build_layer("workspace", entry, reading), reading))
    layers.append(_build_layer("environment", read_variables(environment), reading))
    layers.append(_build_layer("flags", read_flags(flags or {}), reading))
    layers.append(_build_ollama_layer(environment, layers))
    return _combine_layers(layers, reading)


def load_policy(file: Path) -> LoadedSettings:
    """The policy alone, from a file that holds a `policy:` mapping or its content."""
    reading = SettingsReader(fatal=("provider",))
    if not file.exists():
        reading.report_unusable(SourcePosition(file=str(file)), "no such file")
    entry = read_config_file(SourcePosition(file=str(file)), reading)
    if entry is not None and "policy" not in entry.value:
        entry = YamlEntry(place=entry.place, value={"policy": entry})
    return _combine_layers([_build_layer("file", entry, reading)], reading)


def _combine_layers(layers: list[Layer], reading: SettingsReader) -> LoadedSettings:
    values: dict[str, Any] = BASE_VALUES
    places: dict[str, SourcePosition] = {}
    rules: list[RulePlace] = []
    for layer in layers:
        adding = layer.name == "workspace"
        values = merge_layers(drop_other_server(values, layer.values), layer.values, adding=adding)
        places |= {key: place for key, place in layer.places.items() if "[" not in key}
        if "rules" in layer.values.get("policy", {}):
            rules = [*(rules if adding else []), *_list_rule_places(layer)]
    return LoadedSettings(
        settings=_build_settings(values),
        problems=tuple(reading.mistakes),
        sources=places,
        rule_places=tuple(rules),
    )


def _build_settings(values: Mapping[str, Any]) -> Settings:
    """The sections that something sets, read in their types; the others are the defaults they were."""
    changed = {name: value for name, value in values.items() if value != BASE_VALUES.get(name, {})}
    if not changed:
        return Settings()
    kinds = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
    return Settings(**{kinds[name].name: msgspec.convert(value, kinds[name].type) for name, value in changed.items()})


def _list_rule_places(layer: Layer) -> list[RulePlace]:
    count = len(layer.values["policy"]["rules"])
    return [RulePlace(layer=layer.name, place=layer.places[f"policy.rules[{index}]"]) for index in range(count)]


def _build_layer(name: str, entry: YamlEntry | None, reading: SettingsReader) -> Layer:
    if entry is None or not entry.value:
        return Layer(name=name, values={}, places={})
    before = len(reading.mistakes)
    reading.places = {}
    values = reading.read_struct(Settings, entry)
    check_url(values, reading)
    apply_safe_fallbacks(values, reading.places, reading.mistakes[before:])
    return Layer(name=name, values=values, places=reading.places)


def _build_ollama_layer(environment: Mapping[str, str], layers: list[Layer]) -> Layer:
    """OLLAMA_HOST says where Ollama is, unless another server or OLLM_BASE_URL or a flag was named."""
    host = environment.get("OLLAMA_HOST", "").strip()
    named: dict[str, Any] = {}
    for layer in layers:
        named |= layer.values.get("provider", {})
    outspoken = any(
        "baseUrl" in layer.values.get("provider", {}) for layer in layers if layer.name in ("environment", "flags")
    )
    other = named.get("type", "ollama") != "ollama" or ("baseUrl" in named and "type" not in named)
    if not host or outspoken or other:
        return Layer(name="environment", values={}, places={})
    place = SourcePosition(file="OLLAMA_HOST")
    provider = {"type": "ollama", "baseUrl": parse_ollama_host(host)}
    return Layer(
        name="environment", values={"provider": provider}, places={f"provider.{key}": place for key in provider}
    )
