"""The folder of installed extensions, `~/.ollm/extensions`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from ollm.domain.errors import NotFoundError, StorageError, UsageError
from ollm.extensions.git_source import MAX_BYTES, MAX_FILES, GitSource
from ollm.extensions.hook_settings import read_hooks
from ollm.extensions.loader import MANIFEST_FILE, Manifest, read_manifest
from ollm.extensions.mcp.settings import read_servers
from ollm.system.atomic import make_private_directory, read_json

SOURCE_FILE = ".git-source.json"  # The folder of an extension from git holds it.
IGNORED_PATTERNS = shutil.ignore_patterns(".git", "__pycache__", "*.pyc", ".venv", SOURCE_FILE)


def list_installed(home: Path) -> list[Manifest | str]:
    """List the manifests by name, with an error sentence in place of an unreadable one."""
    found: list[Manifest | str] = []
    for folder in sorted(home.iterdir()) if home.is_dir() else []:
        if (folder / MANIFEST_FILE).exists():
            try:
                found.append(read_manifest(folder))
            except UsageError as error:
                found.append(str(error))
    return found


def read_source(folder: Path) -> GitSource | None:
    """Read where an installed extension is from; None if it was added from a directory."""
    return read_json(folder / SOURCE_FILE, GitSource, None)


def install_extension(source: Path, home: Path, *, replace: bool, origin: GitSource | None = None) -> Path:
    """Copy an extension's folder into place, completely or not at all. `origin` is recorded for updates."""
    manifest = read_manifest(source)
    target = home / manifest.name
    if target.exists() and not replace:
        raise UsageError(f"An extension named {manifest.name} already exists.", action="Use --force to replace it.")
    _check_size(source)
    _check_settings(source, manifest)
    make_private_directory(home)
    fresh = home / f".{manifest.name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        shutil.copytree(source, fresh, ignore=IGNORED_PATTERNS)
        if origin is not None:
            (fresh / SOURCE_FILE).write_bytes(msgspec.json.encode(origin))
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise StorageError(f"Cannot copy {source} to {target}: {error}") from error
    return target


def find_extension(name: str, home: Path) -> Path:
    """Find the folder of an extension. Raises NotFoundError if it does not exist."""
    folder = home / name
    if folder.parent != home or not (folder / MANIFEST_FILE).exists():
        raise NotFoundError(f"No extension named {name} in {home}.")
    return folder


def remove_extension(name: str, home: Path) -> Path:
    folder = find_extension(name, home)
    shutil.rmtree(folder)
    return folder


def _check_size(source: Path) -> None:
    files = size = 0
    for directory, names, members in os.walk(source):
        skipped = IGNORED_PATTERNS(directory, [*names, *members])
        names[:] = [name for name in names if name not in skipped]
        for name in (*names, *(member for member in members if member not in skipped)):
            path = Path(directory) / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise UsageError(f"{path} is a link or a special file; extensions may only contain regular files.")
            files += 1
            size += path.stat().st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise UsageError(f"{source} is too large: at most {MAX_FILES} files and {MAX_BYTES // 2**20} MiB.")


def _check_settings(source: Path, manifest: Manifest) -> None:
    """Refuse an extension with invalid hooks or servers, without running any of them."""
    problems = [*read_hooks(manifest.hooks)[1], *read_servers(manifest.mcp_servers)[1]]
    if problems:
        raise UsageError(f"{source / MANIFEST_FILE}: {'; '.join(problems)}. Nothing was installed.")
