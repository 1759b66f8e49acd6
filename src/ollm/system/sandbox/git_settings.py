"""Git's settings: the files that git reads, the paths that they name, and their logins.

The sandbox protects every path that they name, since git runs such programs outside later. We parse plain files
ourselves and let git read the others. Includes are followed under any condition: a command may switch the branch.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from ollm.domain.lazy import compile_late
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.sandbox.confined import (
    GIT_SETTINGS,
    find_program,
    make_git_environment,
    make_helper_environment,
    start_confined,
)
from ollm.system.sandbox.names import (
    GIT_SETTINGS_NAMES,
    find_executable,
    find_git_directories,
    follow_dot_git,
    is_in_any,
    is_inside,
    list_names,
    list_repositories,
    normalize_name,
    read_pointer,
    read_regular,
    trace_path,
)
from ollm.system.sandbox.outside_links import (
    Visit,
    are_unchanged,
    find_files_in,
    get_state,
    list_home_links,
    read_links,
    remember,
)

# What `git init`, `clone`, `submodule` and `worktree` write, and what starts no program
NEW_REPOSITORY_KEYS = frozenset(
    "core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.symlinks "
    "core.precomposeunicode remote.url remote.fetch remote.tagopt branch.remote branch.merge branch.rebase user.name "
    "user.email submodule.url submodule.active extensions.objectformat extensions.worktreeconfig "
    "init.defaultbranch".split()
)
# What git may know of the user's settings in a sandbox
HARMLESS_SECTIONS = ("color.", "column.", "advice.")
HARMLESS_SETTINGS = frozenset(
    "user.name user.email init.defaultbranch core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev "
    "core.whitespace core.ignorecase pull.rebase pull.ff push.default merge.conflictstyle merge.ff diff.algorithm "
    "diff.renames diff.mnemonicprefix diff.colormoved rebase.autosquash rebase.autostash rerere.enabled "
    "fetch.prune branch.sort tag.sort log.date commit.verbose commit.cleanup status.short status.branch "
    "status.showuntrackedfiles".split()
)
UNNAMING_KEYS = NEW_REPOSITORY_KEYS | HARMLESS_SETTINGS
# every file in such a folder may run
FOLDER_SETTINGS = ("core.hookspath", "init.templatedir", "environment.GIT_EXEC_PATH", "environment.GIT_TEMPLATE_DIR")
SCOPE_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
PROGRAM_VARIABLES = ("EDITOR", "VISUAL", "PAGER", "SSH_ASKPASS")  # that git runs, beside those named GIT_
NAMED = "is named by git's settings"
_COMPUTED = r"(?:\$\([^()]*\)|`[^`]*`|\$\{[^}]*\}|\$\w+)[\"']?/?"  # by a shell, and the slash after it
_SPLITS = (r"[\"'`\n]", r"[\s\"'`;|&()<>]", r"[\"'`;|&(){}<>=$\n]", r"[\s\"'`;|&(){}<>=$,:!*?\[\]#%]")
_ADDRESS = r"\b[a-zA-Z][\w+.-]*://\S*"
MAX_WORD_CHARS = 1024
_LOGIN = compile_late(rb"(?i)extraheader|https?://[^/\s\"]*@|://[^/\s\"@]*:[^/\s\"]*@")

Settings = list[tuple[str, str]]


def _ignore(_path: str) -> None:
    pass


class GitNames(NamedTuple):
    """What settings name, as they name it. `files` are settings files, also included ones. `folders` are those of
    programs, `values` the words of each setting; both are relative to the top of a worktree. `unread` are settings that
    git cannot read: they may name anything."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    values: frozenset[frozenset[str]] = frozenset()
    unread: bool = False

    def find_paths(self, tops: Iterable[str], opened: Iterable[str] = (), *, new: bool = False) -> set[str]:
        """Return the absolute paths that the settings name in worktrees, except for words of commands in `opened`
        folders. If files may be `new`, those do not count whose names are plain words."""
        tops, get_kind = dict.fromkeys(tops), cache(_get_kind)  # most settings share words
        found = {path for top in tops for words in self.values for path in _find_files(words, top, get_kind, new=new)}
        if self.unread:
            found.update(os.path.join(top, name) for top in tops for name in list_names(top) if name != ".git")
        found = {path for path in found if not is_in_any(path, opened)}
        return {*found, *self.files, *(os.path.join(top, folder) for top in tops for folder in self.folders)}


