"""Trusted workspaces, and the files for which they were trusted.

A workspace's configuration, commands, hooks and instruction files are used only after a person has approved them, and
only while they are unchanged. After a change the workspace is untrusted again, and the changes are listed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ollm.domain.clock import Clock, format_stamp, now
from ollm.domain.errors import NotFoundError, StorageError
from ollm.domain.struct import Data
from ollm.system.atomic import read_small_file, write_private_file
from ollm.system.path_names import SCRIPT_ENDINGS

INSTRUCTION_FILES = ("AGENTS.md", "OLLM.md", ".ollm/instructions.md", "CLAUDE.md", "GEMINI.md")  # The first counts.
_CONFIGURATION_FILES = (".ollm/config.yaml", ".ollm/config.yml", ".mcp.json")
_DIRECTORIES = (".ollm/commands", ".ollm/skills", ".ollm/agents", ".ollm/hooks", ".ollm/extensions")
_MAX_FILES = 2_000  # Further files are known by their sizes and change times.
_BLOCK_BYTES = 1 << 20
_MAX_NAMED_FILES = 200
_FILE_WORD = r"[\w.~@+/-]+"
_AFTER_VARIABLE = r"\$\{?\w+\}?[\"'\\\\]*/([\w.~@+/-]+)"
_MODULE = r"""-m[\s"',]+([A-Za-z_][\w.]*)"""
_DATA_ENDINGS = (".db", ".sqlite", ".sqlite3", ".duckdb", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".log")
_MAX_HASHED_BLOCKS = 16


class TrustState(Data, frozen=True):
    """Trust of a workspace. `known`: it was trusted once. `trusted`: it was, and none of its files has changed since.
    `declined`: the user was asked about exactly these files and refused."""

    workspace: str
    trusted: bool
    known: bool = False
    declined: bool = False
    since: str | None = None
    files: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def unanswered(self) -> bool:
        """True if there are files in their current state that the user has neither trusted nor declined."""
        return not self.trusted and not self.declined and bool(self.files or self.known)

    def describe_files(self, most: int = 12) -> list[str]:
        """List the files that trust would enable, or that changed since; the last line counts those left out."""
        marks = {"new": self.added, "changed": self.changed, "gone": self.removed}
        changes = [f"{name} ({mark})" for mark, names in marks.items() for name in names]
        lines = changes if self.known else list(self.files)
        return [*lines[:most], f"and {len(lines) - most} more"] if len(lines) > most else lines


class TrustEntry(Data, frozen=True):
    """The files for which a workspace was trusted."""

    hash: str = ""
    since: str | None = None
    files: Mapping[str, str] = {}


class TrustDocument(Data, frozen=True, omit_defaults=True):
    workspaces: dict[str, TrustEntry]
    declined: Mapping[str, str] = {}


class TrustBook:
    """Trust decisions in `~/.ollm/trust.json`. Reading creates nothing."""

    def __init__(self, file: Path, clock: Clock = now) -> None:
        self._file = file
        self._clock = clock

    def is_trusted(self, workspace: Path) -> bool:
        """Return True if `get_state` reports trust. Reads no files of a workspace that was never trusted."""
        return os.path.realpath(workspace) in self._read().workspaces and self.get_state(workspace).trusted

    def _hash_files(self, real: str) -> dict[str, str]:
        """Hash the files that need trust. The user's own settings do not, if the workspace is their home."""
        prefix = f"{os.path.relpath(os.path.realpath(self._file.parent), real)}/"
        files = fingerprint_files(Path(real))
        return {name: digest for name, digest in files.items() if not name.startswith(prefix)}

    def get_state(self, workspace: Path) -> TrustState:
        real, document = os.path.realpath(workspace), self._read()
        entry = document.workspaces.get(real)
        files = self._hash_files(real)
        declined = real in document.declined and document.declined[real] == combine_digests(files)
        if entry is None:
            return TrustState(workspace=real, trusted=False, declined=declined, files=tuple(files))
        before = entry.files
        added = tuple(name for name in files if name not in before)
        removed = tuple(name for name in before if name not in files)
        changed = tuple(name for name, digest in files.items() if before.get(name, digest) != digest)
        same = not (added or removed or changed) and entry.hash == combine_digests(files)
        return TrustState(
            workspace=real,
            trusted=same,
            known=True,
            declined=declined and not same,
            since=entry.since,
            files=tuple(files),
            added=added,
            removed=removed,
            changed=changed,
        )

    def trust(self, workspace: Path) -> TrustState:
        real = os.path.realpath(workspace)
        files = self._hash_files(real)
        entry = TrustEntry(hash=combine_digests(files), since=format_stamp(self._clock()), files=files)
        document = self._read()
        self._write(msgspec.structs.replace(document, workspaces={**document.workspaces, real: entry}))
        return self.get_state(Path(real))

    def extend(self, workspace: Path, worktree: Path) -> None:
        """Trust a worktree of a trusted workspace, if every file in it that needs trust is one of the trusted."""
        document, real = self._read(), os.path.realpath(worktree)
        entry = document.workspaces.get(os.path.realpath(workspace))
        files = self._hash_files(real)
        if entry is None or not self.is_trusted(workspace) or not files.items() <= entry.files.items():
            return
        made = TrustEntry(hash=combine_digests(files), since=entry.since, files=files)
        self._write(msgspec.structs.replace(document, workspaces={**document.workspaces, real: made}))

    def decline(self, workspace: Path) -> None:
        """Store a refusal for the current files: the question is not asked again until they change."""
        real, document = os.path.realpath(workspace), self._read()
        declined = {**document.declined, real: combine_digests(self._hash_files(real))}
        self._write(msgspec.structs.replace(document, declined=declined))

    def revoke(self, workspace: Path) -> None:
        real, document = os.path.realpath(workspace), self._read()
        if real not in document.workspaces:
            raise NotFoundError(f"{real} was not trusted.", action="See `ollm trust --list`.")
        kept = {path: entry for path, entry in document.workspaces.items() if path != real}
        self._write(msgspec.structs.replace(document, workspaces=kept))

    def list_states(self) -> list[TrustState]:
        return [self.get_state(Path(path)) for path in sorted(self._read().workspaces)]

    def _read(self) -> TrustDocument:
        try:
            return msgspec.json.decode(read_small_file(self._file), type=TrustDocument)
        except FileNotFoundError:
            return TrustDocument(workspaces={})
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageError(
                f"{self._file} cannot be read: {error}", action="Remove it to be asked about every workspace again."
            ) from error

    def _write(self, document: TrustDocument) -> None:
        fields = {"version": 1, **msgspec.to_builtins(document)}
        write_private_file(self._file, msgspec.json.format(msgspec.json.encode(fields), indent=2))


def fingerprint_files(workspace: Path) -> dict[str, str]:
    """Return the files that need trust, each with the digest of its content. Links count with their target."""
    listed = list(_find_files(workspace))
    found: dict[str, str] = {}
    for path in (*listed[:_MAX_FILES], *_find_configured_scripts(workspace)):
        found[str(path.relative_to(workspace))] = _hash_file(path)
    if more := listed[_MAX_FILES:]:
        found[f".ollm: {len(more):,} more files"] = _hash_stamps(more)
    return dict(sorted(found.items()))


def combine_digests(files: dict[str, str]) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def find_instruction_file(folder: Path) -> Path | None:
    """Find a folder's instruction file for agents, broken links included."""
    paths = (folder / name for name in INSTRUCTION_FILES)
    return next((path for path in paths if path.is_symlink() or path.is_file()), None)


def _find_files(workspace: Path) -> Iterator[Path]:
    for path in (workspace / name for name in (*_CONFIGURATION_FILES, ".ollm/tasks.yaml")):
        if path.is_symlink() or path.is_file():
            yield path
    if (instructions := find_instruction_file(workspace)) is not None:
        yield instructions
    for name in _DIRECTORIES:
        for directory, folders, files in os.walk(workspace / name):
            folders.sort()
            links = [folder for folder in folders if (Path(directory) / folder).is_symlink()]
            yield from (Path(directory) / file for file in sorted((*files, *links)))


def _find_configured_scripts(workspace: Path) -> list[Path]:
    """Find the workspace files that its own settings name: those a hook or an MCP server would run."""
    texts = [text for name in _CONFIGURATION_FILES for text in read_configuration(workspace / name)]
    return find_named_files(workspace, texts)


def read_configuration(file: Path) -> list[str]:
    """Read the beginning of a configuration file to search for names. Return [] if it cannot be read."""
    try:
        return [read_small_file(file).decode("utf-8")[:_BLOCK_BYTES]]
    except (OSError, UnicodeDecodeError):
        return []


def find_named_files(workspace: Path, texts: Iterable[str]) -> list[Path]:
    """Find the workspace files that commands name, in order. A script named by its path counts even before it exists,
    because it would run once created. A data file does not count: its server writes to it."""
    found: dict[Path, None] = {}
    for word in dict.fromkeys(word for text in texts for word in _list_file_words(text)):
        path = Path(os.path.normpath(workspace / word))
        with contextlib.suppress(OSError, ValueError):
            missing_script = word.endswith(SCRIPT_ENDINGS) and "/" in word and not path.exists()
            is_run = (path.is_file() and not word.endswith(_DATA_ENDINGS)) or missing_script
            if path.is_relative_to(workspace) and is_run:
                found[path] = None
        if len(found) >= _MAX_NAMED_FILES:
            break
    return list(found)


def _list_file_words(text: str) -> Iterator[str]:
    """List words that may be workspace files. The path after a variable (`$CLAUDE_PROJECT_DIR/check.sh`) is taken from
    the workspace root, and `-m package.module` as the files Python would run."""
    yield from re.findall(_FILE_WORD, text)
    yield from re.findall(_AFTER_VARIABLE, text)
    for module in re.findall(_MODULE, text):
        stem = module.replace(".", "/")
        yield from (f"{stem}.py", f"{stem}/__main__.py", f"{stem}/__init__.py")


def _hash_stamps(paths: Iterable[Path]) -> str:
    """Hash the path, size and change time of many files without reading them."""
    import hashlib

    digest = hashlib.sha256()
    for path in paths:
        with contextlib.suppress(OSError):
            found = path.lstat()
            digest.update(os.fsencode(path) + f"\0{found.st_size} {found.st_ctime_ns}\0".encode())
    return digest.hexdigest()


def _hash_file(path: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    if path.is_symlink():
        digest.update(b"link:" + os.fsencode(path.readlink()) + b"\0")
    try:
        if path.is_file():
            found = path.stat()
            with path.open("rb") as stream:
                for _ in range(_MAX_HASHED_BLOCKS):
                    if not (block := stream.read(_BLOCK_BYTES)):
                        break
                    digest.update(block)
                else:  # A hole of 50 GB or an endless system file is known by its size and time.
                    digest.update(f"\0larger: {found.st_size} {found.st_mtime_ns}".encode())
    except OSError as error:
        digest.update(f"unreadable: {error.errno}".encode())
    return digest.hexdigest()
