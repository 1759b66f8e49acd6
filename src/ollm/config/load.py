"""Settings from all their sources: built-in < user file < trusted workspace file < environment < flags (S8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ollm.config.checks import check_url, stay_safe
from ollm.config.layers import Layer, for_another_server, laid_over, restricted
from ollm.config.paths import Home
from ollm.config.settings import BUILTIN_IGNORES, Settings
from ollm.config.source_file import read_entry
from ollm.config.validation import Mistake, Reading
from ollm.config.variables import from_flags, from_variables, ollama_url
from ollm.config.yaml_tree import Entry, Place
from ollm.domain.errors import UsageError
from ollm.domain.struct import Data

BASE = {"fileDiscovery": {"builtinIgnores": list(BUILTIN_IGNORES)}, "policy": {"defaultAction": "ask"}}


class RulePlace(Data, frozen=True):
    """Which layer a policy rule comes from (user, workspace, flags), and where it stands."""

    layer: str
    place: Place


class Loaded(Data, frozen=True):
    """The settings, what was wrong, and where each key that is set comes from.

    `rule_places` goes with `settings.policy.rules`, rule by rule.
    """

    settings: Settings
    problems: tuple[Mistake, ...]
    sources: Mapping[str, Place]
    rule_places: tuple[RulePlace, ...]

    def usable(self) -> Settings:
        """The settings, unless something is so wrong that going on would surprise: then a `UsageError` names it all."""
        fatal = [str(problem) for problem in self.problems if problem.fatal]
        if fatal:
            raise UsageError("\n  ".join(fatal), action="`ollm config check` lists everything that is wrong.")
        return self.settings


def load(
    home: Home,
    environment: Mapping[str, str],
    *,
    workspace: Path | None = None,
    trusted: bool = False,
    flags: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read every source. Nothing wrong in a file raises: it is in `problems`, and `usable` decides."""
    reading = Reading(fatal=("provider",))
    own = Place(file=str(home.config), name="config.yaml")
    layers = [_layer("user", read_entry(own, reading, home.cache / "config.json"), reading)]
    if workspace is not None and trusted and (workspace / ".ollm").resolve() != home.root.resolve():
        theirs = Place(file=str(workspace / ".ollm" / "config.yaml"), name=".ollm/config.yaml")
        entry = read_entry(theirs, reading, home.cache / "workspace-config.json")
        layers.append(restricted(_layer("workspace", entry, reading), reading))
    layers.append(_layer("environment", from_variables(environment), reading))
    layers.append(_layer("flags", from_flags(flags or {}), reading))
    layers.append(_ollama_host(environment, layers))
    return _loaded(layers, reading)


def load_policy(file: Path) -> Loaded:
    """The policy alone, from a file that holds a `policy:` mapping or its content."""
    reading = Reading(fatal=("provider",))
    if not file.exists():
        reading.unusable(Place(file=str(file)), "there is no such file")
    entry = read_entry(Place(file=str(file)), reading)
    if entry is not None and "policy" not in entry.value:
        entry = Entry(place=entry.place, value={"policy": entry})
    return _loaded([_layer("file", entry, reading)], reading)


def _loaded(layers: list[Layer], reading: Reading) -> Loaded:
    values: dict[str, Any] = BASE
    places: dict[str, Place] = {}
    rules: list[RulePlace] = []
    for layer in layers:
        adding = layer.name == "workspace"
        values = laid_over(for_another_server(values, layer.values), layer.values, adding=adding)
        places |= {key: place for key, place in layer.places.items() if "[" not in key}
        if "rules" in layer.values.get("policy", {}):
            rules = [*(rules if adding else []), *_rule_places(layer)]
    return Loaded(
        settings=_settings(values),
        problems=tuple(reading.mistakes),
        sources=places,
        rule_places=tuple(rules),
    )


def _settings(values: Mapping[str, Any]) -> Settings:
    """The sections that something sets, read in their types; the others are the defaults they were."""
    changed = {name: value for name, value in values.items() if value != BASE.get(name, {})}
    if not changed:
        return Settings()
    kinds = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
    return Settings(**{kinds[name].name: msgspec.convert(value, kinds[name].type) for name, value in changed.items()})


def _rule_places(layer: Layer) -> list[RulePlace]:
    count = len(layer.values["policy"]["rules"])
    return [RulePlace(layer=layer.name, place=layer.places[f"policy.rules[{index}]"]) for index in range(count)]


def _layer(name: str, entry: Entry | None, reading: Reading) -> Layer:
    if entry is None or not entry.value:
        return Layer(name=name, values={}, places={})
    before = len(reading.mistakes)
    reading.places = {}
    values = reading.struct(Settings, entry)
    check_url(values, reading)
    stay_safe(values, reading.places, reading.mistakes[before:])
    return Layer(name=name, values=values, places=reading.places)


def _ollama_host(environment: Mapping[str, str], layers: list[Layer]) -> Layer:
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
    place = Place(file="OLLAMA_HOST")
    provider = {"type": "ollama", "baseUrl": ollama_url(host)}
    return Layer(
        name="environment", values={"provider": provider}, places={f"provider.{key}": place for key in provider}
    )
