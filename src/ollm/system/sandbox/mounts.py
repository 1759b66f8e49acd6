"""Mounts the file system of sandboxes: a base that a session shares, and additions for each command.

The base (user and network namespace, and the file system as every sandbox sees it) is built once, by a process that
then ends: the descriptors of the namespaces keep them alive. Each command gets a copy of its mounts. Standard library
only.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from ollm.system.path_names import is_inside
from ollm.system.sandbox import kernel
from ollm.system.sandbox.box import TEMPORARY_PLACES, Access, Box, Places, find_access, list_places, map_places

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
ACCELERATORS = ("dri", "kfd", "accel")
RUN_KEPT = (
    "current-system booted-system opengl-driver opengl-driver-32 wrappers systemd/resolve NetworkManager resolvconf"
).split()
LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
RUN = "/run"
STASH = "/run/.box"  # Real content and stand-ins of emptied places, covered in every command.
EMPTY, SKELETONS, REAL = f"{STASH}/empty", f"{STASH}/skeletons", f"{STASH}/real"
READ_ONLY = kernel.MOUNT_RDONLY | kernel.MOUNT_NOSUID | kernel.MOUNT_NODEV
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def build_base(box: Box) -> list[int]:
    """Enter new namespaces and return descriptors of them: user, mount, network. Call it in a dedicated,
    single-threaded child process."""
    os.umask(0o022)
    _become_ourselves_in_new_user_namespace()
    _lift_loopback()
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    places = list_places(box)
    trees = {path: kernel.clone_tree(path) for path, access in places.items() if _is_kept_aside(path, access)}
    emptied = [path for path, access in places.items() if access == "empty" and os.path.isdir(path)]
    devices = _clone_devices()
    kernel.set_mount_attributes("/", READ_ONLY)
    _mount_scratch([place for place in TEMPORARY_PLACES if os.path.isdir(place)])
    for path in emptied:
        make_mount_point(path, "", directory=True)  # An empty temporary place has lost its mount point.
    _mount_run()
    _mount_devices(devices)
    for path in places:
        _lay_out(path, places, trees.get(path, -1))
    return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("user", "mnt", "net")]


def _is_kept_aside(path: str, access: Access) -> bool:
    """Return True for places to restore later: writable ones, and those under the temporary places."""
    in_the_way = any(is_inside(path, place) for place in TEMPORARY_PLACES) and not os.path.islink(path)
    return access == "write" or (access == "read" and in_the_way)


def _lay_out(path: str, places: Places, tree: int) -> None:
    """Set up one place; those above it are done."""
    access = places[path]
    outer, outer_access = find_access(os.path.dirname(path), places)
    if access == "empty":
        empty_place(path)
    elif tree >= 0:
        held = READ_ONLY if access == "read" else kernel.MOUNT_NOSUID | kernel.MOUNT_NODEV
        kernel.set_mount_attributes("", held, tree=tree)
        make_mount_point(path, outer if outer_access == "empty" else "", directory=stat.S_ISDIR(os.fstat(tree).st_mode))
        kernel.attach_tree(tree, path)
    elif outer_access == "empty":
        show_again(path, outer)


def empty_place(path: str) -> None:
    """Mount an empty place over a path. A directory's mounts are kept in the stash, to restore parts of it."""
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return  # A dangling link has no content to hide.
    if not is_folder:
        kernel.bind("/dev/null", path)
        return
    real, skeleton = (_find_stashed(folder, path) for folder in (REAL, SKELETONS))
    for name in (real, skeleton):
        os.makedirs(name, exist_ok=True)
    kernel.bind(path, real)
    kernel.bind(skeleton, path, attributes=READ_ONLY)


def _find_stashed(folder: str, place: str, path: str = "") -> str:
    """Return where an emptied place is in a folder of the stash, or a path in that place."""
    return f"{folder}/{place.replace('/', '%')}{path.removeprefix(place)}"


def show_again(path: str, outer: str, *, writable: bool = False) -> None:
    """Restore a path from before the place `outer` above it was emptied."""
    source = _find_stashed(REAL, outer, path)
    if os.path.islink(source):
        name = _find_stashed(SKELETONS, outer, path)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with suppress(FileExistsError):
            os.symlink(os.readlink(source), name)
    elif os.path.exists(source):
        make_mount_point(path, outer, directory=os.path.isdir(source))
        kernel.bind(source, path, writable=writable)


