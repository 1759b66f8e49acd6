"""The agent's side of the sandbox: its level, and the box and the variables of each command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from ollm.domain.errors import StartError
from ollm.system.folders import FolderMemory
from ollm.system.path_names import OWN_PLACES, PACKAGE_FOLDERS, is_environment_file, is_in_any, is_inside, trace_path
from ollm.system.sandbox.box import (
    LEVELS,
    SCRATCH_PREFIX,
    TEMPORARY_PLACES,
    WHOLE_LEVELS,
    Box,
    Kind,
    Level,
    Network,
    explain_why_unboxable,
    find_bubblewrap,
    is_script,
    is_shared_folder,
    list_covered_places,
    list_left_out,
    list_visible_places,
)
from ollm.system.sandbox.confined import make_git_environment
from ollm.system.sandbox.git_line import REMOTE_VERBS, GitLine, list_protected
from ollm.system.sandbox.git_settings import write_git_settings
from ollm.system.sandbox.placeholders import Placeholders
from ollm.system.sandbox.remotes import Remotes
from ollm.system.sandbox.repositories import NoRepository, Repository, find_repository

T = TypeVar("T")
Mode = Literal["auto", "require", "off"]
BOOT_ID, SECURITY_LABEL = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/attr/current")
STATUS, FILTERS = Path("/proc/self/status"), ("NoNewPrivs:", "Seccomp")  # They show outer restrictions.
UNSHARE, PROBE_SECONDS = "/usr/bin/unshare", 5
FILE_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)  # The system dates files by this clock.
LAUNCHERS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "launchers")


class Ending(Protocol):
    """A sandboxed process; `gone` when all its processes have ended."""

    @property
    def gone(self) -> bool: ...


class Sandbox:
    """Creates the boxes of one workspace. The level is detected on first use; `cache` is the folder that stores it
    until the next boot, and the downloads of package managers."""

    def __init__(
        self,
        workspace: Path,
        home: Path,
        *,
        cache: Path,
        shared: Iterable[Path] = (),
        mode: Mode = "auto",
        network: Network | None = None,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        hidden: Iterable[Path] = (),
        executed: Iterable[Path] = (),
        auto_approve: bool = False,
        programs: str = "",
        folders: FolderMemory | None = None,
        prepare: Callable[[], object] = lambda: None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Of the `hidden` folders hooks and servers see those that are `shared`. `executed` are workspace files that
        they run: no command changes them. `programs` is the PATH for commands. `folders` are shared with other scans of
        the workspace. `prepare` makes ollm's own folder in it, since only what exists can be read-only."""
        self.mode = mode
        self.workspace = os.path.realpath(workspace)
        self._home = os.path.realpath(home)
        self._network = network
        self._readable, self._writable, self._shared, self._hidden = (
            tuple(map(os.path.realpath, paths)) for paths in (readable, writable, shared, hidden)
        )
        self._changeable: tuple[str, ...] = (self.workspace, *self._writable)
        self._executed = tuple(map(str, executed))
        self._auto_approve = auto_approve
        self._programs = programs
        self._cache = cache
        self._folders = FolderMemory() if folders is None else folders
        self._running: list[Ending] = []
        self._since = 0.0
        self._placeholders = Placeholders()
        self._prepare = prepare
        self._report = report
        self._reported = False
        self._lacking = ""  # The reason why a better level could not be tried.

    def add_writable(self, folder: Path) -> None:
        """Let the commands that start from now on write to another folder."""
        self._writable += (os.path.realpath(folder),)
        self._changeable = (self.workspace, *self._writable)
        for name in ("visible", "remotes"):
            self.__dict__.pop(name, None)  # These depend on what commands can change.

    @cached_property
    def level(self) -> Level:
        """The sandbox level for the commands of this workspace."""
        if self.mode == "off" or self.unboxable is not None:
            return "none"
        stored = read_cached_level(self._level_file)
        if stored == "landlock" and _may_make_namespaces():
            self._lacking = "it may work by now; run `ollm doctor`, which tests it"
        return stored or self.probe()

    def probe(self) -> Level:
        """Try the levels. A level is cached only if it works and every better one was tried."""
        from ollm.system.sandbox.levels import detect_level

        found, self._lacking = detect_level()
        if not self._lacking:
            _store_level(self._level_file, found)
        return found

    async def start(self, start: Callable[[], Awaitable[T]]) -> T:
        """Call `start`, which makes a box and starts a program in it. If that fails because the level no longer works,
        detect the level again and call `start` once more at the new one."""
        try:
            return await start()
        except StartError as error:
            if error.where not in ("start", "sandbox") or not self._change_level():
                raise
        return await start()

    def _change_level(self) -> bool:
        """Return True if a different level works now. A command approved for a sandbox never runs without one."""
        before = self.level
        if before == "none":
            return False
        found = self.probe()
        if self._lacking:
            self._lacking = ""
            return False
        self.level = found
        return found not in ("none", before) and (found in WHOLE_LEVELS or not self._auto_approve)

    @property
    def known_level(self) -> str:
        """The level if it is known without trying, else ""."""
        if "level" in self.__dict__ or self.mode == "off" or self.unboxable is not None:
            return self.level
        return read_cached_level(self._level_file) or ""

    @property
    def unboxable(self) -> str | None:
        """Why this workspace cannot be sandboxed, or None."""
        return explain_why_unboxable(self.workspace, self._home)

    @property
    def refusal(self) -> str:
        """Why nothing may run, or "": a sandbox is required but missing, or the levels could not be tried."""
        if self.level != "none":
            return ""
        if self.mode == "require":
            return f"the settings require a sandbox (sandbox.mode), and there is {self.description}"
        if self._lacking:
            return f"the sandbox could not be tried ({self._lacking}); try again, or set sandbox.mode to off"
        return ""

    @property
    def approves_itself(self) -> bool:
        """True if a shell command that would need a confirmation may run in its sandbox instead."""
        return self._auto_approve and self.level in WHOLE_LEVELS

    @property
    def description(self) -> str:
        """One-line description of the level for users."""
        if self.mode == "off":
            return "off (sandbox.mode)"
        if self.unboxable is not None:
            return f"none: {self.unboxable}"
        description = DESCRIPTIONS[self.level]
        return f"{description} (a better level could not be tried: {self._lacking})" if self._lacking else description

    @property
    def _level_file(self) -> Path:
        return self._cache / "sandbox.json"

    @cached_property
    def visible(self) -> tuple[str, ...]:
        """Paths in the homes, besides the workspace, that every command can read."""
        git = self.git_settings.parent
        git.mkdir(mode=0o700, parents=True, exist_ok=True)  # The settings are written here before the first command.
        ignore = [os.path.join(self._home, ".config/git", name) for name in ("ignore", "attributes")]
        found = list_visible_places(self._home, ":".join(self._list_foreign_programs()), self._changeable)
        wanted = (*found, *self._readable, LAUNCHERS, str(git), *ignore, *self._list_outer_places())
        return tuple(path for path in dict.fromkeys(wanted) if os.path.lexists(path))

    def _list_foreign_programs(self) -> Iterator[str]:
        """List the folders of PATH, except those that a command could replace by a link."""
        for entry in self._programs.split(":"):
            above = [entry, *map(str, Path(entry).parents)]
            if not any(is_inside(os.path.realpath(path), root) for path in above for root in self._changeable):
                yield entry

    @property
    def left_out(self) -> tuple[str, ...]:
        """Folders of PATH hidden from every command, because they would expose a home or a program's logins."""
        return tuple(path for path in list_left_out(self._home, self._programs) if os.path.isdir(path))

    @cached_property
    def _covered(self) -> tuple[str, ...]:
        return tuple(list_covered_places(self._home, (self.workspace, str(self._cache), LAUNCHERS)))

    @cached_property
    def git_settings(self) -> Path:
        return self._cache / "git" / f"config-{self._key}"

    @cached_property
    def remotes(self) -> Remotes:
        return Remotes(self._cache / "git" / f"addresses-{self._key}", self._changeable)

    def find_caches(self, server: str = "") -> Path:
        """Return the folder for the downloads and settings of package managers: that of this workspace's commands, or
        that of a server. Nothing that one leaves is run in another."""
        folder = self._cache / "servers" / server if server else self._cache / "box" / self._key
        return Path(os.path.realpath(folder))

    @cached_property
    def _key(self) -> str:
        import zlib

        return f"{os.path.basename(self.workspace)[:32]}-{zlib.crc32(os.fsencode(self.workspace)):08x}"

    def find_repository(self, directory: str) -> Repository:
        """Return the repository that git lines change in a directory. Raises NoRepository with the reason."""
        return find_repository(directory, self.workspace, self._home)

    def _find_own_repository(self) -> Repository | None:
        try:
            return self.find_repository(self.workspace)
        except (NoRepository, OSError):
            return None

    def _list_outer_places(self) -> list[str]:
        """List what is shown of a repository around the workspace, or of one elsewhere that the workspace is part of:
        its work tree and its directories, read-only."""
        repository = self._find_own_repository()
        if repository is None:
            return []
        top = [] if repository.top == self.workspace else [repository.top]
        return [path for path in (*top, *repository.places) if not is_inside(path, self.workspace)]

    def _list_protected(self, line: GitLine | None) -> Iterator[str]:
        """List what no command changes: ollm's own folder, the files that hooks and servers run, the programs of ollm
        itself, and git's directories, of which a git line changes all but hooks."""
        yield os.path.join(self.workspace, ".ollm")
        yield from self._executed
        yield from (place for place in OWN_PLACES if not is_in_any(place, self._writable))
        if line is not None:
            yield from line.protected
            for path in self.remotes.shown:
                git = os.path.join(path, ".git")
                yield from (os.path.join(git if os.path.isdir(git) else path, name) for name in ("hooks", "config"))
        elif repository := self._find_own_repository():
            yield from list_protected(repository)
        else:
            yield os.path.join(self.workspace, ".git")

    def _find_environment_files(self) -> Iterator[str]:
        """Find the `.env` files of the workspace, which reading commands do not see."""
        self._folders.look()
        waiting = [*self._changeable]
        while waiting:
            folder = waiting.pop()
            names = self._folders.read(folder)
            for name in (*names.files, *names.folders, *names.others):
                if name.startswith(".") and is_environment_file(name):
                    yield os.path.join(folder, name)
            skipped = PACKAGE_FOLDERS | {".git"}
            waiting += [os.path.join(folder, name) for name in names.folders if name not in skipped]

    def make_box(
        self,
        kind: Kind,
        *,
        network: Network | None = None,
        approved: Iterable[str] = (),
        program: Iterable[str] | None = None,
        server: str = "",
        line: GitLine | None = None,
    ) -> Box | None:
        """Return the box of a command, or None without a sandbox. `program` is for a hook or a server: the words that
        open places for it, none if a workspace wrote them. `server` is the id of a server with a cache of its own.
        `line` is for git commands that write the repository. Pass the process to `attach` when it runs."""
        self._tell_level()
        if self.level == "none":
            return None
        caches = self.find_caches(server)
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = tuple(map(os.path.realpath, approved))
        protected, places = list[str](), tuple[str, ...]()
        if kind == "working":
            self._begin(opened)
            places = () if line is None else tuple(self._list_places_of(line))
            changeable = (*self._changeable, *opened, *places)
            there = (path for path in dict.fromkeys(self._list_protected(line)) if not os.path.islink(path))
            protected = [path for path in there if os.path.exists(path) and is_in_any(path, changeable)]
        return Box(
            kind,
            self.workspace,
            self._home,
            network="none" if kind == "reading" else network or self.network,
            covered=self._covered,
            visible=self.visible,
            readable=tuple(self._find_own_places(program, line)),
            writable=self._writable,
            caches=(str(caches),),
            hidden=self._hidden,
            approved=opened,
            protected=tuple(protected),
            repository=places,
            environment_files=tuple(self._find_environment_files()) if kind == "reading" else (),
            scratch="" if self.level == "full" else self._scratch,
            wrapper=find_bubblewrap() if self.level == "bubblewrap" else "",
            since=self._since if kind == "working" else 0,
        )

    def _list_places_of(self, line: GitLine) -> Iterator[str]:
        remotes = self.remotes.shown if "push" in line.verbs else []
        for path in (line.repository.top, *line.repository.places, *remotes):
            if not is_in_any(path, self._changeable):
                yield path

    def _begin(self, approved: tuple[str, ...]) -> None:
        self.remotes.look(self._find_own_repository())
        self._running = [one for one in self._running if not one.gone]
        if not self._running:
            if not os.path.lexists(os.path.join(self.workspace, ".ollm")):
                self._prepare()
            self._placeholders.remove()
            self._since = time.clock_gettime(FILE_CLOCK)
        self._placeholders.make(path for path in approved if not is_in_any(path, self._changeable))

    def _tell_level(self) -> None:
        """Raise StartError if a sandbox is required but missing, or a place to hide cannot be found; report once what
        the sandbox lacks."""
        if self.refusal:
            raise StartError(self.refusal, "sandbox")
        if looped := next(filter(os.path.islink, self._hidden), ""):
            raise StartError(f"{looped}, which sandbox.hidden names, is a link that leads to itself", "files")
        if self.mode != "off" and (self.level == "none" or self._lacking) and not self._reported:
            self._reported = True
            self._report(f"Sandbox level {self.description}.")

    def attach(self, process: Ending) -> None:
        """Note that a sandboxed process runs: sockets made since are those of commands."""
        self._running.append(process)

    def _find_own_places(self, words: Iterable[str] | None, line: GitLine | None) -> Iterator[str]:
        """Find what a git line sees besides: the remotes. And what a hook or a server sees: shared folders, and the
        hidden paths among its words. Of a script that is its whole folder. Paths that a command could replace by a link
        are left out."""
        if line is not None and line.verbs & REMOTE_VERBS:
            yield from self.remotes.shown
        if words is None:
            return
        yield from filter(os.path.exists, self._shared)
        covered = (*self._covered, *self._hidden)
        for word in (word for word in words if "/" in word):
            start, rest = (self._home, word[2:]) if word.startswith("~/") else (self.workspace, word)
            *links, path = trace_path(os.path.join(start, rest))
            hidden = os.path.exists(path) and is_in_any(path, covered)
            if hidden and not any(is_in_any(step, self._changeable) for step in (*links, path)):
                folder = os.path.dirname(path)
                shared = folder in self._hidden or is_shared_folder(folder, (self._home, *self._covered))
                yield folder if is_script(path) and not shared else path

    @property
    def network(self) -> Network:
        """Network access of commands that may change files."""
        return self._network or ("none" if self._auto_approve else "all")

    def make_environment(self, box: Box | None, *, unasked: bool, programs: str = "") -> dict[str, str]:
        """Return variables to add for a command: locations of temporary files and downloads, and git's settings without
        credentials. If it runs `unasked`, others keep git from running programs that a repository names. Else one with
        `programs` as its PATH finds behind them what commands have installed."""
        if box is None:
            return {**make_git_environment(), "PATH": f"{LAUNCHERS}:{programs}"} if unasked else {}
        from ollm.system.sandbox.caches import (
            make_cache_environment,
            make_install_environment,
            make_temporary_environment,
        )

        temporary = TEMPORARY_PLACES[0] if box.wrapper else box.scratch or TEMPORARY_PLACES[0]
        caches = Path(box.caches[0])
        added = {**make_temporary_environment(temporary), **make_cache_environment(caches, self._home)}
        added["GIT_CONFIG_GLOBAL"] = write_git_settings(self.git_settings, self._home, self.workspace)
        if programs and not unasked:
            installs = make_install_environment(caches, self.git_settings.with_name(f"npmrc-{self._key}"))
            added |= {**installs, "PATH": f"{programs}:{installs['PATH']}"}
        added["GIT_OPTIONAL_LOCKS"] = "0"  # Git then does not complain about a read-only repository.
        return {**added, **make_git_environment(), "PATH": f"{LAUNCHERS}:{programs}"} if unasked else added

    def close(self) -> None:
        self._placeholders.remove()
        if self._since:
            self.remotes.look(self._find_own_repository())
        if (caches := self.find_caches()).is_dir():
            from ollm.system.sandbox.caches import limit_once_a_day

            os.utime(caches)  # The least recently used caches are deleted first.
            limit_once_a_day(self._cache)
        if scratch := self.__dict__.pop("_scratch", ""):
            import shutil

            shutil.rmtree(scratch, ignore_errors=True)

    @cached_property
    def _scratch(self) -> str:
        """A private temporary directory, for a level without mounts."""
        import tempfile

        return os.path.realpath(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))


