"""Paths that `.ollmignore` hides in a workspace, for what leaves the machine."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path, PurePath

from ollm.services.file_discovery.rules import OLLM_IGNORE, IgnoreRule, Matcher, read_ignore_file


class HiddenPaths:
    """Matcher of paths hidden by rule files, each read once. Without a workspace nothing is hidden."""

    def __init__(self, workspace: str | None) -> None:
        self._root = PurePath(workspace) if workspace else None
        self._read_rules = cache(self._read_rules_of)

    def is_hidden(self, path: str) -> bool:
        if self._root is None or "\0" in path:
            return False
        normal = PurePath(os.path.normpath(self._root / path))
        parts = normal.relative_to(self._root).parts if normal.is_relative_to(self._root) else ()
        return any(self._hides(parts[:end], directory=end < len(parts)) for end in range(1, len(parts) + 1))

    def _hides(self, parts: tuple[str, ...], *, directory: bool) -> bool:
        rules = [rule for depth in range(len(parts)) for rule in self._read_rules(parts[:depth])]
        if not rules:
            return False
        is_directory = directory or Path(str(self._root), *parts).is_dir()
        return Matcher(rules).hides(os.fsencode("/".join(parts)), directory=is_directory)

    def _read_rules_of(self, parts: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
        path = Path(str(self._root), *parts, OLLM_IGNORE)
        if path.is_symlink() or not path.is_file():
            return ()
        return read_ignore_file(str(path), os.fsencode("/".join(parts))).rules
