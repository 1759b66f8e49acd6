"""Settings from all their sources: built-in < user file < trusted workspace file < environment < flags (S8)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ollm.config.environment import Home, read_log_level
from ollm.config.settings import BUILTIN_IGNORES, ModelSettings, Settings
from ollm.config.validation import Mistake, SettingsReader, read_config_file
from ollm.config.yaml_tree import SourcePosition, YamlEntry
from ollm.domain.errors import UsageError
from ollm.domain.struct import Data

BASE_VALUES = {"fileDiscovery": {"builtinIgnores": list(BUILTIN_IGNORES)}, "policy": {"defaultAction": "ask"}}
FATAL_KEYS = ("provider", "roles.main")
USER_ONLY_KEYS = (
    "policy.approval",
    "environment.allowList",
    "provider.extension",
    "provider.baseUrl",
    "provider.apiKey",
    "provider.apiKeyEnv",
    "provider.slotSavePath",
    "provider.slotSaveGigabytes",
    "models",
    "roles",
    "extensions",
    "sessions",
    "daemon",
    "notify",
    "sandbox",
    "checkpoints",
    "workspace",
    "worktree.dir",
    "archive",
    "tools.allowedRoots",
    "tools.webFetch.allowPrivate",
    "tools.webSearch.baseUrl",
    "tools.webSearch.apiKeyEnv",
)
"""What only the user's own file may set: what gives a right, opens a place, or reaches beyond this workspace."""
ENVIRONMENT_SHAPE = ("environment", "environment.allowList", "environment.denyPatterns")
ASK_ALL_RULE = {"tool": "*", "action": "ask", "message": "a rule in the configuration cannot be read"}
VARIABLES = {
    "OLLM_PROVIDER": "provider.type",
    "OLLM_BASE_URL": "provider.baseUrl",
    "OLLM_MODEL": "provider.model",
    "OLLM_API_KEY": "provider.apiKey",
    "OLLM_CONTEXT_WINDOW": "provider.contextWindow",
    "OLLM_CALL_FORM": "provider.callForm",
}
OLLAMA_PORT = 11434
OLLAMA_ADDRESS = r"^(?:(\w+)://)?(\[[^\]]*\]|[^:/]*)(?::([^/]*))?(.*)"
PUBLIC_URL = (
    r"(?i)(https://([a-z0-9.-]+|\[[0-9a-f:]+\])|http://(([a-z0-9.-]+\.)?localhost|127\.0\.0\.1|\[::1\]))(:\d{1,5})?/?"
)
Section = TypeVar("Section", bound=msgspec.Struct)


class RulePlace(Data, frozen=True):
    """Layer of a policy rule (user, workspace, flags) and its position."""

    layer: str
    place: SourcePosition


class LoadedSettings(Data, frozen=True):
    """The settings, their problems, and the source of each key that is set.

    `rule_places` has one entry for each rule in `settings.policy.rules`.
    """

    settings: Settings
    problems: tuple[Mistake, ...]
    sources: Mapping[str, SourcePosition]
    rule_places: tuple[RulePlace, ...]

    def require_settings(self) -> Settings:
        """Return the settings. Raises `UsageError` with all fatal problems, if there are any."""
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
    """Read every source. Mistakes in a file do not raise: they are in `problems`; `require_settings` decides."""
    reading = SettingsReader(fatal=FATAL_KEYS)
    own = SourcePosition(file=str(home.config), name="config.yaml")
    layers = [_build_layer("user", read_config_file(own, reading, home.cache / "config.json"), reading)]
    if workspace is not None and trusted and (workspace / ".ollm").resolve() != home.root.resolve():
        theirs = SourcePosition(file=str(workspace / ".ollm" / "config.yaml"), name=".ollm/config.yaml")
        entry = read_config_file(theirs, reading, home.cache / "workspace-config.json")
        layers.append(_build_layer("workspace", entry, reading))
    layers.append(_build_layer("environment", read_variables(environment), reading))
    if read_log_level(environment) is None:
        reading.report_ignored(SourcePosition(file="OLLM_LOG_LEVEL"), "", "expected DEBUG, INFO, WARN or ERROR")
    layers.append(_build_layer("flags", read_flags(flags or {}), reading))
    layers = [_apply_main_role(layer) if layer.values.get("roles", {}).get("main") else layer for layer in layers]
    layers.append(_build_ollama_layer(environment, layers))
    return _combine_layers(layers, reading)


def stamp_files(home: Home, workspace: Path | None) -> tuple[tuple[int, int, int] | None, ...]:
    """Return a stamp of the settings files that changes when one of them is written."""
    return tuple(_stamp(place) for place in (home.config, workspace and f"{workspace}/.ollm/config.yaml") if place)


