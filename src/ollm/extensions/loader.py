"""Load only the enabled extensions. One that fails is reported and skipped."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import msgspec

from ollm.config.settings import Settings
from ollm.config.yaml_tree import SourcePosition, parse_yaml, parse_yaml_cached, to_plain_value
from ollm.domain.errors import OllmError, UsageError
from ollm.domain.struct import Data
from ollm.system.atomic import read_small_file
from ollm.tools.framework.base import Tool, ToolSpec, make_spec

Kind = Literal["tools", "context", "searchBackends", "providers"]
MANIFEST_FILE = "extension.yaml"
TEXT_FOLDERS = ("commands", "skills", "agents")
FOLDER_VARIABLE = "${extension}"  # It stands for the folder of the extension in hooks and MCP servers.
NAME_PATTERN = r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z"
TARGET_PATTERN = r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z"
MAX_MANIFEST_BYTES = 64 * 1024
KIND_DESCRIPTIONS: dict[Kind, str] = {
    "tools": "tools the model can call, under your policy",
    "context": "text sent to the model every turn",
    "searchBackends": "a backend for web_search",
    "providers": "a model provider, which receives the whole conversation",
}


class Addition(Data, frozen=True):
    """One addition; `target` is `module:attribute`."""

    kind: Kind
    name: str
    target: str


class Manifest(Data, frozen=True, forbid_unknown_fields=True):
    """An extension's manifest. `asks` are the needs its author states, `hooks` and `mcp_servers` as in the settings.
    Not in the file: `place`, its folder or its package, and `texts`, the names of its commands, skills and agents."""

    name: str
    version: str
    description: str = ""
    adds: dict[Kind, dict[str, str]] = msgspec.field(default_factory=dict)
    asks: tuple[str | int | float, ...] = ()
    hooks: dict[str, Any] = msgspec.field(default_factory=dict)
    mcp_servers: dict[str, Any] = msgspec.field(default_factory=dict)
    place: str = ""
    texts: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.match(NAME_PATTERN, self.name):
            raise ValueError(f"name: expected a to z, 0 to 9 and hyphens, at most 40, not {self.name!r}")
        for one in self.additions:
            if not re.match(TARGET_PATTERN, one.target):
                raise ValueError(f"adds.{one.kind}.{one.name}: expected module:attribute, not {one.target!r}")

    @property
    def additions(self) -> list[Addition]:
        found = ((kind, name, target) for kind, named in self.adds.items() for name, target in named.items())
        return [Addition(kind=kind, name=name, target=target) for kind, name, target in found]

    def list_names(self) -> list[str]:
        texts = [f"/{name}" if kind == "commands" else name for kind, names in self.texts.items() for name in names]
        return [*(addition.name for addition in self.additions), *texts, *self.hooks, *self.mcp_servers]

    def describe_abilities(self) -> list[str]:
        """List the extension's abilities for the person who decides."""
        lines = [f"{self.name} {self.version}: {self.description}"]
        lines += [f"  adds {KIND_DESCRIPTIONS[kind]}: {', '.join(names)}" for kind, names in self.adds.items() if names]
        lines += [f"  adds {kind}, texts sent to the model: {', '.join(names)}" for kind, names in self.texts.items()]
        lines += [f"  hook, run in the sandbox: {event}: {_render(entry)}" for event, entry in self.hooks.items()]
        lines += [f"  MCP server {name}, run in the sandbox: {_render(it)}" for name, it in self.mcp_servers.items()]
        lines.append(f"  requests: {', '.join(map(str, self.asks)) or 'nothing'}")
        warning = (
            "It is Python code that runs inside ollm with all your permissions; nothing enforces what it requests."
        )
        return [*lines, f"  {warning}"] if self.adds else lines


