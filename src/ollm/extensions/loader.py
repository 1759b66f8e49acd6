"""Loads the extensions that are enabled, and no others. One that fails is told and skipped."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from ollm.config.settings import Settings
from ollm.domain.errors import OllmError, UsageError
from ollm.extensions.installed import find_packages
from ollm.extensions.manifest import MANIFEST_FILE, NAME_PATTERN, Addition, Manifest, read_manifest
from ollm.tools.framework.base import Tool, ToolSpec, make_spec

ROOT_PACKAGE = "ollm_extensions"  # the package that folders are loaded into, so that they meet nobody else's modules

Load = Callable[[Addition], Any]


class ExtensionContext(msgspec.Struct, frozen=True):
    """What an extension's functions are handed. `environment` is what tools get, without secrets."""

    workspace: Path
    environment: Mapping[str, str]
    settings: Settings


class ContextSource(msgspec.Struct, frozen=True):
    """A function that is asked before every turn what the model should be told."""

    extension: str
    name: str
    ask: Callable[[], Any]


class Extensions:
    """What the enabled extensions bring, and what went wrong with the others, in sentences."""

    def __init__(self) -> None:
        self.manifests: list[Manifest] = []
        self.tools: list[ToolSpec] = []
        self.context: list[ContextSource] = []
        self.search_backends: dict[str, Any] = {}
        self.providers: dict[str, Callable[[], Any]] = {}
        self.problems: list[str] = []

    def add_extension(self, manifest: Manifest, load: Load, context: ExtensionContext) -> None:
        """Everything of one extension, or nothing of it."""
        bringing = Extensions()
        for addition in manifest.adds:
            bringing.add_item(manifest.name, addition, load(addition), context)
        self.manifests.append(manifest)
        self.tools += bringing.tools
        self.context += bringing.context
        self.search_backends |= bringing.search_backends
        self.providers |= bringing.providers

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
    """Those in `home` by folder; a name that is no folder there is looked for among installed packages."""
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
    """The manifest of an extension and the way to load what it adds. UsageError when there is not one of that name."""
    folder = home / name
    if NAME_PATTERN.fullmatch(name) and (folder / MANIFEST_FILE).is_file():
        manifest = read_manifest(folder, home.parent / "cache" / f"extension-{name}.json")
        if manifest.name != name:
            raise UsageError(f"{folder} contains an extension named {manifest.name}.")
        return manifest, lambda addition: load_attribute(folder, manifest.name, addition.target)
    installed = find_packages()
    if name not in installed:
        raise UsageError(f"No extension named {name}.", action="List them with `ollm extensions list`.")
    package = installed[name]
    return package.manifest, package.load


def load_attribute(folder: Path, name: str, target: str) -> Any:
    """`module:attribute` of a folder, imported as a package of its own so that relative imports work in it."""
    package = f"{ROOT_PACKAGE}.{name.replace('-', '_')}"
    if getattr(sys.modules.get(package), "__path__", None) != [str(folder)]:
        _make_package(package, folder)
    module, _, wanted = target.partition(":")
    try:
        return getattr(importlib.import_module(f"{package}.{module}"), wanted)
    except AttributeError as error:
        raise UsageError(f"{folder} has no {wanted} in {module}.") from error


def _make_package(package: str, folder: Path) -> None:
    for known in [module for module in sys.modules.copy() if module == package or module.startswith(f"{package}.")]:
        del sys.modules[known]
    root = sys.modules.setdefault(ROOT_PACKAGE, ModuleType(ROOT_PACKAGE))
    root.__path__ = []
    importlib.invalidate_caches()
    start = folder / "__init__.py"
    if not start.is_file():
        module = ModuleType(package)
        module.__path__ = [str(folder)]
        sys.modules[package] = module
        return
    spec = importlib.util.spec_from_file_location(package, start, submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    spec.loader.exec_module(module)


def collect_tools(found: Any, context: ExtensionContext) -> list[ToolSpec]:
    """A tool class, a spec, several of them, or a function that makes them."""
    if isinstance(found, ToolSpec):
        return [found]
    if isinstance(found, type) and issubclass(found, Tool):
        return [make_spec(found, None)]
    if callable(found):
        return collect_tools(found(context), context)
    if isinstance(found, Iterable):
        return [spec for one in found for spec in collect_tools(one, context)]
    raise UsageError(f"{found!r} is not a tool.")
