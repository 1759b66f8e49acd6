"""Links outside of a workspace that lead into it, and results that are kept as long as the files behind them are as
they were. Standard library only."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, TypeVar

from ollm.system.sandbox.names import OWN_PLACES, is_in_any, is_inside, list_names, read_target, trace_path

Visit = Callable[[str], None]  # is called with every path on which a result depends
T = TypeVar("T")
MAX_REMEMBERED = 4000
HOME_LINKS_SECONDS = 5
CLOCK_STEP_NS = 20_000_000  # times of files are no more exact than that
HOME_DEPTH, MAX_HOME_FOLDERS = 3, 400


_remembered: dict[tuple[object, ...], tuple[dict[str, list[int] | None], Any]] = {}


def remember(make: Callable[..., T], *arguments: object) -> T:
    """Return what a function returned for these arguments, until one of the paths that it visited has changed. What
    could not be read (None) or has changed just now, and may change again within a step of the clock, is not kept."""
    key = (make, *arguments)
    states, value = _remembered.get(key, ({"": []}, None))
    if are_unchanged(states):
        return value  # type: ignore[no-any-return]
    if len(_remembered) >= MAX_REMEMBERED:
        _remembered.clear()
    states, began = {}, time.time()
    value = make(*arguments, lambda path: states.setdefault(path, get_state(path)))
    # a new entry changes its folder too
    needed = {path: state for path, state in states.items() if state or os.path.dirname(path) not in states}
    if value is not None and are_settled(states.values(), began):
        _remembered[key] = needed, value
    return value


def are_settled(states: Iterable[list[int] | None], began: float) -> bool:
    """Return True if files in these states change their times with any change since this moment."""
    return all(state is None or state[0] < began * 10**9 - CLOCK_STEP_NS for state in states)


def are_unchanged(states: Mapping[str, object]) -> bool:
    return all(get_state(path) == state for path, state in states.items())


def get_state(path: str) -> list[int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return [about.st_ctime_ns, about.st_ino, about.st_size]


def list_home_links(roots: Iterable[str]) -> list[str]:
    """List the links outside of the roots that lead into them, in the home and in folders of PATH, as of the last few
    seconds."""
    return _read_home_links(tuple(roots), int(time.monotonic()) // HOME_LINKS_SECONDS)


@lru_cache(maxsize=8)
def _read_home_links(roots: tuple[str, ...], _moment: int) -> list[str]:
    def read(folder: str) -> tuple[list[str], list[str]]:
        return remember(_read_leading_links, folder, roots)

    homes = filter(None, (os.path.expanduser("~"), os.environ.get("OLLM_HOME")))
    programs = {os.path.realpath(entry) for entry in os.environ.get("PATH", "").split(":") if os.path.isabs(entry)}
    links = [link for home in homes for link in find_home_links(home, read)]
    links += [link for folder in sorted(programs) for link in read(folder)[0]]
    return [link for link in dict.fromkeys(links) if not is_in_any(link, roots)]


def _read_leading_links(folder: str, roots: tuple[str, ...], visit: Visit) -> tuple[list[str], list[str]]:
    links, folders = read_links(folder, visit)
    read = cache(read_target)  # most links of a folder have the same folders above them
    traced = ((link, trace_path(link, read)) for link in links)
    return [link for link, places in traced if any(is_in_any(one, roots) for one in places)], folders


def list_opened(roots: Sequence[str]) -> list[str]:
    """List the folders in a workspace, which is the first root, that the settings open."""
    return [root for root in roots[1:] if is_inside(root, roots[0]) and os.path.basename(root) != ".git"]


def list_named_files(roots: Sequence[str]) -> set[str]:
    """Return the files in the roots that variables of the environment name: programs outside read or run them."""
    opened = list_opened(roots)
    values, parts = _split_values(*os.environ.values())
    found = {*filter(os.path.isfile, parts), *(file for value in values for file in find_files_in(value, *roots))}
    return {file for file in found if not is_in_any(file, opened)}


@lru_cache(maxsize=1)
def _split_values(*values: str) -> tuple[set[str], set[str]]:
    """Return the values that may name files, and their parts that are absolute paths."""
    naming = {value for value in values if "/" in value}
    parts = {part for value in naming for part in (value, *re.split(r"[:\s]", value)) if part.startswith("/")}
    return naming, parts


def find_files_in(text: str, *roots: str) -> Iterator[str]:
    """Find the files below roots that a text names with their full paths, in whatever surroundings: quotes, an option,
    a list. Names may contain blanks, so each path that exists counts."""
    for root in roots:
        plain = text.replace("\\", "") if "\\" in text else text
        for rest in (*text.split(f"{root}/")[1:], *plain.split(f"{root}/")[1:]) if root in plain else ():
            ends = (match.start() for match in re.finditer(r"[^\w.-]|$", rest))
            yield from (path for end in ends if os.path.isfile(path := f"{root}/{rest[:end]}"))


def list_loaded_files(roots: Iterable[str]) -> Iterator[str]:
    """List the files below the roots that programs outside load because of the environment: modules and libraries in
    the folders where Python and the loader look first."""
    own, others = _resolve_own(*sys.path)
    for folder in _find_folders("PYTHONPATH", roots) | own | ({*map(os.path.realpath, others)} - OWN_PLACES):
        if is_in_any(folder, roots):
            yield from [folder] if os.path.isfile(folder) else _find_names(folder, _list_module_names())
            yield from _find_names(os.path.join(folder, "__pycache__"), _list_module_names())
    for folder in _find_folders("LD_LIBRARY_PATH", roots):
        yield os.path.join(folder, "glibc-hwcaps")
        yield from _find_names(folder, _list_library_names())
    for variable in ("LD_PRELOAD", "LD_AUDIT", "OPENSSL_CONF"):
        yield from _find_folders(variable, roots)
    yield from filter(None, (getattr(sys.modules.get("site"), "USER_SITE", None), sys.pycache_prefix))


@lru_cache(maxsize=1)
def _resolve_own(*entries: str) -> tuple[set[str], list[str]]:
    """Resolve the entries where no command changes a link. Return them, and the others as they are."""
    own = [entry for entry in entries if is_in_any(entry, OWN_PLACES)]
    return {*map(os.path.realpath, own)} - OWN_PLACES, [entry for entry in entries if entry not in own]


def _find_folders(variable: str, roots: Iterable[str]) -> set[str]:
    """Return the folders below the roots that a variable names. An empty name is the current folder."""
    value = os.environ.get(variable)
    folders = {os.path.realpath(name) for name in value.split(":")} if value else set()
    return {folder for folder in folders if is_in_any(folder, roots)}


def _find_names(folder: str, names: Container[str]) -> Iterator[str]:
    return (os.path.join(folder, name) for name in list_names(folder) if name.partition(".")[0] in names)


@cache
def _list_module_names() -> frozenset[str]:
    """Names of modules that were loaded when the first command began, and of those that Python tries to load."""
    warnings = re.findall(r"\w+", os.environ.get("PYTHONWARNINGS", ""))
    return frozenset({"sitecustomize", "usercustomize", *warnings, *(name.partition(".")[0] for name in sys.modules)})


@cache
def _list_library_names() -> frozenset[str]:
    """Names of the libraries in the folders from which this process has loaded some."""
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        folders = {os.path.dirname(line.split(None, 5)[5].strip()) for line in file if ".so" in line}
        return frozenset(name.partition(".")[0] for folder in folders for name in list_names(folder) if ".so" in name)
    return frozenset()


def find_home_links(home: str, read: Callable[[str], tuple[list[str], list[str]]]) -> Iterator[str]:
    """Find the links that a person has made in the home: at its top, and in its hidden folders three levels down.
    Programs read settings and start-up files through them. `read` returns the links and the folders in a folder."""
    waiting = [(home, 0)]
    for folder, depth in waiting:  # grows
        links, folders = read(folder)
        yield from links
        inner = folders if depth else [one for one in folders if os.path.basename(one).startswith(".")]
        waiting += [(one, depth + 1) for one in inner if depth < HOME_DEPTH][: MAX_HOME_FOLDERS - len(waiting)]


def read_links(folder: str, visit: Callable[[str], None]) -> tuple[list[str], list[str]]:
    """Return the links and the folders in a folder. `visit` is called with it before it is read."""
    visit(folder)
    try:
        entries = [*os.scandir(folder)]
    except OSError:
        return [], []
    links = [entry.path for entry in entries if entry.is_symlink()]
    return links, sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
