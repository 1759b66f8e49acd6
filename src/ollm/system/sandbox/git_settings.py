"""Git's settings: which of them are harmless, those of a directory, and those that a sandbox may know."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ollm.system.atomic import make_private_directory, read_small_file, replace_file
from ollm.system.path_names import (
    find_executable,
    find_git_directories,
    follow_dot_git,
    is_in_any,
    is_inside,
    read_pointer,
    trace_path,
    writable_roots,
)
from ollm.system.paths import has_login
from ollm.system.sandbox.confined import (
    GIT_SETTINGS,
    find_program,
    make_git_environment,
    make_helper_environment,
    start_confined,
)
from ollm.system.sandbox.repositories import SETTINGS_NAMES, Repository, list_git_directories

# Settings that name no program and no path, whatever their value. A middle part (`branch.NAME.merge`) is left out.
HARMLESS_SECTIONS = ("color.", "column.", "advice.")
HARMLESS_SETTINGS = frozenset(
    "user.name user.email author.name author.email committer.name committer.email init.defaultbranch core.autocrlf "
    "core.eol core.safecrlf core.quotepath core.abbrev core.whitespace core.ignorecase core.filemode core.symlinks "
    "core.precomposeunicode core.protectntfs core.commentchar core.compression core.bigfilethreshold "
    "pull.rebase pull.ff push.default push.autosetupremote push.followtags merge.conflictstyle merge.ff merge.log "
    "merge.renames diff.algorithm diff.renames diff.mnemonicprefix diff.colormoved diff.context diff.noprefix "
    "rebase.autosquash rebase.autostash rebase.updaterefs rerere.enabled rerere.autoupdate fetch.prune fetch.prunetags "
    "branch.sort branch.autosetupmerge branch.autosetuprebase tag.sort log.date log.decorate log.abbrevcommit "
    "commit.verbose commit.cleanup commit.status status.short status.branch status.showuntrackedfiles "
    "status.relativepaths stash.showpatch grep.linenumber blame.date gc.auto maintenance.auto help.autocorrect "
    "versionsort.suffix".split()
)
# Settings that git itself writes to a repository: by init, clone, branch, remote, submodule, worktree, sparse-checkout.
USER_FILES = ("core.excludesfile", "core.attributesfile")  # Commands get copies of these files.
REPOSITORY_SETTINGS = HARMLESS_SETTINGS | frozenset(
    "core.repositoryformatversion core.bare core.logallrefupdates core.sparsecheckout core.sparsecheckoutcone "
    "remote.url remote.pushurl remote.fetch remote.push remote.tagopt remote.prune remote.mirror remote.promisor "
    "remote.partialclonefilter remote.skipfetchall branch.remote branch.pushremote branch.merge branch.rebase "
    "branch.description submodule.url submodule.active submodule.branch extensions.objectformat "
    "extensions.worktreeconfig extensions.partialclone extensions.refstorage index.sparse index.version "
    "lfs.repositoryformatversion lfs.access gc.auto".split()
)
LIMITED_SETTINGS = {  # Only these values are harmless.
    "commit.gpgsign": ("false", "no", "off", "0"),
    "tag.gpgsign": ("false", "no", "off", "0"),
    "submodule.update": ("checkout", "merge", "rebase", "none"),
    "submodule.recurse": ("true", "false"),
}
SCOPE_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_PATHS = re.compile(r"(?mi)^[ \t]*path[ \t]*=[ \t]*\"?([^\"\r\n]+)")
Settings = list[tuple[str, str]]


def is_harmless_setting(name: str, value: str) -> bool:
    """Return True for a setting of a repository that names no program and no path."""
    section, key = name.partition(".")[0].lower(), name.rpartition(".")[2].lower()
    plain = f"{section}.{key}"
    if plain in LIMITED_SETTINGS:
        return value.lower() in LIMITED_SETTINGS[plain]
    known = plain in REPOSITORY_SETTINGS or plain.startswith(HARMLESS_SECTIONS)
    return known and "::" not in value and not value.startswith("-")


def read_git_settings(home: str, *options: str, directory: str = "/", scope: tuple[str, ...] = ()) -> Settings | None:
    """Return git's settings in a directory by name, effective ones last; [] without git, or None if git cannot read
    them. `options` come before its subcommand, `scope` after it."""
    repositories = _find_around(directory)
    files = [os.path.join(git, name) for git in repositories for name in SETTINGS_NAMES]
    files = _follow_includes([*list_global_files(home), *_list_system_files(), *files], home)
    named = {name: os.environ[name] for name in SCOPE_VARIABLES if name in os.environ}
    words = [*options, "config", "--includes", *scope, "--null", "--list"]
    try:
        said = run_git(home, words, directory, [directory, *repositories, "/etc", *files], named)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    ours = {(name.lower(), value) for name, value in GIT_SETTINGS.items()}
    return [setting for setting in parse_listing(said) if setting not in ours]


def parse_listing(said: bytes) -> Settings:
    """Parse the output of `git config --null --list`."""
    items = (item.partition("\n") for item in said.decode("utf-8", "surrogateescape").split("\0") if item)
    return [(name, value if newline else "true") for name, newline, value in items]


def _find_around(folder: str) -> list[str]:
    while not os.path.lexists(dot_git := os.path.join(folder, ".git")):
        if folder == (folder := os.path.dirname(folder)):
            return []
    return [*dict.fromkeys(follow_dot_git(dot_git))]


def list_global_files(home: str) -> list[str]:
    """List the files in which git looks for a user's settings."""
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [named]
    above = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [os.path.join(home, ".gitconfig"), os.path.join(above, "git", "config")]


