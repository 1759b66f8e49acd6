"""Describe a sandbox: which places a command may see and change. Standard library only.

`list_places` is the one plan that every level carries out: with mounts (`mounts`, `bubblewrap`) or with Landlock rules
(`landlock`). The nearest place above a path decides about it. The home is an allow-list: everything else is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

HOMES = ("/home", "/root")
# Programs, and the libraries and tables that belong to them. Never a folder in which a tool keeps a login.
TOOLCHAINS = (
    ".cargo/bin .rustup/toolchains .rustup/settings.toml .nvm/versions .nvm/alias .nvm/nvm.sh .nvm/nvm-exec "
    ".local/share/fnm .volta/bin .volta/tools .local/bin .local/lib .local/lib64 .local/include .local/share/man "
    ".local/share/uv/python .local/share/uv/tools .local/share/pipx .local/pipx .local/share/pnpm .npm-global/bin "
    ".npm-global/lib .yarn/bin .bun/bin .bun/install/global .deno/bin .sdkman/candidates .sdkman/bin .gem/ruby "
    ".local/share/gem .local/share/mise/installs .local/share/mise/shims .asdf/bin .asdf/lib .asdf/libexec .asdf/shims "
    ".asdf/installs .asdf/asdf.sh go/bin sdk .dotnet/sdk .dotnet/shared .dotnet/host .dotnet/packs .dotnet/tools "
    ".dotnet/dotnet .ghcup/bin .ghcup/ghc .cabal/bin .stack/programs .juliaup/bin miniconda3 miniforge3 anaconda3 "
    "mambaforge .nix-profile .nix-defexpr .local/state/nix .terminfo"
).split()
VERSION_MANAGERS = (".pyenv", ".rbenv", ".jenv", ".nodenv", ".goenv")
MANAGER_PARTS = ("bin", "libexec", "shims", "versions", "version", "plugins", "pyenv.d", "rbenv.d")
# What package managers downloaded: readable, never written, since the person's own programs run it later.
CACHES = (
    ".npm/_cacache .cache/pip .cache/uv .cache/pypoetry .cache/pre-commit .cache/go-build .cache/yarn .cache/node "
    ".cache/pnpm .cache/ms-playwright .cache/puppeteer .cache/Cypress .cache/coursier .cargo/registry .cargo/git "
    ".m2/repository .m2/wrapper .gradle/caches .gradle/wrapper .bun/install/cache .yarn/berry/cache go/pkg/mod "
    ".nuget/packages .ivy2/cache"
).split()
PREFIX_PARTS = ("lib", "lib64", "libexec", "include", "versions")
PROGRAM_ENDINGS = ("bin", "shims", "Scripts")  # of the names of folders that hold programs
SHARED_DEPTH = 2  # a folder this near to the home may hold more than one program: `.local`, `.cargo`


def list_covered_places(home: str) -> list[str]:
    """The homes of all people; outermost folders only."""
    wanted = [home, find_account_home(), *HOMES]
    found = {os.path.realpath(place) for place in wanted if os.path.isdir(place)} - {"/"}
    return sorted(place for place in found if not any(place.startswith(f"{one}/") for one in found))


def list_visible_places(home: str, programs: str) -> list[str]:
    """What programs in a box see of the homes beside the workspace: the folders of a PATH and the toolchains."""
    covered = list_covered_places(home)
    left_out = list_left_out(home, programs)
    entries = [entry for entry in programs.split(":") if entry not in left_out]
    wanted = [*_list_toolchains(home), *_list_program_folders(entries, covered)]
    return list(dict.fromkeys(_resolve_all(wanted, covered)))


def _list_toolchains(home: str) -> list[str]:
    names = [*TOOLCHAINS, *CACHES, *(f"{name}/{part}" for name in VERSION_MANAGERS for part in MANAGER_PARTS)]
    return [os.path.join(one, name) for one in dict.fromkeys((home, find_account_home())) for name in names]


def list_left_out(home: str, programs: str) -> list[str]:
    """The folders of a PATH that no program in a box sees, since more than programs is in them: a home, one above it,
    and in the hidden folders of a home all that neither belongs to a toolchain nor is named as a folder of programs."""
    known = [os.path.realpath(path) for path in _list_toolchains(home)]
    return [entry for entry in filter(os.path.isabs, programs.split(":")) if _shows_too_much(entry, home, known)]


def _shows_too_much(entry: str, home: str, known: list[str]) -> bool:
    folder, homes = os.path.realpath(entry), {os.path.realpath(home), find_account_home()}
    if folder.startswith(f"{HOMES[0]}/"):
        homes.add("/".join(folder.split("/")[:3]))
    if any(is_inside(one, folder) for one in homes - {"/"}):
        return True
    hidden = any(folder.startswith(f"{one}/.") for one in homes)
    return hidden and not folder.endswith(PROGRAM_ENDINGS) and not any(is_inside(folder, one) for one in known)


def _list_program_folders(entries: Iterable[str], covered: list[str]) -> Iterator[str]:
    """Every folder of a PATH with the libraries beside it. All that lies beside it is shown for a virtual environment,
    and far below a home, where a folder belongs to one program."""
    for entry in filter(os.path.isabs, entries):
        folder = os.path.realpath(entry)
        home = next((one for one in covered if folder.startswith(f"{one}/")), None)
        if home is None:
            continue
        yield entry
        yield folder
        above = os.path.dirname(folder)
        if os.path.basename(folder) not in ("bin", "sbin", "shims", "Scripts") or above in covered:
            continue
        depth = above.removeprefix(home).count("/") - (home in HOMES[:1])
        if depth > SHARED_DEPTH or os.path.isfile(os.path.join(above, "pyvenv.cfg")):
            yield above
        else:
            yield from (os.path.join(above, part) for part in PREFIX_PARTS)


def _resolve_all(paths: Iterable[str], covered: list[str]) -> Iterator[str]:
    """Existing paths in the homes, and the places that links among them lead to."""
    for path in paths:
        if not os.path.lexists(path):
            continue
        real = os.path.realpath(path)
        for one in (path, real) if os.path.islink(path) else (real,):
            if any(one.startswith(f"{place}/") for place in covered) and os.path.lexists(one):
                yield one


@cache
def find_account_home() -> str:
    """The home of the account, whatever HOME says."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return "/"


