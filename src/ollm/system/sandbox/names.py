"""Names of the files that steer tools, editors, agents, git and CI: one list for policy and sandbox. For git, also
those in a repository, and whether new ones start a program."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from ollm.domain.lazy import compile_late
from ollm.system.sandbox.box import find_git_directories, is_inside, list_names, read_pointer, read_regular

_BASH = frozenset({".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"})
_ZSH = frozenset({".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"})
_OTHER_SHELLS = frozenset(
    {".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", "config.fish", ".pam_environment"}
)
_X_SESSION = frozenset({".xprofile", ".xinitrc", ".xsession", ".xsessionrc"})
SHELL_START_UP_FILES = _BASH | _ZSH | _OTHER_SHELLS | _X_SESSION
STEERING_NAMES = (
    frozenset(
        # agents
        ".ollm .claude .cursor .codex .gemini .windsurf .continue .roo .cline .clinerules .kiro .aider.conf.yml "
        ".mcp.json mcp.json .cursorrules .windsurfrules .roorules .goosehints agents.md agent.md claude.md "
        "claude.local.md gemini.md codex.md .opencode opencode.json .qwen qwen.md .amazonq .kilocode .junie .trae "
        ".augment .crush .crush.json crush.json crush.md warp.md .rules .agents .claude-plugin "
        # editors and what they run by themselves
        ".vscode .idea .zed .fleet .vs .nova .devcontainer .devcontainer.json .envrc .direnv .mise.toml mise.toml "
        ".vimrc .exrc .nvimrc .nvim.lua .ideavimrc .dir-locals.el .gdbinit .lldbinit .run "
        # interpreters and build tools that run such a file when they start
        ".irbrc .pryrc .pdbrc .mvn "
        # package managers that run a program, or send a token, where such a file says so
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs "
        # git and hooks
        ".gitmodules .gitattributes .lfsconfig .hg .jj .husky .githooks .overcommit.yml .pre-commit-config.yaml "
        ".lefthook.yml lefthook.yml .huskyrc .lintstagedrc "
        # continuous integration
        ".gitlab-ci.yml .circleci .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite .tekton .forgejo "
        ".gitea jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .appveyor.yml "
        "cloudbuild.yaml".split()
    )
    | SHELL_START_UP_FILES
)
STEERING_ENDINGS = (".code-workspace",)
STEERING_STEMS = (".huskyrc.", ".lintstagedrc.")  # also as .json, .yaml or a program
GITHUB_STEERING_NAMES = frozenset(
    {"workflows", "actions", "copilot-instructions.md", "instructions", "agents", "chatmodes"}
)
GIT_STEERING_NAMES = frozenset(
    {"config", "config.worktree", "hooks", "commondir", "gitdir", "rebase-merge", "rebase-apply"}
)
GIT_STEERING_PATHS = frozenset({("info", "attributes"), ("info", "grafts"), ("objects", "info", "alternates")})
GIT_FOLDERS = ("info", "objects", "objects/info")  # of these
GIT_SETTINGS_NAMES = ("config", "config.worktree")
GIT_NESTED = frozenset({"modules", "worktrees"})
REBASES = ("rebase-merge", "rebase-apply")
REBASE_STEPS = frozenset(
    "pick p reword r edit e squash s fixup f drop d label l reset t noop break b update-ref u".split()
)
# What `git init`, `clone`, `submodule` and `worktree` write, and what starts no program
HARMLESS_GIT_KEYS = frozenset(
    "core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.symlinks "
    "core.precomposeunicode remote.url remote.fetch remote.tagopt branch.remote branch.merge branch.rebase user.name "
    "user.email submodule.url submodule.active extensions.objectformat extensions.worktreeconfig "
    "init.defaultbranch".split()
)

EXAMPLE_ENDINGS = (".example", ".sample", ".template")
_LOGIN = re.compile(rb"(?i)extraheader|https?://[^/\s\"]*@|://[^/\s\"@]*:[^/\s\"]*@")
_INVISIBLE = compile_late("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")


def steers_by_name(part: str) -> bool:
    return part in STEERING_NAMES or part.endswith(STEERING_ENDINGS) or part.startswith(STEERING_STEMS)


def find_steering_name(path: str) -> str | None:
    """Return the part of an absolute, resolved path that steers tools or agents, or None."""
    parts = [normalize_name(part) for part in path.split("/") if part]
    for position, part in enumerate(parts):
        if steers_by_name(part):
            return part
        if part == ".github" and parts[position + 1 : position + 2] and parts[position + 1] in GITHUB_STEERING_NAMES:
            return f"{part}/{parts[position + 1]}"
        if part == ".git" and (found := _find_git_steering_name(parts[position + 1 :])) is not None:
            return found
    return None


def _find_git_steering_name(below: list[str]) -> str | None:
    """Match `.git` itself, the files git runs or reads settings from, and those of submodules and worktrees."""
    if not below:
        return ".git"
    if below[0] in GIT_STEERING_NAMES:
        return f".git/{below[0]}"
    if found := next((path for path in GIT_STEERING_PATHS if tuple(below[: len(path)]) == path), None):
        return "/".join((".git", *found))
    if below[0] in GIT_NESTED:
        steering = next((part for part in below[1:] if part in GIT_STEERING_NAMES), None)
        return steering and f".git/{below[0]}/…/{steering}"
    return None


def is_repository(names: Container[str]) -> bool:
    """Return True for the names in a folder that git takes for a repository, whatever its own name."""
    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))


def list_git_parts(git: str, unlock: Callable[[str], None] = lambda _: None) -> list[str]:
    """List the paths that steer git in a `.git` and in the submodules and worktrees below it; a `.git` that is a file
    or a link counts itself. `unlock` is called with every folder before it is read."""
    return [git] if os.path.islink(git) or not os.path.isdir(git) else _read_git_tree(git, unlock)[1]


def _read_git_tree(git: str, unlock: Callable[[str], None] = lambda _: None) -> tuple[list[str], list[str]]:
    """Return a repository with those of its submodules and worktrees, and the paths that steer git in them. A
    submodule's name may contain slashes: a folder is a repository if it has a HEAD."""
    repositories, found, waiting = list[str](), list[str](), [git]
    while waiting:
        folder = waiting.pop()
        unlock(folder)
        places = [folder]
        if folder == git or os.path.lexists(os.path.join(folder, "HEAD")):
            repositories.append(folder)
            for name in GIT_FOLDERS:
                unlock(os.path.join(folder, name))
            parts = (os.path.join(folder, part) for part in (*GIT_STEERING_NAMES, *map("/".join, GIT_STEERING_PATHS)))
            found += filter(os.path.lexists, parts)
            places = [os.path.join(folder, name) for name in (*GIT_NESTED, "info")]
            found += filter(os.path.islink, places)
            places = [place for place in places[:-1] if not os.path.islink(place)]
        for place in places:
            unlock(place)
            with suppress(OSError):
                for entry in os.scandir(place):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_symlink() or entry.name in GIT_STEERING_NAMES:
                        found.append(entry.path)
    return repositories, found


