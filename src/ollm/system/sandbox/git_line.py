"""A line of plain git commands in a sandbox that lets it write the repository: its variables, and the check afterwards.

Code of the project runs in such a line: hooks, filters, merge drivers. It may change objects and references, but
nothing that makes the user's own git start a program: `hooks` is read-only, and a setting that names a program or a
path and appeared meanwhile is put back, after every process of the line has ended.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from shlex import quote

from ollm.domain.errors import ToolFailure
from ollm.system import beneath
from ollm.system.atomic import read_small_file
from ollm.system.path_names import (
    follow_dot_git,
    is_in_any,
    is_inside,
    list_names,
    read_pointer,
)
from ollm.system.sandbox.confined import (
    GIT_SETTINGS,
    add_settings,
    find_program,
    make_git_environment,
    make_helper_environment,
)
from ollm.system.sandbox.git_settings import Settings, ask_repository, is_harmless_setting, parse_listing
from ollm.system.sandbox.remotes import list_local_addresses
from ollm.system.sandbox.repositories import (
    SETTINGS_NAMES,
    Repository,
    find_work_tree,
    list_git_directories,
)
from ollm.system.terminal_text import make_printable

# No editor, pager, signing program, credential helper or monitor is started. An empty value removes earlier ones.
LINE_SETTINGS = {
    **{name: value for name, value in GIT_SETTINGS.items() if name != "core.hooksPath"},
    "core.alternateRefsCommand": "true",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "diff.external": "",
    "interactive.diffFilter": "cat",
    "protocol.ext.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
}
LINE_VARIABLES = {
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_ALLOW_PROTOCOL": "file:http:https:git",
    "GIT_MERGE_AUTOEDIT": "no",
}
FOREIGN_VARIABLES = ("GIT_", "BASH_", "LD_")
KEPT_VARIABLES = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
ADDING_VERBS = frozenset({"add", "update-index", "apply"})  # A nested repository that they stage is removed at once.
REMOTE_VERBS = frozenset({"fetch", "pull", "push", "remote", "submodule"})
CHECKED_NAMES = (*SETTINGS_NAMES, "commondir", "gitdir", "info/attributes")
PROGRAM_FOLDERS = "/usr/local/bin:/usr/bin:/bin"
GIT_SECONDS = 60
OLDEST_GIT = (2, 31)  # The first version with settings from variables.
REPLACED = b"\0"  # This stands for a file that is not regular.
GITLINK_MODE = b"\x00\x00\xe0\x00"


class GitLine:
    """The run of one git line in a repository. Create it before the line starts, call `finish` when all its processes
    have ended. `verbs` are the git commands of the line. `note` gets addresses of new remotes that are paths."""

    def __init__(self, repository: Repository, verbs: Iterable[str], note: Callable[[Iterable[str]], object]) -> None:
        self.repository = repository
        self._note = note
        self.verbs = frozenset(verbs)
        self._related = [one for one in (repository.outer, repository) if one is not None]
        self._pointers = {path: _read(path) for path in self._list_pointers()}
        inner = [path for path in self._pointers if os.path.isdir(path) and not os.path.islink(path)]
        self._roots = [*dict.fromkeys((self._related[0].common, *inner))]
        seen = list[str]()
        self._known = self._list_directories(seen.append)
        self._links = {*filter(os.path.islink, seen)}
        self.protected = [*self._make_hooks()]
        self._before = self._read_files(self._known)
        self._gitlinks = set(list_gitlinks(repository))
        self._addresses = set(list_local_addresses(self._related[0]))

    def _list_directories(self, look: Callable[[str], object]) -> list[str]:
        return [git for root in self._roots for git in list_git_directories(root, look)]

    def _list_pointers(self) -> Iterator[str]:
        """List the files that lead git to a directory: the `.git` of work trees and submodules."""
        for path in (path for one in self._related for path in list_protected(one)):
            if not any(is_inside(path, one.common) for one in self._related):
                yield path if os.path.basename(path) == ".git" else os.path.join(path, ".git")

    def _make_hooks(self) -> Iterator[str]:
        """Return the folders of hooks. A missing one is created empty: only what exists can be read-only."""
        for git in self._known:
            hooks = os.path.join(git, "hooks")
            if os.path.basename(os.path.dirname(git)) != "worktrees":
                with suppress(OSError):
                    os.mkdir(hooks, 0o755)
                yield os.path.realpath(hooks)

    def _read_files(self, directories: Iterable[str]) -> dict[str, bytes | None]:
        return {
            path: _read(path) for git in directories for path in (os.path.join(git, name) for name in CHECKED_NAMES)
        }

    def wrap(self, line: str, environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return a script that runs the line with the user's own git, by its absolute path, and its variables. Hooks
        and filters find programs as always, and no variable leads git in them to this repository."""
        program = find_program("git")
        if program is None:
            raise ToolFailure("NotFound", "git is not installed, or only in the workspace, where a command can put it.")
        if _read_version(program) < OLDEST_GIT:
            held = "and the sandbox cannot keep it from running what the repository names"
            raise ToolFailure("Denied", f"Not run: {program} is older than 2.31, {held}. Update git.")
        kept = {
            name: value
            for name, value in environment.items()
            if not name.startswith(FOREIGN_VARIABLES) or name.startswith(KEPT_VARIABLES)
        }
        variables = add_settings({**kept, **LINE_VARIABLES}, LINE_SETTINGS)
        variables |= {"OLLM_PATH": kept.get("PATH", os.defpath), "PATH": PROGRAM_FOLDERS}
        return f'git() {{ PATH="$OLLM_PATH" {quote(program)} "$@"; }}\n{line}', variables

    def finish(self) -> list[str]:
        """Put back what the user's own git would run, and return sentences about it."""
        notes = list[str]()
        self._note(set(list_local_addresses(self._related[0])) - self._addresses)
        found = self._list_directories(lambda path: notes.extend(self._repair(path)))
        notes += [*self._check_files(self._read_files(found)), *self._check_hooks(found)]
        return [*notes, *self._check_pointers(found), *self._check_gitlinks(found)]

    def _repair(self, folder: str) -> Iterator[str]:
        """Let a folder of a git directory be read again, and remove a link that came in its place."""
        if os.path.islink(folder):
            if folder not in self._links:
                yield f"{self._name(folder)} became a link by code in this line, and {self._put_back(folder, None)}."
        elif os.path.isdir(folder):
            with (
                suppress(OSError, beneath.LinkFound),
                beneath.open_parent_directory(Path("/"), Path(folder, "x")) as it,
            ):
                mode = stat.S_IMODE(os.fstat(it).st_mode)
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    beneath.change_mode(it, mode | stat.S_IRWXU)

    def _check_files(self, after: Mapping[str, bytes | None]) -> Iterator[str]:
        for path, content in after.items():
            before = self._before.get(path)
            if content == before:
                continue
            if content != REPLACED and os.path.basename(path) in SETTINGS_NAMES:
                yield from self._check_settings(path, before, content)
            elif content == REPLACED or not self._is_expected(path, before, content):
                yield f"{self._name(path)} was changed by code in this line, and {self._put_back(path, before)}."

    def _check_pointers(self, found: Sequence[str]) -> Iterator[str]:
        for path, before in self._pointers.items():
            after = _read(path)
            gone = after is None and os.path.dirname(path) != self.repository.top
            if after != before and not gone and follow_dot_git(path)[0] not in found:
                yield f"{self._name(path)} was changed by code in this line, and {self._put_back(path, before)}."

    def _is_expected(self, path: str, before: bytes | None, content: bytes | None) -> bool:
        """Return True for what git writes for a new worktree, and for what a removed one leaves."""
        if content is None:
            return True
        if os.path.basename(path) == "commondir":
            folder = os.path.dirname(path)
            named = os.path.realpath(os.path.join(folder, read_pointer(path)))
            return os.path.join(named, "worktrees") == os.path.dirname(folder)
        return os.path.basename(path) == "gitdir"

    def _check_settings(self, path: str, before: bytes | None, content: bytes | None) -> Iterator[str]:
        if content is None and os.path.lexists(os.path.dirname(path)) and os.path.basename(path) == "config":
            yield f"{self._name(path)} was removed by code in this line, and {self._put_back(path, before)}."
            return
        old, new = _list_settings(before), _list_settings(content)
        if new is None:
            yield f"{self._name(path)} could not be read after this line, and {self._put_back(path, before)}."
            return
        added = list((Counter(new) - Counter(old or [])).keys())
        harmful = [(name, value) for name, value in added if not self._is_harmless(path, name, value)]
        if harmful:
            names = dict.fromkeys(name for name, _ in harmful)
            done = self._put_back(path, _rewrite(content or b"", old or [], names) or before)
            shown = [f"git config -f {quote(path)} {quote(name)} {quote(value)}" for name, value in harmful]
            yield (
                f"{', '.join(map(make_printable, names))} appeared in {self._name(path)} while this line ran, can name "
                f"a program or a path, and {done}. The user can set it again with: "
                f"{make_printable(' && '.join(shown))}"
            )

    def _is_harmless(self, path: str, name: str, value: str) -> bool:
        if name == "core.worktree" and is_inside(path, os.path.join(self._roots[0], "modules")):
            return is_inside(find_work_tree(os.path.dirname(path)), self.repository.top)
        return is_harmless_setting(name, value)

    def _check_hooks(self, found: Iterable[str]) -> Iterator[str]:
        """Remove hooks from the git directories of submodules that are new, where no mount held them."""
        for git in found:
            hooks = os.path.join(git, "hooks")
            if is_in_any(hooks, self.protected) or os.path.basename(os.path.dirname(git)) == "worktrees":
                continue
            yield from self._repair(hooks)
            for name in list_names(hooks):
                path = os.path.join(hooks, name)
                if not name.endswith(".sample"):
                    yield f"The new hook {self._name(path)} {self._put_back(path, None)}: the user's git would run it."

    def _check_gitlinks(self, found: Sequence[str]) -> Iterator[str]:
        """Take nested repositories out of the index, since the user's own git would follow their settings."""
        new = set(list_gitlinks(self.repository)) - self._gitlinks
        known = read_submodule_paths(self.repository.top) if new else set()
        for path in sorted(new):
            shown, dot_git = make_printable(path), os.path.join(self.repository.top, path, ".git")
            if path not in known and self.verbs & ADDING_VERBS:
                _take_out(self.repository, path)
                yield f"{shown} is a repository of its own, which .gitmodules does not name. It is not added."
            elif path not in known or (os.path.lexists(dot_git) and follow_dot_git(dot_git)[0] not in found):
                yield f"{shown} is a repository of its own. Git follows its settings: look at {shown}/.git/config."

    def _put_back(self, path: str, content: bytes | None) -> str:
        """Write a file of the repository, without following a link that was put in its way. Return what was done."""
        root = Path("/")
        with suppress(OSError, ToolFailure, beneath.LinkFound):
            with beneath.open_parent_directory(root, Path(path)) as above:
                beneath.change_mode(above, stat.S_IMODE(os.fstat(above).st_mode) | stat.S_IRWXU)
                if content is None or _read(path) == REPLACED:
                    with suppress(FileNotFoundError):
                        os.unlink(os.path.basename(path), dir_fd=above)
            if content not in (None, REPLACED):
                beneath.replace_file(root, Path(path), content, overwrite=True)
        if _read(path) == content:
            return "is removed" if content is None else "is put back"
        return "could not be put back: repair it before you run git here"

    def _name(self, path: str) -> str:
        shown = os.path.relpath(path, self.repository.top) if is_inside(path, self.repository.top) else path
        return make_printable(shown)


