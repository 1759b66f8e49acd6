"""What a person has allowed beyond the rules: `TOOL` or `TOOL:TEXT`.

Session grants live here in memory, those of `always` in `~/.ollm/grants.yaml`. A grant answers an ask, never a deny,
and never a question about a protected file or a path outside.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ollm.domain.errors import StorageError, UsageError
from ollm.domain.struct import Data
from ollm.domain.tools import GrantScope
from ollm.system.paths import Boundary

_HEADER = '# What was answered with "always". List with `ollm policy show`, revoke with `ollm policy revoke N`.\n'


class Grant(Data, frozen=True):
    """`text` None means every call of the tool."""

    tool: str
    text: str | None = None
    scope: GrantScope = "session"

    def __str__(self) -> str:
        return self.tool if self.text is None else f"{self.tool}:{self.text}"

    @property
    def exact(self) -> bool:
        """Whether it is for one command, word by word, and not for those that begin with it: `shell:=rm -r build`."""
        return self.text is not None and self.text.startswith("=")

    @property
    def words(self) -> tuple[str, ...]:
        """A shell grant's words, or none when it is a whole line to be compared as it stands."""
        text = (self.text or "").removeprefix("=")
        return tuple(text.split()) if not set(text) & set("'\"\\$`|&;<>(){}[]*?~#!\n") else ()


def parse_grant(text: str, scope: GrantScope = "session") -> Grant:
    tool, colon, rest = text.strip().partition(":")
    if not tool.replace("_", "").replace("-", "").isalnum() or (colon and not rest.strip(" :=")):
        raise UsageError(
            f"{text!r} is not a grant.", action="Write TOOL or TOOL:TEXT, for example 'shell:npm run test'."
        )
    return Grant(tool=tool, text=rest.strip() if colon else None, scope=scope)


class GrantBook:
    """All grants that count now. `file` None keeps `always` for the session only."""

    def __init__(self, file: Path | None = None, granted: Iterable[str] = ()) -> None:
        self._file = file
        self._session = [parse_grant(text) for text in granted]

    def list_grants(self) -> list[Grant]:
        """Kept ones first, as `policy show` numbers them."""
        return [*self.list_saved(), *self._session]

    def list_saved(self) -> list[Grant]:
        if self._file is None or not self._file.exists():
            return []
        return [parse_grant(text, "always") for text in _read_grants(self._file)]

    def add(self, text: str, scope: GrantScope) -> Grant:
        """Remember a grant; once is not remembered."""
        grant = parse_grant(text, scope)
        if scope == "always" and self._file is not None:
            if str(grant) not in map(str, self.list_saved()):
                self._write([*map(str, self.list_saved()), str(grant)])
        elif scope != "once" and str(grant) not in map(str, self._session):
            self._session.append(grant)
        return grant

    def revoke(self, number: int) -> Grant:
        """Take back the kept grant with this number, counting from 1."""
        kept = self.list_saved()
        if not 1 <= number <= len(kept):
            raise UsageError(f"No grant {number}.", action="List them with `ollm policy show`.")
        self._write([str(grant) for grant in kept if grant is not kept[number - 1]])
        return kept[number - 1]

    def revoke_all(self) -> int:
        count = len(self.list_saved())
        if count:
            self._write([])
        return count

    def _write(self, texts: list[str]) -> None:
        from io import StringIO

        from ruamel.yaml import YAML

        from ollm.system.atomic import make_private_directory, replace_file

        assert self._file is not None
        out = StringIO()
        out.write(_HEADER)
        YAML().dump({"grants": texts}, out)
        make_private_directory(self._file.parent)
        replace_file(self._file, out.getvalue().encode())


def _read_grants(file: Path) -> list[str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe").load(file.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise StorageError(
            f"{file} cannot be read: {error}", action="Fix it, or delete it to be asked again."
        ) from error
    listed = document.get("grants") or [] if isinstance(document, dict) else None
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise StorageError(f"{file} is not a list of grants.", action="Fix it, or delete it to be asked again.")
    return listed


def covers_call(grant: Grant, tool: str, params: Mapping[str, Any], boundary: Boundary) -> bool:
    """Whether a grant answers for a call of a tool other than shell."""
    if grant.tool != tool:
        return False
    if grant.text is None:
        return True
    if "url" in params:
        return _covers_host(grant.text, str(params["url"]))
    values = params.get("paths") or params.get("path") or params.get("query")
    listed = values if isinstance(values, (list, tuple)) else [values]
    return bool(listed) and all(
        isinstance(value, str) and _covers_path(grant.text, value, boundary) for value in listed
    )


def _covers_host(text: str, url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return False
    wanted = text.lower()
    return wanted in {host, f"{host}:{port}"} or (wanted.startswith("*.") and host.endswith(wanted[1:]))


def _covers_path(text: str, value: str, boundary: Boundary) -> bool:
    path = os.path.relpath(os.path.normpath(boundary.workspace / value), boundary.workspace)
    if path.startswith(".."):
        return False
    wanted = text.removeprefix("./")
    if wanted.endswith("/**"):
        return path.startswith(wanted[:-2]) or (wanted == "**")
    if wanted == "**":
        return True
    return fnmatch.fnmatchcase(path, wanted) and path.count("/") == wanted.count("/")


def suggest_grant(tool: str, params: Mapping[str, Any], boundary: Boundary) -> str:
    """The narrowest grant that makes sense for a call of a tool other than shell."""
    url, path = params.get("url"), params.get("path")
    if isinstance(url, str):
        try:
            host = urlsplit(url).hostname
        except ValueError:
            host = None
        return f"{tool}:{host.lower()}" if host else tool
    if isinstance(path, str) and path:
        relative = os.path.relpath(os.path.normpath(boundary.workspace / path), boundary.workspace)
        return f"{tool}:{relative}"
    return tool
