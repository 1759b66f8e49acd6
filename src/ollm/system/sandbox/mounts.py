"""What one command's mount namespace has on top of the session's: what is read-only, hidden or opened for this run."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from ollm.system.sandbox import kernel
from ollm.system.sandbox.base import SKELETONS, list_scratch_places
from ollm.system.sandbox.box import TEMPORARY_PLACES, Box, is_inside
from ollm.system.sandbox.git_places import find_git_directories
from ollm.system.sandbox.names import list_covered_places, list_kept_places, list_present_secrets

EMPTY = f"{SKELETONS}/empty"
GIT_READ_ONLY = ("config", "config.worktree", "hooks", "info/attributes")


def mount_for_command(box: Box, environment_files: list[str]) -> None:
    """Turn the copy of the session's mounts that this process is in into those of one command."""
    if box.kind == "reading":
        _make_read_only([box.workspace, *box.writable])
        _cover(box)
    else:
        _open_approved_directories(box)
        _protect_git_directories(box)
    _hide(box, environment_files if box.hides_environment_files else [])
    kernel.attach_tree(kernel.clone_tree(EMPTY), SKELETONS)


def _cover(box: Box) -> None:
    """Take the homes and the temporary directories out of sight, but for what a reading command needs of them."""
    kept = [path for path in box.kept if os.path.exists(path)]
    back = [*list_shown_again(box), *kept, *list_kept_places(box.home)]
    for place in list_covered_places(box.home):
        if os.path.isdir(place) and not is_inside(place, box.workspace):
            private = place in TEMPORARY_PLACES
            try:
                _hide_one(place, [path for path in back if is_inside(path, place)], private=private)
            except OSError as error:
                raise OSError(error.errno, error.strerror, place) from error


def list_shown_again(box: Box) -> list[str]:
    """What is to be seen although it may lie in a place that is not."""
    shown = [box.workspace, *box.writable, *box.readable, *box.approved, *find_git_directories(box.workspace)]
    return [path for path in shown if os.path.exists(path)]


def _make_read_only(paths: list[str]) -> None:
    for path in paths:
        if os.path.ismount(path) or os.path.isdir(path):
            with suppress(OSError):
                kernel.set_mount_attributes(path, kernel.MOUNT_RDONLY)


def _open_approved_directories(box: Box) -> None:
    """Make the directories of approved paths outside writable. (The broker lets only the approved names in them pass:
    a file that is not there yet, or that is replaced by a rename, cannot be opened by itself.)"""
    for directory in sorted({find_opened_directory(path) for path in box.approved} - {"/"}):
        if os.path.isdir(directory) and not any(is_inside(directory, root) for root in (box.workspace, *box.writable)):
            tree = kernel.clone_tree(directory)
            kernel.clear_read_only(tree)
            kernel.attach_tree(tree, directory)


def find_opened_directory(approved: str) -> str:
    """The directory that is made writable so that an approved path can be written."""
    return approved if os.path.isdir(approved) else os.path.dirname(approved)


def _protect_git_directories(box: Box) -> None:
    """Make `.git` a mount of its own, which cannot be moved away, and what steers git in it read-only."""
    dot_git = os.path.join(box.workspace, ".git")
    for directory in find_git_directories(box.workspace):
        if directory == dot_git:
            kernel.attach_tree(kernel.clone_tree(directory), directory)
        for name in GIT_READ_ONLY:
            path = os.path.join(directory, name)
            if os.path.exists(path) and not os.path.islink(path) and not box.is_approved(path):
                _mount_over_itself(path, kernel.MOUNT_RDONLY)
    if os.path.isfile(dot_git) and not os.path.islink(dot_git) and not box.is_approved(dot_git):
        _mount_over_itself(dot_git, kernel.MOUNT_RDONLY)


def _mount_over_itself(path: str, attributes: int) -> None:
    tree = kernel.clone_tree(path)
    kernel.set_mount_attributes("", attributes, tree=tree)
    kernel.attach_tree(tree, path)


def _hide(box: Box, environment_files: list[str]) -> None:
    """Put emptiness over secrets, and back in its place what lies in them and may be seen."""
    places = [*list_present_secrets(box.home), *box.hidden, *environment_files]
    present = [place for place in places if os.path.lexists(place) and not box.is_approved(place)]
    if not present:
        return
    back = list_shown_again(box)
    for place in present:
        real = os.path.realpath(place)
        if real == box.workspace:
            continue
        try:
            _hide_one(real, [path for path in back if is_inside(path, real)])
        except FileNotFoundError:
            continue  # it went away meanwhile
        except OSError as error:
            raise OSError(error.errno, error.strerror, real) from error


def _hide_one(place: str, back: list[str], *, private: bool = False) -> None:
    """Put emptiness over one place, and back into it what may be seen; a `private` one can be written. What is
    there instead is made once in a session: a file system in memory for each would cost more than all the rest."""
    if not stat.S_ISDIR(os.stat(place).st_mode):
        kernel.attach_tree(kernel.clone_tree("/dev/null"), place)
        return
    outermost = [path for path in back if not any(path != other and is_inside(path, other) for other in back)]
    trees = [(path, kernel.clone_tree(path)) for path in dict.fromkeys(outermost)]
    kernel.attach_tree(kernel.clone_tree(_find_skeleton(place, private=private) if back or private else EMPTY), place)
    for path, tree in trees:
        _make_mount_point(path, directory=stat.S_ISDIR(os.fstat(tree).st_mode))
    if not private:
        kernel.set_mount_attributes(place, kernel.MOUNT_RDONLY)
    for path, tree in trees:
        kernel.attach_tree(tree, path)


def _find_skeleton(place: str, *, private: bool) -> str:
    skeleton = os.path.join(SKELETONS, place.replace("/", "%"))
    if not os.path.isdir(skeleton):
        os.makedirs(skeleton, exist_ok=True)
        os.chmod(skeleton, 0o1777 if private else 0o555)
    return skeleton


def _make_mount_point(path: str, *, directory: bool) -> None:
    if os.path.lexists(path):
        return
    os.makedirs(path if directory else os.path.dirname(path), exist_ok=True)
    if not directory:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def list_writable_places(box: Box) -> list[str]:
    """The places Landlock lets a process of this box write to."""
    places = [*list_scratch_places("" if box.wrapper else box.home), "/dev"]
    if box.kind == "reading":
        return places
    outside = [path for path in find_git_directories(box.workspace) if not is_inside(path, box.workspace)]
    return [*places, box.workspace, *box.writable, *outside, *map(find_opened_directory, box.approved)]