class GitNames(NamedTuple):
    """Files that git settings include and, relative to the top of a worktree, its hooks folder and the words of
    programs, some of which may be files. `paths` are the words that git would find there. `unread` are settings files
    that git cannot read: they may name anything."""

    included: set[str]
    hooks: set[str]
    words: set[str]
    paths: set[str]
    unread: set[str]


KnownSettings = dict[str, tuple[object, list[tuple[str, str]]]]


def read_git_names(git: str, known: KnownSettings) -> GitNames:
    """Return the names in the settings of a `.git` and of the submodules and worktrees below it. Git itself reads
    settings that are not plainly harmless. `known` caches the results."""
    from ollm.system.sandbox.confined import find_include

    home = os.path.expanduser("~")
    waiting = [os.path.join(folder, name) for folder in _read_git_tree(git)[0] for name in GIT_SETTINGS_NAMES]
    names = GitNames(set(), set(), set(), set(), set())
    while waiting:
        file = waiting.pop()
        settings = _read_settings(file, home, known)
        if settings is None:
            names.unread.add(file)
        for name, value in settings or ():
            if path := find_include(name, value, file, home):
                waiting += {path} - names.included
                names.included.update((path, os.path.realpath(path)))
            elif name == "core.hookspath":
                names.hooks.add(os.path.expanduser(value))
            elif not name.startswith("alias."):
                words = re.findall(r"[^\s'\"=;|&()<>!]+", value)
                names.words.update(words)
                names.paths.update(word for word in words if word[0] != "-" and (len(words) > 1 or "/" in word))
    return names


