"""The home as an allow-list: what a boxed program sees of it. Everything else is not there. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache

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
SHARED_DEPTH = 2  # a folder this near to the home may hold more than one program: `.local`, `.cargo`


def list_covered_places(home: str) -> list[str]:
    """The homes of all people; outermost folders only."""
    wanted = [home, find_account_home(), *HOMES]
    found = {os.path.realpath(place) for place in wanted if os.path.isdir(place)} - {"/"}
    return sorted(place for place in found if not any(place.startswith(f"{one}/") for one in found))


def list_visible_places(home: str, programs: str) -> list[str]:
    """What programs in a box see of the homes beside the workspace: the folders of a PATH and the toolchains."""
    covered = list_covered_places(home)
    names = [*TOOLCHAINS, *CACHES, *(f"{name}/{part}" for name in VERSION_MANAGERS for part in MANAGER_PARTS)]
    wanted = [os.path.join(one, name) for one in dict.fromkeys((home, find_account_home())) for name in names]
    wanted += _list_program_folders(programs, covered)
    return list(dict.fromkeys(_resolve_all(wanted, covered)))


def _list_program_folders(programs: str, covered: list[str]) -> Iterator[str]:
    """Every folder of a PATH with the libraries beside it. All that lies beside it is shown for a virtual environment,
    and far below a home, where a folder belongs to one program."""
    for entry in filter(os.path.isabs, programs.split(":")):
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