def _find_files(words: frozenset[str], top: str, get_kind: Callable[[str], int], *, new: bool) -> Iterator[str]:
    """Find the files that words of a setting may mean: at the top, or in a folder that another word names, since a
    program may change its folder first. One with a slash or a dot may still be missing."""
    paths = {word: f"{top}/{word}" if word[0] != "/" else word for word in words}
    places = [path for path in paths.values() if get_kind(path) == stat.S_IFDIR and is_inside(path, top)]
    for word, path in paths.items():
        likely = ("/" in word or "." in word) and " " not in word
        for one in (path, *(f"{place}/{word}" for place in places if word[0] != "/")):
            kind = get_kind(one)
            if (likely and kind != stat.S_IFDIR) or (kind == stat.S_IFREG and not new):
                yield one
        yield from find_files_in(word, top) if top in word else ()


def _get_kind(path: str) -> int:
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return 0


def read_names(files: Iterable[str], home: str, visit: Visit = _ignore, more: Iterable[Settings] = ()) -> GitNames:
    """Return what settings files name, with those that they include, and `more` settings."""
    read = read_files(files, home, visit)
    named = [_find_names(tuple(settings), home) for settings in (*more, *read.values()) if settings]
    folders = frozenset(folder for some, _ in named for folder in some)
    values = frozenset(words for _, some in named for words in some)
    return GitNames(frozenset(read), folders, values, None in read.values())


def read_shared_names(places: Iterable[str], home: str, visit: Visit = _ignore) -> tuple[GitNames, list[str], set[str]]:
    """Return what the settings name that hold in every repository in these places: the user's, the system's, those of
    the environment, and those of a repository around a place; the tops of the worktrees that they are for; and the
    repositories around the places."""
    around = dict(_locate_repository(place, visit) for place in places)
    gits = {git for some in around.values() for git in some}
    outer = [git for git in gits if not any(git != other and is_inside(git, other) for other in gits)]
    files = [file for git in outer for file in list_settings_files(git, visit)]
    files = [*list_global_files(home), *list_system_files(), *files]
    return read_names(files, home, visit, [_read_environment()]), [*places, *filter(None, around)], gits


def _locate_repository(folder: str, visit: Visit = _ignore) -> tuple[str, list[str]]:
    """Return the top of the worktree that a folder is in, and the directories in which git keeps its repository, as git
    finds them; "" and none if it is in no worktree."""
    visit(os.path.join(folder, ".git"))
    while not os.path.lexists(dot_git := os.path.join(folder, ".git")):
        if folder == (folder := os.path.dirname(folder)):
            return "", []
        visit(os.path.join(folder, ".git"))
    places = dict.fromkeys(follow_dot_git(dot_git))
    visit(os.path.join(next(iter(places)), "commondir"))
    return folder, [*places]


def list_settings_files(git: str, visit: Visit = _ignore) -> list[str]:
    """List the settings files of a repository and of the submodules and worktrees in it."""
    return [os.path.join(folder, name) for folder in list_repositories(git, visit) for name in GIT_SETTINGS_NAMES]


def explain_outside_use(path: str, root: str) -> str | None:
    """Return why programs outside of the sandbox use a file below a root, or None: git's settings or a link in the home
    lead to it, or git cannot read its settings."""
    named = remember(_find_used, root, os.path.dirname(path))
    if named is None:
        return "git's settings could not be read, and may name it"
    why = next((why for one, why in named.items() if is_inside(path, one)), None)
    if why == NAMED and (setting := _find_naming_setting(path, root)):
        why = f"{why} ({_show_setting(setting)})"
    return why and f"{os.path.basename(path)} {why}"


def _show_setting(name: str) -> str:
    """Show the name of a setting. Its free-form middle part may be an address with a login."""
    section, _, rest = name.partition(".")
    middle, _, key = rest.rpartition(".")
    return name if not middle or re.fullmatch(r"[\w-]+", middle) else f"{section}.….{key}"


