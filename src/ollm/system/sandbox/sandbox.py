"""The agent's side of the box: at which level there is one, and what goes into the box of a command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

from ollm.system.sandbox.box import (
    SCRATCH_PREFIX,
    WHOLE_LEVELS,
    Box,
    Kind,
    Level,
    Network,
    explain_why_unboxable,
    find_bubblewrap,
    is_inside,
)
from ollm.system.sandbox.names import list_covered_places

Mode = Literal["auto", "require", "off"]
BOOT_ID, SECURITY_LABEL = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/attr/current")
GIT_SETTINGS = {
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
    "log.showSignature": "false",
    "stash.showPatch": "false",
    "diff.submodule": "short",
}
LAUNCHERS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "launchers")


class Sandbox:
    """Describes the boxes of one workspace. The level is found when it is first asked for; `cache` keeps it until the
    machine is started anew."""

    def __init__(
        self,
        workspace: Path,
        home: Path,
        *,
        own: Iterable[Path] = (),
        mode: Mode = "auto",
        network: Network | None = None,
        writable: Iterable[Path] = (),
        hidden: Iterable[Path] = (),
        readable: Iterable[Path] = (),
        executed: Iterable[Path] = (),
        auto_approve: bool = False,
        programs: str = "",
        cache: Path | None = None,
    ) -> None:
        """`own` are the agent's own directories, hidden like the others; `readable` is what of them may be seen.
        `executed` are files of the workspace that hooks and servers run: no command changes them. `programs` is the
        PATH commands are found by."""
        self.mode = mode
        self._workspace = os.path.realpath(workspace)
        self._home = os.path.realpath(home)
        self._network = network
        self._writable = tuple(os.path.realpath(path) for path in writable)
        self._hidden = tuple(os.path.realpath(path) for path in (*own, *hidden))
        self._readable = tuple(os.path.realpath(path) for path in readable)
        self._executed = tuple(dict.fromkeys(_find_names(executed)))
        self._auto_approve = auto_approve
        self._kept = (LAUNCHERS, *_find_program_folders(programs, self._home))
        self._cache = cache
        self._scratch = ""

    @cached_property
    def level(self) -> Level:
        """What the kernel holds for the commands of this workspace."""
        if self.mode == "off" or self.unboxable is not None:
            return "none"
        return read_level(self._cache)

    @property
    def known_level(self) -> str:
        """The level as far as it is known without trying; empty when it is not."""
        if "level" in self.__dict__ or self.mode == "off" or self.unboxable is not None:
            return self.level
        return read_cached_level(self._cache) or ""

    @property
    def unboxable(self) -> str | None:
        """Why no box can be drawn around this workspace, or None."""
        return explain_why_unboxable(self._workspace, self._home)

    @property
    def is_missing(self) -> bool:
        """Whether commands are to run in a box or not at all, and there is none."""
        return self.mode == "require" and self.level == "none"

    @property
    def approves_itself(self) -> bool:
        """Whether a shell command that would be asked about may run in its box instead."""
        return self._auto_approve and self.level in WHOLE_LEVELS

    @property
    def description(self) -> str:
        """The level in a line for people."""
        if self.mode == "off":
            return "off (sandbox.mode)"
        if self.unboxable is not None:
            return f"none: {self.unboxable}"
        return DESCRIPTIONS[self.level]

    def make_box(
        self,
        kind: Kind,
        *,
        network: Network | None = None,
        approved: Iterable[str] = (),
        program: Iterable[str] = (),
    ) -> Box | None:
        """The box of a command, or None where there is none. `program` are the words of a hook or a server, which see
        the folders they are kept in."""
        if self.level == "none":
            return None
        return Box(
            kind,
            self._workspace,
            self._home,
            network="none" if kind == "reading" else network or self.network,
            writable=self._writable,
            hidden=self._hidden,
            kept=self._kept if kind == "reading" else (),
            readable=tuple(self._find_own_folders(program)),
            approved=tuple(map(os.path.realpath, approved)),
            executed=self._executed,
            scratch="" if self.level == "full" else self._make_scratch(),
            wrapper=find_bubblewrap() if self.level == "bubblewrap" else "",
        )

    def _find_own_folders(self, program: Iterable[str]) -> Iterator[str]:
        """Where the words of a program lie among what is hidden: the folder, or the file alone where that folder is the
        agent's own."""
        words = list(program)
        if words:
            yield from self._readable
        for word in words:
            path = os.path.realpath(os.path.join(self._home, word[2:]) if word.startswith("~/") else word)
            for hidden in self._hidden if "/" in word else ():
                if is_inside(path, hidden) and os.path.exists(path):
                    folder = path if os.path.isdir(path) else os.path.dirname(path)
                    yield path if folder == hidden else folder

    @property
    def network(self) -> Network:
        """What commands that may change files can reach."""
        return self._network or ("none" if self._auto_approve else "all")

    def make_environment(self, box: Box | None, *, unasked: bool, programs: str = os.defpath) -> dict[str, str]:
        """Variables to add for a command: where its temporary files go, and settings that keep git, started unasked,
        from running programs a repository names. `programs` is its PATH."""
        added = {"TMPDIR": box.scratch} if box is not None and box.scratch and not box.wrapper else {}
        if not unasked:
            return added
        return {**added, **make_git_environment(), "PATH": f"{LAUNCHERS}:{programs}"}

    def close(self) -> None:
        if self._scratch:
            import shutil

            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = ""

    def _make_scratch(self) -> str:
        """A private temporary directory, for a level without mounts of its own."""
        if not self._scratch:
            import tempfile

            self._scratch = os.path.realpath(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
        return self._scratch


DESCRIPTIONS: dict[Level, str] = {
    "full": "full: namespaces, seccomp and Landlock",
    "bubblewrap": "full, through bubblewrap: namespaces, seccomp and Landlock; we may make no namespaces ourselves",
    "landlock": "landlock: Landlock and seccomp; user namespaces are not allowed here",
    "seatbelt": "seatbelt: sandbox-exec (not tried by its authors)",
    "none": "none: this system offers no way to confine commands",
}


def make_git_environment() -> dict[str, str]:
    """Settings for git that override those of any repository."""
    variables = {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",  # an object that is missing is not fetched by a program a remote names
        "GIT_CONFIG_COUNT": str(len(GIT_SETTINGS)),
    }
    for number, (name, value) in enumerate(GIT_SETTINGS.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def read_level(cache: Path | None, *, afresh: bool = False) -> Level:
    """The level this system offers, from the cache if it was found since the machine was started."""
    if not afresh and (kept := read_cached_level(cache)) is not None:
        return kept
    from ollm.system.sandbox.levels import detect_level

    found = detect_level()
    if cache is not None:
        with suppress(OSError):
            cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            cache.write_text(json.dumps({"key": _make_key(), "level": found}), encoding="utf-8")
    return found


def read_cached_level(cache: Path | None) -> Level | None:
    """What was found since the machine was started, by this user."""
    if cache is None:
        return None
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(cache.read_text(encoding="utf-8"))
        if kept["key"] == _make_key() and kept["level"] in DESCRIPTIONS:
            level: Level = kept["level"]
            return level
    return None


def _make_key() -> list[str]:
    """What the level depends on. A container shares the machine's boot and often the home, and may do other things."""
    said = []
    for file in (BOOT_ID, SECURITY_LABEL):
        with suppress(OSError, ValueError):
            said.append(file.read_text(encoding="ascii").strip("\0\n "))
    for name in ("user", "mnt", "pid"):
        with suppress(OSError):
            said.append(os.readlink(f"/proc/self/ns/{name}"))
    return [*said, os.uname().release, str(os.geteuid()), find_bubblewrap()]


def _find_names(files: Iterable[Path]) -> Iterator[str]:
    """Files by the name they are called by and, where that is a link, by their own."""
    for file in files:
        directory, name = os.path.split(file)
        yield os.path.join(os.path.realpath(directory), name)
        yield os.path.realpath(file)


def _find_program_folders(programs: str, home: str) -> Iterator[str]:
    """The directories of a PATH; of one that is called bin, all that belongs to it, but never a home as a whole."""
    for entry in filter(os.path.isabs, programs.split(":")):
        path = os.path.realpath(entry)
        above = os.path.dirname(path)
        whole = os.path.basename(path) in ("bin", "sbin", "shims") and above not in list_covered_places(home)
        yield above if whole else path
