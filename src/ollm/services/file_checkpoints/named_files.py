"""The few files that a call names itself: what it does to the tree is known without a look at all the others."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ollm.domain.errors import StorageError
from ollm.services.file_checkpoints.plan import RULE_FILES
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry, decode_tree
from ollm.services.file_checkpoints.tree_edit import apply_changes
from ollm.store.file_objects import FileObjects
from ollm.system.beneath import LinkFound, open_parent_directory

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class LookFurther(Exception):  # noqa: N818 - not a fault: the caller looks at the whole tree instead
    """Only a look at everything tells what happened."""


def find_named_files(objects: FileObjects, root: Path, tree: bytes, names: Iterable[str]) -> tuple[str, ...]:
    """The paths from the root of files that a call names. Raises LookFurther unless the tree holds each as a file: of a
    new one rules must be asked, and a file of rules changes what is covered."""
    real = os.path.realpath(root)
    found = []
    for name in names:
        path = os.path.relpath(os.path.realpath(os.path.join(real, name)), real)  # noqa: PTH118
        if os.path.basename(path) in RULE_FILES or not _is_file(objects, tree, path):  # noqa: PTH119
            raise LookFurther
        found.append(path)
    return tuple(dict.fromkeys(found))


def renew_files(objects: FileObjects, root: Path, tree: bytes, paths: Iterable[str], max_file_bytes: int) -> bytes:
    """The tree with these files as they are now, their contents kept. Raises LookFurther where one is none any more."""
    try:
        with objects.put_together():
            now = [PathChange(path, None, _read_file(objects, root, path, max_file_bytes)) for path in paths]
            return apply_changes(objects, tree, now)
    except (OSError, LinkFound, StorageError) as error:
        raise LookFurther from error


def _is_file(objects: FileObjects, tree: bytes, path: str) -> bool:
    *folders, name = path.split("/")
    try:
        for folder in folders:
            entry = decode_tree(objects.read(tree)).get(folder)
            if entry is None or entry.kind != "d":
                return False
            tree = entry.value
        entry = decode_tree(objects.read(tree)).get(name)
    except StorageError:
        return False
    return entry is not None and entry.kind == "f"


def _read_file(objects: FileObjects, root: Path, path: str, max_file_bytes: int) -> TreeEntry:
    full = root / path
    with open_parent_directory(root, full) as parent:
        descriptor = os.open(full.name, _READ_FLAGS, dir_fd=parent)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > max_file_bytes:
            raise LookFurther
        return TreeEntry("f", stat.S_IMODE(status.st_mode), objects.put(file.read()))
