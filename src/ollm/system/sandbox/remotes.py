"""The repositories that the remotes of a workspace name by a path, of which git lines see those that the user named."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from ollm.system.atomic import read_small_file, write_private_file
from ollm.system.path_names import is_in_any, trace_path
from ollm.system.sandbox.repositories import Repository

_URL = re.compile(r"(?mi)^[ \t]*(?:push)?url[ \t]*=[ \t]*\"?((?:/|\.|file:///)[^\"\r\n]*)")


class Remotes:
    """`shown` are the repositories that the user had named when the session began. The addresses that commands set are
    kept in `file`: they are not shown in later sessions either. `changeable` are the folders that commands write."""

    def __init__(self, file: Path, changeable: Collection[str]) -> None:
        self._file = file
        self._changeable = changeable
        self._began = self._is_new = False
        self.shown: list[str] = []

    def look(self, repository: Repository | None) -> None:
        """Call this before each command and at the end. A repository that is new in this session may be a command's."""
        if not self._began:
            self._began, self._is_new = True, repository is None
            self.shown = [] if repository is None else self._find(repository)
        elif self._is_new and repository is not None:
            self.note(list_local_addresses(repository))

    def note(self, addresses: Iterable[str]) -> None:
        """Note addresses that commands set."""
        if new := sorted(set(addresses) - set(known := self._read())):
            write_private_file(self._file, os.fsencode("\0".join([*known, *new])))

    def _read(self) -> list[str]:
        with suppress(OSError):
            return os.fsdecode(self._file.read_bytes()).split("\0")
        return []

    def _find(self, repository: Repository) -> list[str]:
        """Find the repositories, without those that a command could replace by a link."""
        found, ours = list[str](), self._read()
        for address in list_local_addresses(repository):
            *links, path = trace_path(os.path.join(repository.top, address.removeprefix("file://")))
            there = os.path.isdir(path) and any(os.path.lexists(os.path.join(path, mark)) for mark in (".git", "HEAD"))
            if there and address not in ours and not any(is_in_any(one, self._changeable) for one in (*links, path)):
                found.append(path)
        return found


def list_local_addresses(repository: Repository) -> list[str]:
    """Return the paths that the settings of a repository give as addresses, as they are written there."""
    try:
        text = os.fsdecode(read_small_file(os.path.join(repository.common, "config")))
    except OSError:
        return []
    return [address.strip() for address in _URL.findall(text)]
