"""Which paths of a workspace its `.ollmignore` files hide, asked of a path as a tool was given it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ollm.services.file_discovery.rules import IgnoreRule


class HiddenPaths:
    """Reads the rule files of the directories on the way to a path, each once. No workspace hides nothing."""

    def __init__(self, workspace: str | None) -> None:
        self._root = PurePath(workspace) if workspace else None
        self._read_rules = cache(self._read_rules_of)

    def is_hidden(self, path: str) -> bool:
        if self._root is None or "\0" in path:
            return False
        normal = os.path.normpath(self._root / path)
        if not PurePath(normal).is_relative_to(self._root):
            return False
        parts = PurePath(normal).relative_to(self._root).parts
        return any(self._hides(parts[:end], directory=end < len(parts)) for end in range(1, len(parts) + 1))

    def _hides(self, parts: tuple[str, ...], *, directory: bool) -> bool:
        from ollm.services.file_discovery.matcher import Matcher

        rules = [rule for depth in range(len(parts)) for rule in self._read_rules(parts[:depth])]
        if not rules:
            return False
        is_directory = directory or Path(str(self._root), *parts).is_dir()
        return Matcher(rules).hides(os.fsencode("/".join(parts)), directory=is_directory)

    def _read_rules_of(self, parts: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
        from ollm.services.file_discovery.layers import OLLM_IGNORE
        from ollm.services.file_discovery.rules import read_ignore_file

        path = Path(str(self._root), *parts, OLLM_IGNORE)
        if path.is_symlink() or not path.is_file():
            return ()
        return read_ignore_file(str(path), os.fsencode("/".join(parts))).rules
