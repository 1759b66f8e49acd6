"""Describes a sandbox: the places a command may see and change. Standard library only.

`list_places` is the one plan that every level implements: with mounts (`mounts`, `bubblewrap`) or with Landlock rules
(`landlock`). The nearest place at or above a path decides. The home is an allow-list: everything else is absent.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from glob import iglob
from typing import Any, Literal, NamedTuple

from ollm.system.path_names import (
    SCRIPT_ENDINGS,
    find_executable,
    is_in_any,
    is_inside,
    list_home_places,
    list_names,
    trace_path,
)

HOMES = ("/home", "/root")
ACCOUNTS, FIRST_USER_ID, NO_SHELLS = "/etc/passwd", 1000, ("nologin", "false")
# What is shown of an installation: what programs are made of. Settings (`etc`, most of `conf`, loose files) are not.
PREFIX_PARTS = (
    "bin sbin Scripts lib lib32 lib64 libexec include share man src pkg api boot jmods jre node_modules gems "
    "specifications extensions misc conf/security conf/logging conf/logging.properties conf/net.properties "
    "conf/groovy-starter.conf ssl/certs ssl/cert.pem ssl/cacert.pem ssl/openssl.cnf conda-meta condabin "
    "Cellar opt version pyenv.d rbenv.d etc/pyenv.d etc/rbenv.d pyvenv.cfg VERSION go.env release"
).split()
LIBRARY_PARTS = ("lib", "lib64", "libexec", "share", "include", "pyvenv.cfg")  # Used if only PATH names it.
INNER_PREFIXES = ("versions", "envs", "plugins")
MARKS = ("bin", "lib", "gems", "node_modules", "pyvenv.cfg")
PREFIX_DEPTH = 3
PROGRAM_ENDINGS = ("bin", "shims", "Scripts")
SHARED_DEPTH = 2  # Several programs may share a hidden folder up to this depth, such as `.local`.


def list_covered_places(home: str, kept: Iterable[str] = ()) -> list[str]:
    """List the homes of all users; outermost folders only. Another user's home that contains one of the `kept` paths is
    left out."""
    others = [place for place in _list_account_homes() if not any(is_inside(path, place) for path in kept)]
    wanted = [home, find_account_home(), *HOMES, *others]
    found = {os.path.realpath(place) for place in wanted if os.path.isdir(place)} - {"/"}
    return sorted(place for place in found if not any(place.startswith(f"{one}/") for one in found))


def list_visible_places(home: str, programs: str, changeable: Collection[str] = ()) -> list[str]:
    """List what a sandbox shows of the homes besides the workspace: the folders of a PATH, what links in them run, and
    toolchains. No link leads on through a folder that is `changeable`."""
    covered = list_covered_places(home)
    left_out = list_left_out(home, programs)
    entries = [entry for entry in programs.split(":") if entry not in left_out]
    wanted = [*_list_toolchains(home), *_list_path_folders(entries, os.path.realpath(home), covered)]
    for steps in _list_linked_programs(entries, covered, dict.fromkeys(wanted, "read")):
        if not any(is_in_any(step, changeable) for step in steps):
            above = os.path.dirname(steps[-1])
            beside = [above] if os.path.basename(above) in PROGRAM_ENDINGS else []
            wanted += [*steps, *_list_path_folders(beside, os.path.realpath(home), covered)]
    return [path for path in dict.fromkeys(wanted) if any(path.startswith(f"{place}/") for place in covered)]


def _list_toolchains(home: str) -> Iterator[str]:
    folders, installations, others = list_home_places()
    for place in dict.fromkeys((home, find_account_home())):
        for path in _join_existing(place, folders):
            yield from _list_programs(*_resolve(path))
        for path in _join_existing(place, installations):
            yield from _find_installations(*_resolve(path))
        for path in _join_existing(place, others):
            yield from (one for found in iglob(path) for one in _resolve(found))


def list_tool_folders(home: str) -> list[str]:
    """List the folders whose names a sandboxed program can list, although only part of the content is visible."""
    places = dict.fromkeys((home, find_account_home()))
    folders, installations, _ = list_home_places()
    return [path for place in places for path in _join_existing(place, (*folders, *installations))]


def _join_existing(folder: str, names: Iterable[str]) -> list[str]:
    there = set(list_names(folder))
    return [f"{folder}/{name}" for name in names if name.partition("/")[0] in there]


def _resolve(path: str) -> list[str]:
    if not os.path.lexists(path):
        return []
    return [path, os.path.realpath(path)] if os.path.islink(path) else [path]


def _list_programs(*folders: str) -> Iterator[str]:
    """List a folder if it contains only programs, else the programs in it by name: executables and names starting with
    `lib`. Subfolders are included only among libraries. Links are not resolved."""
    for folder in folders:
        try:
            entries = [] if os.path.islink(folder) else list(os.scandir(folder))
        except OSError:
            continue
        libraries = os.path.basename(folder).startswith("lib")
        shown = [entry.path for entry in entries if _is_program(entry, libraries=libraries)]
        yield from shown if len(shown) < len(entries) else [folder]


def _is_program(entry: os.DirEntry[str], *, libraries: bool) -> bool:
    if entry.name.startswith("."):
        return False
    if entry.is_symlink() or not entry.is_file():
        return entry.is_symlink() or libraries
    return entry.name.startswith("lib") or os.access(entry.path, os.X_OK)


def _find_installations(*folders: str, depth: int = PREFIX_DEPTH) -> Iterator[str]:
    """List the parts of installations, including nested ones. Links are listed but not followed."""
    for folder in folders:
        if os.path.islink(folder):
            yield folder
            continue
        names = set(list_names(folder))
        if not names.isdisjoint(MARKS):
            yield from filter(os.path.lexists, _join_existing(folder, PREFIX_PARTS))
            yield from _list_programs(*(f"{folder}/{name}" for name in names & {"shims"}))
            yield from _find_installations(*(f"{folder}/{name}" for name in names.intersection(INNER_PREFIXES)))
        elif depth:
            yield from _find_installations(*(f"{folder}/{name}" for name in names if name[0] != "."), depth=depth - 1)


def list_left_out(home: str, programs: str) -> list[str]:
    """List the folders of a PATH that a sandbox does not show, since they contain more than programs: a home, a
    parent of one, and folders in a home's hidden folders that belong to no toolchain and are not named like program
    folders."""
    known = list(map(os.path.realpath, list_tool_folders(home)))
    return [entry for entry in filter(os.path.isabs, programs.split(":")) if _shows_too_much(entry, home, known)]


def _shows_too_much(entry: str, home: str, known: list[str]) -> bool:
    folder, homes = os.path.realpath(entry), {os.path.realpath(home), find_account_home()}
    if folder.startswith(f"{HOMES[0]}/"):
        homes.add("/".join(folder.split("/")[:3]))
    if any(is_inside(one, folder) for one in homes - {"/"}):
        return True
    hidden = any(folder.startswith(f"{one}/.") for one in homes)
    return hidden and not folder.endswith(PROGRAM_ENDINGS) and not any(is_inside(folder, one) for one in known)


def _list_path_folders(entries: Iterable[str], own: str, covered: list[str]) -> Iterator[str]:
    """The programs in every folder of a PATH in a home (our own may be deep in `/home`). The `bin` of an installation
    brings the libraries beside it; of a hidden folder near to the home, which many share, without loose files."""
    for entry in filter(os.path.isabs, entries):
        folder = os.path.realpath(entry)
        home = next((one for one in (own, find_account_home(), *covered) if folder.startswith(f"{one}/")), None)
        if home is None:
            continue
        above = os.path.dirname(folder)
        below = above.removeprefix(home)
        depth = below.count("/") - (home in HOMES[:1])
        yield from [entry] if os.path.islink(entry) else []
        yield from _list_programs(folder)
        if depth < 1 or not folder.endswith(PROGRAM_ENDINGS) or _is_in_project(above, home):
            continue
        if depth <= SHARED_DEPTH and "/." in below and not os.path.isfile(f"{above}/pyvenv.cfg"):
            yield from _list_programs(f"{above}/lib", f"{above}/lib64")
            yield from filter(os.path.isdir, (f"{above}/libexec", f"{above}/include"))
            yield from _find_installations(*(f"{above}/{name}" for name in INNER_PREFIXES))
        else:
            yield from filter(os.path.lexists, _join_existing(above, LIBRARY_PARTS))


def _list_linked_programs(entries: Iterable[str], covered: list[str], shown: Places) -> Iterator[list[str]]:
    """The links and the program at their end, for each link in a folder of a PATH that leads to a hidden program."""
    for folder in map(os.path.realpath, filter(os.path.isabs, entries)):
        if not is_in_any(folder, covered) or not os.access(folder, os.R_OK | os.X_OK):
            continue
        for link in (entry.path for entry in os.scandir(folder) if entry.is_symlink()):
            target = os.readlink(link)
            if find_access(target, shown)[0] != "/" or "/" not in target:
                continue
            *links, program = trace_path(link)
            if is_in_any(program, covered) and os.path.isfile(program) and os.access(program, os.X_OK):
                yield [*links, program]


def is_script(path: str) -> bool:
    """Return True for a file that is run, by its name or its rights."""
    return os.path.isfile(path) and (path.endswith(SCRIPT_ENDINGS) or os.access(path, os.X_OK))


def is_shared_folder(folder: str, homes: Iterable[str]) -> bool:
    """Return True for a folder with files of many programs: a home, one directly in it that is no visible repository
    (`~/.config`, `~/dev`), and the folders of `~/.local`."""
    above, name = os.path.split(folder)
    if os.path.basename(above) == ".local":
        return os.path.dirname(above) in homes
    return folder in homes or (above in homes and (name.startswith(".") or not os.path.lexists(f"{folder}/.git")))


def _is_in_project(folder: str, home: str) -> bool:
    """Return True in a repository of the home, except in a virtual environment."""
    if os.path.isfile(f"{folder}/pyvenv.cfg"):
        return False
    parts = folder.removeprefix(home).strip("/").split("/")
    first = 2 if home in HOMES[:1] else 1  # A repository that is a home itself does not count.
    return any(os.path.lexists(os.path.join(home, *parts[:count], ".git")) for count in range(first, len(parts) + 1))


@cache
def find_account_home() -> str:
    """Return the home of the account, ignoring HOME."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return "/"