def _find_naming_setting(path: str, root: str) -> str:
    """Return the setting that names a file, or ""."""
    home, places = os.path.expanduser("~"), dict.fromkeys((root, os.path.dirname(path)))
    names, tops, _ = read_shared_names(places, home)
    for settings in (_read_environment(), *read_files(names.files, home).values()):
        for setting in settings or ():
            folders, values = _find_names((setting,), home)
            alone = GitNames(folders=folders, values=values)
            if any(is_in_any(path, trace_path(named)) for named in alone.find_paths(tops)):
                return setting[0]
    return ""


def _find_used(root: str, folder: str, visit: Visit) -> dict[str, str] | None:
    """Return the paths that settings and links in the home lead to, for a folder below a root, and why; None if git
    cannot read its settings."""
    names, tops, repositories = read_shared_names(dict.fromkeys((root, folder)), os.path.expanduser("~"), visit)
    if names.unread:
        return None
    for word in {*names.folders, *(word for words in names.values for word in words)}:
        for top in tops:
            visit(os.path.join(top, word))
    folders = [os.path.join(git, "hooks") for git in repositories]
    for hooks in folders:
        visit(hooks)
    links = [link for hooks in folders for link in (hooks, *remember(read_links, hooks)[0])]
    used = {link: f"is used through {os.path.basename(link)}" for link in list_home_links([root])}
    used |= dict.fromkeys((*links, *names.find_paths(tops)), NAMED)
    traced = ((one, why) for path, why in used.items() for one in trace_path(path))
    return {one: why for one, why in traced if one != root and is_inside(one, root)}


def list_global_files(home: str) -> list[str]:
    """List the files in which git looks for a user's settings."""
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [named]
    above = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [os.path.join(home, ".gitconfig"), os.path.join(above, "git", "config")]


def list_system_files() -> list[str]:
    """List the files in which git looks for the system's settings: where it is installed, or in /etc."""
    if named := os.environ.get("GIT_CONFIG_SYSTEM"):
        return [named]
    return _list_installed_files(os.environ.get("PATH", os.defpath))


@cache
def _list_installed_files(programs: str) -> list[str]:
    found = find_executable("git", programs.split(":")) or "/usr/bin/git"
    prefixes = (os.path.dirname(os.path.dirname(path)) for path in (found, os.path.realpath(found)))
    return [*dict.fromkeys(("/etc/gitconfig", *(os.path.join(prefix, "etc/gitconfig") for prefix in prefixes)))]


@cache
def _read_environment() -> Settings:
    """Return the settings and programs that environment variables give to git."""
    given = {name: value for name, value in os.environ.items() if name.startswith("GIT_") or name in PROGRAM_VARIABLES}
    named = {key: name.lower() for key, name in given.items() if key.startswith("GIT_CONFIG_KEY_")}
    return [(named.get(name.replace("_VALUE_", "_KEY_"), f"environment.{name}"), given[name]) for name in given]


def read_files(files: Iterable[str], home: str, visit: Visit = _ignore) -> dict[str, Settings | None]:
    """Return the settings in files, and in all that they include; None for a file that git cannot read."""
    found: dict[str, Settings | None] = {}
    waiting = [*files]
    while waiting:
        named = waiting.pop(0)
        file = os.path.normpath(named)
        if file != named and os.path.realpath(file) != os.path.realpath(named):
            file = os.path.realpath(named)
        if file not in found:
            visit(file)
            found[file] = settings = remember(_read_file, file, home)
            waiting += filter(None, (_find_include(name, value, file, home) for name, value in settings or ()))
        found.setdefault(named, [])  # `a/../b` leads elsewhere if somebody makes `a` a link
    return found


