"""`ollm extensions`: installed extensions, their permissions, and which are enabled."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ollm.app import ProcessScope
from ollm.cli.options import confirm_or_fail, format_table, json_option, print_result, warn, yes_option
from ollm.config.change import set_setting
from ollm.domain.errors import OllmError, UsageError
from ollm.extensions.install import describe_tools, find_extension, install_extension, list_installed, remove_extension
from ollm.extensions.loader import find_packages, locate_extension, read_manifest
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.extensions.loader import Manifest


@click.group()
def extensions() -> None:
    """List, add, remove, enable and disable extensions."""


@extensions.command("list")
@json_option
def list_extensions(as_json: bool) -> None:
    """List the installed extensions.

    In ~/.ollm/extensions and among installed packages; none of them is loaded.
    """
    process = ProcessScope()
    enabled = process.settings.extensions.enabled
    found, problems = _find_extensions(process)
    for problem in problems:
        warn(make_printable(problem))
    rows = [
        (
            one.name,
            one.version,
            "on" if one.name in enabled else "off",
            ", ".join(addition.name for addition in one.adds),
            one.description,
        )
        for one in found
    ]
    rows += [(name, "", "missing", "", "") for name in enabled if name not in {one.name for one in found}]
    empty = "No extensions. Add one with `ollm extensions add DIRECTORY`."
    document = [{**_serialize_manifest(manifest), "enabled": manifest.name in enabled} for manifest in found]
    table = format_table(("EXTENSION", "VERSION", "", "ADDS", "DESCRIPTION"), rows, empty)
    print_result(document, table, as_json=as_json)


@extensions.command()
@click.argument("directory")
@click.option("--force", is_flag=True, help="Replace an existing extension.")
@yes_option
def add(directory: str, force: bool, yes: bool) -> None:
    """Install the extension in DIRECTORY and enable it.

    Shows what the extension can do, then copies it to ~/.ollm/extensions.
    """
    process, source = ProcessScope(), Path(directory).expanduser().resolve()
    manifest = read_manifest(source)
    _print_abilities(manifest, source)
    confirm_or_fail(f"Add {manifest.name} and enable it for new conversations?", yes)
    known = (process.home.extensions / manifest.name).exists()
    target = install_extension(source, process.home.extensions, replace=force)
    try:
        _enable(process, manifest.name)
    except OllmError:
        if not known:
            remove_extension(manifest.name, process.home.extensions)
        raise
    print(f"{manifest.name} {make_printable(manifest.version)} installed in {target} and enabled.")


@extensions.command()
@click.argument("name")
@yes_option
def remove(name: str, yes: bool) -> None:
    """Disable the extension NAME and delete it.

    Deletes its folder in ~/.ollm/extensions.
    """
    process = ProcessScope()
    find_extension(name, process.home.extensions)
    confirm_or_fail(f"Delete the extension {name}?", yes)
    folder = remove_extension(name, process.home.extensions)
    _disable(process, name)
    print(f"Deleted {folder}.")


@extensions.command()
@click.argument("name")
@yes_option
def enable(name: str, yes: bool) -> None:
    """Enable the extension NAME.

    From the next conversation on, after saying what it will be able to do.
    """
    process = ProcessScope()
    manifest, _ = locate_extension(name, process.home.extensions)
    _print_abilities(manifest, process.home.extensions / name)
    confirm_or_fail(f"Enable {manifest.name} for new conversations?", yes)
    _enable(process, manifest.name)
    print(f"Enabled {manifest.name}.")


@extensions.command()
@click.argument("name")
def disable(name: str) -> None:
    """Disable the extension NAME without deleting it."""
    process = ProcessScope()
    if name not in process.settings.extensions.enabled:
        raise UsageError(f"{name} is not enabled.")
    _disable(process, name)
    print(f"Disabled {name}.")


def _find_extensions(process: ProcessScope) -> tuple[list[Manifest], list[str]]:
    folders = list_installed(process.home.extensions)
    problems = [one for one in folders if isinstance(one, str)]
    ours = [one for one in folders if not isinstance(one, str)]
    names = {manifest.name for manifest in ours}
    return [*ours, *(manifest for name, (manifest, _) in find_packages().items() if name not in names)], problems


def _print_abilities(manifest: Manifest, folder: Path) -> None:
    head, *rest = manifest.describe_abilities()
    lines = [head, *describe_tools(folder, manifest), *rest]
    print("\n".join(make_printable(line) for line in lines), file=sys.stderr)


def _enable(process: ProcessScope, name: str) -> None:
    _write_enabled(process, (*(one for one in process.settings.extensions.enabled if one != name), name))


def _disable(process: ProcessScope, name: str) -> None:
    enabled = process.settings.extensions.enabled
    if name in enabled:
        _write_enabled(process, tuple(one for one in enabled if one != name))


def _write_enabled(process: ProcessScope, names: tuple[str, ...]) -> None:
    set_setting(process.home, "extensions.enabled", json.dumps(names))


def _serialize_manifest(manifest: Manifest) -> dict[str, object]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "adds": [{"kind": addition.kind, "name": addition.name} for addition in manifest.adds],
        "asks": manifest.asks,
        "place": manifest.place,
    }