def make_mount_point(path: str, outer: str, *, directory: bool) -> None:
    """Create a mount point in a place that has been emptied or covered by a layer."""
    if os.path.lexists(path):
        return
    name = _find_stashed(SKELETONS, outer, path) if outer else path
    os.makedirs(name if directory else os.path.dirname(name), exist_ok=True)
    if not directory:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _become_ourselves_in_new_user_namespace() -> None:
    """Enter a new user namespace: root keeps its rights to all users' files, others map only themselves."""
    user, group = os.geteuid(), os.getegid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    map_everyone = _start_mapper() if user == 0 else None
    kernel.call("unshare", kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
    if map_everyone is None or not map_everyone():
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    with suppress(OSError):  # Filters cannot see the flags of clone3, which could nest namespaces.
        _write("/proc/sys/user/max_user_namespaces", "0")


def _start_mapper() -> Callable[[], bool]:
    """Start a child outside the namespace, which alone can map all ids. Call the result once we are inside; it returns
    False if root may not do that here."""
    process, maps = os.getpid(), {kind: _render_id_map(kind) for kind in ("uid", "gid")}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        try:
            os.read(reading, 1)
            for kind, ids in maps.items():
                _write(f"/proc/{process}/{kind}_map", ids)
            os._exit(0)
        finally:
            os._exit(1)

    def finish() -> bool:
        os.close(writing)
        return os.waitpid(child, 0)[1] == 0

    return finish


def _render_id_map(kind: str) -> str:
    """Render a map of every id that exists here to itself."""
    with open(f"/proc/self/{kind}_map", encoding="utf-8") as ids:
        ranges = [line.split() for line in ids]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _lift_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _mount_scratch(places: list[str]) -> None:
    """Mount a private in-memory layer over each place: its content stays readable, and writes stay inside. Sockets of
    running daemons cannot be connected to through it. The kernel cannot cover a directory that contains other mounts:
    such a directory starts empty."""
    kernel.mount("tmpfs", RUN, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for number, place in enumerate(places):
        upper = f"{RUN}/{number}"
        os.mkdir(upper)
        os.chmod(upper, stat.S_IMODE(os.stat(place).st_mode))
        os.mkdir(f"{upper}-work")
        options = f"lowerdir={place},upperdir={upper},workdir={upper}-work,userxattr"
        try:
            kernel.mount("overlay", place, "overlay", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        except OSError:
            kernel.mount("tmpfs", place, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")


def _mount_run() -> None:
    """Mount an empty /run, where daemons have their sockets, with only the parts needed to find programs and resolve
    names. (The in-memory layers of the scratch places stay under it, out of reach.)"""
    kernel.call("umount2", RUN, 2)  # The layers in memory still work when detached.
    kept = [os.path.join(RUN, name) for name in RUN_KEPT]
    links = {path: os.readlink(path) for path in kept if os.path.islink(path)}
    trees = {path: kernel.clone_tree(path) for path in kept if os.path.isdir(path) and path not in links}
    kernel.mount("tmpfs", RUN, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for path, target in links.items():
        os.symlink(target, path)
    for path, tree in trees.items():
        os.makedirs(path, exist_ok=True)
        kernel.attach_tree(tree, path)
    for folder in (STASH, SKELETONS, REAL):
        os.makedirs(folder, exist_ok=True)
    os.mkdir(EMPTY, 0o555)
    user = os.path.join(RUN, "user", str(os.geteuid()))
    os.makedirs(user)
    os.chmod(user, 0o700)
    if os.path.isdir("/var/run") and not os.path.islink("/var/run"):
        kernel.mount("tmpfs", "/var/run", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")


def _clone_devices() -> dict[str, int]:
    names = [*DEVICES, *ACCELERATORS, *(name for name in os.listdir("/dev") if name.startswith("nvidia"))]
    return {name: kernel.clone_tree(f"/dev/{name}") for name in names if os.path.exists(f"/dev/{name}")}


def _mount_devices(trees: dict[str, int]) -> None:
    """Mount a /dev with harmless devices only: no disks, no other terminals, private shared memory."""
    kernel.mount("tmpfs", "/dev", "tmpfs", kernel.MS_NOSUID, "mode=755")
    for name, tree in trees.items():
        path = f"/dev/{name}"
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        kernel.attach_tree(tree, path)
    os.mkdir("/dev/pts")
    os.mkdir("/dev/shm")
    os.chmod("/dev/shm", 0o1777)  # noqa: S103 - as it is everywhere
    with suppress(OSError):
        kernel.mount(
            "devpts", "/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"
        )
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")


def mount_for_command(box: Box) -> None:
    """Turn this thread's copy of the session's mounts into those of one command."""
    if box.kind == "reading":
        for path in (box.workspace, *box.writable, *box.caches):
            with suppress(OSError):
                kernel.set_mount_attributes(path, kernel.MOUNT_RDONLY)
        _replace_temporary_places(box)
    for path in box.readable:
        _open(box, path, writable=False)
    for path in box.approved:
        _open(box, path, writable=True)
    for path in box.repository:
        _open_whole(box, path)
    if box.kind == "working":
        for path, writable in list_protections(box):
            with suppress(FileNotFoundError):
                kernel.bind(path, path, attributes=0 if writable else kernel.MOUNT_RDONLY)
    hidden = (*box.hidden, *box.environment_files)
    places = map_places(box) if hidden else {}
    for path in hidden:
        _hide(box, path, places)
    kernel.bind(EMPTY, STASH)


def list_protections(box: Box) -> list[tuple[str, bool]]:
    """Return paths to mount over themselves, outermost first: the protected ones read-only, and the folders above them
    unchanged, since a mounted folder can be neither moved nor removed."""
    roots = tuple(f"{root}/" for root in (box.workspace, *box.writable, *box.caches, *box.repository))
    kept = set(_leave_out_approved(box, box.protected))
    leaves = [path for path in kept if kept.isdisjoint(_list_above(path))]
    folders = {above for path in leaves for above in _list_above(path) if above.startswith(roots)}
    return sorted(
        [*((path, False) for path in leaves), *((path, True) for path in folders)], key=lambda one: len(one[0])
    )


def _list_above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _leave_out_approved(box: Box, paths: Iterable[str]) -> Iterator[str]:
    """Iterate over paths without approved ones; a folder that contains one is replaced by its other entries."""
    for path in paths:
        if any(is_inside(path, one) for one in box.approved):
            continue
        if any(is_inside(one, path) for one in box.approved):
            with suppress(OSError):
                yield from _leave_out_approved(box, [entry.path for entry in os.scandir(path)])
        elif not os.path.islink(path):
            yield path


def _open(box: Box, path: str, *, writable: bool) -> None:
    """Restore a path from an emptied place, or make it writable in place."""
    inside = [root for root in (box.workspace, *box.writable) if is_inside(path, root)]
    emptied = [place for place in (*box.covered, *box.hidden) if is_inside(path, place) and _is_emptied(place)]
    if emptied and not any(len(root) > len(max(emptied, key=len)) for root in inside):
        show_again(path, max(emptied, key=len), writable=writable)
    elif writable and not inside and os.path.exists(path):
        kernel.bind(path, path, writable=True)


def _open_whole(box: Box, path: str) -> None:
    """Make a place writable as one mount, with the workspace if that is in it: git renames files from one to the
    other."""
    emptied = [place for place in (*box.covered, *box.hidden) if is_inside(path, place) and _is_emptied(place)]
    source = _find_stashed(REAL, max(emptied, key=len), path) if emptied else path
    if os.path.lexists(source):
        make_mount_point(path, max(emptied, key=len) if emptied else "", directory=os.path.isdir(source))
        try:
            kernel.bind(source, path, writable=True, recursive=False)
        except OSError:  # Another mount inside cannot be left out.
            kernel.bind(source, path, writable=True)


def _is_emptied(place: str) -> bool:
    return os.path.isdir(_find_stashed(SKELETONS, place))


def _hide(box: Box, path: str, places: Places) -> None:
    """Hide paths created after the session's mounts were made, and files named `.env`."""
    shown = (*box.approved, *box.readable)
    place, access = find_access(path, places)
    while access == "empty" and not _is_emptied(place):
        place, access = find_access(os.path.dirname(place), places)
    if access == "empty" or not os.path.lexists(path):
        return
    if any(is_inside(one, path) or is_inside(path, one) for one in shown):
        return
    try:
        real = os.path.realpath(path, strict=True)
        if real not in ("/dev/null", box.workspace) and not stat.S_ISCHR(os.stat(real).st_mode):
            kernel.bind(EMPTY if os.path.isdir(real) else "/dev/null", real)
    except FileNotFoundError:
        return  # The file was removed in the meantime.


def _replace_temporary_places(box: Box) -> None:
    """Mount an empty private directory over each temporary place, and restore the paths a reading command needs."""
    wanted = [path for path, access in map_places(box).items() if access != "empty" or path in box.covered]
    for place in filter(os.path.isdir, TEMPORARY_PLACES):
        if is_inside(place, box.workspace):
            continue
        back = {path for path in wanted if is_inside(path, place) and path != place and os.path.lexists(path)}
        outermost = [path for path in back if not any(path != other and is_inside(path, other) for other in back)]
        trees = [(path, kernel.clone_tree(path)) for path in outermost]
        private = f"{SKELETONS}/private{place.replace('/', '%')}"
        if not os.path.isdir(private):
            os.mkdir(private)
            os.chmod(private, 0o1777)  # noqa: S103 - as /tmp is
        kernel.bind(private, place)
        for path, tree in trees:
            make_mount_point(path, "", directory=stat.S_ISDIR(os.fstat(tree).st_mode))
            kernel.attach_tree(tree, path)
