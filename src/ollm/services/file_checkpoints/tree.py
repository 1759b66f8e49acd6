"""Trees of a workspace's files, stored as one content-addressed object per directory, so that equal parts are stored
once; and plans of a restore from one tree to another, made before any file is touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ollm.config.settings import CheckpointSettings
from ollm.domain.errors import StorageError
from ollm.domain.struct import Data
from ollm.store.file_objects import FileObjects

EntryKind = Literal["f", "l", "d", "x", "i"]


class TreeEntry(NamedTuple):
    """An entry of a tree. A file (`f`) or directory (`d`) refers to an object; a link (`l`) holds its target. `x`
    exists but is not covered, and holds the reason. `i` is ignored by a rule: it is neither read nor changed."""

    kind: EntryKind
    mode: int
    value: bytes


class PathChange(NamedTuple):
    """The entries of a path in two trees, or None if missing."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None

    @property
    def is_directory_only(self) -> bool:
        return all(entry is None or entry.kind == "d" for entry in (self.before, self.after))

    @property
    def letter(self) -> str:
        """The kind of change: A for a restored path, D for a removed one, M for a modified one."""
        if self.before is None:
            return "A"
        return "D" if self.after is None else "M"


Entries = dict[str, TreeEntry]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[tuple[bytes, EntryKind, int, bytes]])
IGNORED = TreeEntry("i", 0, b"")


def encode_tree(entries: Entries) -> bytes:
    return _ENCODER.encode([(os.fsencode(name), *entries[name]) for name in sorted(entries)])


def decode_tree(content: bytes) -> Entries:
    found = _DECODER.decode(content)
    return {
        os.fsdecode(name): TreeEntry(kind, keep_mode(mode) if kind == "f" else mode, value)
        for name, kind, mode, value in found
    }


def keep_mode(mode: int) -> int:
    """Return the permissions that belong to a file's state: not set-user-ID and set-group-ID, which no restore sets."""
    return mode & 0o1777


def compare_trees(
    objects: FileObjects, one: bytes, other: bytes, prefix: str = "", *, hidden: bool = False
) -> Iterator[PathChange]:
    """Find the differences between two trees, without reading parts of equal digest. `hidden` includes names that are
    ignored in one tree and missing from the other."""
    if one == other:
        return
    before, after = decode_tree(objects.read(one)), decode_tree(objects.read(other))
    for name in sorted(before.keys() | after.keys()):
        yield from _compare_entries(objects, prefix + name, before.get(name), after.get(name), hidden=hidden)


def join_changes(changes: Iterable[PathChange]) -> list[PathChange]:
    """Join consecutive changes of the same path into one."""
    found: dict[str, list[PathChange]] = {}
    for change in changes:
        known = found.setdefault(change.path, [])
        if known and known[-1].after == change.before:
            known[-1] = PathChange(change.path, known[-1].before, change.after)
        else:
            known.append(change)
    return [change for path in sorted(found) for change in found[path] if change.before != change.after]


def _compare_entries(
    objects: FileObjects, path: str, before: TreeEntry | None, after: TreeEntry | None, *, hidden: bool
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
    objects: FileObjects, tree: bytes, prefix: str = "", hidden: bool = False
) -> Iterator[tuple[str, TreeEntry]]:
    """Iterate over all paths of a tree, directories before their contents. `hidden` includes ignored names."""
    for name, entry in decode_tree(objects.read(tree)).items():
        if entry.kind == "i" and not hidden:
            continue
        yield prefix + name, entry
        if entry.kind == "d":
            yield from iter_entries(objects, entry.value, f"{prefix}{name}/", hidden)


def collect_digests(objects: FileObjects, trees: Iterable[bytes]) -> set[bytes]:
    """Collect the digests of all objects that these trees need, including the trees."""
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


DEFAULT_MODE = 0o755  # Only the contents of such a directory are known.


def apply_changes(objects: FileObjects, tree: bytes, changes: Iterable[PathChange]) -> bytes:
    """Apply changes to a tree. For a directory only kind and mode are applied: its contents have separate changes, and
    it stays as long as it is not empty."""
    last = {change.path: change.after for change in changes}
    return _edit(objects, decode_tree(objects.read(tree)), last)[0] if last else tree


def _edit(objects: FileObjects, entries: Entries, changes: dict[str, TreeEntry | None]) -> tuple[bytes, bool]:
    """Edit a directory. Returns its new tree, and True if it is not empty."""
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


def _edit_name(objects: FileObjects, entry: TreeEntry | None, deeper: dict[str, TreeEntry | None]) -> TreeEntry | None:
    """Edit the entry under a name. The change of the entry itself is under the empty path."""
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


class CheckpointPlace(Data, frozen=True):
    """The covered files and the folder of their copies. `excluded` are ollm's own paths below the root."""

    root: Path
    folder: Path
    user_home: Path
    excluded: frozenset[str] = frozenset()