@cache
def _list_account_homes() -> tuple[str, ...]:
    """List the homes of people outside the folders of the system, as far as they are written in a file (`/srv/ada`)."""
    try:
        with open(ACCOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            accounts = [fields for line in file if len(fields := line.rstrip().split(":")) == 7]
    except OSError:
        return ()
    people = [one for one in accounts if one[2].isdecimal() and int(one[2]) >= FIRST_USER_ID]
    homes = [one[5] for one in people if not one[6].endswith(NO_SHELLS) and _is_apart(one[5])]
    return tuple(filter(_is_apart, map(os.path.realpath, homes)))


def _is_apart(home: str) -> bool:
    parts = home.split("/")
    return len(parts) > 2 and parts[1] not in SYSTEM_DIRECTORIES - {"var"}


Kind = Literal["reading", "working"]
Network = Literal["none", "loopback", "all"]
Level = Literal["full", "bubblewrap", "landlock", "seatbelt", "none"]
Access = Literal["empty", "read", "write"]
LEVELS: tuple[Level, ...] = ("full", "bubblewrap", "landlock", "none")
WHOLE_LEVELS: tuple[Level, ...] = ("full", "bubblewrap")  # They have namespaces and mounts.
TEMPORARY_PLACES = ("/tmp", "/var/tmp")
SYSTEM_SECRETS = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers.d",
    "/etc/ssl/private",
)
SYSTEM_DIRECTORIES = frozenset("bin boot dev etc home lib lib64 proc root run sbin sys usr var".split())
BUBBLEWRAP_FOLDERS = ["/usr/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"]
SCRATCH_PREFIX = "ollm-box-"