_read: KnownSettings = {}


def explain_git_name(path: str, root: str) -> str | None:
    """Return why a file of a workspace belongs to the settings of a repository, or None: it steers git in a folder that
    is one by its contents, the settings include it, it is a hook in the folder that they name, or a word of a program
    in them; or git cannot read them."""
    if part := _find_repository_part(path, root):
        return f"{part} steers git"
    for git in find_git_directories(root):
        names = read_git_names(git, _read)
        if names.unread:
            return "git's settings could not be read, and may name it"
        hooks, words, paths = (
            {os.path.normpath(os.path.join(root, word)) for word in some}
            for some in (names.hooks, names.words, names.paths)
        )
        is_hook = any(is_inside(path, folder) for folder in hooks if not is_inside(root, folder))
        is_word = path in words and (os.path.isfile(path) or (path in paths and not os.path.lexists(path)))
        if is_hook or is_word or path in names.included:
            return f"{os.path.basename(path)} is named by git's settings"
    return None


def holds_login(file: str) -> bool:
    """Return True for settings of git with a login in an address, or a header that may be one."""
    try:
        return _LOGIN.search(read_regular(file)) is not None
    except OSError:
        return False


def find_settings_with_login(git: str) -> str | None:
    """Return a file of settings of a repository, or of one in it, that holds a login; also one that they include."""
    folders = _read_git_tree(git)[0] if os.path.isdir(git) else []
    files = [os.path.join(folder, name) for folder in folders for name in GIT_SETTINGS_NAMES]
    return next(filter(holds_login, _list_included(tuple((file, *_get_state(file)) for file in files))), None)


def explain_login(path: str, root: str) -> str | None:
    """Return why reading a file below a root shows a login of git, or None."""
    name, above = normalize_name(os.path.basename(path)), os.path.dirname(path)
    own = name in GIT_SETTINGS_NAMES and os.path.lexists(os.path.join(above, "HEAD"))
    for git in [] if own else find_git_directories(root):
        file = os.path.join(git, GIT_SETTINGS_NAMES[0])
        own = own or path in _list_included(((file, *_get_state(file)),))
    return f"{os.path.basename(path)} contains a login for git" if own and holds_login(path) else None


def _get_state(file: str) -> tuple[int, int]:
    try:
        about = os.stat(file)
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=32)
def _list_included(files: tuple[tuple[str, int, int], ...]) -> list[str]:
    from ollm.system.sandbox.confined import list_included_files

    return list_included_files([file for file, *_ in files], os.path.expanduser("~"))


def _find_repository_part(path: str, root: str) -> str | None:
    parts = path.removeprefix(root).strip("/").split("/") if is_inside(path, root) else []
    for count in range(len(parts)):
        folder = os.path.join(root, *parts[:count])
        if os.path.lexists(os.path.join(folder, "HEAD")) and is_repository(list_names(folder)):
            below = _find_git_steering_name([normalize_name(part) for part in parts[count:] if part])
            if below and (count or not os.path.lexists(os.path.join(root, ".git"))):
                return below.replace(".git", os.path.basename(folder), 1)
    return None


