"""Starts our helper programs (ripgrep, `git config`, readers), confined by Landlock and seccomp.

They need neither mounts nor a supervisor: they only read, and the kernel enforces that for a thread and its children as
for a process. Costs about a millisecond. Without Landlock they start unconfined. Standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_OWN_PLACES = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))  # Helpers are installed where we are.
_SYSTEM_PLACES = (
    *("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store"),
    *("/dev", "/proc", "/sys"),
)
# For git that is started unasked: no program runs that a repository names
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
HELPER_VARIABLES = "PATH HOME LANG LC_ALL LC_CTYPE TZ XDG_CONFIG_HOME SYSTEMROOT LD_LIBRARY_PATH".split()


def find_program(name: str) -> str | None:
    """Find a program on the PATH that we start outside of a sandbox. Folders of the current project and of workspaces
    do not count, since a command could have put it there."""
    from ollm.system.path_names import find_executable, writable_roots

    here, home = os.path.realpath(os.getcwd()), os.path.realpath(os.path.expanduser("~"))
    tops = [folder for folder in (Path(here), *Path(here).parents) if os.path.lexists(folder / ".git")]
    projects = [top for top in (Path(here), *tops, *map(Path, writable_roots)) if not Path(home).is_relative_to(top)]
    folders = [Path(os.path.realpath(entry)) for entry in os.environ.get("PATH", "").split(":") if os.path.isabs(entry)]
    foreign = [str(folder) for folder in folders if not any(folder.is_relative_to(top) for top in projects)]
    return find_executable(name, foreign)


def find_bundled_program(name: str) -> str | None:
    """Find a program that is installed with us, or else on the PATH."""
    import sysconfig

    from ollm.system.path_names import find_executable

    folders = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))
    return find_executable(name, folders) or find_program(name)


def start_confined(start: Callable[[], T], program: str, readable: Iterable[str] = ()) -> T:
    """Call `start`, which starts a program that can change nothing and reach no network and no outside process. It can
    read only `readable`, the system's and our own programs and libraries, and those beside `program`."""
    if sys.platform != "linux":
        return start()
    from concurrent.futures import ThreadPoolExecutor

    def confine() -> T:
        with suppress(OSError):  # The kernel may allow no more layers; the helper is still trusted.
            _confine_thread([*_list_places(program), *readable])
        return start()

    with ThreadPoolExecutor(1) as thread:  # The restriction lasts as long as this thread.
        return thread.submit(confine).result()


def _list_places(program: str) -> list[str]:
    from ollm.system.path_names import is_inside
    from ollm.system.sandbox.box import list_covered_places, list_visible_places

    places = [*_SYSTEM_PLACES, *_OWN_PLACES]
    found, home = os.path.realpath(find_program(program) or program), os.path.expanduser("~")
    if any(is_inside(found, place) for place in places):
        return places
    if any(is_inside(found, place) for place in list_covered_places(home)):
        return [*places, *list_visible_places(home, os.environ.get("PATH", ""))]
    above = os.path.dirname(os.path.dirname(found)).rstrip("/")
    return [*places, found, *(f"{above}/{part}" for part in ("lib", "libexec", "share"))]


def _confine_thread(readable: list[str]) -> None:
    from ollm.system.sandbox.kernel import AUDIT_ARCH, PR_SET_NO_NEW_PRIVS, prctl
    from ollm.system.sandbox.landlock import get_landlock_version, restrict_to_reading
    from ollm.system.sandbox.seccomp import build_helper_filter

    version = get_landlock_version()
    if not version or not AUDIT_ARCH:
        return
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    try:
        build_helper_filter().install(listen=False)
    finally:
        restrict_to_reading(readable, version)


def make_helper_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables a helper needs: none is a secret, and none runs anything."""
    return {name: environment[name] for name in HELPER_VARIABLES if name in environment}


def make_git_environment() -> dict[str, str]:
    """Return variables for git that override the settings of any repository."""
    variables = {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",  # Git must not fetch a missing object with a remote's program.
        "GIT_CONFIG_COUNT": str(len(GIT_SETTINGS)),
    }
    for number, (name, value) in enumerate(GIT_SETTINGS.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def add_settings(variables: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of git with more settings, which override those of any file."""
    count = int(variables.get("GIT_CONFIG_COUNT", "0"))
    added = {"GIT_CONFIG_COUNT": str(count + len(settings))}
    for number, (name, value) in enumerate(settings.items(), count):
        added |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {**variables, **added}
