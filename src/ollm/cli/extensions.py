"""`ollm extensions`: installed extensions, their permissions, and which are enabled."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from ollm.app.process import ProcessScope
from ollm.cli.options import confirm_or_fail, format_table, print_result, shared_options, warn
from ollm.config.change import set_setting
from ollm.domain.errors import OllmError, UsageError
from ollm.extensions.git_source import (
    GitSource,
    compare_files,
    fetch_source,
    parse_source,
)
from ollm.extensions.install import (
    SOURCE_FILE,
    find_extension,
    install_extension,
    list_installed,
    read_source,
    remove_extension,
)
from ollm.extensions.loader import MANIFEST_FILE, Manifest, find_packages, locate_extension, read_manifest
from ollm.system.terminal_text import make_printable


@click.group()
def extensions() -> None:
    """List, install, update, remove, enable and disable extensions."""


@extensions.command("list")
@shared_options("json")
def list_extensions(as_json: bool) -> None:
    """List the installed extensions.

    In ~/.ollm/extensions and among installed packages; none of them is loaded.
    """
    process = ProcessScope()
    enabled = process.settings.extensions.enabled
    found, problems = _find_extensions(process)
    warn(*map(make_printable, problems))
    rows = [
        (
            one.name,
            f"{one.version} ({source.commit[:7]})" if (source := read_source(Path(one.place))) else one.version,
            "on" if one.name in enabled else "off",
            ", ".join(one.list_names()),
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
@click.argument("source", metavar="DIRECTORY|URL[@REF]")
@click.option("--path", default="", metavar="DIR", help="Folder of the extension inside the repository.")
@click.option("--force", is_flag=True, help="Replace an existing extension.")
@shared_options("yes")
def install(source: str, path: str, force: bool, yes: bool) -> None:
    """Install an extension from a directory or a git repository.

    Shows what the extension can do, then copies it to ~/.ollm/extensions. URL is https://, ssh://, file:/// or
    USER@HOST:PATH; REF is a branch, a tag or a commit.
    """
    process = ProcessScope()
    with _open_source(process, parse_source(source, path), Path(source)) as (folder, fetched):
        if fetched and not (folder / MANIFEST_FILE).exists():
            action = f"Name the folder that has an {MANIFEST_FILE} with --path."
            raise UsageError(f"{fetched} contains no extension.", action=action)
        manifest = read_manifest(folder)
        if fetched:
            print(make_printable(f"{fetched}:"), file=sys.stderr)
        _print_abilities(manifest)
        confirm_or_fail(f"Add {manifest.name} and enable it for new conversations?", yes)
        known = (process.home.extensions / manifest.name).exists()
        target = install_extension(folder, process.home.extensions, replace=force, origin=fetched)
    try:
        _set_enabled(process, manifest.name, on=True)
    except OllmError:
        if not known:
            remove_extension(manifest.name, process.home.extensions)
        raise
    print(f"{manifest.name} {make_printable(manifest.version)} installed in {target} and enabled.")


extensions.add_command(install, "add")


@contextmanager
def _open_source(
    process: ProcessScope, origin: GitSource | None, directory: Path
) -> Iterator[tuple[Path, GitSource | None]]:
    """Give the folder of an extension, and its commit if it is from git, in which case the folder is temporary."""
    if origin is None:
        yield directory.expanduser().resolve(), None
        return
    with TemporaryDirectory() as folder:
        fetched = fetch_source(origin, Path(folder), process.environment)
        yield Path(folder), fetched


@extensions.command()
@click.argument("name", required=False)
@click.option("--diff", "with_diff", is_flag=True, help="Show the changed lines too.")
@shared_options("yes")
def update(name: str | None, with_diff: bool, yes: bool) -> None:
    """Update the extension NAME, or all that were installed from git.

    Fetches the branch or tag again, shows what changed and asks.
    """
    process = ProcessScope()
    home = process.home.extensions
    folders = [find_extension(name, home)] if name else [Path(one.place) for one in _find_extensions(process)[0]]
    sources = {folder: source for folder in folders if (source := read_source(folder))}
    if name and not sources:
        raise UsageError(f"{name} was not installed from git.", action="Add it again with `--force`.")
    if not sources:
        print("No extension was installed from git.")
    failed = []
    for folder, source in sources.items():
        try:
            _update_extension(process, folder, source, with_diff=with_diff, yes=yes)
        except OllmError as error:
            if name:
                raise
            failed.append(folder.name)
            warn(make_printable(f"{folder.name}: {error}"))
    if failed:
        raise OllmError(f"Not updated: {', '.join(failed)}.")


def _update_extension(process: ProcessScope, folder: Path, source: GitSource, *, with_diff: bool, yes: bool) -> None:
    with _open_source(process, source, folder) as (fresh, fetched):
        assert fetched is not None
        if fetched.commit == source.commit:
            print(f"{folder.name} is up to date: {make_printable(str(source))}.")
            return
        old, new = read_manifest(folder), read_manifest(fresh)
        if old.name != new.name:
            raise UsageError(f"{source} now contains an extension named {new.name}.")
        stat, diff = compare_files(folder, fresh, SOURCE_FILE)
        before = old.describe_abilities()
        news = [line for line in new.describe_abilities()[1:] if line not in before]
        head = f"{new.name} {old.version} → {new.version}, {source.commit[:12]} → {fetched}:"
        lines = [head, *stat, *(diff if with_diff else ()), *(["New abilities:"] if news else []), *news]
        print("\n".join(map(make_printable, lines)), file=sys.stderr)
        confirm_or_fail(f"Update {new.name}?" + ("" if with_diff else " (--diff shows the lines)"), yes)
        install_extension(fresh, process.home.extensions, replace=True, origin=fetched)
    print(f"Updated {new.name} to {make_printable(new.version)} ({fetched.commit[:12]}).")


@extensions.command()
@click.argument("name")
@shared_options("yes")
def remove(name: str, yes: bool) -> None:
    """Disable the extension NAME and delete it.

    Deletes its folder in ~/.ollm/extensions.
    """
    process = ProcessScope()
    find_extension(name, process.home.extensions)
    confirm_or_fail(f"Delete the extension {name}?", yes)
    folder = remove_extension(name, process.home.extensions)
    if name in process.settings.extensions.enabled:
        _set_enabled(process, name, on=False)
    print(f"Deleted {folder}.")


@extensions.command()
@click.argument("name")
@shared_options("yes")
def enable(name: str, yes: bool) -> None:
    """Enable the extension NAME.

    From the next conversation on, after saying what it will be able to do.
    """
    process = ProcessScope()
    manifest, _ = locate_extension(name, process.home.extensions)
    _print_abilities(manifest)
    confirm_or_fail(f"Enable {manifest.name} for new conversations?", yes)
    _set_enabled(process, manifest.name, on=True)
    print(f"Enabled {manifest.name}.")


@extensions.command()
@click.argument("name")
def disable(name: str) -> None:
    """Disable the extension NAME without deleting it."""
    process = ProcessScope()
    if name not in process.settings.extensions.enabled:
        raise UsageError(f"{name} is not enabled.")
    _set_enabled(process, name, on=False)
    print(f"Disabled {name}.")


def _find_extensions(process: ProcessScope) -> tuple[list[Manifest], list[str]]:
    folders = list_installed(process.home.extensions)
    problems = [one for one in folders if isinstance(one, str)]
    ours = [one for one in folders if not isinstance(one, str)]
    names = {manifest.name for manifest in ours}
    return [*ours, *(manifest for name, (manifest, _) in find_packages().items() if name not in names)], problems


def _print_abilities(manifest: Manifest) -> None:
    print("\n".join(make_printable(line) for line in manifest.describe_abilities()), file=sys.stderr)


def _set_enabled(process: ProcessScope, name: str, *, on: bool) -> None:
    others = [one for one in process.settings.extensions.enabled if one != name]
    set_setting(process.home, "extensions.enabled", json.dumps([*others, name] if on else others))


def _serialize_manifest(manifest: Manifest) -> dict[str, object]:
    adds = [{"kind": addition.kind, "name": addition.name} for addition in manifest.additions]
    document = {**msgspec.to_builtins(manifest), "adds": adds, "source": read_source(Path(manifest.place))}
    optional = ("hooks", "mcpServers", "texts", "source")
    return {key: value for key, value in document.items() if value or key not in optional}
