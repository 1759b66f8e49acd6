"""The folder extensions are kept in, `~/.ollm/extensions`: copied in as plain files, and taken out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ollm.domain.errors import NotFoundError, StorageError, UsageError
from ollm.extensions.manifest import MANIFEST_FILE, Manifest, read_manifest
from ollm.system.atomic import make_private_directory

MAX_FILES = 2_000
MAX_BYTES = 20 * 1024 * 1024
IGNORED_PATTERNS = shutil.ignore_patterns(".git", "__pycache__", "*.pyc", ".venv")


def list_installed(home: Path) -> list[Manifest | str]:
    """The manifests there are, by name; a sentence in place of one that cannot be read."""
    found: list[Manifest | str] = []
    for folder in sorted(home.iterdir()) if home.is_dir() else []:
        if (folder / MANIFEST_FILE).exists():
            try:
                found.append(read_manifest(folder))
            except UsageError as error:
                found.append(str(error))
    return found


def install_extension(source: Path, home: Path, *, replace: bool) -> Path:
    """Copy an extension's folder in; nothing of it is there unless all of it is."""
    manifest = read_manifest(source)
    target = home / manifest.name
    if target.exists() and not replace:
        raise UsageError(f"An extension named {manifest.name} already exists.", action="Use --force to replace it.")
    _check_size(source)
    _check_modules(source, manifest)
    make_private_directory(home)
    fresh = home / f".{manifest.name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        shutil.copytree(source, fresh, ignore=IGNORED_PATTERNS)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise StorageError(f"Cannot copy {source} to {target}: {error}") from error
    return target


def find_extension(name: str, home: Path) -> Path:
    """Its folder. Raises NotFoundError where there is none."""
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


def _check_modules(source: Path, manifest: Manifest) -> None:
    """Refuse one that could never be loaded: a module that it names is no Python. None of it is run."""
    import ast

    for addition in manifest.adds:
        place = source / addition.target.partition(":")[0].replace(".", "/")
        file = place.with_name(f"{place.name}.py")
        try:
            ast.parse(file.read_bytes() if file.is_file() else b"", str(file))
        except (SyntaxError, ValueError, RecursionError, OSError) as error:
            raise UsageError(f"{file} cannot be loaded: {error}. Nothing was installed.") from error