DESCRIPTIONS: dict[Level, str] = {
    "full": "full: namespaces, seccomp and Landlock",
    "bubblewrap": "full, through bubblewrap: namespaces, seccomp and Landlock; we may make no namespaces ourselves",
    "landlock": "landlock: Landlock and seccomp; user namespaces are not allowed here",
    "seatbelt": "seatbelt: sandbox-exec (not tried by its authors)",
    "none": "none: this system offers no way to confine commands",
}


def _may_make_namespaces() -> bool:
    """Try in a few milliseconds if namespaces can be made, which they could not when a lower level was stored."""
    import subprocess

    command = [UNSHARE, "--user", "--map-root-user", "--mount", "true"]
    try:
        return subprocess.run(command, env={}, capture_output=True, timeout=PROBE_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _store_level(cache: Path, found: Level) -> None:
    with suppress(OSError):
        if found == "none":
            cache.unlink(missing_ok=True)
            return
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        import json

        cache.write_text(json.dumps({"key": _make_key(), "level": found}), encoding="utf-8")


def read_cached_level(cache: Path) -> Level | None:
    """Return the level found since the last boot by this user, or None."""
    import json

    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(cache.read_text(encoding="utf-8"))
        possible = LEVELS[:-1] if sys.platform == "linux" else ("seatbelt",)
        if kept["key"] == _make_key() and kept["level"] in possible:
            level: Level = kept["level"]
            return level
    return None


def _make_key() -> list[str]:
    """Return what the level depends on. A container shares the boot and often the home, but has other rights."""
    said = []
    for file in (BOOT_ID, SECURITY_LABEL):
        with suppress(OSError, ValueError):
            said.append(file.read_text(encoding="ascii").strip("\0\n "))
    with suppress(OSError, ValueError):
        said += [line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(FILTERS)]
    for name in ("user", "mnt", "pid"):
        with suppress(OSError):
            said.append(os.readlink(f"/proc/self/ns/{name}"))
    return [*said, os.uname().release, str(os.geteuid()), find_bubblewrap()]