Kind = Literal["reading", "working"]
Network = Literal["none", "loopback", "all"]
Level = Literal["full", "bubblewrap", "landlock", "seatbelt", "none"]
Access = Literal["empty", "read", "write"]
LEVELS: tuple[Level, ...] = ("full", "bubblewrap", "landlock", "none")
WHOLE_LEVELS: tuple[Level, ...] = ("full", "bubblewrap")  # with namespaces and mounts
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
BUBBLEWRAP_PLACES = (
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)
MAX_POINTER_CHARS = 4096
SCRATCH_PREFIX = "ollm-box-"  # name of temporary directories made for boxes


class Box(NamedTuple):
    """The places of one command. All paths are absolute and resolved.

    `covered` places (the homes) are empty except for what the other fields bring back: `visible` for every command of
    a session, `readable` for this one. A `working` box writes to the workspace, `writable` and `caches`, but not to
    the `protected` files in them; a `reading` box writes to its temporary directory only, and does not see
    `environment_files`. `hidden` places are empty. `approved` paths are open for this run. `scratch` is the private
    temporary directory at levels that cannot mount one; `wrapper` is the program that makes the mounts for us. `since`
    is when the first of the commands that run now was started: a socket that is older belongs to a daemon outside."""

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
    environment_files: tuple[str, ...] = ()
    scratch: str = ""
    wrapper: str = ""
    since: float = 0

    def to_fields(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Box:
        whole: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**whole)

    @property
    def session_part(self) -> Box:
        """The part that all commands of a session share."""
        none: tuple[str, ...] = ()
        mine = self._replace(readable=none, approved=none, protected=none, environment_files=none)
        return mine._replace(kind="working", network="none", since=0)

    def list_writable(self) -> list[str]:
        """Directories and files that the command may change, without its temporary places."""
        if self.kind == "reading":
            return []
        outside = [path for path in find_git_directories(self.workspace) if not is_inside(path, self.workspace)]
        return [self.workspace, *self.writable, *outside, *self.caches, *self.approved]


def list_places(box: Box) -> list[tuple[str, Access]]:
    """Every place with what a command may do there, those above first, without those that do not exist or say the
    same as the place above."""
    private = TEMPORARY_PLACES if box.kind == "reading" else ()
    places: dict[str, Access] = dict.fromkeys((*private, *box.covered), "empty")
    places |= dict.fromkeys((path for path in SYSTEM_SECRETS if os.access(path, os.R_OK)), "empty")
    places |= dict.fromkeys((*box.visible, *box.readable), "read")
    places |= dict.fromkeys(box.hidden, "empty")
    places |= dict.fromkeys(box._replace(kind="working").list_writable(), "write")
    if box.kind == "reading":
        places |= {path: "read" for path, access in places.items() if access == "write"}
        places |= dict.fromkeys(box.environment_files, "empty")
    needed: list[tuple[str, Access]] = []
    for path, access in sorted(places.items(), key=lambda one: len(one[0])):
        if os.path.lexists(path) and find_access(path, needed)[1] != access:
            needed.append((path, access))
    return needed


def find_access(path: str, places: list[tuple[str, Access]]) -> tuple[str, Access]:
    """The nearest place at or above a path, and what may be done there; the root can be read."""
    return next(((place, access) for place, access in reversed(places) if is_inside(path, place)), ("/", "read"))


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is this directory or lies in it; both absolute and resolved."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def explain_why_unboxable(workspace: str, home: str) -> str | None:
    """Return why no box can be drawn around this workspace, or None. One that contains the home or the whole system
    would have to be writable as a whole, including the secrets and start-up files in it."""
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
    """Return the path of bwrap, or "". Only system folders are searched: a program in PATH may be anybody's."""
    for place in BUBBLEWRAP_PLACES:
        try:
            found = os.stat(place)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and os.access(place, os.X_OK):
            return place
    return ""


def find_git_directories(workspace: str) -> list[str]:
    """Return the directories in which git keeps this workspace's repository: its `.git`, or for a linked worktree the
    one elsewhere, if that names this workspace in turn (the file alone proves nothing)."""
    dot_git = os.path.join(workspace, ".git")
    if os.path.islink(dot_git):
        return []
    if os.path.isdir(dot_git):
        return [dot_git]
    private = read_pointer(dot_git).removeprefix("gitdir: ")
    private = os.path.realpath(os.path.join(workspace, private)) if private else ""
    if not private or os.path.realpath(read_pointer(os.path.join(private, "gitdir")) or "/") != dot_git:
        return []
    common = os.path.realpath(os.path.join(private, read_pointer(os.path.join(private, "commondir")) or "."))
    return [common] if is_inside(private, common) else []


def read_pointer(path: str) -> str:
    """Read a file in which git names a folder, all of it as git does; empty if there is nothing to follow."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read(MAX_POINTER_CHARS + 1).rstrip("\r\n")
    except OSError:
        return ""
    return "" if "\0" in text or len(text) > MAX_POINTER_CHARS else text
