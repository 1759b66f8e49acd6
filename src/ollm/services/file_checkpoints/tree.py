"""Trees of a workspace's files as objects: one a directory, named by its content, so that equal parts are kept once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol

import msgspec

EntryKind = Literal["f", "l", "d", "x", "i"]


class TreeEntry(NamedTuple):
    """What is under one name. A file (`f`) and a directory (`d`) name an object, a link (`l`) holds where it leads.
    `x` is there but not covered, and holds why; `i` is hidden by a rule: nothing is known of it, and nothing is done
    to it."""

    kind: EntryKind
    mode: int
    value: bytes


class PathChange(NamedTuple):
    """What is under a path in one tree and in another; None where there is nothing."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


class ReadsObjects(Protocol):
    """Where trees and contents are."""

    def read(self, digest: bytes) -> bytes: ...


Entries = dict[str, TreeEntry]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[tuple[bytes, EntryKind, int, bytes]])
IGNORED = TreeEntry("i", 0, b"")


def encode_tree(entries: Entries) -> bytes:
    return _ENCODER.encode([(os.fsencode(name), *entries[name]) for name in sorted(entries)])


def decode_tree(content: bytes) -> Entries:
    return {os.fsdecode(name): TreeEntry(kind, mode, value) for name, kind, mode, value in _DECODER.decode(content)}


def compare_trees(
    objects: ReadsObjects, one: bytes, other: bytes, prefix: str = "", *, hidden: bool = False
) -> Iterator[PathChange]:
    """Where two trees differ; parts with the same digest are not read. `hidden`: also names that rules hide in the one
    and that are not there in the other."""
    if one == other:
        return
    before, after = decode_tree(objects.read(one)), decode_tree(objects.read(other))
    for name in sorted(before.keys() | after.keys()):
        yield from _compare_entries(objects, prefix + name, before.get(name), after.get(name), hidden=hidden)


def join_changes(changes: Iterable[PathChange]) -> list[PathChange]:
    """Changes in their order, with those of a path that follow on from each other as one."""
    found: dict[str, list[PathChange]] = {}
    for change in changes:
        known = found.setdefault(change.path, [])
        if known and known[-1].after == change.before:
            known[-1] = PathChange(change.path, known[-1].before, change.after)
        else:
            known.append(change)
    return [change for path in sorted(found) for change in found[path] if change.before != change.after]


def _compare_entries(
    objects: ReadsObjects, path: str, before: TreeEntry | None, after: TreeEntry | None, *, hidden: bool
) -> Iterator[PathChange]:
    if before == after or (not hidden and {before, after} == {None, IGNORED}):
        return
    old, new = _get_tree(before), _get_tree(after)
    if old is None or new is None or (before and before.mode) != (after and after.mode):
        yield PathChange(path, before, after)
    known = {entry.kind for entry in (before, after) if entry is not None}
    if known & {"x", "i"}:
        return
    if old is not None and new is not None:
        yield from compare_trees(objects, old, new, f"{path}/", hidden=hidden)
    elif old is not None:
        yield from (PathChange(name, entry, None) for name, entry in iter_entries(objects, old, f"{path}/", hidden))
    elif new is not None:
        yield from (PathChange(name, None, entry) for name, entry in iter_entries(objects, new, f"{path}/"))


def _get_tree(entry: TreeEntry | None) -> bytes | None:
    return entry.value if entry is not None and entry.kind == "d" else None


def iter_entries(
    objects: ReadsObjects, tree: bytes, prefix: str = "", hidden: bool = False
) -> Iterator[tuple[str, TreeEntry]]:
    """Every path of a tree, each directory before what is in it; names that rules hide only where asked for."""
    for name, entry in decode_tree(objects.read(tree)).items():
        if entry.kind == "i" and not hidden:
            continue
        yield prefix + name, entry
        if entry.kind == "d":
            yield from iter_entries(objects, entry.value, f"{prefix}{name}/", hidden)


def collect_digests(objects: ReadsObjects, trees: Iterable[bytes]) -> set[bytes]:
    """Every object that these trees need, themselves included."""
    from ollm.domain.errors import StorageError

    found: set[bytes] = set()
    waiting = list(trees)
    while waiting:
        tree = waiting.pop()
        if tree in found:
            continue
        found.add(tree)
        try:
            entries = decode_tree(objects.read(tree))
        except (StorageError, msgspec.MsgspecError):
            continue
        found.update(entry.value for entry in entries.values() if entry.kind == "f")
        waiting.extend(entry.value for entry in entries.values() if entry.kind == "d")
    return found
