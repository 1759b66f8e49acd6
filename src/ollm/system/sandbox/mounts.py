"""The mounts of one command on top of the session's: what is read-only, hidden or opened for this run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ollm.system.sandbox import kernel
from ollm.system.sandbox.base import EMPTY, SKELETONS, STASH, make_mount_point, show_again
from ollm.system.sandbox.box import TEMPORARY_PLACES, Access, Box, find_access, is_inside, list_places


def mount_for_command(box: Box) -> None:
    """Turn the copy of the session's mounts that this thread is in into those of one command."""
    if box.kind == "reading":
        for path in (box.workspace, *box.writable, *box.caches):
            with suppress(OSError):
                kernel.set_mount_attributes(path, kernel.MOUNT_RDONLY)
        _replace_temporary_places(box)
    for path in box.readable:
        _open(box, path, writable=False)
    for path in box.approved:
        _open(box, path, writable=True)
    if box.kind == "working":
        for path, writable in list_protections(box):
            _mount_over_itself(path, writable=writable)
    places = list_places(box)
    for path in (*box.hidden, *box.environment_files):
        _hide(box, path, places)
    kernel.attach_tree(kernel.clone_tree(EMPTY), STASH)


def list_protections(box: Box) -> Iterator[tuple[str, bool]]:
    """Paths to be mounted over themselves, outermost first: the protected ones read-only, and the folders above them
    as they are, since a mounted folder can be neither moved nor removed."""
    roots = (box.workspace, *(path for path in box.list_writable() if path not in box.approved))
    kept = set(_leave_out_approved(box, box.protected))
    leaves = [path for path in kept if not any(path != one and is_inside(path, one) for one in kept)]
    folders = {
        path[:at]
        for path in leaves
        for root in roots
        if is_inside(path, root)
        for at in _find_slashes(path, len(root) + 1)
    }
    return iter(
        sorted([*((path, False) for path in leaves), *((path, True) for path in folders)], key=lambda one: len(one[0]))
    )


def _find_slashes(path: str, start: int) -> list[int]:
    return [at for at in range(start, len(path)) if path[at] == "/"]


def _leave_out_approved(box: Box, paths: Iterable[str]) -> Iterator[str]:
    """The same without what was approved; of a folder with something approved in it, the rest by name."""
    for path in paths:
        if any(is_inside(path, one) for one in box.approved):
            continue
        if any(is_inside(one, path) for one in box.approved):
            with suppress(OSError):
                yield from _leave_out_approved(box, [entry.path for entry in os.scandir(path)])
        elif not os.path.islink(path):
            yield path


def _mount_over_itself(path: str, *, writable: bool) -> None:
    with suppress(FileNotFoundError):
        tree = kernel.clone_tree(path)
        if not writable:
            kernel.set_mount_attributes("", kernel.MOUNT_RDONLY, tree=tree)
        kernel.attach_tree(tree, path)


def _open(box: Box, path: str, *, writable: bool) -> None:
    """Bring a path back from an emptied place, or make it writable where it is."""
    inside = [root for root in (box.workspace, *box.writable) if is_inside(path, root)]
    emptied = [place for place in (*box.covered, *box.hidden) if is_inside(path, place) and _is_emptied(place)]
    if emptied and not any(len(root) > len(max(emptied, key=len)) for root in inside):
        show_again(path, max(emptied, key=len), writable=writable)
    elif writable and not inside and os.path.exists(path):
        tree = kernel.clone_tree(path)
        kernel.clear_read_only(tree)
        kernel.attach_tree(tree, path)


def _is_emptied(place: str) -> bool:
    return os.path.isdir(f"{SKELETONS}/{place.replace('/', '%')}")


def _hide(box: Box, path: str, places: list[tuple[str, Access]]) -> None:
    """Hide what came to be after the session's mounts were made, and files named `.env`."""
    shown = (*box.approved, *box.readable)
    place, access = find_access(path, places)
    if not os.path.lexists(path) or (access == "empty" and _is_emptied(place)):
        return
    if any(is_inside(one, path) or is_inside(path, one) for one in shown):
        return
    try:
        real = os.path.realpath(path, strict=True)
        if real not in ("/dev/null", box.workspace) and not stat.S_ISCHR(os.stat(real).st_mode):
            kernel.attach_tree(kernel.clone_tree(EMPTY if os.path.isdir(real) else "/dev/null"), real)
    except FileNotFoundError:
        return  # removed in the meantime


def _replace_temporary_places(box: Box) -> None:
    """Put an empty private directory over each temporary place, and back into it what a reading command needs."""
    wanted = [path for path, access in list_places(box) if access != "empty" or path in box.covered]
    for place in filter(os.path.isdir, TEMPORARY_PLACES):
        if is_inside(place, box.workspace):
            continue
        back = {path for path in wanted if is_inside(path, place) and path != place}
        outermost = [path for path in back if not any(path != other and is_inside(path, other) for other in back)]
        trees = [(path, kernel.clone_tree(path)) for path in outermost]
        private = f"{SKELETONS}/private{place.replace('/', '%')}"
        if not os.path.isdir(private):
            os.mkdir(private)
            os.chmod(private, 0o1777)  # noqa: S103 - as /tmp is
        kernel.attach_tree(kernel.clone_tree(private), place)
        for path, tree in trees:
            make_mount_point(path, "", directory=stat.S_ISDIR(os.fstat(tree).st_mode))
            kernel.attach_tree(tree, path)