def _read_settings(file: str, home: str, known: KnownSettings) -> list[tuple[str, str]] | None:
    from ollm.system.sandbox.confined import read_settings_file

    try:
        about = os.stat(file)
    except FileNotFoundError:
        return []
    except OSError:
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    state = about.st_ctime_ns, about.st_ino, about.st_size
    if known.get(file, (None,))[0] != state:
        settings = [] if _has_harmless_settings(file) else read_settings_file(file, home)
        if settings is None:
            return None
        known[file] = state, settings
    return [(name, value) for name, value in known[file][1] if _get_git_key(name) not in HARMLESS_GIT_KEYS]


def _get_git_key(name: str) -> str:
    """Return the name of a setting without its free-form middle part."""
    return f"{name.partition('.')[0]}.{name.rpartition('.')[2]}"


def is_harmless(path: str, roots: tuple[str, ...], repositories: Iterable[str]) -> bool:
    """Return True if a new part of a git repository starts no program, judged by its content: `git init`, `clone` and
    `worktree add` keep working. A pointer may lead only to a repository that is itself watched."""
    name = os.path.basename(path)
    if os.path.islink(path):
        return False
    if name in REBASES:
        return _has_harmless_steps(os.path.join(path, "git-rebase-todo"))
    if name == "hooks":
        with suppress(OSError):
            return all(entry.endswith(".sample") for entry in os.listdir(path))
    if name in ("commondir", "gitdir", ".git") and os.path.isfile(path):
        target = follow_pointer(path, "gitdir: " if name == ".git" else "")
        if name == "gitdir":  # of a worktree: names the `.git` in it
            return os.path.basename(target) == ".git" and any(is_inside(target, root) for root in roots)
        return any(target in _read_git_tree(git)[0] for git in repositories if is_inside(target, git))
    inside = any(is_inside(path, git) for git in repositories)
    return name in GIT_SETTINGS_NAMES and inside and _has_harmless_settings(path)


def follow_pointer(path: str, prefix: str = "gitdir: ") -> str:
    """Return the target of a pointer, or "" if it is not written as git writes it: a detour (`a/..`, a link) may lead
    elsewhere later."""
    text, above = read_pointer(path), os.path.dirname(path)
    target = os.path.realpath(os.path.join(above, text.removeprefix(prefix)))
    return target if text in (prefix + target, prefix + os.path.relpath(target, above)) else ""


def _has_harmless_steps(file: str) -> bool:
    """Return True if a rebase in progress runs no command: `git rebase` and `--continue` keep working."""
    try:
        lines = read_regular(file).decode().splitlines() if os.path.lexists(file) else []
    except (OSError, UnicodeDecodeError):
        return False
    words = (line.split(None, 1)[0] for line in lines if line.strip())
    return not os.path.islink(file) and all(word in REBASE_STEPS or word[0] == "#" for word in words)


def _has_harmless_settings(file: str) -> bool:
    """Return True if git settings are harmless. The format is read strictly: anything unusual is harmful."""
    section = ""
    try:
        lines = read_regular(file).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    for line in (line.strip() for line in lines):
        if not line or line[0] in "#;":
            continue
        if header := re.fullmatch(r'\[([A-Za-z0-9-]+)(?: "[^"\\\]]*")?\]', line):
            section = header[1].lower()
            continue
        name, _, value = (part.strip() for part in line.partition("="))
        if (
            f"{section}.{name.lower()}" not in HARMLESS_GIT_KEYS
            or "\\" in value
            or "::" in value
            or value.startswith("-")
        ):
            return False
    return True


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """Normalize a filename as the most lenient file system would compare it."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    import unicodedata

    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", name))
    return visible.casefold().rstrip(". ") or name


def is_environment_file(name: str) -> bool:
    """Return True for `.env*` except examples: recursive reads skip such files and report how many."""
    plain = normalize_name(name)
    return plain.startswith(".env") and not plain.endswith(EXAMPLE_ENDINGS)
