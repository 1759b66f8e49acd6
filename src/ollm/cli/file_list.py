"""The list of files of `ollm files`, made and printed without click and asyncio, so that it is there at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ollm.cli.options import print_json, resolve_workspace
from ollm.cli.table import warn
from ollm.domain.errors import ToolFailure, UsageError
from ollm.system.terminal_text import make_printable

CODE_COMMANDS = ("outline", "map")  # as the first word; a directory of that name is `map/`


def parse_file_arguments(words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `show_files` in a line of patterns, `--json` and `--workspace DIR`; None for any other line."""
    if words and words[0] in CODE_COMMANDS:
        return None
    patterns: list[str] = []
    workspace, as_json, rest = None, False, iter(words)
    for word in rest:
        if word == "--json":
            as_json = True
        elif word == "--workspace":
            workspace = next(rest, "-")
            if workspace.startswith("-"):
                return None
        elif word.startswith("-"):
            return None
        else:
            patterns.append(word)
    return {"patterns": tuple(patterns), "workspace": workspace, "as_json": as_json}


def show_files(patterns: Sequence[str], workspace: str | None, *, as_json: bool) -> None:
    """Print the paths of all files the agent sees, from the root of the workspace."""
    from ollm.app import ProcessScope, WorkspaceScope
    from ollm.domain.files import DiscoveryOptions

    root = resolve_workspace(workspace)
    scope = WorkspaceScope(ProcessScope(workspace=root), root)
    try:
        options = DiscoveryOptions(root=str(root), include_patterns=_make_globs(root, patterns))
        answer = scope.discovery.read_paths(options)
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


def _make_globs(root: Path, patterns: Sequence[str]) -> tuple[str, ...]:
    globs = tuple(f"/{pattern.strip('/')}/**" if (root / pattern).is_dir() else pattern for pattern in patterns)
    return () if "/./**" in globs else globs


def _print_paths(paths: Sequence[str]) -> None:
    """For a person harmless, for a program byte for byte."""
    if sys.stdout.isatty():
        sys.stdout.writelines(f"{make_printable(path)}\n" for path in paths)
    elif paths:
        sys.stdout.flush()
        sys.stdout.buffer.write(os.fsencode("\n".join(paths)) + b"\n")
        sys.stdout.buffer.flush()