@lru_cache
def _read_version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, timeout=GIT_SECONDS, check=False).stdout
    found = re.search(rb"(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else OLDEST_GIT


def _read(path: str) -> bytes | None:
    """Read a file, or return None if there is none, and REPLACED for a link, a folder or a pipe."""
    try:
        return REPLACED if os.path.islink(path) else read_small_file(path)
    except OSError:
        return REPLACED if os.path.lexists(path) else None


def read_submodule_paths(top: str) -> set[str]:
    """Return the paths that `.gitmodules` names."""
    try:
        settings = _list_settings(read_small_file(os.path.join(top, ".gitmodules"))) or []
    except OSError:
        return set()
    return {value for name, value in settings if name.startswith("submodule.") and name.endswith(".path")}


def _edit(content: bytes, *changes: Sequence[str]) -> tuple[bytes, bytes] | None:
    """Let git work on a private copy of a settings file. Returns what git prints last and the file, or None if git
    cannot read it."""
    program = find_program("git")
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="ollm-git-") as folder:
        file = os.path.join(folder, "config")
        Path(file).write_bytes(content)
        variables = {**make_helper_environment(os.environ), "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder}
        try:
            for words in changes:
                command = [program, "config", "--no-includes", "--file", file, *words]
                said = subprocess.run(
                    command, cwd=folder, env=variables, capture_output=True, timeout=GIT_SECONDS, check=True
                ).stdout
        except (OSError, subprocess.SubprocessError):
            return None
        return said, Path(file).read_bytes()


def _list_settings(content: bytes | None) -> Settings | None:
    if not content:
        return []
    edited = _edit(content, ("--null", "--list"))
    return None if edited is None else parse_listing(edited[0])


def _rewrite(content: bytes, old: Settings, names: Iterable[str]) -> bytes | None:
    """Return the settings with the old values of these names."""
    changes: list[tuple[str, ...]] = []
    for name in names:
        changes.append(("--unset-all", name))
        changes += [("--add", name, value) for known, value in old if known == name]
    edited = _edit(content, *changes)
    return None if edited is None else edited[1]


def _take_out(repository: Repository, path: str) -> None:
    """Remove a path from the index. This git runs outside the sandbox, so it gets an empty work tree: for an entry that
    may have changed it would run the filters of the project."""
    program = find_program("git")
    if program is None:
        return
    variables = {**make_helper_environment(os.environ), **make_git_environment()}
    command = [program, "update-index", "--force-remove", "--", path]
    with tempfile.TemporaryDirectory(prefix="ollm-git-") as empty, suppress(OSError, subprocess.SubprocessError):
        variables |= {"GIT_DIR": repository.git, "GIT_WORK_TREE": empty}
        subprocess.run(command, cwd=empty, env=variables, capture_output=True, timeout=GIT_SECONDS, check=False)


def list_protected(repository: Repository) -> Iterator[str]:
    """List what a command may not change of a repository: its directories, and the `.git` of its submodules and
    worktrees. The folder of a submodule that is not there yet is protected whole: git would follow a `.git` in it."""
    yield os.path.join(repository.top, ".git")
    yield from repository.places
    for path in list_gitlinks(repository):
        inner = os.path.join(repository.top, path, ".git")
        yield inner if os.path.lexists(inner) else os.path.dirname(inner)
    for git in list_names(os.path.join(repository.common, "worktrees")):
        yield read_pointer(os.path.join(repository.common, "worktrees", git, "gitdir"))


def list_gitlinks(repository: Repository) -> list[str]:
    """List the submodules that the index names, relative to the top of the work tree."""
    names = [name for name in list_names(repository.git) if name == "index" or name.startswith("sharedindex.")]
    states = []
    for name in sorted(names):
        about = os.lstat(os.path.join(repository.git, name))
        states.append((name, about.st_mtime_ns, about.st_size, about.st_ino))
    return _read_gitlinks(repository, tuple(states))


@lru_cache(maxsize=16)
def _read_gitlinks(repository: Repository, states: tuple[tuple[str, int, int, int], ...]) -> list[str]:
    """Ask git only if an index may have a gitlink: most have none, and that shows in their bytes."""
    files = (os.path.join(repository.git, name) for name, *_ in states)
    if not any(map(_may_have_gitlinks, files)):
        return []
    entries = ask_repository(repository, "ls-files", "-s", "-z").split(b"\0")
    return [os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(b"160000 ")]


def _may_have_gitlinks(index: str) -> bool:
    try:
        with open(index, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return GITLINK_MODE in file.read()
    except OSError:
        return True