def _stamp(file: Path | str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - Path.stat costs twice as much, and every call comes here
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def load_policy(file: Path) -> LoadedSettings:
    """Load only the policy, from a file that holds a `policy:` mapping or its content."""
    reading = SettingsReader(fatal=FATAL_KEYS)
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
            indices = range(len(layer.values["policy"]["rules"]))
            own = [RulePlace(layer=layer.name, place=layer.places[f"policy.rules[{index}]"]) for index in indices]
            rules = [*(rules if adding else []), *own]
    return LoadedSettings(
        settings=_build_struct(Settings, values),
        problems=tuple(reading.mistakes),
        sources=places,
        rule_places=tuple(rules),
    )


def _build_struct(kind: type[Section], values: Mapping[str, Any]) -> Section:
    """Build a struct of checked values; other fields keep their defaults."""
    names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return kind(**{name: _build_field(getattr(kind(), name), values[key]) for key, name in names if key in values})


def _build_field(default: Any, value: Any) -> Any:
    if isinstance(default, msgspec.Struct):
        return _build_struct(type(default), value)
    return tuple(value) if isinstance(default, tuple) else value


def _build_layer(name: str, entry: YamlEntry | None, reading: SettingsReader) -> Layer:
    if entry is None or not entry.value:
        return Layer(name=name, values={}, places={})
    before = len(reading.mistakes)
    reading.places = {}
    reading.refuse = refuse_in_workspace if name == "workspace" else None
    values = reading.read_struct(Settings, entry)
    check_url(values, reading)
    apply_safe_fallbacks(values, reading.places, [one for one in reading.mistakes[before:] if not one.ignored])
    return Layer(name=name, values=values, places=reading.places)


def _build_ollama_layer(environment: Mapping[str, str], layers: list[Layer]) -> Layer:
    """Take Ollama's address from OLLAMA_HOST, unless another server, OLLM_BASE_URL or a flag is given."""
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


def _apply_main_role(layer: Layer) -> Layer:
    """Set `provider` as `roles.main` says. Another server takes nothing but the timeouts from it."""
    from ollm.config.roles import SERVER_KEYS, parse_role

    keys = parse_role(layer.values["roles"]["main"])
    provider = layer.values.get("provider", {})
    if not keys.keys().isdisjoint(SERVER_KEYS):
        provider = {key: value for key, value in provider.items() if key == "timeouts"}
    place = next(place for key, place in layer.places.items() if key.startswith("roles.main"))
    values = {**layer.values, "provider": {**provider, **keys}}
    return Layer(name=layer.name, values=values, places=layer.places | {f"provider.{key}": place for key in keys})


class Layer(Data, frozen=True):
    """Values of one source, and the position of each key."""

    name: str
    values: dict[str, Any]
    places: dict[str, SourcePosition]


def refuse_in_workspace(key: str, value: Any) -> str:
    """Explain why a workspace may not set a key to this value, or return "" if it may."""
    if any(key == only or key.startswith((f"{only}.", f"{only}[")) for only in USER_ONLY_KEYS):
        return "can only be set in your own config file, not in a workspace's"
    if key == "policy.defaultAction" and value == "allow":
        return "a workspace's config may not allow"
    allows = key.startswith("policy.rules[") and value.get("action") == "allow"
    return "a workspace's config may only add rules that ask or deny" if allows else ""


def drop_other_server(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the server's address, key and model from `below` if `above` names another kind of server."""
    provider, asked = below.get("provider", {}), above.get("provider", {}).get("type")
    if asked is None or ("extension" not in provider and provider.get("type") in (None, asked)):
        return dict(below)
    return {**below, "provider": {key: value for key, value in provider.items() if key == "timeouts"}}


def merge_layers(below: Mapping[str, Any], above: Mapping[str, Any], *, adding: bool, path: str = "") -> dict[str, Any]:
    """Merge `above` over `below`, section by section. With `adding`, lists grow and nothing gets laxer."""
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
    shared = [event for event in own if isinstance(own[event], list) and isinstance(other.get(event), list)]
    return {**other, **own, **{event: [*own[event], *other[event]] for event in shared}}


def _extend_list(own: list[Any], other: list[Any]) -> list[Any]:
    return [*own, *(item for item in other if item not in own)]


ADDITIVE_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "environment.denyPatterns": _extend_list,
    "fileDiscovery.builtinIgnores": _extend_list,
    "policy.rules": lambda own, other: [*own, *other],
    "policy.defaultAction": lambda own, other: max(own, other, key=("allow", "ask", "deny").index),
    "mcpServers": lambda own, other: {**other, **own},
    "hooks": _merge_hooks,
    "checks": lambda own, other: [*own, *other],
}
"""What a workspace only adds to: it takes nothing away, and the user's own server of the same name stays."""


def apply_safe_fallbacks(values: dict[str, Any], places: dict[str, SourcePosition], mistakes: list[Mistake]) -> None:
    """Replace a broken safety section: tools ask, variables are not passed on, sessions stay here."""
    if any(mistake.key in ENVIRONMENT_SHAPE for mistake in mistakes):
        values["environment"] = {"allowList": [], "denyPatterns": ["*"]}
    if any(mistake.key == "archive" or mistake.key.startswith("archive.") for mistake in mistakes):
        values["archive"] = {}  # A mistyped `workspaces` must not send everything.
    bad = [mistake for mistake in mistakes if mistake.key == "policy" or mistake.key.startswith("policy.rules")]
    if bad:
        policy = values.setdefault("policy", {})
        policy["rules"] = [*policy.get("rules", []), ASK_ALL_RULE]
        places[f"policy.rules[{len(policy['rules']) - 1}]"] = bad[0].place


def check_url(values: dict[str, Any], reading: SettingsReader) -> None:
    provider, roles, public = values.get("provider", {}), values.get("roles", {}), values.get("daemon", {})
    if public.get("publicUrl") and not re.fullmatch(PUBLIC_URL, public["publicUrl"]):
        expected = "expected an address such as https://box.example.ts.net (http:// only for localhost), without a path"
        reading.report_mistake(reading.places.pop("daemon.publicUrl"), "daemon.publicUrl", expected)
        del public["publicUrl"]
    given = {"provider.baseUrl": provider.get("baseUrl")}
    for name, role in ((name, role) for name, role in roles.items() if role):
        given |= {f"roles.{name}": role} if isinstance(role, str) else {f"roles.{name}.baseUrl": role.get("baseUrl")}
    for key, url in given.items():
        if url and (key.endswith("baseUrl") or "://" in url) and not _is_server_url(url):
            reading.report_mistake(reading.places.pop(key), key, "expected a URL such as http://localhost:11434")
            provider.pop("baseUrl", None) if key == "provider.baseUrl" else roles.pop(key.split(".")[1])


def _is_server_url(url: str) -> bool:
    from urllib.parse import urlsplit

    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest.strip("/") or not url.isprintable() or " " in url:
        return False
    try:
        return urlsplit(url).port != 0
    except ValueError:  # The port is too large or no number, or the address is half of one.
        return False


def read_variables(environment: Mapping[str, str]) -> YamlEntry:
    """Read ollm's own variables; an empty one counts as unset."""
    named = {key: (name, environment.get(name, "").strip()) for name, key in VARIABLES.items()}
    return build_entry_tree(
        {key: (SourcePosition(file=name), _parse_number(key, text)) for key, (name, text) in named.items() if text}
    )


def find_variable(environment: Mapping[str, str], key: str) -> str | None:
    """Find the variable that sets this key, regardless of the files."""
    return next((name for name, sets in VARIABLES.items() if sets == key and environment.get(name, "").strip()), None)


def read_flags(flags: Mapping[str, Any]) -> YamlEntry:
    """Read command-line options by dotted key; None counts as not given."""
    return build_entry_tree(
        {key: (SourcePosition(file="the command line"), value) for key, value in flags.items() if value is not None}
    )


def parse_ollama_host(host: str) -> str:
    """Parse OLLAMA_HOST as Ollama does: scheme, port and host are optional, and a wildcard means loopback."""
    text = host.strip().strip("\"'").strip()
    if text.count(":") > 1 and "[" not in text and "://" not in text:
        text = f"[{text}]"
    scheme, address, port, path = re.findall(OLLAMA_ADDRESS, text)[0]
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(address, address)  # noqa: S104 - replaced, not bound
    usable = port.isascii() and port.isdigit() and int(port) <= 65535
    chosen = int(port) if usable else {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT)
    return f"{scheme or 'http'}://{name}:{chosen}{path.rstrip('/')}"


def _parse_number(key: str, text: str) -> Any:
    return int(text) if key.endswith("contextWindow") and text.isascii() and text.isdigit() else text


def split_key(key: str) -> list[str]:
    """Split a dotted key. A model's name may contain dots too."""
    section, _, rest = key.partition(".")
    if section != "models" or not rest:
        return key.split(".")
    name, _, last = rest.rpartition(".")
    return [section, name, last] if name and last in ModelSettings.__struct_encode_fields__ else [section, rest]


def build_entry_tree(values: Mapping[str, tuple[SourcePosition, Any]]) -> YamlEntry:
    """Nest entries by their dotted keys."""
    root: dict[str, YamlEntry] = {}
    for key, (place, value) in values.items():
        *sections, last = split_key(key)
        into = root
        for section in sections:
            into = into.setdefault(section, YamlEntry(place=place, value={})).value
        into[last] = YamlEntry(place=place, value=_build_entries(place, value))
    return YamlEntry(place=SourcePosition(file=""), value=root)


def _build_entries(place: SourcePosition, value: Any) -> Any:
    """Build entries for lists and mappings of plain values, each with the place of the whole."""
    if isinstance(value, list | tuple):
        return [YamlEntry(place=place, value=_build_entries(place, item)) for item in value]
    if isinstance(value, Mapping):
        return {str(key): YamlEntry(place=place, value=_build_entries(place, item)) for key, item in value.items()}
    return value