class Box(NamedTuple):
    """The places of one command. All paths are absolute and resolved.

    `covered` places (the homes) are empty except for what other fields restore: `visible` for every command of a
    session, `readable` for this one. A `working` box writes to the workspace, `writable` and `caches`, but not to the
    `protected` paths in them; a `reading` box writes to its temporary directory only, and does not see
    `environment_files`. `hidden` places are empty. `approved` paths are open for this run. `repository` are places
    outside that a git line writes besides. `scratch` is the private temporary directory at levels that cannot mount
    one; `wrapper` is the program that makes the mounts for us. `since` is the start time of the oldest running command:
    an older socket belongs to a daemon outside."""

    kind: Kind
    workspace: str
    home: str
    network: Network = "none"
    covered: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    repository: tuple[str, ...] = ()
    environment_files: tuple[str, ...] = ()
    scratch: str = ""
    wrapper: str = ""
    since: float = 0

    @classmethod
    def from_fields(cls, fields: list[Any]) -> Box:
        """Read a box that was written as JSON."""
        return cls._make(tuple(value) if isinstance(value, list) else value for value in fields)

    @property
    def session_part(self) -> Box:
        """The part that all commands of a session share."""
        none: tuple[str, ...] = ()
        mine = self._replace(readable=none, approved=none, protected=none, repository=none, environment_files=none)
        return mine._replace(kind="working", network="none", since=0)

    def list_writable(self) -> list[str]:
        """List directories and files that the command may change, without its temporary places."""
        if self.kind == "reading":
            return []
        return [self.workspace, *self.writable, *self.caches, *self.approved, *self.repository]