def _list_system_files() -> list[str]:
    if named := os.environ.get("GIT_CONFIG_SYSTEM"):
        return [named]
    found = find_executable("git") or "/usr/bin/git"
    prefixes = (os.path.dirname(os.path.dirname(path)) for path in (found, os.path.realpath(found)))
    return [*dict.fromkeys(("/etc/gitconfig", *(os.path.join(prefix, "etc/gitconfig") for prefix in prefixes)))]


def _follow_includes(files: Iterable[str], home: str) -> list[str]:
    """Return settings files with those that they may include, under whatever condition."""
    found, waiting = dict[str, None](), [*files]
    while waiting:
        file = waiting.pop(0)
        if file in found:
            continue
        found[file] = None
        try:
            text = read_small_file(file).decode("utf-8", "surrogateescape")
        except OSError:
            continue
        named = (os.path.join(home, one[2:]) if one.startswith("~/") else one for one in _PATHS.findall(text))
        waiting += [os.path.join(os.path.dirname(file), one.strip()) for one in named]
    return [*found, *map(os.path.realpath, found)]


def find_settings_with_login(git: str) -> str | None:
    """Return a file of settings of a repository, or of one in it, that holds a login."""
    folders = list_git_directories(git) if os.path.isdir(git) else []
    files = (os.path.join(folder, name) for folder in folders for name in SETTINGS_NAMES)
    return next(filter(has_login, files), None)


def run_git(
    home: str, arguments: list[str], directory: str, readable: Iterable[str], named: Mapping[str, str]
) -> bytes:
    """Return what git prints, or nothing without git. It can only read."""
    program = find_program("git")
    if program is None:
        return b""

    def run() -> subprocess.CompletedProcess[bytes]:
        environment = {**make_helper_environment(os.environ), **named, **make_git_environment(), "HOME": home}
        command = [program, *arguments]
        return subprocess.run(command, cwd=directory, env=environment, capture_output=True, timeout=10, check=True)

    return start_confined(run, program, readable).stdout


def ask_repository(repository: Repository, *words: str) -> bytes:
    """Return what git prints about a repository, or nothing if it fails."""
    objects = read_pointer(os.path.join(repository.common, "objects/info/alternates")).splitlines()
    given = {"GIT_DIR": repository.git, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        return run_git("/", [*words], "/", [*repository.places, *objects], given)
    except (OSError, subprocess.SubprocessError):
        return b""


def write_git_settings(file: Path, home: str, workspace: str) -> str:
    """Write the harmless part of git's global settings for a workspace, if changed, and return the path. The first line
    records the state of every source file."""
    import json

    repository = [os.path.join(git, "config") for git in find_git_directories(workspace)]  # Includes depend on it.
    sources = [*list_global_files(home), *repository]
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as kept:
            states = json.loads(kept.readline().removeprefix("# "))
        if [*states][: len(sources)] == sources and all(_get_state(path) == state for path, state in states.items()):
            return str(file)
    except (OSError, ValueError, TypeError, AttributeError):
        pass
    make_private_directory(file.parent)
    states = {source: _get_state(source) for source in _follow_includes(sources, home)}
    settings: Settings = []
    if any(map(os.path.exists, list_global_files(home))):
        settings = read_git_settings(home, directory=workspace, scope=("--global",)) or []
    named = {name: os.path.join(home, value.removeprefix("~/")) for name, value in settings if name in USER_FILES}
    if any(map(_is_writable, _follow_includes(list_global_files(home), home))):
        named = {}  # A command may have chosen these files.
    named = {name: file for name, file in named.items() if not _is_writable(file)}
    states |= {source: _get_state(source) for source in named.values()}
    copies = [(name, _copy_file(source, file.with_name(f"{file.name}-{name}"))) for name, source in named.items()]
    lines = [f"# {json.dumps(states)}", *_render_harmless_settings([*settings, *copies], str(file.parent))]
    replace_file(file, "\n".join([*lines, ""]).encode("utf-8", "surrogateescape"), durable=False)
    return str(file)


def _is_writable(file: str) -> bool:
    """Return True for a file that commands write, or could replace by a link to any other."""
    return any(is_in_any(step, writable_roots) for step in trace_path(file))


def _copy_file(source: str, target: Path) -> str:
    """Copy a file of the user that git reads, to a folder that commands see. Return where it is."""
    with suppress(OSError):
        replace_file(target, read_small_file(source), durable=False)
    return str(target)


def _get_state(path: str) -> list[int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return [about.st_ctime_ns, about.st_ino, about.st_size]


def _render_harmless_settings(settings: Iterable[tuple[str, str]], folder: str) -> Iterator[str]:
    for name, value in settings:
        known = name in {*HARMLESS_SETTINGS, "safe.directory"} or name.startswith(HARMLESS_SECTIONS)
        known = known or (name in USER_FILES and is_inside(value, folder))
        if known and "://" not in value:
            section, _, key = name.rpartition(".")
            quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            first, _, inner = section.partition(".")
            yield f'[{first} "{inner}"]' if inner else f"[{first}]"
            yield f'\t{key} = "{quoted}"'
