"""`ollm files`: the files as the agent sees them, and why one is or is not there (S6)."""

from __future__ import annotations

import click

from ollm.cli.options import json_option, print_json, resolve_workspace, workspace_option
from ollm.cli.table import warn
from ollm.domain.errors import ToolFailure, UsageError
from ollm.system.terminal_text import make_printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ollm.services.file_discovery import FileDiscoveryService


@click.command()
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--explain", metavar="PATH", help="Show which rule includes or hides PATH.")
@workspace_option
@json_option
def files(patterns: tuple[str, ...], explain: str | None, workspace: str | None, as_json: bool) -> None:
    """List the files the agent can see, after ignore rules. A PATTERN is a glob or a directory."""
    import asyncio

    from ollm.app import ProcessScope, WorkspaceScope

    root = resolve_workspace(workspace)
    scope = WorkspaceScope(ProcessScope(workspace=root), root)
    try:
        if explain is not None:
            asyncio.run(_explain(scope.discovery, root, explain, as_json=as_json))
        else:
            asyncio.run(_list_files(scope.discovery, root, patterns, as_json=as_json))
    except ToolFailure as failure:
        raise UsageError(failure.message) from failure
    finally:
        scope.close()


async def _explain(discovery: FileDiscoveryService, root: Path, path: str, *, as_json: bool) -> None:
    said = await discovery.explain(str(root), path)
    if as_json:
        print_json(said)
    else:
        print(f"{make_printable(path)} is {'shown' if said.shown else 'not shown'}: {make_printable(said.reason)}.")


async def _list_files(discovery: FileDiscoveryService, root: Path, patterns: tuple[str, ...], *, as_json: bool) -> None:
    from ollm.domain.files import DiscoveryOptions

    globs = tuple(f"/{pattern.strip('/')}/**" if (root / pattern).is_dir() else pattern for pattern in patterns)
    if "/./**" in globs:
        globs = ()
    answer = await discovery.collect_result(DiscoveryOptions(root=str(root), include_patterns=globs))
    if as_json:
        print_json(answer.paths)
    else:
        _print_paths(answer.paths)
    for bad in discovery.list_bad_rules():
        warn(f"{make_printable(bad.source)}:{bad.line} skipped: {bad.reason}: {make_printable(bad.text)}")
    if answer.unreadable:
        warn(f"{len(answer.unreadable)} directories could not be read, such as {make_printable(answer.unreadable[0])}.")
    if answer.too_deep:
        warn(f"{len(answer.too_deep)} directories are deeper than fileDiscovery.maxDepth.")


def _print_paths(paths: Iterable[str]) -> None:
    """For a person harmless, for a program byte for byte."""
    import os
    import sys

    if sys.stdout.isatty():
        sys.stdout.writelines(f"{make_printable(path)}\n" for path in paths)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(os.fsencode(path) + b"\n" for path in paths))
        sys.stdout.buffer.flush()
