"""`ollm extensions`: what is there, what it may do, and which of it is in use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ollm.cli.options import confirm_or_fail, json_option, print_json, yes_option
from ollm.cli.printable import printable
from ollm.cli.table import print_table, warn
from ollm.domain.errors import UsageError

if TYPE_CHECKING:
    from ollm.app import Process
    from ollm.extensions.manifest import Manifest


@click.group()
def extensions() -> None:
    """List, add, remove, enable and disable extensions."""


@extensions.command("list")
@json_option
def list_extensions(as_json: bool) -> None:
    """List the extensions there are.

    In ~/.ollm/extensions and among installed packages; none of them is loaded.
    """
    process = _process()
    enabled = process.settings.extensions.enabled
    found, problems = _found(process)
    for problem in problems:
        warn(printable(problem))
    if as_json:
        print_json([{**_document(manifest), "enabled": manifest.name in enabled} for manifest in found])
        return
    rows = [
        (one.name, one.version, "on" if one.name in enabled else "off", _adds(one), one.description) for one in found
    ]
    rows += [(name, "", "missing", "", "") for name in enabled if name not in {one.name for one in found}]
    if rows:
        print_table(("EXTENSION", "VERSION", "", "ADDS", "WHAT IT IS"), rows)
    else:
        print("There are no extensions. `ollm extensions add DIRECTORY` adds one.")


@extensions.command()
@click.argument("directory")
@click.option("--force", is_flag=True, help="Replace the extension of that name.")
@yes_option
def add(directory: str, force: bool, yes: bool) -> None:
    """Copy the extension in DIRECTORY, and enable it.

    The copy goes to ~/.ollm/extensions, after saying what the extension will be able to do.
    """
    from ollm.extensions.install import put
    from ollm.extensions.manifest import read_manifest

    process, source = _process(), Path(directory).expanduser().resolve()
    manifest = read_manifest(source)
    _explain(manifest)
    confirm_or_fail(f"Add {manifest.name} and use it from the next conversation on?", yes)
    target = put(source, process.home.extensions, replace=force)
    _enable(process, manifest.name)
    print(f"{manifest.name} {printable(manifest.version)} is in {target} and enabled.")


@extensions.command()
@click.argument("name")
@yes_option
def remove(name: str, yes: bool) -> None:
    """Disable the extension NAME and delete it.

    Its folder in ~/.ollm/extensions goes.
    """
    from ollm.extensions.install import take_out

    process = _process()
    confirm_or_fail(f"Delete the extension {name}?", yes)
    folder = take_out(name, process.home.extensions)
    _disable(process, name)
    print(f"{folder} is deleted.")


@extensions.command()
@click.argument("name")
@yes_option
def enable(name: str, yes: bool) -> None:
    """Use the extension NAME.

    From the next conversation on, after saying what it will be able to do.
    """
    from ollm.extensions.loader import locate

    process = _process()
    manifest, _ = locate(name, process.home.extensions)
    _explain(manifest)
    confirm_or_fail(f"Use {manifest.name} from the next conversation on?", yes)
    _enable(process, manifest.name)
    print(f"{manifest.name} is enabled.")


@extensions.command()
@click.argument("name")
def disable(name: str) -> None:
    """Do not use the extension NAME any more; it stays where it is."""
    process = _process()
    if name not in process.settings.extensions.enabled:
        raise UsageError(f"{name} is not enabled.")
    _disable(process, name)
    print(f"{name} is disabled.")


def _process() -> Process:
    from ollm.app import Process

    return Process()


def _found(process: Process) -> tuple[list[Manifest], list[str]]:
    from ollm.extensions.install import kept
    from ollm.extensions.installed import packages

    folders = kept(process.home.extensions)
    problems = [one for one in folders if isinstance(one, str)]
    ours = [one for one in folders if not isinstance(one, str)]
    names = {manifest.name for manifest in ours}
    return [*ours, *(package.manifest for name, package in packages().items() if name not in names)], problems


def _explain(manifest: Manifest) -> None:
    print("\n".join(printable(line) for line in manifest.abilities()), file=sys.stderr)


def _enable(process: Process, name: str) -> None:
    _write(process, (*(one for one in process.settings.extensions.enabled if one != name), name))


def _disable(process: Process, name: str) -> None:
    enabled = process.settings.extensions.enabled
    if name in enabled:
        _write(process, tuple(one for one in enabled if one != name))


def _write(process: Process, names: tuple[str, ...]) -> None:
    import json

    from ollm.config.change import change

    change(process.home, "extensions.enabled", json.dumps(names))


def _adds(manifest: Manifest) -> str:
    return ", ".join(addition.name for addition in manifest.adds)


def _document(manifest: Manifest) -> dict[str, object]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "adds": [{"kind": addition.kind, "name": addition.name} for addition in manifest.adds],
        "asks": manifest.asks,
        "place": manifest.place,
    }
