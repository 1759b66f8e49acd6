"""Starts helper programs of our own (ripgrep, `git config`, readers), confined by Landlock and seccomp.

They need no box with mounts and a broker, nor a supervisor: they only read, name no files and open no socket, and the
kernel holds a thread to that as it holds a process. What the thread starts inherits it. Costs about a millisecond;
where the kernel has no Landlock they start unconfined, as parts of the agent that they are. Standard library only.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar, cast

T = TypeVar("T")
_OWN_PLACES = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))  # where we are installed, helpers are too
_SYSTEM_PLACES = (
    *("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store"),
    *("/dev", "/proc", "/sys"),
)
HELPER_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "XDG_CONFIG_HOME",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
)


def start_confined(start: Callable[[], T], readable: Iterable[str] = (), home: str | None = "~") -> T:
    """Call `start`, which starts a program, so that the program can change nothing, reach no network and no process
    outside, and read neither the secrets of this home nor those of the system, save what is `readable`. Without a home
    it can read nothing else but the programs and libraries of the system and our own."""
    if sys.platform != "linux":
        return start()
    starter = _ConfinedStarter(start, home, list(readable))
    starter.start()
    starter.join()
    return starter.take_result()


def confine_process(readable: Iterable[str]) -> None:
    """Hold this process, a fork of ours with a single thread, to the same for good."""
    if sys.platform == "linux":
        with suppress(OSError):
            _confine_thread(None, list(readable))


def choose_home(program: str) -> str | None:
    """The home with which `start_confined` starts a program: none where the program, found as a shell finds it, and
    what it is linked to can be read without."""
    import shutil

    found = os.path.realpath(shutil.which(program) or program)
    return None if found.startswith(tuple(f"{place}/" for place in (*_SYSTEM_PLACES, *_OWN_PLACES))) else "~"


class _ConfinedStarter(threading.Thread, Generic[T]):
    """Restricts itself for good, does its work and ends."""

    def __init__(self, start: Callable[[], T], home: str | None, readable: list[str]) -> None:
        super().__init__(name="confined", daemon=True)
        self._start_program = start
        self._home = home
        self._readable = readable
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            with suppress(OSError):  # a kernel that allows no more layers: it is a part of the agent all the same
                _confine_thread(self._home, self._readable)
            self._result = self._start_program()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error

    def take_result(self) -> T:
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


def _confine_thread(home: str | None, readable: list[str]) -> None:
    from ollm.system.sandbox.kernel import AUDIT_ARCH, PR_SET_NO_NEW_PRIVS, prctl
    from ollm.system.sandbox.landlock import get_landlock_version, restrict_to_reading
    from ollm.system.sandbox.seccomp import build_helper_filter

    version = get_landlock_version()
    if not version or not AUDIT_ARCH:
        return
    others = _SYSTEM_PLACES if home is None else _list_all_but_secrets(os.path.expanduser(home))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    try:
        build_helper_filter().install(listen=False)
    finally:
        restrict_to_reading([*others, *_OWN_PLACES, *readable], version)


def _list_all_but_secrets(home: str) -> list[str]:
    from ollm.system.sandbox.names import list_secret_places

    hidden = {os.path.realpath(place) for place in list_secret_places(home) if os.access(place, os.R_OK)}
    return list(split_around(hidden))


def split_around(hidden: Iterable[str], top: str = "/") -> Iterator[str]:
    """Directories and files that together are everything below `top` but what is hidden. Links are left out: where
    they lead to counts, not they themselves."""
    inside = [place for place in hidden if place.startswith(top.rstrip("/") + "/")]
    if not inside:
        yield top
        return
    taken = {place.removeprefix(top.rstrip("/") + "/").partition("/")[0] for place in inside}
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink():
            continue
        if entry.name not in taken:
            yield entry.path
        elif entry.path not in inside and entry.is_dir(follow_symlinks=False):
            yield from split_around(inside, entry.path)


def make_helper_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a helper needs to know: none of it is a secret, and none of it runs anything."""
    return {name: environment[name] for name in HELPER_VARIABLES if name in environment}
