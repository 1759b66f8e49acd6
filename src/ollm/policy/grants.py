"""Permissions a person gave beyond the rules: `TOOL` or `TOOL:TEXT`.

Session grants are kept in memory. `always` and `everywhere` grants are saved in `~/.ollm/grants.yaml`, `always` grants
with their workspace. A grant answers an ask, but never a deny and never a question about a protected file or a path
outside the workspace.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ollm.domain.errors import StorageError, UsageError
from ollm.domain.struct import Data
from ollm.domain.tools import GrantScope, PolicyRequest
from ollm.system.atomic import write_private_file
from ollm.system.paths import Boundary

_HEADER = '# What was answered with "always". List with `ollm policy show`, revoke with `ollm policy revoke N`.\n'


class Grant(Data, frozen=True):
    """Permission for calls of a tool. `text` None covers every call; `workspace` None covers every workspace."""

    tool: str
    text: str | None = None
    scope: GrantScope = "session"
    workspace: str | None = None

    def __str__(self) -> str:
        return self.tool if self.text is None else f"{self.tool}:{self.text}"

    @property
    def exact(self) -> bool:
        """True if the grant covers exactly one command, not longer ones with that prefix: `shell:=rm -r build`."""
        return self.text is not None and self.text.startswith("=")

    @property
    def words(self) -> tuple[str, ...]:
        """The words of a shell grant; empty if the grant is a whole line to be compared literally."""
        text = (self.text or "").removeprefix("=")
        return tuple(text.split()) if not set(text) & set("'\"\\$`|&;<>(){}[]*?~#!\n") else ()


def parse_grant(text: str, scope: GrantScope = "session", workspace: str | None = None) -> Grant:
    """Parse `TOOL` or `TOOL:TEXT`. An MCP server's tool may be a pattern, such as `docs__*`."""
    tool, colon, rest = text.strip().partition(":")
    name = tool.replace("*", "x") if "__" in tool else tool
    if not name.replace("_", "").replace("-", "").isalnum() or (colon and not rest.strip(" :=")):
        raise UsageError(
            f"{text!r} is not a grant.", action="Write TOOL or TOOL:TEXT, for example 'shell:npm run test'."
        )
    return Grant(tool=tool, text=rest.strip() if colon else None, scope=scope, workspace=workspace)


class GrantBook:
    """All grants in effect. If `file` is None, `always` lasts for the session only. An `always` grant applies in the
    workspace where it was given, an `everywhere` grant in all workspaces."""

    def __init__(self, file: Path | None = None, granted: Iterable[str] = (), workspace: Path | None = None) -> None:
        self._file = file
        self._workspace = None if workspace is None else str(workspace)
        self._session = [parse_grant(text) for text in granted]

    def list_grants(self) -> list[Grant]:
        """Return the grants that apply in this workspace, saved ones first."""
        kept = [grant for grant in self.list_saved() if grant.workspace in (None, self._workspace)]
        return [*kept, *self._session]

    def list_saved(self) -> list[Grant]:
        """Return the saved grants of all workspaces, as `policy show` numbers them."""
        if self._file is None or not self._file.exists():
            return []
        return [parse_grant(text, "always", workspace) for text, workspace in _read_grants(self._file)]

    def add(self, text: str, scope: GrantScope) -> None:
        """Store a grant, unless its scope is `once`."""
        kept = scope in ("always", "everywhere") and self._file is not None
        grant = parse_grant(text, scope, self._workspace if kept and scope == "always" else None)
        if kept:
            saved = self.list_saved()
            if (str(grant), grant.workspace) not in [(str(one), one.workspace) for one in saved]:
                self._write([*saved, grant])
        elif scope != "once" and str(grant) not in map(str, self._session):
            self._session.append(grant)

    def revoke(self, number: int) -> Grant:
        """Revoke the saved grant with this number, counting from 1."""
        kept = self.list_saved()
        if not 1 <= number <= len(kept):
            raise UsageError(f"No grant {number}.", action="List them with `ollm policy show`.")
        self._write([grant for grant in kept if grant is not kept[number - 1]])
        return kept[number - 1]

    def revoke_all(self) -> int:
        count = len(self.list_saved())
        if count:
            self._write([])
        return count

    def _write(self, grants: list[Grant]) -> None:
        from io import StringIO

        from ruamel.yaml import YAML

        assert self._file is not None
        out = StringIO()
        out.write(_HEADER)
        entries = [
            str(grant) if grant.workspace is None else {"grant": str(grant), "workspace": grant.workspace}
            for grant in grants
        ]
        YAML().dump({"grants": entries}, out)
        write_private_file(self._file, out.getvalue().encode())


def _read_grants(file: Path) -> list[tuple[str, str | None]]:
    """Read each grant with its workspace. A grant written as a plain string applies everywhere."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe").load(file.read_text(encoding="utf-8")) or {}
        listed = msgspec.convert(document.get("grants") or [], list[str | dict[str, str]])
        return [(one, None) if isinstance(one, str) else (one["grant"], one["workspace"]) for one in listed]
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise StorageError(
            f"{file} cannot be read: {error}", action="Fix it, or delete it to be asked again."
        ) from error
    except (AttributeError, KeyError, msgspec.ValidationError) as error:
        raise StorageError(
            f"{file} is not a list of grants.", action="Fix it, or delete it to be asked again."
        ) from error


def covers_call(grant: Grant, request: PolicyRequest, boundary: Boundary) -> bool:
    """Return True if a grant covers a call of a tool other than shell. A grant for an external tool is bound to the
    tool's server and parameters at the time of the grant."""
    if not (grant.tool == request.tool or ("*" in grant.tool and fnmatch.fnmatchcase(request.tool, grant.tool))):
        return False
    if request.identity and grant.scope == "always":
        return grant.text == f"#{request.identity}"
    if grant.text is None:
        return True
    return _covers_parameters(grant.text, request, boundary)


def _covers_parameters(text: str, request: PolicyRequest, boundary: Boundary) -> bool:
    params = request.params
    if request.identity:
        return text == f"#{request.identity}"
    if "url" in params:
        return _covers_host(text, str(params["url"]))
    values = params.get("paths") or params.get("path") or params.get("query")
    listed = values if isinstance(values, (list, tuple)) else [values]
    return bool(listed) and all(isinstance(value, str) and _covers_path(text, value, boundary) for value in listed)


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
        return path.startswith(wanted[:-2])
    if wanted == "**":
        return True
    return fnmatch.fnmatchcase(path, wanted) and path.count("/") == wanted.count("/")


def suggest_grant(request: PolicyRequest, boundary: Boundary) -> str:
    """Return the narrowest useful grant for a call of a tool other than shell."""
    if request.identity:
        return f"{request.tool}:#{request.identity}"
    tool, url, path = request.tool, request.params.get("url"), request.params.get("path")
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
