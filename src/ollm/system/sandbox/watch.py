"""Finds the files that steer tools in the folders a sandbox may write, and moves aside those that a command creates.

Existing ones are protected by mounts or, at level `landlock`, by the broker; a link, which no mount can protect, is
restored. A new one is found after the command by the ctime of every folder (`FolderMemory`), which no program can
forge, and moved to `~/.ollm/taken/{session}/{number}/` under its own path: it is never deleted, and one command
restores it. Background jobs and servers are checked at the end of every step. A record on disk lists the earlier state,
so that after a crash the next start can do the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ollm.domain.errors import StartError
from ollm.system.beneath import FolderKeys
from ollm.system.folders import FolderMemory, FolderNames
from ollm.system.sandbox.git_settings import explain_outside_use
from ollm.system.sandbox.hard_links import HardLinks
from ollm.system.sandbox.names import (
    GIT_PINS,
    MAX_LINKS,
    OWN_PLACES,
    find_steering_name,
    follow_dot_git,
    has_other_names,
    is_git_folder,
    is_in_any,
    is_inside,
    is_own_state,
    leave_out_own_state,
    list_repositories,
    read_target,
    trace_path,
)
from ollm.system.sandbox.outside_links import are_settled, get_state, remember
from ollm.system.sandbox.taken import TakenFile, describe_taken, identify, make_batch, move_aside
from ollm.system.sandbox.tree_names import TreeNames

if TYPE_CHECKING:
    from ollm.system.sandbox.anchors import Anchors
    from ollm.system.sandbox.git_commits import Commits
    from ollm.system.sandbox.parking import Parking
    from ollm.system.sandbox.placeholders import Placeholders
    from ollm.system.sandbox.records import Record

LINK_DEPTH = 2
GIT_POINTERS = (".git", "gitdir", "commondir")
FRESH_SECONDS = 2.0  # that a look serves questions about paths
FILE_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)  # by which files are dated


class Ending(Protocol):
    """A sandboxed process; `gone` when all its processes have ended."""

    @property
    def gone(self) -> bool: ...

    def call_when_gone(self, call: Callable[[], None]) -> None: ...


class SteeringWatch:
    """Watches the folders that working boxes may write. `find_folder` returns the session's folder for taken files;
    `records` is where the record is kept. Protected files are mounted, or known by their names alone: then a command
    can change one that somebody renames meanwhile. `unsearched` are other folders with what commands made."""

    def __init__(
        self,
        roots: Iterable[str],
        executed: Iterable[str] = (),
        *,
        find_folder: Callable[[], Path],
        records: Path | None = None,
        folders: FolderMemory | None = None,
        report: Callable[[str], None] = lambda _: None,
        is_mounted: Callable[[], bool] = lambda: True,
        unsearched: Iterable[str] = (),
    ) -> None:
        self._roots = tuple(dict.fromkeys(roots))
        self._own_folders = [os.path.join(root, ".ollm") for root in self._roots]
        self._folders = FolderMemory() if folders is None else folders
        self._keys = FolderKeys()
        self._executed = tuple(executed)
        kept = OWN_PLACES.intersection(self._executed)
        self._links = HardLinks(self._roots, kept, unlock=self._unlock, report=report)
        self._report = report
        self._is_mounted = is_mounted
        self._unsearched = tuple(unsearched)
        self._names = TreeNames(self._roots, self._folders, self._unlock)
        self._anchored: list[str] = []  # before the command
        self._find_folder = find_folder
        self._records = records
        self._known: dict[str, str | None] = {}  # path: the target of a link
        self._births: dict[str, str] = {}  # of those that are no links: a mount is lost with the file that it is on
        self._allowed: set[str] = set()
        self._repositories: dict[str, bool] = {}
        self._operations: dict[str, str] = {}  # of git, in progress before the command: a digest
        self._indexes: dict[str, list[int] | None] = {}  # of repositories before the command
        self._used: list[str] = []  # repositories of the worktrees that were there before the command
        self._made: set[str] = set()  # pointers of worktrees that commands of this session made, and may remove
        self._running: list[Ending] = []
        self._open = self._in_step = False
        self._checked: object = None  # the state of the folders in which all that steers tools was known
        self.since = 0.0  # when the first of the commands that run now began
        self._untold: list[TakenFile] = []
        self._single: set[str] = set()  # known to have no other name

    @cached_property
    def _parking(self) -> Parking:
        from ollm.system.sandbox.parking import Parking  # a turn that only edits does not need it

        return Parking(self._roots, self._find_folder, self._unlock)

    @cached_property
    def _record(self) -> Record | None:
        from ollm.system.sandbox.records import Record

        return None if self._records is None else Record(self._records)

    @cached_property
    def _placeholders(self) -> Placeholders:
        from ollm.system.sandbox.placeholders import Placeholders

        return Placeholders()

    @cached_property
    def _commits(self) -> Commits:
        from ollm.system.sandbox.git_commits import Commits

        return Commits(root for root in self._roots if os.path.basename(root) != ".git")

    @cached_property
    def _read_births(self) -> Callable[[Iterable[str]], dict[str, str]]:
        from ollm.system.sandbox.kernel import read_births

        return partial(read_births, changes=not self._is_mounted())

    @cached_property
    def _anchors(self) -> Anchors:
        from ollm.system.sandbox.anchors import Anchors

        return Anchors(self._roots, self._executed, self._names)

    def find_environment_files(self) -> list[str]:
        with self._keys:
            self._folders.look()
            self._names.find_steering()
        return self._names.environment

    def _unlock(self, folder: str, rights: int = 0o500) -> None:
        """Add permissions to a folder that we cannot read or, with more `rights`, change: a command may leave one."""
        wanted = os.R_OK | os.X_OK | (os.W_OK if rights & 0o200 else 0)
        if not os.access(folder, wanted) and (root := self._find_root(folder)):
            self._keys.unlock(root, folder, rights)

    def _find_root(self, path: str) -> str | None:
        return next((root for root in self._roots if is_inside(path, root)), None)

    def begin(self, approved: Iterable[str] = (), *, shared: bool = False) -> list[str]:
        """Prepare for a command and return the paths to protect. Paths it was allowed to create are left alone. With
        `shared`, a scan made for this same command is enough."""
        self._in_step = True
        with self._keys:
            return self._begin(approved, shared=shared)

    def _begin(self, approved: Iterable[str], *, shared: bool) -> list[str]:
        if self._open:
            self._untold += self._look()
        elif not (shared and self._folders.take_offer("before")):
            self._folders.look()
        self.allow(approved)
        if outside := [path for path in self._allowed if not self._find_root(path)]:
            self._placeholders.make(outside)
        if not self._open:
            self.since = time.clock_gettime(FILE_CLOCK)
            unseparated = self._separate_files()
            self._anchors.read_settings()
            found = self._find_steering(None)
            self._known = {path: target for path, target in found.items() if path not in self._made}
            self._operations = self._parking.read(self._names.operations)
            self._indexes = self._read_indexes()
            self._repositories = self._list_repositories()
            pointers = [path for path in self._known if os.path.basename(path) == ".git"]
            self._used = sorted({follow_dot_git(path)[1] for path in pointers})
            self._separate_names()
            self._known |= dict.fromkeys((*unseparated, *self._names.find_foreign_worktrees()))
            self._forget_what_others_made()
            self._births = self._read_births(path for path, target in self._known.items() if target is None)
            self._known = {path: to for path, to in self._known.items() if path in self._births or read_target(path)}
            self._commits.begin(git for git in self._names.repositories if is_git_folder(git))
            self._checked = None if found.keys() - self._known.keys() else self._folders.state
        self._open = True
        self._write_record()
        self._untold += self._parking.put_back(self._names.git_directories)
        return [path for path, target in self._known.items() if target is None]

    def keeps_operations(self) -> bool:
        """Return True if operations of git are kept for commands here: those that only read should see them too."""
        with self._keys:
            self._folders.look()
            self._names.find_steering()
        return bool(self._parking.describe(self._names.git_directories))

    def _read_indexes(self) -> dict[str, list[int] | None]:
        listed = ((git, self._folders.read(git).files) for git in self._names.git_directories)
        files = ((git, name) for git, names in listed for name in names if name.startswith(("index", "sharedindex.")))
        return {path: get_state(path) for path in (os.path.join(*one) for one in files)}

    def _separate_files(self) -> list[str]:
        """Separate files from their names outside. Those that cannot be are protected."""
        self._names.find_steering()
        copied, shared = self._links.separate(self._names.packages)
        self._names.add_repositories(self._links.repositories)
        if copied:
            self._folders.look()
        return shared

    def _separate_names(self) -> None:
        """Replace files that steer tools and have another name by a copy: a command could change them by that name."""
        held = {path for path, target in self._known.items() if target is None and path not in OWN_PLACES}
        linked = filter(has_other_names, self._walk_below(held - self._single, attrgetter("files")))
        if failed := self._links.copy_files(linked):
            raise StartError(f"{failed[0]} has another name and cannot be copied", "files")
        self._single = held

    def list_pins(self) -> list[str]:
        """List the folders that make another one a repository: a command changes what is in them, but cannot move or
        remove them, so that the repository is still known at the next command."""
        gits = [git for one in self._names.repositories for git in list_repositories(one) if not os.path.islink(one)]
        folders = [os.path.join(git, name) for git in gits if os.path.basename(git) != ".git" for name in GIT_PINS]
        return [path for path in folders if os.path.isdir(path) and not os.path.islink(path)]

    def find_link_to(self, path: str) -> str | None:
        """Return a link that steers tools and leads to a file, or None."""
        with self._keys:
            self._folders.look(time.monotonic() - FRESH_SECONDS)
            links = self._find_links(self._names.find_steering())
            return next((link for link in links if is_in_any(path, trace_path(link))), None)

    def attach(self, process: Ending) -> None:
        """Watch the running command until all its processes have ended."""
        self._running = [*(one for one in self._running if not one.gone), process]
        process.call_when_gone(self._look_between_steps)

    def _look_between_steps(self) -> None:
        """Check when a background command ends and no step goes on, whose end brings the check."""
        if self._open and not self._in_step:
            self._untold = self.look()
            self._tell([file for file in self._untold if file.kind in ("moved", "parked")])  # others have been told

    def allow(self, paths: Iterable[str]) -> None:
        """Exempt paths that a person approved for one of our tools."""
        self._allowed.update(paths)

    def look(self) -> list[TakenFile]:
        """Move aside files created since the last check. The result includes earlier ones not yet reported."""
        self._in_step = False
        with self._keys:
            taken, self._untold = [*self._untold, *self._look()], []
        return taken

    def close(self) -> list[TakenFile]:
        """Make the last check of a session."""
        taken = self.look()
        if self.since and (said := self._parking.describe(self._names.git_directories)):
            self._report(said)
        if self.since and self._record is not None:
            self._record.remove()
        return taken

    def _look(self) -> list[TakenFile]:
        if not self._open:
            return []
        self._open = any(not process.gone for process in self._running)
        if not self._open and "_placeholders" in self.__dict__:
            self._placeholders.remove()
        taken: list[TakenFile] = []
        for _ in range(MAX_LINKS):  # what lies beyond a link is looked at once that link is back
            more, restored = self._judge()
            taken += more
            if not restored and not more:
                break
        operations = [path for path in self._names.operations if not self._is_allowed(path)]
        parked, left = self._parking.park(operations, self._operations)
        self._tell([file for file in parked if file.path in self._operations])  # the user began it
        taken += [*parked, *self._take(left), *self._tell(self._commits.look(self._steers))]
        if not self._open and self._record is not None:
            self._record.rest()
        return taken

    def _judge(self) -> tuple[list[TakenFile], bool]:
        """Move aside what is new and restore changed links. Return what was moved, and True if a link was restored."""
        self._folders.look()
        self._names.find_steering()
        linked = self._links.look(self._names.packages)
        self._names.add_repositories(self._links.repositories)
        harmful = self._find_harmful_indexes()
        if self._checked is self._folders.state and not linked and not harmful:
            self._folders.offered = "after"
            return [], False
        found = self._find_steering(self._known)
        changed = [path for path, target in self._known.items() if target is not None and found.get(path) != target]
        changed = [path for path in changed if not self._is_allowed(path)]
        new = [path for path in found if path not in self._known and not self._is_expected(path)]
        new = [each for path in self._spare_folders(new) for each in leave_out_own_state(path, self._own_folders)]
        new += harmful
        new += [path for path in changed if os.path.lexists(path)]
        taken = self._take([path for path in dict.fromkeys(new) if not self._is_allowed(path)])
        taken += self._find_replaced(found)
        for path in changed:
            taken += self._put_back(path)
        if not taken and not changed:
            self._folders.offered = "after"
        self._known = self._known | {path: target for path, target in found.items() if self._is_allowed(path)}
        self._checked = None if taken or changed or found.keys() - self._known.keys() else self._folders.state
        return taken, any(read_target(path) == self._known[path] for path in changed)

    def _find_steering(self, known: Mapping[str, str | None] | None) -> dict[str, str | None]:
        """Find the files that steer tools, and what they and the anchors lead to; each with its target if it is a link.
        Where a link is not as it was `known`, the way beyond it is not followed: that link is put back or taken."""
        found = dict.fromkeys(self._names.find_steering())
        anchors, read = self._anchors.list_paths(), cache(read_target)  # most ways have the same beginning
        self._anchored = anchors if known is None else self._anchored
        waiting = [*anchors, *self._find_links(found if known is None else known)]
        while waiting:
            traced = {path for one in waiting for path in self._trace(one, known, read) if self._find_root(path)}
            traced -= {path for path in traced if any(is_inside(root, path) for root in self._roots)}
            new = [path for path in traced if path not in found]
            found |= dict.fromkeys(new)
            waiting = [*self._find_links(new)] if known is None else []
        found |= dict.fromkeys(self._names.git_links)
        every = self._expand(found) if self._allowed else found
        kept = (path for path in every if os.path.lexists(path) and not is_own_state(path, self._own_folders))
        return {path: read_target(path) for path in kept}

    def _trace(
        self, anchor: str, known: Mapping[str, str | None] | None, read: Callable[[str], str | None]
    ) -> Iterator[str]:
        for path in trace_path(anchor, read):
            yield path
            if known is not None and self._find_root(path) and known.get(path) != read(path):
                return

    def _find_links(self, paths: Iterable[str]) -> Iterator[str]:
        return filter(os.path.islink, self._walk_below(paths, attrgetter("others")))

    def _walk_below(self, paths: Iterable[str], choose: Callable[[FolderNames], list[str]]) -> Iterator[str]:
        """Iterate over paths and the names chosen in the folders among them, a few levels down."""
        waiting = [(path, 0) for path in paths]
        for path, depth in waiting:  # grows
            yield path
            if depth < LINK_DEPTH and os.path.isdir(path) and not os.path.islink(path):
                names = self._folders.read(path)
                yield from (os.path.join(path, name) for name in choose(names))
                waiting += [(os.path.join(path, name), depth + 1) for name in names.folders]

    def _expand(self, paths: Iterable[str]) -> Iterator[str]:
        """Iterate over paths and, for folders that a command may have written to, all their content."""
        for path in paths:
            yield path
            opened = any(is_inside(one, path) for one in self._allowed)
            if opened and not os.path.islink(path):
                for folder, names, files in os.walk(path):
                    yield from (os.path.join(folder, name) for name in (*names, *files))

    def _list_repositories(self) -> dict[str, bool]:
        """Return the repositories with unusual names, and for each one if it has a HEAD, without which it is none."""
        others = (git for git in self._names.repositories if os.path.basename(git) != ".git")
        return {git: os.path.lexists(os.path.join(git, "HEAD")) for git in others}

    def _spare_folders(self, paths: list[str]) -> list[str]:
        """Leave out the parts of a folder that has become a repository, which may have been there before. If it starts
        a program, its HEAD is taken instead."""
        now, before = self._list_repositories(), self._repositories
        made = [git for git, whole in now.items() if whole and not before.get(git)]
        new = {*made, *(now.keys() - before.keys())}
        parts = {part for git in new for part in self._names.git_parts[git]}
        harmful = [git for git in made if not all(map(self._is_expected, self._names.git_parts[git]))]
        return [*(path for path in paths if path not in parts), *(os.path.join(git, "HEAD") for git in harmful)]

    def _is_expected(self, path: str) -> bool:
        """Return True for what git writes for a new repository or worktree. A pointer may lead to a repository that is
        always watched, or that was in use before the command."""
        from ollm.system.sandbox.git_parts import Places, is_expected  # a turn that only edits does not need it

        watched = filter(is_git_folder, self._names.repositories)
        if not is_expected(path, Places(self._roots, self._unsearched, {*watched, *self._used})):
            return False
        if os.path.basename(path) in GIT_POINTERS:
            self._made.add(path)
        return True

    def _find_replaced(self, found: Iterable[str]) -> list[TakenFile]:
        """Find the files in place of protected ones. Somebody outside put them there while a command ran, which could
        change them from then on, or had them open before. They stay, since they are the user's, and are told once."""
        births = self._read_births(path for path in found if path in self._births)
        new = {path: birth for path, birth in births.items() if birth != self._births[path]}
        self._births |= new
        told = [path for path in new if not self._is_allowed(path)]
        return self._tell([TakenFile(path, self._find_root(path) or "", "", kind="replaced") for path in told])

    def _tell(self, files: list[TakenFile]) -> list[TakenFile]:
        if files:
            self._report(describe_taken(files))
        return files

    def _steers(self, path: str) -> bool:
        """Return True for a path that steers tools, or that would take the place of a folder with one."""
        below = path.removeprefix(self._find_root(path) or "")
        near = is_in_any(path, self._known) or any(is_inside(one, path) for one in self._known)
        return (near or find_steering_name(below) is not None) and not self._is_allowed(path)

    def _find_harmful_indexes(self) -> list[str]:
        """Find the indexes that a command changed and that lead git out of the worktree."""
        now = self._read_indexes()
        if now == self._indexes and are_settled(now.values(), self.since):
            return []
        from ollm.system.sandbox.git_parts import has_harmless_index

        gits = [git for git in self._names.git_directories if os.path.lexists(os.path.join(git, "index"))]
        return [os.path.join(git, "index") for git in gits if not remember(has_harmless_index, git)]

    def _is_allowed(self, path: str) -> bool:
        return is_in_any(path, self._allowed)

    def _put_back(self, path: str) -> list[TakenFile]:
        """Restore a link. A file or link that replaced a parent folder is moved aside first."""
        root = self._find_root(path) or ""
        parts = os.path.relpath(path, root).split("/")
        above = [os.path.join(root, *parts[:count]) for count in range(1, len(parts))]
        taken = self._take(
            [one for one in above if os.path.islink(one) or (os.path.lexists(one) != os.path.isdir(one))]
        )
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(self._known[path] or "", path)
        return taken

    def _take(self, paths: list[str]) -> list[TakenFile]:
        taken: list[TakenFile] = []
        unnamed = next((path for path in paths if find_steering_name(path) is None), "")
        for root in self._roots:
            mine = [path for path in paths if is_inside(path, root) and path != root]
            mine = [path for path in mine if not any(path != one and is_inside(path, one) for one in mine)]
            if mine:
                batch = make_batch(self._find_folder())
                for path in mine:
                    self._unlock(os.path.dirname(path), 0o700)
                    if os.path.isdir(path) and not os.path.islink(path):
                        self._unlock(path, 0o700)  # without the right to write to it a folder gets no other parent
                    why = (path == unnamed and explain_outside_use(path, root)) or ""
                    taken.append(TakenFile(path, root, batch if move_aside(path, root, batch) else "", why))
                paths = [path for path in paths if path not in mine]
        return taken

    def _forget_what_others_made(self) -> None:
        """Take for new what commands of other sessions made that run now: those sessions will move it aside, and then
        a command of ours could make it again."""
        for other in () if self._record is None else self._record.read_others():
            roots, known, whole = other["roots"], other["known"], other["repositories"]
            left = {path for path in self._known if not is_in_any(path, roots) or is_in_any(path, other["allowed"])}
            self._known = {path: to for path, to in self._known.items() if path in left or known.get(path, "") == to}
            self._repositories = {
                git: has_head and (not is_in_any(git, roots) or whole.get(git, False))
                for git, has_head in self._repositories.items()
            }

    def _write_record(self) -> None:
        """Write the record before the command starts."""
        if self._record is not None:
            self._record.write(
                {
                    "roots": self._roots,
                    "places": [identify(root) for root in self._roots],
                    "executed": self._anchored,
                    "folder": str(self._find_folder()),
                    "known": self._known,
                    "repositories": self._repositories,
                    "operations": self._operations,
                    "used": self._used,
                    "allowed": sorted(self._allowed),
                }
            )

    def resume(self, record: dict[str, Any]) -> list[TakenFile]:
        """Perform the check that the process which wrote this record would have made."""
        self._known, self._repositories = dict(record["known"]), dict(record.get("repositories", {}))
        self._operations = dict(record.get("operations", {}))
        self._used = [*record.get("used", ())]
        self._allowed = set(record["allowed"])
        self._open = True
        return self.look()
