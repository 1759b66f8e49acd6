"""The list of `ollm files` where there is something to say about it, or settings have to be read first; `quick_list`
has the rest."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ollm.cli.options import print_json, resolve_workspace
from ollm.cli.quick_list import make_globs, write_output
from ollm.cli.table import warn
from ollm.domain.errors import ToolFailure, UsageError
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.app import WorkspaceScope


def show_files(patterns: Sequence[str], workspace: str | None, *, as_json: bool) -> None:
    """Print the paths of all files the agent sees, from the root of the workspace."""
    from ollm.app import ProcessScope, WorkspaceScope
    from ollm.domain.files import DiscoveryOptions

    root = resolve_workspace(workspace)
    scope = WorkspaceScope(ProcessScope(workspace=root), root)
    try:
        options = DiscoveryOptions(root=str(root), include_patterns=make_globs(str(root), patterns))
        answer = scope.discovery.read_paths(options)
        _remember_settings(scope)
        if as_json:
            print_json(answer.paths)
        else:
            _print_paths(answer.paths)
        for bad in scope.discovery.list_bad_rules():
            warn(f"{make_printable(bad.source)}:{bad.line} skipped: {bad.reason}: {make_printable(bad.text)}")
    except ToolFailure as failure:
        raise UsageError(failure.message) from failure
    finally:
        scope.close()
    for note in answer.notes:
        warn(f"{note}.")


def _remember_settings(scope: WorkspaceScope) -> None:
    """For the next time, unless there was something to say about the settings."""
    process = scope.process
    if process.loaded_settings.problems:
        return
    from ollm import __version__
    from ollm.config.discovery_memory import SettingSources, WalkSettings, remember_walk_settings

    told = process.settings.file_discovery
    settings = WalkSettings(told.max_depth, follow_symlinks=told.follow_symlinks, builtin_ignores=told.builtin_ignores)
    sources = SettingSources(process.environment, str(process.home.root), str(scope.path), __version__)
    remember_walk_settings(sources, settings)


def _print_paths(paths: Sequence[str]) -> None:
    """For a person harmless, for a program byte for byte."""
    if sys.stdout.isatty():
        sys.stdout.writelines(f"{make_printable(path)}\n" for path in paths)
    elif paths:
        sys.stdout.flush()
        write_output([os.fsencode("\n".join(paths)), b"\n"])