def find_reason_off(place: CheckpointPlace, settings: CheckpointSettings) -> str:
    """Return the reason checkpoints are off here, or ""."""
    if not settings.enabled:
        return "Checkpoints are off (checkpoints.enabled)."
    real = os.path.realpath(place.root)
    if real in (os.path.realpath(place.user_home), os.path.sep):
        return "Checkpoints are off in the home directory: open a project's folder to have them."
    return ""


CHANGED_BY_OTHERS = "changed since, not by the model"
CHANGED_SINCE_CUT_OFF = "changed when or after the turn was cut off"
RULE_FILES = (".gitignore", ".ollmignore")
NEVER_TOUCHED = (".git", ".ollm")


class SkippedPath(Data, frozen=True):
    """A path that is left unchanged, and the reason."""

    path: str
    why: str


class RestorePlan(Data, frozen=True):
    """A restore from the current to the earlier state; `steps` are in order of execution. `ignored` and `uncovered`
    count names in the workspace that are not covered. `in_editor` are paths that an editor restores."""

    message_id: int
    current: bytes
    target: bytes
    steps: tuple[PathChange, ...]
    skipped: tuple[SkippedPath, ...]
    ignored: int = 0
    uncovered: int = 0
    in_editor: tuple[str, ...] = ()

    @property
    def disk_steps(self) -> tuple[PathChange, ...]:
        return tuple(step for step in self.steps if step.path not in self.in_editor)

    @property
    def editor_steps(self) -> tuple[PathChange, ...]:
        return tuple(step for step in self.steps if step.path in self.in_editor)

    @property
    def files(self) -> list[PathChange]:
        """The paths to report, each once. Directories are omitted, since they come and go with their files."""
        return [step for step in dict.fromkeys(self.steps) if not step.is_directory_only]


def plan_steps(
    changes: Iterable[PathChange], others: Mapping[str, str], find_flaw: Callable[[bytes], str]
) -> tuple[tuple[PathChange, ...], tuple[SkippedPath, ...]]:
    """Return the steps in order, and the skipped paths. `others` gives the reason a path changed by others stays,
    `find_flaw` the reason a saved content cannot be read."""
    steps: list[PathChange] = []
    skipped: list[SkippedPath] = []
    for change in changes:
        if not (why := find_obstacle(change, others, find_flaw)):
            steps.append(change)
        elif why != "hidden":
            skipped.append(SkippedPath(path=change.path, why=why))
    # Directories that others created, removed or changed stay, unless a restored file needs them.
    needed = {parent for path, _, after in steps if after is not None for parent in list_parents(path)}
    wanted = [s for s in steps if not s.is_directory_only or s.path not in others or s.path in needed]
    return order_steps(wanted), tuple(skipped)


def list_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def drop_hidden(changes: Iterable[PathChange]) -> list[PathChange]:
    """Drop new ignored names, such as build output and caches. If the ignore file above such a name changed as well, it
    stays among the changes, to be reported."""
    found = list(changes)
    rules = [path for path, _, _ in found if path.rpartition("/")[2] in RULE_FILES]
    folders = tuple(path[: path.rfind("/") + 1] for path in rules)

    def is_reported(change: PathChange) -> bool:
        if change.after is not None or change.before is None or change.before.kind != "i":
            return True
        return change.path.startswith(folders) and change.path.rpartition("/")[2] not in NEVER_TOUCHED

    return [change for change in found if is_reported(change)]


def find_obstacle(change: PathChange, others: Mapping[str, str], find_flaw: Callable[[bytes], str]) -> str:
    """Return the reason a path must stay unchanged, or ""."""
    now, then = change.before, change.after
    if now is not None and now.kind == "i":
        return "is new, and ignored now" if then is None else "is ignored now"
    if then is not None and then.kind == "i":
        return "hidden"  # It was ignored then, so its content is unknown.
    if change.path in others and not change.is_directory_only:
        return others[change.path]
    for entry, when in ((now, ""), (then, ", as it was then")):
        if entry is not None and entry.kind == "x":
            return f"not saved: it {entry.value.decode().partition(chr(0))[0]}{when}"
    return find_flaw(then.value) if then is not None and then.kind == "f" else ""


def order_steps(steps: Iterable[PathChange]) -> tuple[PathChange, ...]:
    """Order the steps: removals from the bottom up, then creations from the top down."""
    going = [step for step in steps if must_go(step)]
    coming = [step for step in steps if not must_go(step)]
    replaced = [step for step in going if step.after is not None]
    return (
        *sorted(going, key=lambda step: step.path, reverse=True),
        *sorted((*coming, *replaced), key=lambda step: step.path),
    )


def must_go(step: PathChange) -> bool:
    """Return True if the present entry is removed first: nothing replaces it, or an entry of another kind that cannot
    replace it atomically."""
    now, then = step.before, step.after
    return now is not None and (then is None or (now.kind == "d") != (then.kind == "d"))


def is_same_state(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    """Return True if two entries are equal for a restore. For directories only kind and mode count."""
    if one is None or other is None:
        return one is other
    if one.kind == "d" and other.kind == "d":
        return one.mode == other.mode
    return one == other
