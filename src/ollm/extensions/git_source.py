"""Extensions from git repositories: addresses, and one commit fetched as plain files.

Git only transfers objects. Files are read from its object store and never checked out, so that no hook, filter,
submodule or setting of a repository runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import msgspec

from ollm.domain.errors import UsageError
from ollm.domain.struct import SparseData
from ollm.system.git_commands import run_git
from ollm.system.sandbox.confined import add_settings, make_helper_environment

MAX_FILES = 2_000
MAX_BYTES = 20 * 1024 * 1024
_HOST = r"[A-Za-z0-9\[][^/\s]*"
_ADDRESS = re.compile(
    rf"((?:https://{_HOST}/|ssh://{_HOST}/|file:///|[A-Za-z0-9][\w.-]*@[A-Za-z0-9][\w.-]*:)[^-\s]\S*?)(?:(?<!/)@([^@\s]*))?"
)
_REF = re.compile(r"[A-Za-z0-9_](?:[\w/+-]|\.(?!\.)){0,199}", re.ASCII)
_SETTINGS = {"core.hooksPath": "/dev/null", "gc.auto": "0", "maintenance.auto": "false"}
_VARIABLES = "SSH_AUTH_SOCK SSL_CERT_FILE GIT_SSL_CAINFO https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY"
_NO_QUESTIONS = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "GIT_ALLOW_PROTOCOL": "https:ssh:file", "LC_ALL": "C"}


class GitSource(SparseData, frozen=True):
    """Origin of an extension: `path` is its folder in the repository, `commit` the installed one."""

    url: str
    ref: str = "HEAD"
    path: str = ""
    commit: str = ""

    def __str__(self) -> str:
        place = f" in {self.path}" if self.path else ""
        return f"{self.url}@{self.ref}{place}" + (f" (commit {self.commit[:12]})" if self.commit else "")


def parse_source(text: str, path: str = "") -> GitSource | None:
    """Parse `URL[@ref]`; None for the path of a directory. Raises UsageError for addresses that are not supported."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        if re.match(r"-|[^/\s]*:", text) and not Path(text).is_dir():
            action = "Use https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH or file:///PATH, and @REF if needed."
            raise UsageError(f"Unsupported address {text}.", action=action)
        return None
    source = GitSource(url=found[1], ref=found[2] if found[2] is not None else "HEAD", path=path)
    check_source(source)
    return source


def check_source(source: GitSource) -> None:
    """Raise UsageError if a part of the address is unsafe to hand to git."""
    found = _ADDRESS.fullmatch(source.url)
    if found is None or found[2] is not None:
        raise UsageError(f"Unsupported address {source.url}.")
    if "://" in source.url and urlsplit(source.url).password is not None:
        raise UsageError("The address contains a password.", action="Use ssh, or a credential helper of git.")
    if not _REF.fullmatch(source.ref):
        raise UsageError(f"{source.ref!r} is not a branch, tag or commit.")
    if source.path and not _is_inside(source.path):
        raise UsageError(f"{source.path} is not a folder inside the repository.")


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return not any(part in ("", ".", "..") or part.lower() == ".git" or "\\" in part for part in parts)


def fetch_source(source: GitSource, folder: Path, environment: Mapping[str, str]) -> GitSource:
    """Write the files of a source into the empty `folder`. Returns the source with the commit they are from."""
    with TemporaryDirectory() as store:
        names = [name for name in _VARIABLES.split() if name in environment]
        variables = make_helper_environment(environment) | {name: environment[name] for name in names} | _NO_QUESTIONS
        git = partial(run_git, Path(store), add_settings({**variables, "GIT_DIR": store}, _SETTINGS))
        git("init", "--bare", "--quiet", "--template=", store)
        git("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", source.url, source.ref)
        commit = git("rev-parse", "--verify", "FETCH_HEAD^{commit}").decode().strip()
        if source.path and not git("ls-tree", "-d", "--full-tree", commit, "--", source.path):
            raise UsageError(f"{source} is not a folder of the repository.")
        listed = git("ls-tree", "-r", "-z", "--full-tree", "--long", f"{commit}:{source.path}").split(b"\0")[:-1]
        entries = [_parse_entry(*line.split(b"\t", 1)) for line in listed]
        if len(entries) > MAX_FILES or sum(size for _, _, size, _ in entries) > MAX_BYTES:
            raise UsageError(f"{source} is too large: at most {MAX_FILES} files and {MAX_BYTES // 2**20} MiB.")
        data = git("cat-file", "--batch", stdin="".join(f"{each[1]}\n" for each in entries).encode())
    begin = 0
    for path, _, size, mode in entries:
        begin = data.index(b"\n", begin) + 1  # A line with id, type and size comes first.
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data[begin : begin + size])
        (folder / path).chmod(mode)
        begin += size + 1
    return msgspec.structs.replace(source, commit=commit)


def _parse_entry(facts: bytes, name: bytes) -> tuple[str, str, int, int]:
    """Parse a line of `git ls-tree` into path, object id, size and mode. Raises UsageError for links and submodules."""
    mode, _, object_id, size = facts.decode().split()
    path = name.decode(errors="replace")
    if mode not in ("100644", "100755") or not _is_inside(path):
        raise UsageError(f"{path} is a link or a submodule; extensions may only contain regular files.")
    return path, object_id, int(size), 0o700 if mode == "100755" else 0o600


def compare_files(old: Path, new: Path, ignored: str) -> tuple[list[str], list[str]]:
    """Compare two folders: a line for each changed file, and the lines of a unified diff."""
    from difflib import unified_diff

    stat, diff = [], []
    before, after = _list_files(old), _list_files(new)
    for name in sorted((before.keys() | after.keys()) - {ignored}):
        sides = [side[name].read_bytes() if name in side else None for side in (before, after)]
        if sides[0] == sides[1]:
            continue
        kind = "added  " if sides[0] is None else "deleted" if sides[1] is None else "changed"
        first, second = ((side or b"").decode(errors="replace").splitlines() for side in sides)
        lines = list(unified_diff(first, second, f"a/{name}", f"b/{name}", lineterm=""))
        counts = [sum(line.startswith(sign) for line in lines[2:]) for sign in "+-"]
        stat.append(f"  {kind} {name} +{counts[0]} -{counts[1]}")
        diff += lines
    return stat, diff


def _list_files(folder: Path) -> dict[str, Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(PurePosixPath(path.relative_to(folder))): path for path in found}