Places = dict[str, Access]


def list_places(box: Box) -> Places:
    """Return the places of a box, parents first, without those that do not exist or have their parent's access. Files
    in a temporary place are private, so those of a box are named there."""
    places, needed = map_places(box), Places()
    for path in sorted(places, key=len):
        outer, access = find_access(path, needed)
        private = any(is_inside(path, place) and not is_inside(outer, place) for place in TEMPORARY_PLACES)
        if os.path.lexists(path) and (access != places[path] or private):
            needed[path] = places[path]
    return needed


def map_places(box: Box) -> Places:
    """Map every place that a box names to the access a command has there."""
    private = TEMPORARY_PLACES if box.kind == "reading" else ()
    places: Places = dict.fromkeys((*private, *box.covered), "empty")
    places |= dict.fromkeys((path for path in SYSTEM_SECRETS if os.access(path, os.R_OK)), "empty")
    places |= dict.fromkeys((*box.visible, *box.readable), "read")
    places |= dict.fromkeys(box.hidden, "empty")
    places |= dict.fromkeys(box._replace(kind="working").list_writable(), "write")
    if box.kind == "reading":
        places |= {path: "read" for path, access in places.items() if access == "write"}
        places |= dict.fromkeys(box.environment_files, "empty")
    return places


def find_access(path: str, places: Places) -> tuple[str, Access]:
    """Return the nearest place at or above a path, and its access; the root is readable."""
    while path and path not in places:
        path = path.rpartition("/")[0]
    return (path, places[path]) if path else ("/", "read")


def explain_why_unboxable(workspace: str, home: str) -> str | None:
    """Return why this workspace cannot be sandboxed, or None. A workspace that contains the home or the whole system
    would be writable as a whole, including the secrets and startup files in it."""
    if workspace == "/":
        return "the workspace is the whole file system"
    if workspace == home:
        return "the workspace is your home directory"
    if is_inside(home, workspace):
        return "the workspace contains your home directory"
    if os.path.dirname(workspace) == "/" and os.path.basename(workspace) in SYSTEM_DIRECTORIES:
        return f"the workspace is the system directory {workspace}"
    return None


def find_bubblewrap() -> str:
    """Return the path of bwrap, or "". Only system folders are searched: a program in PATH is not trusted."""
    found = find_executable("bwrap", BUBBLEWRAP_FOLDERS)
    return found if found and os.stat(found).st_uid == 0 else ""