def _render(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def read_manifest(folder: Path, memory: Path | None = None) -> Manifest:
    """Read the manifest of a folder. Raises UsageError with its first mistake. `memory` caches the parsed file, so that
    an unchanged one is not parsed as YAML again."""
    file = folder / MANIFEST_FILE
    try:
        text, place = read_small_file(file, MAX_MANIFEST_BYTES).decode("utf-8"), SourcePosition(file=str(file))
        entry = parse_yaml(text, place) if memory is None else parse_yaml_cached(text, place, memory)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read {file}: {error}.", action="An extension has one.") from error
    document = to_plain_value(entry) if entry is not None else None
    if isinstance(document, dict) and isinstance(document.get("version"), int | float):
        document["version"] = str(document["version"])
    try:
        found = msgspec.convert(document, Manifest)
    except msgspec.ValidationError as error:
        known = f" (`adds` takes {', '.join(KIND_DESCRIPTIONS)})" if "enum" in str(error) else ""
        raise UsageError(f"{file} cannot be used: {error}{known}.", action="See docs/extending.md.") from error
    if missing := [one for one in found.additions if not _has_module(folder, one)]:
        raise UsageError(f"{file} cannot be used: no module {missing[0].target.partition(':')[0]}.")
    texts = _list_texts(folder)
    if not (found.adds or found.hooks or found.mcp_servers or texts):
        raise UsageError(f"{file} cannot be used: it adds nothing.")
    return msgspec.structs.replace(found, place=str(folder), texts=texts)


def _has_module(folder: Path, addition: Addition) -> bool:
    module = folder.joinpath(*addition.target.partition(":")[0].split("."))
    return module.with_suffix(".py").is_file() or (module / "__init__.py").is_file()


def _fill_folder(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace(FOLDER_VARIABLE, folder)
    if isinstance(value, Mapping):
        return {str(key): _fill_folder(one, folder) for key, one in value.items()}
    return [_fill_folder(one, folder) for one in value] if isinstance(value, list) else value


def _list_texts(folder: Path) -> dict[str, list[str]]:
    found = {kind: sorted(file.stem for file in (folder / kind).glob("[!.]*")) for kind in TEXT_FOLDERS}
    return {kind: names for kind, names in found.items() if names}


GROUPS: dict[Kind, str] = {
    "tools": "ollm.tools",
    "context": "ollm.context",
    "searchBackends": "ollm.search_backends",
    "providers": "ollm.providers",
}


Load = Callable[[Addition], Any]


def find_packages() -> dict[str, tuple[Manifest, Load]]:
    """Find installed packages that extend ollm: the manifest of each, and a function to load its additions."""
    from importlib.metadata import entry_points

    found: dict[str, dict[Kind, dict[str, Any]]] = {}
    for kind, group in GROUPS.items():
        for point in entry_points(group=group):
            if point.dist is not None:
                name = point.dist.name.lower().replace("_", "-")
                found.setdefault(name, {}).setdefault(kind, {})[point.name] = point
    return {name: _build_package(name, points) for name, points in found.items()}


def _build_package(name: str, points: dict[Kind, dict[str, Any]]) -> tuple[Manifest, Load]:
    dist = next(iter(next(iter(points.values())).values())).dist
    manifest = Manifest(
        name=name,
        version=dist.version,
        description=dist.metadata["Summary"] or "",
        adds={kind: {key: point.value for key, point in named.items()} for kind, named in points.items()},
        place=f"the package {dist.name}",
    )
    return manifest, lambda addition: points[addition.kind][addition.name].load()


ROOT_PACKAGE = "ollm_extensions"  # Folders are loaded below it, so that they meet nobody else's modules.


class ExtensionContext(msgspec.Struct, frozen=True):
    """Argument of an extension's functions. `environment` is the environment of tools, without secrets."""

    workspace: Path
    environment: Mapping[str, str]
    settings: Settings


class ContextSource(msgspec.Struct, frozen=True):
    """A function called before every turn to provide text for the model."""

    extension: str
    name: str
    ask: Callable[[], Any]


class Extensions:
    """Contents of the enabled extensions, and error sentences for the ones that failed."""

    def __init__(self) -> None:
        self.manifests: list[Manifest] = []
        self.tools: list[ToolSpec] = []
        self.context: list[ContextSource] = []
        self.search_backends: dict[str, Any] = {}
        self.providers: dict[str, Callable[[], Any]] = {}
        self.hooks: dict[str, list[Any]] = {}
        self.mcp_servers: dict[str, Any] = {}
        self.problems: list[str] = []

    def add_extension(self, manifest: Manifest, load: Load, context: ExtensionContext) -> None:
        """Add all parts of one extension, or none."""
        bringing = Extensions()
        for addition in manifest.additions:
            bringing.add_item(manifest.name, addition, load(addition), context)
        self.manifests.append(manifest)
        self.tools += bringing.tools
        self.context += bringing.context
        self.search_backends |= bringing.search_backends
        self.providers |= bringing.providers
        self.mcp_servers = _fill_folder(manifest.mcp_servers, manifest.place) | self.mcp_servers
        for event, entries in _fill_folder(manifest.hooks, manifest.place).items():
            self.hooks.setdefault(event, []).extend(entries if isinstance(entries, list) else [entries])

    def add_item(self, extension: str, addition: Addition, found: Any, context: ExtensionContext) -> None:
        match addition.kind:
            case "tools":
                self.tools += collect_tools(found, context)
            case "context":
                self.context.append(ContextSource(extension, addition.name, lambda: found(context)))
            case "searchBackends":
                self.search_backends[addition.name.lower()] = found(context)
            case "providers":
                self.providers[addition.name] = lambda: found(context)


def load_extensions(enabled: Sequence[str], home: Path, context: ExtensionContext) -> Extensions:
    """Load extensions from folders in `home`, or from installed packages with those names."""
    extensions = Extensions()
    for name in dict.fromkeys(enabled):
        try:
            manifest, load = locate_extension(name, home)
            extensions.add_extension(manifest, load, context)
        except OllmError as error:
            extensions.problems.append(f"Skipped extension {name}: {error}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything; the rest goes on
            extensions.problems.append(f"The extension {name} failed to load: {type(error).__name__}: {error}")
    return extensions


def locate_extension(name: str, home: Path) -> tuple[Manifest, Load]:
    """Find an extension's manifest and loader. Raises UsageError if no extension has that name."""
    folder = home / name
    if re.fullmatch(NAME_PATTERN, name) and (folder / MANIFEST_FILE).is_file():
        manifest = read_manifest(folder, home.parent / "cache" / f"extension-{name}.json")
        if manifest.name != name:
            raise UsageError(f"{folder} contains an extension named {manifest.name}.")
        return manifest, lambda addition: load_attribute(folder, addition.target)
    installed = find_packages()
    if name not in installed:
        raise UsageError(f"No extension named {name}.", action="List them with `ollm extensions list`.")
    return installed[name]


def load_attribute(folder: Path, target: str) -> Any:
    """Load `module:attribute` from a folder, imported as a separate package so that relative imports work."""
    root = sys.modules.setdefault(ROOT_PACKAGE, ModuleType(ROOT_PACKAGE))
    if getattr(root, "__path__", None) != [str(folder.parent)]:
        root.__path__ = [str(folder.parent)]
        for known in [module for module in sys.modules if module.startswith(f"{ROOT_PACKAGE}.")]:
            del sys.modules[known]
    importlib.invalidate_caches()
    module, _, wanted = target.partition(":")
    try:
        return getattr(importlib.import_module(f"{ROOT_PACKAGE}.{folder.name}.{module}"), wanted)
    except AttributeError as error:
        raise UsageError(f"{folder} has no {wanted} in {module}.") from error


def collect_tools(found: Any, context: ExtensionContext) -> list[ToolSpec]:
    """Collect tools from a tool class, a spec, a list of either, or a function that makes them."""
    if isinstance(found, ToolSpec):
        return [found]
    if isinstance(found, type) and issubclass(found, Tool):
        return [make_spec(found, None)]
    if callable(found):
        return collect_tools(found(context), context)
    if isinstance(found, Iterable):
        return [spec for one in found for spec in collect_tools(one, context)]
    raise UsageError(f"{found!r} is not a tool.")
