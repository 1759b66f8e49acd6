"""Move files that steer tools out of a tree, and say what was moved and how to put it back."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from ollm.system.atomic import make_private_directory
from ollm.system.beneath import LinkFound, make_readable, open_parent_directory
from ollm.system.sandbox.names import is_inside
from ollm.system.terminal_text import make_printable

MAX_SHOWN = 5
PARKED = "parked"  # the folder beside those of the sessions, for operations of git in progress


class TakenFile(NamedTuple):
    """A file or folder that was moved aside: its path, its batch folder, or "" if it stays, and what names it, if its
    name alone does not tell. An operation of git that is `parked` comes back for the next command; a file that was
    `replaced` stays, and of one that was `committed` git has another version."""

    path: str
    root: str
    batch: str
    why: str = ""
    kind: Literal["moved", "parked", "replaced", "committed"] = "moved"


def describe_taken(taken: Iterable[TakenFile]) -> str:
    """Describe the moved files and the command that restores them, or return "" if there are none."""
    import shlex

    batches: dict[tuple[str, str], list[str]] = {}
    every = list(taken)
    files = [file for file in every if file.kind == "moved"]
    for file in files:
        batches.setdefault((file.root, file.batch), []).append(file.path)
    lines = _describe_parked(file for file in every if file.kind == "parked")
    if which := _list_names(file for file in every if file.kind == "replaced"):
        lines.append(
            f"Replaced or renamed while a command ran, which could change them from then on: {which}. "
            "The user should look at them before using them"
        )
    if which := _list_names(file for file in every if file.kind == "committed"):
        lines.append(
            f"Git has versions of files that steer tools, agents or git which the workspace does not have: {which}. "
            "The user should look at them before switching, merging, rebasing or pushing, which puts them to use"
        )
    for (root, batch), paths in batches.items():
        shown = [shlex.quote(make_printable(os.path.relpath(path, root))) for path in paths[:MAX_SHOWN]]
        more = f" and {len(paths) - MAX_SHOWN} more, all in {batch or root}" if len(paths) > MAX_SHOWN else ""
        why = next((f" ({make_printable(file.why)})" for file in files if file.why and file.batch == batch), "")
        which = f"such files steer tools, agents or git: {', '.join(shown)}{more}{why}"
        if batch:
            command = _make_put_back_command(root, batch, paths)
            lines.append(f"Moved aside, because {which}. The user can put them back with: {command}")
        else:
            lines.append(
                f"Could not be moved aside, and {which}. The user should look at them in {root} and delete them"
            )
    return "\n".join(lines)


def _list_names(files: Iterable[TakenFile]) -> str:
    names = set()
    for file in files:
        name = os.path.relpath(file.path, file.root) + ("/…" if file.path.endswith("/") else "")
        names.add(f"{name} in {file.why}" if file.why else name)
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(map(make_printable, sorted(names)[:MAX_SHOWN])) + more


def _describe_parked(files: Iterable[TakenFile]) -> list[str]:
    import shlex

    folders: dict[tuple[str, str], list[str]] = {}
    for file in files:
        above, name = os.path.split(file.path)
        folders.setdefault((above, file.batch), []).append(name)
    return [
        f"A git operation is in progress for commands in the sandbox only, and the user's own git does not see it: "
        f"{', '.join(sorted(names))} in {make_printable(above)}. The user can hand it over with: "
        f"mv {shlex.quote(kept)}/* {shlex.quote(above)}/"
        for (above, kept), names in folders.items()
    ]


def _make_put_back_command(root: str, batch: str, paths: Iterable[str]) -> str:
    """Copy without changing the folders that exist; those without write permission are opened for that time."""
    import shlex

    above = {str(folder) for path in paths for folder in Path(path).parents if is_inside(str(folder), root)}
    modes: dict[str, int] = {}
    for folder in sorted(above):
        with suppress(OSError):
            modes[folder] = stat.S_IMODE(os.lstat(folder).st_mode)
    closed = [folder for folder, mode in modes.items() if mode & 0o700 != 0o700]
    steps = [f"chmod u+rwx {shlex.quote(folder)}" for folder in closed]
    steps.append(f"cp -RP {shlex.quote(batch + '/.')} {shlex.quote(root)}")
    steps += [f"chmod {modes[folder]:o} {shlex.quote(folder)}" for folder in reversed(closed)]
    return " && ".join(steps)


def identify(folder: str) -> list[int]:
    try:
        about = os.stat(folder)
    except OSError:
        return []
    return [about.st_dev, about.st_ino]


def make_batch(folder: Path) -> str:
    """Create a new numbered folder."""
    make_private_directory(folder)
    number = len(os.listdir(folder)) + 1
    while True:
        with suppress(FileExistsError):
            os.mkdir(folder / str(number), 0o700)
            return str(folder / str(number))
        number += 1


def _make_like(folder: str, target: str, root: str) -> None:
    """Make a folder with the mode of another, and those above it up to a root: it may be needed to put files back."""
    if folder != root and not os.path.isdir(target):
        _make_like(os.path.dirname(folder), os.path.dirname(target), root)
        os.mkdir(target)
        os.chmod(target, stat.S_IMODE(os.lstat(folder).st_mode) & 0o777 | 0o700)


def move_aside(path: str, root: str, batch: str, *, place: str = "") -> bool:
    """Move a file or folder out of the tree, to its own path in a batch or to a `place` in it. Its parent is held open
    and reached without links, since a running program may swap it. Across file systems the file is first renamed, then
    copied."""
    target = os.path.join(batch, place or os.path.relpath(path, root))
    name = os.path.basename(path)
    try:
        if not place:
            _make_like(os.path.dirname(path), os.path.dirname(target), root)
        with open_parent_directory(Path(root), Path(path)) as above:
            mode = os.lstat(name, dir_fd=above).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                os.unlink(name, dir_fd=above)  # a socket or a pipe
                return True
            try:
                os.rename(name, target, src_dir_fd=above)
            except OSError:
                hidden = f".taken-{os.getpid()}-{time.monotonic_ns()}"
                os.rename(name, hidden, src_dir_fd=above, dst_dir_fd=above)
                place = os.path.join(f"/proc/self/fd/{above}", hidden)
                make_readable(place)
                import shutil

                shutil.move(place, target)
    except (OSError, LinkFound):
        return False
    return True
