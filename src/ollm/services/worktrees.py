"""Git worktrees: folders in which a session, a task or an attempt works apart from the person's files.

`Worktrees(workspace, …)` belongs to one repository. There are two kinds of worktrees:

- `create(name)`: on a branch of that name, from the last commit. It stays until `finish`.
- `create_copy()`: without a branch, from the workspace's files as they are now, uncommitted ones included. Read its
  changes with `diff` or `read_patch`, bring them into the workspace with `apply` or `apply_patch`, and always end with
  `remove`. Copies of a process that was killed are removed by the next `create_copy`; their files stay reachable below
  `refs/ollm/dropped`.

The workspace may be a folder inside the repository; `locate` returns the same folder in a worktree. All methods block:
call them in a thread (`asyncio.to_thread`). They raise OllmError with git's reason. Git runs no hook and no program
that the repository names. Setup commands run in a sandbox, so `app` runs them, not this module.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ollm.config.settings import WorktreeSettings
from ollm.domain.clock import make_id
from ollm.domain.errors import OllmError, UsageError
from ollm.domain.struct import Data
from ollm.domain.text import format_names
from ollm.store.workspace_place import find_repository, get_worktree_directory
from ollm.system.atomic import lock_directory
from ollm.system.git_commands import GitCommands
from ollm.system.locks import is_process_alive
from ollm.system.path_names import find_git_directories, find_steering_name, is_environment_file, is_inside

MAX_NAMED_FILES = 10
DIFF = ("diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--find-renames")  # No setting of `git diff` applies.
UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
CREATED = "refs/ollm/created"
DROPPED = "refs/ollm/dropped"  # Dropped work stays reachable here.
Ending = Literal["merge", "drop"]
_COPY = re.compile(r"\.copy-(\d+)-\w+")


class Worktree(Data, frozen=True):
    """A worktree. `base` is the commit that its changes are compared with; `branch` is "" for a copy."""

    name: str
    path: Path
    base: str
    branch: str = ""


class Worktrees(GitCommands):
    """The worktrees of a repository. `workspace` may lie in one of them: the others are still found."""

    def __init__(self, workspace: Path, settings: WorktreeSettings, environment: Mapping[str, str]) -> None:
        super().__init__(workspace, environment)
        self._settings = settings
        self.here, self.top, self.prefix = self._find_tops()

    def _find_tops(self) -> tuple[Path, Path, str]:
        """Return the top of the worktree around the workspace and of the main one, and the path below both."""
        folder = Path(os.path.realpath(self._folder))
        here = find_repository(folder)
        if here is None:
            action = "Worktrees need one: `git init`, then commit your files."
            raise UsageError(f"{folder} is not in a git repository.", action=action)
        found = self._git(here, "rev-parse", "--show-toplevel").removesuffix("\n")
        if found != str(here) or not find_git_directories(
            str(here)
        ):  # Settings of a foreign project may name your home.
            raise UsageError(f"The files of the repository in {here} are elsewhere, or its `.git` is.")
        first = next(iter(self._list_paths(here)), here)
        is_ours = here.is_relative_to(get_worktree_directory(first, self._settings.dir))
        return here, first if is_ours else here, "" if folder == here else str(folder.relative_to(here))

    @property
    def directory(self) -> Path:
        return get_worktree_directory(self.top, self._settings.dir)

    @property
    def main_workspace(self) -> Path:
        """The workspace outside of all worktrees of this directory."""
        return self.top / self.prefix

    def locate(self, worktree: Worktree) -> Path:
        """Return the folder in a worktree that stands for the workspace."""
        return worktree.path / self.prefix

    def find_around(self, folder: Path) -> Worktree | None:
        return next((one for one in self.list_named() if is_inside(str(folder), str(one.path))), None)

    def list_named(self) -> list[Worktree]:
        """List the worktrees with a branch of their own, by name."""
        paths = [path for path in self._list_paths(self.top) if is_inside(str(path), str(self.directory))]
        return sorted(
            (self._describe(path) for path in paths if not _COPY.fullmatch(path.name)), key=lambda one: one.name
        )

    def _list_paths(self, top: Path) -> list[Path]:
        lines = self._git(top, "worktree", "list", "--porcelain").splitlines()
        paths = [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]
        bare = lines[2:3] == ["bare"] or lines[1:2] == ["bare"]
        return [path for path in paths[bare:] if path.is_dir()]

    def _describe(self, path: Path) -> Worktree:
        branch = self._git(path, "symbolic-ref", "--quiet", "--short", "HEAD", check=False).strip()
        base = self._git(path, "merge-base", "HEAD", self._read_head(), check=False).strip()
        return Worktree(name=str(path.relative_to(self.directory)), path=path, base=base, branch=branch)

    def _read_head(self, top: Path | None = None) -> str:
        """Return the last commit of the main or another worktree, or "" if there is none."""
        return self._find_object(top or self.top, "HEAD")

    def get(self, name: str) -> Worktree:
        found = {one.name: one for one in self.list_named()}
        if name not in found:
            have = ", ".join(found) or "none"
            raise UsageError(f"There is no worktree {name}.", action=f"Available: {have}.")
        return found[name]

    def create(self, name: str, more: Iterable[str] = ()) -> tuple[Worktree, bool]:
        """Return the worktree of this name, and True if its setup is over (`mark_ready`). A branch of that name is used
        if there is one. Until then it gets copies of the files in `worktree.copy` and of `more`, relative to the
        workspace."""
        if not name or self._git(self.top, "check-ref-format", "--branch", name, check=False).strip() != name:
            raise UsageError(f"{name!r} is not a valid branch name.", action="Use letters, digits, - and /.")
        with lock_directory(self.top):
            made = next((one for one in self.list_named() if one.name == name), None)
            if made and self._get_mark(made.path).exists():
                return made, True
            if not self._read_head():
                raise UsageError(f"{self.top} has no commit yet.", action="Commit your files first.")
            made = made or self._add(name)
        self._copy_files(self.main_workspace, made.path, more)
        return made, False

    def mark_ready(self, worktree: Worktree) -> None:
        """Mark the end of the setup, in git's folder for the worktree."""
        self._get_mark(worktree.path).touch()

    def _get_mark(self, path: Path) -> Path:
        return path / self._git(path, "rev-parse", "--git-path", "ollm-ready").rstrip("\n")

    def _list_new(self, path: Path, names: list[str]) -> list[str]:
        """Return those names that were written after the setup, unless the workspace has the same files."""
        mark = self._get_mark(path)
        ready = mark.stat().st_mtime_ns if mark.exists() else 0
        places = {name: [one for one in (path / name, path / name / ".git") if os.path.lexists(one)] for name in names}
        late = [name for name in names if any(one.lstat().st_ctime_ns > ready for one in places[name])]
        return [name for name in late if not self._is_same(path, name)]

    def _add(self, name: str) -> Worktree:
        path = self.directory / name
        if not (existed := os.path.lexists(path)):
            self.remove(path)  # Git may still know a worktree without a folder.
        known = self._find_object(self.top, f"refs/heads/{name}")
        words = (str(path), name) if known else ("-b", name, str(path), "HEAD")
        try:
            self._git(self.top, "worktree", "add", "--quiet", *words)
            made = self._describe(path)
        except OllmError:
            if not existed:
                self.remove(path)
            if not known:
                self._git(self.top, "update-ref", "-d", f"refs/heads/{name}", check=False)
            raise
        if not known:
            self._git(self.top, "update-ref", f"{CREATED}/{name}", "HEAD")
        return made

    def take_snapshot(self) -> str:
        """Write the files as they are now into a commit that no branch contains, and return its id."""
        tree, head = self._write_tree(self.here), self._read_head(self.here)
        parent = ("-p", head) if head else ()
        return self._git(self.top, "commit-tree", tree, *parent, "-m", "Files before a copy", identity=True).strip()

    def create_copy(self, base: str = "", more: Iterable[str] = ()) -> Worktree:
        """Create a worktree with the files as they are now, or as in a snapshot. Its git shows the same commits and
        the same uncommitted changes as the workspace."""
        with lock_directory(self.top):
            self._remove_left_copies()
        base = base or self.take_snapshot()
        path = self.directory / f".copy-{os.getpid()}-{make_id()[:8]}"
        try:
            self._git(self.top, "worktree", "add", "--quiet", "--detach", str(path), base)
            if parent := self._find_object(self.top, f"{base}^"):
                self._git(path, "reset", "--quiet", parent)
            self._copy_files(self.here / self.prefix, path, more)
        except BaseException:
            self.remove(path)
            raise
        return Worktree(name=path.name, path=path, base=base)

    def _remove_left_copies(self) -> None:
        for path in self._list_paths(self.top):
            found = _COPY.fullmatch(path.name)
            if found and path.parent == self.directory and not is_process_alive(int(found[1])):
                with suppress(OllmError):  # The worktree may never have been complete.
                    commit = self.save(Worktree(name=path.name, path=path, base=""), "Files of a stopped process")
                    self._git(self.top, "update-ref", f"{DROPPED}/{path.name.strip('.')}", commit)
                with suppress(OllmError, OSError):
                    self.rescue(path)
                self.remove(path)

    def rescue(self, path: Path) -> str:
        """Move what is no part of a copy's changes out of it, and return a sentence about that."""
        linked = [one for one in self._list_links(path) if (path / one / ".git").exists()]
        names = self._list_new(path, linked + [one for one in self._list_untracked(path) if _is_left_out(one)])
        place = self.directory / path.name.replace(".copy-", "left-")
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).rename(place / name)
        return f"{_name_files(names)} (.env files and repositories) were not applied: see {place}" if names else ""

    def _copy_files(self, workspace: Path, path: Path, more: Iterable[str]) -> None:
        """Create the workspace's folder, and copy files that git does not bring. Those that are there stay."""
        (path / self.prefix).mkdir(parents=True, exist_ok=True)
        named = {found for glob in self._settings.copy for found in workspace.glob(glob.strip("/"))}
        for source in sorted((*named, *(workspace / name for name in more))):
            target = path / self.prefix / source.relative_to(workspace)
            inside = is_inside(os.path.realpath(source.parent), str(workspace.resolve()))
            if not inside or os.path.lexists(target) or ".git" in source.parts:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.{os.getpid()}.part")
            try:
                if source.is_dir() and not source.is_symlink():
                    shutil.copytree(source, part, symlinks=True)
                else:
                    shutil.copy2(source, part, follow_symlinks=False)
                part.rename(target)
            except OSError as error:
                raise OllmError(f"{source} could not be copied into the worktree: {error}") from error

    def diff(self, worktree: Worktree, *options: str, tree: str = "") -> str:
        """Return the changes since the base, commits and new files included, or those up to a tree."""
        return self._read_diff(worktree, *options, tree=tree).decode(errors="replace")

    def _read_diff(self, worktree: Worktree, *options: str, tree: str = "") -> bytes:
        return self._run(worktree.path, *DIFF, *options, worktree.base, tree or self._write_tree(worktree.path))

    def _write_tree(self, path: Path) -> str:
        """Write the files of a worktree into the object store and return the tree. Its index stays unchanged, and new
        `.env` files stay out."""
        with TemporaryDirectory() as folder:
            index = f"{folder}/index"
            with suppress(OSError):  # An index saves git from reading every file.
                shutil.copy2(path / self._git(path, "rev-parse", "--git-path", "index").rstrip("\n"), index)
            self._stage(path, {"GIT_INDEX_FILE": index})
            return self._git(path, "write-tree", variables={"GIT_INDEX_FILE": index}).strip()

    def _stage(self, path: Path, variables: Mapping[str, str] | None = None) -> None:
        """Stage all files but new `.env` files and repositories, and those copied here from the main workspace."""
        others = self._list_untracked(path, variables)
        is_named = path != self.top and not _COPY.fullmatch(path.name)  # A copy's base contains all untracked files.
        left = [one for one in others if _is_left_out(one) or (is_named and self._is_same(path, one))]
        names = "\0".join([":/", *(f":(top,exclude,literal){name.rstrip('/')}" for name in left)])
        words = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
        self._run(path, *words, stdin=os.fsencode(names), variables=variables)

    def _list_untracked(self, path: Path, variables: Mapping[str, str] | None = None) -> list[str]:
        return self._list_names(path, "ls-files", "--others", "--exclude-standard", "-z", variables=variables)

    def _is_same(self, path: Path, name: str) -> bool:
        """Return True if the workspace that a worktree or copy was made of has the same file."""
        here, there = path / name, (self.here if _COPY.fullmatch(path.name) else self.top) / name
        return here.is_file() and there.is_file() and filecmp.cmp(here, there, shallow=False)

    def read_patch(self, worktree: Worktree, tree: str = "") -> bytes:
        """Return all changes since the base, or those up to a tree, for `apply_patch`."""
        return self._read_diff(worktree, "--binary", "--full-index", tree=tree)

    def apply_patch(self, patch: bytes) -> None:
        """Bring a patch into the files of the workspace, all or nothing. Nothing is staged. Raises OllmError if the
        files changed there in the meantime."""
        if patch:
            self._run(self.here, "apply", "--whitespace=nowarn", "-", stdin=patch)

    def apply(self, worktree: Worktree) -> None:
        """Bring the changes of a copy into the files of the workspace."""
        self.apply_patch(self.read_patch(worktree))

    def list_changes(self, worktree: Worktree) -> list[str]:
        """List the files that differ from the base, relative to the top of the repository."""
        return self.diff(worktree, "--name-only", "--no-renames", "-z").split("\0")[:-1]

    def commit_changes(self, worktree: Worktree, message: str) -> str:
        """Commit the changes of a copy on top of its base, outside of all branches, and return the commit."""
        words = ("commit-tree", self._write_tree(worktree.path), "-p", worktree.base, "-m", message)
        return self._git(self.top, *words, identity=True).strip()

    def keep(self, worktree: Worktree, message: str) -> str:
        """Keep the changes of a copy on a new branch, and return its name."""
        branch = f"ollm/{worktree.name.removeprefix('.copy-')}"
        self._git(self.top, "branch", branch, self.commit_changes(worktree, message))
        return branch

    def save(self, worktree: Worktree, message: str) -> str:
        """Commit what is not committed in a worktree. Returns its last commit."""
        if self._git(worktree.path, "ls-files", "--unmerged"):
            raise OllmError(f"{worktree.path} has conflicts that are not resolved.", action="Resolve them first.")
        self._stage(worktree.path)
        if self._git(worktree.path, "diff-index", "--cached", "--name-only", "HEAD"):
            self._git(worktree.path, "commit", "--quiet", "--no-verify", "-m", message, identity=True)
        return self._git(worktree.path, "rev-parse", "HEAD").strip()

    def finish(self, worktree: Worktree, ending: Ending, message: str) -> str:
        """Save the work of a worktree, merge it into the branch of the main workspace or keep it reachable, and remove
        the worktree and its branch. Returns a sentence. If that is not possible everything stays as it is, apart from a
        commit in the worktree; so does a branch that was there before."""
        if ending == "merge":
            for top in (self.top, worktree.path):
                self._refuse_unfinished(top)
        commit = self.save(worktree, message)
        told = self._merge(worktree, commit) if ending == "merge" else self._drop(worktree, commit)
        return told + self._remove_saved(worktree, dropped=ending == "drop")

    def _merge(self, worktree: Worktree, commit: str) -> str:
        head = self._read_head()
        merged = self._merge_inside(worktree, head, commit)
        try:
            self._git(self.top, "merge", "--quiet", "--ff-only", "--no-squash", "--no-overwrite-ignore", merged)
        except OllmError as error:
            raise OllmError(f"Nothing was merged: {error.message}") from error
        names = self._git(self.top, *DIFF, "--name-only", head, "HEAD").split("\n")[:-1]
        return f"Merged {worktree.name} into {self._name_head()}: {_name_files(names) or 'no changes'}."

    def _drop(self, worktree: Worktree, commit: str) -> str:
        """Keep the work reachable, and say how to get it back."""
        if self._git(self.top, "rev-list", "--count", f"HEAD..{commit}").strip() == "0":
            return f"Removed {worktree.name}. It had no changes."
        self.keep_dropped(worktree.name, commit)
        ours = self._is_ours(worktree)
        free = worktree.name if ours else f"{worktree.name}-{commit[:7]}"
        back = f" To get it back: `git branch {free} {commit[:12]}`." if ours or not worktree.branch else ""
        return f"Dropped {worktree.name}.{back}"

    def _merge_inside(self, worktree: Worktree, head: str, commit: str) -> str:
        """Merge in the worktree, where a conflict can be undone without touching uncommitted work. Returns a commit
        that the main branch can move to."""
        try:
            self._git(worktree.path, "merge", "--quiet", "--no-commit", "--no-ff", head, identity=True)
            tree = self._git(worktree.path, "write-tree").strip()
        except OllmError as error:
            files = self._git(worktree.path, "diff-files", "--name-only", "--diff-filter=U").split("\n")[:-1]
            conflict = f"{worktree.name} conflicts with {self._name_head()} in {_name_files(files)}."
            action = f"Ask the agent in the worktree {worktree.name} to merge {self._name_head()}, then try again."
            raise OllmError(f"Nothing was merged: {conflict if files else error}", action=action) from error
        finally:
            self._git(worktree.path, "merge", "--abort", check=False)
        base = self._git(self.top, "merge-base", head, commit, check=False).strip()
        if base in (head, commit):
            return commit if base == head else head
        words = ("commit-tree", tree, "-p", head, "-p", commit, "-m", f"Merge worktree {worktree.name}")
        return self._git(self.top, *words, identity=True).strip()

    def _refuse_unfinished(self, top: Path) -> None:
        words = [word for name in UNFINISHED for word in ("--git-path", name)]
        if any((top / path).exists() for path in self._git(top, "rev-parse", *words).splitlines()):
            raise OllmError(f"A merge or rebase is in progress in {top}.", action="Conclude or abort it first.")

    def _list_ignored(self, path: Path) -> list[str]:
        """List the files and folders (with a slash) that git ignores, without our own data."""
        words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return [name for name in self._list_names(path, *words) if ".ollm" not in name.split("/")]

    def _list_links(self, path: Path) -> list[str]:
        """List the tracked repositories inside a worktree."""
        lines = self._list_names(path, "ls-files", "--stage", "-z")
        return [line.partition("\t")[2] for line in lines if line.startswith("160000 ")]

    def keep_dropped(self, name: str, commit: str) -> str:
        """Keep a commit reachable, and return the reference."""
        self._git(self.top, "update-ref", reference := f"{DROPPED}/{name}-{commit[:12]}", commit)
        return reference

    def _is_ours(self, worktree: Worktree) -> bool:
        """Return True if the worktree is on a branch that was created for it."""
        known = self._find_object(self.top, f"{CREATED}/{worktree.name}")
        return bool(known) and worktree.branch == worktree.name

    def find_question(self, worktree: Worktree, ending: Ending) -> str:
        """Return the question that the person must answer before the end, or "" if there is none."""
        if ending == "merge":
            names = ", ".join(name for name in self.list_changes(worktree) if find_steering_name(name))
            return f"The worktree {worktree.name} changes files that steer tools: {names}. Merge it?" if names else ""
        ignored = _name_files(self._list_new(worktree.path, self._list_ignored(worktree.path)))
        lost = f" Files that git ignores are deleted: {ignored}." if ignored else ""
        return f"Drop the worktree {worktree.name} ({self.describe(worktree)})?{lost}"

    def describe(self, worktree: Worktree) -> str:
        return self.diff(worktree, "--shortstat").strip() or "no changes"

    def _remove_saved(self, worktree: Worktree, *, dropped: bool) -> str:
        """Remove a worktree whose work is committed, and its branch. Returns a sentence about what stays. An ignored
        file is only deleted if the worktree is `dropped`; ignored folders have what programs make."""
        path = worktree.path
        names = self._list_untracked(path)
        names += [] if dropped else [name for name in self._list_ignored(path) if name[-1] != "/"]
        if more := self._list_new(path, names):
            return f" The folder {path} stays, since only it has {_name_files(more)}."
        force = () if self._list_links(path) else ("--force",)  # Submodules may hold unsaved work.
        try:
            self._git(self.top, "worktree", "remove", *force, str(path))
        except OllmError as error:
            return f" The folder {path} stays: {error.message}"
        self._remove_empty(worktree.path.parent)
        if not self._is_ours(worktree):
            words = ["for-each-ref", "--format=%(refname:short)", f"refs/heads/{worktree.name}"]
            words += [f"refs/heads/{worktree.branch}"] if worktree.branch else []
            open_ones = self._git(self.top, *words, "--no-merged=HEAD").split()
            stay = self._git(self.top, *words).split()
            return "".join(f" The branch {one} stays{' (not merged)' * (one in open_ones)}." for one in stay)
        self._git(self.top, "branch", "--quiet", "-D", worktree.branch)
        self._git(self.top, "update-ref", "-d", f"{CREATED}/{worktree.name}")
        return ""

    def remove(self, path: Path) -> None:
        """Remove a worktree with everything in it."""
        shutil.rmtree(path, ignore_errors=True)
        self._git(self.top, "worktree", "remove", "--force", str(path), check=False)  # A prune forgets absent disks.
        self._remove_empty(path.parent)

    def _remove_empty(self, folder: Path) -> None:
        with suppress(OSError):
            while is_inside(str(folder), str(self.directory)):
                folder.rmdir()
                folder = folder.parent

    def _name_head(self) -> str:
        return self._git(self.top, "rev-parse", "--abbrev-ref", "HEAD").strip()


def _is_left_out(name: str) -> bool:
    """Return True for an untracked file that is never committed: a `.env` file, or a repository of its own."""
    return name.endswith("/") or is_environment_file(Path(name).name)


def _name_files(names: list[str]) -> str:
    return format_names(names, MAX_NAMED_FILES)
