"""How the layers of settings lie over each other, and what a workspace's file may not do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ollm.config.validation import SettingsReader
from ollm.config.yaml_tree import SourcePosition
from ollm.domain.struct import Data

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
USER_ONLY_KEYS = (
    "policy.approval",
    "environment.allowList",
    "provider.extension",
    "provider.baseUrl",
    "provider.apiKey",
    "provider.apiKeyEnv",
    "models",
    "extensions",
    "sessions",
    "daemon",
    "sandbox",
    "checkpoints",
    "workspace",
    "archive",
    "tools.allowedRoots",
    "tools.webFetch.allowPrivate",
    "tools.webSearch.baseUrl",
    "tools.webSearch.apiKeyEnv",
)
"""What only the user's own file may set: what gives a right, opens a place, or reaches beyond this workspace."""


class Layer(Data, frozen=True):
    """What one source sets, and where in it each key is."""

    name: str
    values: dict[str, Any]
    places: dict[str, SourcePosition]


def restrict_layer(layer: Layer, reading: SettingsReader) -> Layer:
    """The workspace's layer without what it may not set; everything left out is told."""
    values, places = layer.values, dict(layer.places)
    for path in USER_ONLY_KEYS:
        for key in [key for key in places if key == path or key.startswith((path + ".", path + "["))]:
            place = places.pop(key)
            if not key.endswith("]"):
                reading.report_ignored(place, key, "can only be set in your own config file, not in a workspace's")
        values = _remove_path(values, path)
    return _drop_allowing_rules(Layer(name=layer.name, values=values, places=places), reading)


def _drop_allowing_rules(layer: Layer, reading: SettingsReader) -> Layer:
    """A rule that allows is dropped; one whose action cannot be read stays, as such a rule asks."""
    policy = dict(layer.values.get("policy", {}))
    places = {key: place for key, place in layer.places.items() if not key.startswith("policy.rules[")}
    if policy.get("defaultAction") == "allow":
        reading.report_ignored(
            places["policy.defaultAction"], "policy.defaultAction", "a workspace's config may not allow"
        )
        del policy["defaultAction"]
    kept: list[Any] = []
    for index, rule in enumerate(policy.get("rules", ())):
        place = layer.places[f"policy.rules[{index}]"]
        if rule.get("action") == "allow":
            reading.report_ignored(
                place, f"policy.rules[{index}]", "a workspace's config may only add rules that ask or deny"
            )
            continue
        places[f"policy.rules[{len(kept)}]"] = place
        kept.append(rule)
    if "rules" in policy:
        policy["rules"] = kept
    values = {**layer.values, "policy": policy} if "policy" in layer.values else layer.values
    return Layer(name=layer.name, values=values, places=places)


def drop_other_server(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` without the address, key and model of its server, when `above` names another kind of server."""
    provider, asked = below.get("provider", {}), above.get("provider", {}).get("type")
    if asked is None or ("extension" not in provider and provider.get("type") in (None, asked)):
        return dict(below)
    return {**below, "provider": {key: value for key, value in provider.items() if key == "timeouts"}}


def merge_layers(below: Mapping[str, Any], above: Mapping[str, Any], *, adding: bool, path: str = "") -> dict[str, Any]:
    """`above` wins, section by section; when it only adds, lists grow and nothing gets laxer."""
    result = dict(below)
    for key, value in above.items():
        name = f"{path}.{key}" if path else key
        result[key] = _merge_values(below.get(key), value, name, adding) if key in below else value
    return result


def _merge_values(below: Any, above: Any, name: str, adding: bool) -> Any:
    if adding and name in ADDITIVE_MERGES:
        return ADDITIVE_MERGES[name](below, above)
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return merge_layers(below, above, adding=adding, path=name)
    return above


def _merge_hooks(own: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {**other, **{event: _chain_hooks(hooks, other.get(event)) for event, hooks in own.items()}}


def _chain_hooks(own: Any, other: Any) -> Any:
    return [*own, *other] if isinstance(own, list) and isinstance(other, list) else own


def _remove_path(values: dict[str, Any], path: str) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    if first not in values:
        return values
    if not rest:
        return {key: value for key, value in values.items() if key != first}
    inner = values[first]
    return {**values, first: _remove_path(inner, rest)} if isinstance(inner, dict) else values


def _extend_list(own: list[Any], other: list[Any]) -> list[Any]:
    return [*own, *(item for item in other if item not in own)]


ADDITIVE_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "environment.denyPatterns": _extend_list,
    "fileDiscovery.builtinIgnores": _extend_list,
    "policy.rules": lambda own, other: [*own, *other],
    "policy.defaultAction": lambda own, other: max(own, other, key=lambda action: STRICTNESS[action]),
    "mcpServers": lambda own, other: {**other, **own},
    "hooks": _merge_hooks,
}
"""What a workspace only adds to: it takes nothing away, and the user's own server of the same name stays."""
