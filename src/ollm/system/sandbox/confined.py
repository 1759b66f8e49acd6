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
_PACKAGES = str(Path(__file__).parents[3])
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


def start_confined(start: Callable[[], T], readable: Iterable[str] = (), home: str = "~") -> T:
    """Call `start`, which starts a program, so that the program can change nothing, reach no network and no process
    outside, and read neither the secrets of this home nor those of the system, save what is `readable`."""
    if sys.platform != "linux":
        return start()
    starter = _ConfinedStarter(start, os.path.expanduser(home), list(readable))
    starter.start()
    starter.join()
    return starter.take_result()


def confine_process(readable: Iterable[str] = (), home: str = "~") -> None:
    """Hold this process, a fork of ours with a single thread, to the same for good."""
    if sys.platform == "linux":
        with suppress(OSError):
            _confine_thread(os.path.expanduser(home), list(readable))


class _ConfinedStarter(threading.Thread, Generic[T]):
    """Restricts itself for good, does its work and ends."""

    def __init__(self, start: Callable[[], T], home: str, readable: list[str]) -> None:
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


def _confine_thread(home: str, readable: list[str]) -> None:
    from ollm.system.sandbox.kernel import AUDIT_ARCH
    from ollm.system.sandbox.landlock import landlock_version, restrict_to_reading
    from ollm.system.sandbox.names import secret_places
    from ollm.system.sandbox.seccomp import helper_filter

    version = landlock_version()
    if not version or not AUDIT_ARCH:
        return
    hidden = {os.path.realpath(place) for place in secret_places(home) if os.access(place, os.R_OK)}
    own = (sys.prefix, sys.base_prefix, _PACKAGES)  # wherever we are installed, helpers are as well
    restrict_to_reading([*split_around(hidden), *own, *readable], version)
    helper_filter().install(listen=False)


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
