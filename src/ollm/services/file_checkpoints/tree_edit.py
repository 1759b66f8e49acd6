"""A tree with some of its paths changed: what a restore has done, or what a turn that was cut off is known to have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ollm.services.file_checkpoints.tree import Entries, PathChange, ReadsObjects, TreeEntry, decode_tree, encode_tree

DEFAULT_MODE = 0o755  # of a directory that nothing is known of but what is in it


class KeepsTrees(ReadsObjects, Protocol):
    """Where trees are read and kept."""

    def put_tree(self, content: bytes) -> bytes: ...


def apply_changes(objects: KeepsTrees, tree: bytes, changes: Iterable[PathChange]) -> bytes:
    """The tree in which each path is as its change leaves it. Of a directory only kind and mode are taken: what is in
    it has changes of its own, and it stays as long as something is."""
    last = {change.path: change.after for change in changes}
    return _edit(objects, decode_tree(objects.read(tree)), last)[0] if last else tree


def _edit(objects: KeepsTrees, entries: Entries, changes: dict[str, TreeEntry | None]) -> tuple[bytes, bool]:
    """The directory's new tree, and whether something is in it."""
    below: dict[str, dict[str, TreeEntry | None]] = {}
    for path, after in changes.items():
        name, _, rest = path.partition("/")
        below.setdefault(name, {})[rest] = after
    for name, deeper in below.items():
        entry = _edit_name(objects, entries.get(name), deeper)
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry
    return objects.put_tree(encode_tree(entries)), bool(entries)


def _edit_name(objects: KeepsTrees, entry: TreeEntry | None, deeper: dict[str, TreeEntry | None]) -> TreeEntry | None:
    """What is under a name; the change of the name itself is under the empty path."""
    own, wanted = "" in deeper, deeper.pop("", entry)
    if wanted is not None and wanted.kind != "d" and (own or not any(deeper.values())):
        return wanted
    inner = decode_tree(objects.read(entry.value)) if entry is not None and entry.kind == "d" else {}
    digest, filled = _edit(objects, inner, deeper)
    if wanted is not None and wanted.kind == "d":
        return TreeEntry("d", wanted.mode, digest)
    if not filled:
        return None
    return TreeEntry("d", entry.mode if entry is not None and entry.kind == "d" else DEFAULT_MODE, digest)