def _read_file(file: str, home: str, visit: Visit) -> Settings | None:
    visit(file)
    try:
        regular = stat.S_ISREG(os.stat(file).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return None
    if file == os.devnull or not regular:
        return [] if file == os.devnull else None
    settings = parse_plain_file(file)
    if settings is None:
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        arguments = ["config", "--no-includes", "--file", file]
        settings = _ask_git(home, arguments, "/", [file, os.path.realpath(file)], alone)
    return settings


def parse_plain_file(file: str) -> Settings | None:
    """Return the settings in a file, or None if git has to read it: for escapes, quotes in a value, a comment after one
    and control characters."""
    try:
        text = read_regular(file).decode()
    except (OSError, UnicodeDecodeError):
        return None
    found, section = Settings(), ""
    for line in (line.strip(" \t") for line in text.split("\n")):
        if header := re.fullmatch(r'\[([A-Za-z0-9-]+)(?: "([^"\\\]]*)")?\]', line):
            section = header[1].lower() + ("." if header[2] is None else f".{header[2]}.")
        elif setting := re.fullmatch(r"([A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=[ \t]*(\"[^\"\\]*\"|[^\"\\#;]*))?", line):
            value = "true" if setting[2] is None else setting[2].strip('"')
            found.append((section + setting[1].lower(), value))
        elif line and line[0] not in "#;":
            return None
        if not line.replace("\t", " ").isprintable():
            return None
    return found if all("." in name for name, _ in found) else None


def is_harmless_setting(name: str, value: str, keys: frozenset[str]) -> bool:
    key = f"{name.partition('.')[0]}.{name.rpartition('.')[2]}"  # without its free-form middle part
    return key in keys and "::" not in value and not value.startswith("-")


def _find_include(name: str, value: str, file: str, home: str) -> str:
    """Return the file that a setting includes, or ""."""
    section, _, key = name.partition(".")
    if section.lower() not in ("include", "includeif") or not key.endswith("path"):
        return ""
    return os.path.join(os.path.dirname(file), _expand(value, home))


def _expand(value: str, home: str) -> str:
    return os.path.join(home, value[2:]) if value.startswith("~/") else os.path.expandvars(os.path.expanduser(value))


@lru_cache(maxsize=256)
def _find_names(settings: tuple[tuple[str, str], ...], home: str) -> tuple[frozenset[str], frozenset[frozenset[str]]]:
    """Return the folders that settings name, and the words of each setting. Any value may be a command: no list of
    settings that run programs is complete."""
    folders = frozenset(_expand(value, home) for name, value in settings if name in FOLDER_SETTINGS)
    others = [(name, value) for name, value in settings if name not in FOLDER_SETTINGS]
    others = [one for one in others if not one[0].startswith(HARMLESS_SECTIONS)]
    values = (value for name, value in others if not is_harmless_setting(name, value, UNNAMING_KEYS))
    return folders, frozenset(filter(None, (_find_words(value, home) for value in values)))


def _find_words(value: str, home: str) -> frozenset[str]:
    """Return the parts of a value that may be paths: split at quotes, at blanks and at whatever is rare in paths. After
    something that a shell computes, the rest may be relative."""
    value = value.removeprefix("!")
    own = re.sub(r"\$HOME\b|\$\{HOME\}|(?<![^\s\"'=:,(!])~(?=/)", lambda _: home, value)
    own = own.replace("\\ ", "\0")
    texts = {value, own, os.path.expandvars(own), re.sub(_COMPUTED, "\n", own)}
    texts |= {re.sub(r"[\"'\\]", "", text) for text in texts}
    texts = {re.sub(_ADDRESS, "\n", text) for text in texts}
    parts = {part.replace("\0", " ").strip() for text in texts for split in _SPLITS for part in re.split(split, text)}
    parts |= {whole for whole in (value, own.replace("\0", " ")) if "://" not in whole}
    return frozenset(part for part in parts if part.strip("./") and part[0] != "-" and len(part) < MAX_WORD_CHARS)


def has_login(file: str) -> bool:
    """Return True for settings of git with a login in an address, or a header that may be one."""
    try:
        return _LOGIN.search(read_regular(file)) is not None
    except OSError:
        return False


def find_settings_with_login(git: str) -> str | None:
    """Return a file of settings of a repository, or of one in it, that holds a login; also one that they include."""
    files = list_settings_files(git) if os.path.isdir(git) else []
    return next(filter(has_login, read_files(files, os.path.expanduser("~"))), None)


def explain_login(path: str, root: str) -> str | None:
    """Return why reading a file below a root shows a login of git, or None."""
    name, above = normalize_name(os.path.basename(path)), os.path.dirname(path)
    own = name in GIT_SETTINGS_NAMES and os.path.lexists(os.path.join(above, "HEAD"))
    own = own or path in remember(_list_all_files, root)
    return f"{os.path.basename(path)} contains a login for git" if own and has_login(path) else None


def _list_all_files(root: str, visit: Visit) -> frozenset[str]:
    """List the settings files of the repository at a root, and those that they include."""
    visit(os.path.join(root, ".git"))
    files = [file for git in find_git_directories(root) for file in list_settings_files(git, visit)]
    return frozenset(read_files(files, os.path.expanduser("~"), visit))


def read_git_settings(home: str, *options: str, directory: str = "/", scope: tuple[str, ...] = ()) -> Settings | None:
    """Return git's settings in a directory by name, effective ones last; [] without git, or None if git cannot read
    them. `options` come before its subcommand, `scope` after it."""
    repositories = [directory, *_locate_repository(directory)[1]]
    files = [file for folder in repositories[1:] for file in list_settings_files(folder)]
    named = {name: os.environ[name] for name in SCOPE_VARIABLES if name in os.environ}
    included = read_files([*list_global_files(home), *list_system_files(), *files], home)
    arguments = [*options, "config", "--includes", *scope]
    return _ask_git(home, arguments, directory, [*repositories, "/etc", *included], named)


def _ask_git(
    home: str, arguments: list[str], directory: str, readable: Iterable[str], named: Mapping[str, str]
) -> Settings | None:
    try:
        said = run_git(home, [*arguments, "--null", "--list"], directory, readable, named)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    items = (item.partition("\n") for item in said.decode("utf-8", "surrogateescape").split("\0") if item)
    found = [(name, value if newline else "true") for name, newline, value in items]
    ours = {(name.lower(), value) for name, value in GIT_SETTINGS.items()}
    return [setting for setting in found if setting not in ours]


def run_git(
    home: str, arguments: list[str], directory: str, readable: Iterable[str], named: Mapping[str, str]
) -> bytes:
    """Return what git prints, or nothing without git."""
    program = find_program("git")
    if program is None:
        return b""

    def run() -> subprocess.CompletedProcess[bytes]:
        environment = {**make_helper_environment(os.environ), **named, **make_git_environment(), "HOME": home}
        command = [program, *arguments]
        return subprocess.run(command, cwd=directory, env=environment, capture_output=True, timeout=10, check=True)

    return start_confined(run, program, readable).stdout


def ask_repository(git: str, *words: str, visit: Visit = _ignore, **named: str) -> bytes:
    """Return what git prints about a repository. `visit` is called with its settings."""
    folders = [*dict.fromkeys(follow_dot_git(git))]
    settings = read_files([file for folder in folders for file in list_settings_files(folder)], "", visit)
    objects = read_pointer(os.path.join(folders[-1], "objects/info/alternates")).splitlines()
    given = {"GIT_DIR": git, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **named}
    return run_git("/", [*words], "/", [*folders, *settings, *objects], given)


def write_git_settings(file: Path, home: str, workspace: str) -> str:
    """Write the harmless part of git's global settings for a workspace, if changed, and return the path. The first line
    records the state of every source file."""
    import json

    repository = [os.path.join(git, "config") for git in find_git_directories(workspace)]  # conditions may look at it
    sources = [*list_global_files(home), *repository]
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as kept:
            states = json.loads(kept.readline().removeprefix("# "))
        if [*states][: len(sources)] == sources and are_unchanged(states):
            return str(file)
    except (OSError, ValueError, TypeError, AttributeError):
        pass
    make_private_directory(file.parent)
    states = {source: get_state(source) for source in read_files(sources, home)}
    lines = [f"# {json.dumps(states)}"]
    if any(map(os.path.exists, list_global_files(home))):
        lines += _render_harmless_settings(read_git_settings(home, directory=workspace, scope=("--global",)) or ())
    replace_file(file, "\n".join([*lines, ""]).encode("utf-8", "surrogateescape"), durable=False)
    return str(file)


def _render_harmless_settings(settings: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in settings:
        if (name in HARMLESS_SETTINGS or name.startswith(HARMLESS_SECTIONS)) and "://" not in value:
            section, _, key = name.rpartition(".")
            quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            first, _, inner = section.partition(".")
            yield f'[{first} "{inner}"]' if inner else f"[{first}]"
            yield f'\t{key} = "{quoted}"'
