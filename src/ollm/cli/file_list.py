"""The list of `ollm files`, printed without the command line parser if there are no arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.cli.options import print_json, resolve_workspace, warn
from ollm.domain.errors import ToolFailure, UsageError
from ollm.domain.files import DiscoveryOptions
from ollm.system.paths import show_name
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.services.file_discovery.service import FileDiscoveryService


@contextmanager
def open_files(root: Path) -> Iterator[FileDiscoveryService]:
    """Open the file discovery of a workspace. Its failures are raised as UsageError."""
    scope = WorkspaceScope(ProcessScope(workspace=root), root)
    try:
        yield scope.discovery
    except ToolFailure as failure:
        raise UsageError(failure.message) from failure
    finally:
        scope.close()


def show_files(root: Path | None = None, patterns: Sequence[str] = (), *, as_json: bool = False) -> None:
    root = root or resolve_workspace()
    with open_files(root) as discovery:
        options = DiscoveryOptions(root=str(root), include_patterns=_make_globs(root, patterns))
        answer = discovery.read_paths(options, links=True)
        if not answer.paths:
            _check_names(root, patterns)
        if as_json:
            print_json(answer.paths)
        elif sys.stdout.isatty():
            sys.stdout.writelines(f"{show_name(path)}\n" for path in answer.paths)
        else:
            sys.stdout.flush()
            _write_bytes(os.fsencode("\n".join([*answer.paths, ""])))
        for bad in discovery.list_bad_rules():
            warn(f"{make_printable(bad.source)}:{bad.line} skipped: {bad.reason}: {make_printable(bad.text)}")
    warn(*(f"{note}." for note in answer.notes))


def _make_globs(root: Path, patterns: Sequence[str]) -> tuple[str, ...]:
    globs: list[str] = []
    for pattern in patterns:
        name = f"/{pattern.strip('/')}"
        globs += (f"{name}/**", name) if (root / pattern).is_dir() else (pattern,)
    return () if "/./**" in globs else tuple(globs)


def _check_names(root: Path, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        if not set(pattern) & set("*?[") and not (root / pattern).exists():
            raise UsageError(
                f"There is no {make_printable(pattern)} here.", action="Run `ollm files` to list all files."
            )


def _write_bytes(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()
