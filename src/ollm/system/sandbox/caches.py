"""Separate cache folders for package managers in sandboxes: one for each workspace, and one for each server.

The user's own caches are never written, because their content later runs outside the sandbox.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

from ollm.system.atomic import replace_file
from ollm.system.beneath import make_readable
from ollm.system.folders import measure_bytes
from ollm.system.sandbox.box import TEMPORARY_PLACES

DAY_SECONDS = 86_400
MAX_CACHE_BYTES = 10 * 1024**3
VARIABLES = {
    "npm_config_cache": "npm",
    "PNPM_HOME": "pnpm",
    "YARN_GLOBAL_FOLDER": "yarn",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "UV_CACHE_DIR": "uv",
    "UV_TOOL_DIR": "uv-tools",
    "PIP_CACHE_DIR": "pip",
    "POETRY_CACHE_DIR": "poetry",
    "PRE_COMMIT_HOME": "pre-commit",
    "CARGO_HOME": "cargo",
    "GOPATH": "go",
    "GOCACHE": "go/build",
    "GRADLE_USER_HOME": "gradle",
    "NUGET_PACKAGES": "nuget",
    "DENO_DIR": "deno",
    "BUNDLE_USER_CACHE": "bundle",
    "XDG_CACHE_HOME": "other",
}
# Where a command installs programs for all projects, and the folders in which they then are. Nothing outside a sandbox
# looks there.
INSTALL_VARIABLES = {
    "GEM_HOME": "gem",
    "GEM_SPEC_CACHE": "gem/specs",
    "GOBIN": "go/bin",
    "UV_TOOL_BIN_DIR": "uv-tools-bin",
    "PIPX_HOME": "pipx",
    "PIPX_BIN_DIR": "pipx/bin",
    "BUN_INSTALL_GLOBAL_DIR": "bun-global",
    "BUN_INSTALL_BIN": "bun-global/bin",
    "pnpm_config_store_dir": "pnpm/store",
}
INSTALLED_PROGRAMS = (
    "cargo/bin go/bin gem/bin npm-global/bin pnpm pnpm/bin bun-global/bin uv-tools-bin pipx/bin".split()
)
# npm asks for a newer version at every start; without a network it is to take what it has soon
SHORT_WAITS = {"npm_config_fetch_retry_mintimeout": "500", "npm_config_fetch_retry_maxtimeout": "1000"}
BROWSERS = ("ms-playwright", "puppeteer", "Cypress")


def make_cache_environment(folder: Path, home: str) -> dict[str, str]:
    """Return variables that redirect downloads to our folder. Maven has no variable for its repository alone. Browsers
    that are already installed are found through a link."""
    for name in BROWSERS:
        theirs, ours = Path(home, ".cache", name), folder / "other" / name
        if theirs.is_dir() and not os.path.lexists(ours) and not ours.parent.is_symlink():
            ours.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            ours.symlink_to(theirs)
    added = {name: str(folder / place) for name, place in VARIABLES.items()}
    maven = f"{os.environ.get('MAVEN_OPTS', '')} -Dmaven.repo.local={folder / 'maven'}"
    return {**added, **SHORT_WAITS, "MAVEN_OPTS": maven.strip()}


def make_temporary_environment(folder: str) -> dict[str, str]:
    """Return variables that lead to the temporary folder of a command. Java finds /tmp alone by itself."""
    if folder == TEMPORARY_PLACES[0]:
        return {"XDG_RUNTIME_DIR": folder}
    java = f"{os.environ.get('GRADLE_OPTS', '')} -Djava.io.tmpdir={folder}"
    return {"TMPDIR": folder, "XDG_RUNTIME_DIR": folder, "GRADLE_OPTS": java.strip()}


def make_install_environment(folder: Path, settings: Path) -> dict[str, str]:
    """Return variables with which a command installs programs in our folder, and as PATH the folders that have them
    then. npm is told by `settings`, which add one line to the system's: with a variable for it nvm refuses to work."""
    systems = [file for place in ("/", "/usr", "/usr/local") if os.access(file := f"{place}/etc/npmrc", os.R_OK)]
    texts = [*(Path(file).read_bytes() for file in systems), b"prefix=" + os.fsencode(folder / "npm-global"), b""]
    if not settings.is_file() or settings.read_bytes() != b"\n".join(texts):
        replace_file(settings, b"\n".join(texts), durable=False)
    added = {name: str(folder / place) for name, place in INSTALL_VARIABLES.items()}
    programs = ":".join(str(folder / place) for place in INSTALLED_PROGRAMS)
    return {**added, "npm_config_globalconfig": str(settings), "PATH": programs}


def measure_cache(cache: Path) -> dict[Path, int]:
    """Return the bytes that package managers store for each workspace and each server. Links of commands may lead
    anywhere."""
    folders = (cache / "box", cache / "servers")
    places = (place for folder in folders if folder.is_dir() for place in sorted(folder.iterdir()))
    return {place: measure_bytes(place) for place in places}


def limit_cache(cache: Path, most: int = MAX_CACHE_BYTES) -> int:
    """Remove the least recently used caches until the rest fits; return the bytes removed. Those of servers come last:
    a server may keep its data beside its code."""
    sizes = measure_cache(cache)
    over, removed = sum(sizes.values()) - most, 0
    for place in sorted(sizes, key=lambda place: (place.parent.name == "servers", place.lstat().st_mtime)):
        if removed >= over:
            break
        removed += sizes[place]
        with suppress(OSError):
            _empty(place)
    return removed


def _empty(place: Path) -> None:
    """Empty a folder. It is held open, since a command may put a link in its place."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in os.listdir(descriptor):
            if stat.S_ISDIR(os.lstat(name, dir_fd=descriptor).st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)
            else:
                os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def limit_once_a_day(cache: Path) -> None:
    """Limit the size of the caches, which requires walking them, at most once a day."""
    stamp = cache / "box-checked"
    try:
        fresh = time.time() - stamp.stat().st_mtime < DAY_SECONDS
    except OSError:
        fresh = False
    if not fresh:
        stamp.touch()
        limit_cache(cache)


def clean_cache(cache: Path) -> int:
    """Remove everything and return the bytes removed."""
    size = sum(measure_cache(cache).values())
    for folder in (cache / "box", cache / "servers"):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():  # A program may have left folders without rights.
            make_readable(folder)
            shutil.rmtree(folder, ignore_errors=True)
    return size
