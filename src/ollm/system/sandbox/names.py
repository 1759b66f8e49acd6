"""Names of the files that steer tools, editors, agents, git and CI, those in a git repository, and the ways to them:
one list for policy and sandbox. Standard library only."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

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
        ".augment .augment-guidelines .roomodes .amp .openhands .crush .crush.json crush.json crush.md warp.md .rules "
        ".agents .claude-plugin "
        # editors and what they run by themselves
        ".vscode .idea .zed .fleet .vs .nova .devcontainer .devcontainer.json .envrc .direnv .mise.toml mise.toml "
        ".helix .theia .replit .gitpod.yml .vimrc .exrc .nvimrc .nvim.lua .ideavimrc .dir-locals.el .gdbinit "
        ".lldbinit .run "
        # interpreters and build tools that run such a file when they start
        ".irbrc .pryrc .pdbrc .rprofile .autoenv.zsh .mvn "
        # package managers that run a program, or send a token, where such a file says so
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs "
        # git and hooks
        ".gitmodules .gitattributes .lfsconfig .hg .jj .husky .githooks .overcommit.yml .pre-commit-config.yaml "
        ".lefthook.yml lefthook.yml .huskyrc .lintstagedrc "
        # continuous integration
        ".gitlab-ci.yml .circleci .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite .tekton .forgejo "
        ".gitea .cirrus.yml .teamcity jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml "
        ".appveyor.yml cloudbuild.yaml".split()
    )
    | SHELL_START_UP_FILES
)
STEERING_ENDINGS = (".code-workspace", ".sublime-project")
STEERING_STEMS = (".huskyrc.", ".lintstagedrc.")  # also as .json, .yaml or a program
GITHUB_STEERING_NAMES = frozenset(
    {"workflows", "actions", "copilot-instructions.md", "instructions", "agents", "chatmodes", "prompts", "hooks"}
)
# The allow-list for a git directory: what git only reads as data (gitrepository-layout(5) and what git 2.39 to 2.50
# writes). A command may make and change it. All else is read-only if it is there, and moves aside if it is new.
GIT_DATA_FOLDERS = frozenset(
    "objects refs logs reftable rr-cache objects/info/commit-graphs lfs/objects lfs/incomplete lfs/tmp lfs/cache "
    "lfs/logs".split()
)
GIT_DATA_FILES = frozenset(
    "HEAD index packed-refs packed-refs.new shallow description gc.log gc.pid locked MERGE_MODE AUTO_MERGE "
    "COMMIT_EDITMSG MERGE_MSG SQUASH_MSG TAG_EDITMSG NOTES_EDITMSG EDIT_DESCRIPTION ADD_EDIT.patch "
    "addp-hunk-edit.diff info/exclude info/sparse-checkout info/refs objects/info/packs "
    "objects/info/commit-graph".split()
)
GIT_DATA_ENDINGS, GIT_DATA_BEGINNING = ("_HEAD", ".lock"), "sharedindex."
GIT_MIXED_FOLDERS = frozenset({"info", "objects/info", "lfs"})  # data only as far as they are listed above
# What git writes for a later step of an operation: kept for the commands of the sandbox alone
GIT_OPERATIONS, GIT_OPERATION_BEGINNINGS = (
    frozenset({"rebase-merge", "rebase-apply", "sequencer", "MERGE_RR", "MERGE_AUTOSTASH"}),
    ("BISECT_", "NOTES_MERGE_"),
)
GIT_SETTINGS_NAMES = ("config", "config.worktree")
GIT_PINS = ("objects", "refs")  # make a folder a repository; a command can neither move nor remove them
GIT_WHOLE = frozenset({"HEAD", *GIT_PINS})  # for git a folder with these is a repository, if its `.git` is none
GIT_MARKS = (*GIT_WHOLE, "commondir", "gitdir")
HEADLESS_PARTS = ("config", "config.worktree", "hooks", "commondir")  # protected where only a HEAD is missing
GIT_NESTED = frozenset({"modules", "worktrees"})
PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages", "dist-packages"})  # of others: only repositories count
# where we run from, with the programs beside us
OWN_PLACES = frozenset(
    os.path.realpath(place)
    for place in (sys.prefix, sys.base_prefix, os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
)
writable_roots: set[str] = set()  # of the workspaces of this process: no program is started from there
MAX_POINTER_CHARS = 4096
MAX_GIT_FILE_BYTES = 16 * 1024**2
MAX_LINKS = 40  # as many as the kernel follows
SCRIPT_ENDINGS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php")
EXAMPLE_ENDINGS = (".example", ".sample", ".template")
_INVISIBLE = "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"


def is_inside(path: str, directory: str) -> bool:
    """Return True if a path is this directory or inside it; both absolute and resolved."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def is_in_any(path: str, directories: Iterable[str]) -> bool:
    return any(is_inside(path, directory) for directory in directories)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder, or [] if it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def find_git_directories(workspace: str) -> list[str]:
    """Return the directories in which git keeps this workspace's repository: its `.git`, one in the workspace that the
    file `.git` names, or for a linked worktree the one elsewhere, if that names this workspace in turn (the file alone
    proves nothing)."""
    dot_git = os.path.join(workspace, ".git")
    if os.path.islink(dot_git) or not os.path.lexists(dot_git):
        return []
    if os.path.isdir(dot_git):
        return [dot_git]
    private, common = follow_dot_git(dot_git)
    if is_inside(private, workspace) and is_inside(common, workspace):
        return [] if private == workspace else [*dict.fromkeys((private, common))]
    if os.path.realpath(read_pointer(os.path.join(private, "gitdir")) or "/") != dot_git:
        return []
    return [common] if is_inside(private, common) else []


def follow_dot_git(dot_git: str) -> tuple[str, str]:
    """Return the directory of a worktree that a `.git` is or names, and the one it shares with other worktrees."""
    named = "" if os.path.isdir(dot_git) else read_pointer(dot_git).removeprefix("gitdir: ")
    private = os.path.realpath(os.path.join(os.path.dirname(dot_git), named)) if named else os.path.realpath(dot_git)
    shared = read_pointer(os.path.join(private, "commondir"))
    return private, os.path.realpath(os.path.join(private, shared)) if shared else private


def read_regular(path: str) -> bytes:
    """Read a file of git that a program may have replaced by a pipe, on which a reader would wait for ever, or by one
    that fills the memory."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_GIT_FILE_BYTES:
            raise OSError(errno.EINVAL, "not a regular file of a usual size", path)
        return file.read()


def has_other_names(path: str) -> bool:
    try:
        about = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_nlink > 1


def read_pointer(path: str) -> str:
    """Read a file in which git names a folder, completely as git does. Return "" if there is none to follow."""
    try:
        text = os.fsdecode(read_regular(path)).rstrip("\r\n")
    except OSError:
        return ""
    return "" if "\0" in text or len(text) > MAX_POINTER_CHARS else text


def steers_by_name(part: str) -> bool:
    return part in STEERING_NAMES or part.endswith(STEERING_ENDINGS) or part.startswith(STEERING_STEMS)


def find_steering_name(path: str) -> str | None:
    """Return the part of an absolute, resolved path that steers tools or agents, or None."""
    parts = [part for part in path.split("/") if part]
    plain = [*map(normalize_name, parts)]
    for position, part in enumerate(plain):
        if steers_by_name(part):
            return part
        if part == ".github" and plain[position + 1 : position + 2] and plain[position + 1] in GITHUB_STEERING_NAMES:
            return f"{part}/{plain[position + 1]}"
        if part == ".git" and (found := _find_git_steering_name(parts[position + 1 :])) is not None:
            return found
    return None


def _find_git_steering_name(below: list[str]) -> str | None:
    """Match a git directory itself and what is not on the allow-list in it, in submodules and in worktrees."""
    if not below:
        return ".git"
    if below[0] in GIT_NESTED and len(below) < 3:
        return None
    inner = range(2, len(below)) if below[0] in GIT_NESTED else range(1)  # a submodule's name may contain slashes
    if any(is_git_data("/".join(below[count:]), folder=folder) for count in inner for folder in (False, True)):
        return None
    return f".git/{below[0]}" if below[0] not in GIT_NESTED else f".git/{below[0]}/…/{below[-1]}"


def is_git_data(below: str, *, folder: bool) -> bool:
    """Return True for a path below a git directory that is on the allow-list, or in a folder on it."""
    if below in (GIT_DATA_FOLDERS | GIT_MIXED_FOLDERS if folder else GIT_DATA_FILES):
        return True
    above, _, name = below.rpartition("/")
    if above and above not in GIT_MIXED_FOLDERS:
        return is_git_data(above, folder=True)
    return not folder and (name.endswith(GIT_DATA_ENDINGS) or name.startswith(GIT_DATA_BEGINNING))


def is_git_operation(name: str) -> bool:
    return name in GIT_OPERATIONS or name.startswith(GIT_OPERATION_BEGINNINGS)


def is_repository(names: Container[str]) -> bool:
    """Return True for the names in a folder that git takes for a repository, whatever its own name, or would take for
    one with a HEAD: a command may remove that, and bring it back later."""
    worktree = "commondir" in names and ("HEAD" in names or "gitdir" in names)
    return worktree or all(name in names for name in GIT_PINS)


def find_repositories(folder: str, names: Collection[str]) -> list[str]:
    """Return the repositories that these names in a folder make: the folder itself, and its `.git`."""
    own = [folder] if is_repository(names) and (".git" not in names or "HEAD" in names) else []
    return [*own, *(os.path.join(folder, name) for name in names if normalize_name(name) == ".git")]


def list_repositories(git: str, visit: Callable[[str], object] = lambda _: None) -> list[str]:
    """Return a repository and those of its submodules and worktrees. `visit` is called with every folder before it is
    read. A submodule's name may contain slashes: a folder is a repository if it has a HEAD or looks like one."""
    repositories, waiting = list[str](), [git]
    while waiting:
        folder = waiting.pop()
        visit(folder)
        places = [folder]
        if folder == git or is_nested_repository(list_names(folder)):
            repositories.append(folder)
            places = [os.path.join(folder, name) for name in GIT_NESTED]
        for place in places:
            visit(place)
            with suppress(OSError):
                entries = () if os.path.islink(place) else os.scandir(place)
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return repositories


def is_nested_repository(names: Container[str]) -> bool:
    return "HEAD" in names or is_repository(names)


def find_repository_part(path: str, root: str) -> str | None:
    """Return the name of a folder that is a repository by its contents or of a file that steers git in it, or None."""
    parts = path.removeprefix(root).strip("/").split("/") if is_inside(path, root) else []
    for count in range(len(parts) + 1):
        folder = os.path.join(root, *parts[:count])
        marks = [mark for mark in GIT_MARKS if os.path.lexists(os.path.join(folder, mark))]
        inner = [part for part in parts[count:] if part]
        if inner and GIT_WHOLE.difference(marks) == {inner[0]}:
            return os.path.basename(folder)  # this makes it a repository
        below = _find_git_steering_name(inner)
        whole = "HEAD" in marks or not inner or inner[0] in HEADLESS_PARTS
        if below and whole and is_repository(marks) and (count or not os.path.lexists(os.path.join(root, ".git"))):
            return below.replace(".git", os.path.basename(folder), 1)
    return None


def find_own_place(path: str, roots: Iterable[str]) -> str | None:
    """Return the folder below a root that ollm runs from and that a path lies in, or None."""
    inside = (place for place in OWN_PLACES if is_inside(path, place))
    return next((place for place in inside if is_in_any(place, roots)), None)


def is_own_state(path: str, own_folders: Container[str]) -> bool:
    """Return True for the database and locks that ollm itself keeps in a workspace's `.ollm`."""
    folder, name = os.path.split(path)
    own = name.startswith("memory.db") or name.endswith((".lock", ".gitignore"))
    return own and folder in own_folders and os.path.isfile(path) and not os.path.islink(path)


def leave_out_own_state(path: str, own_folders: Container[str]) -> list[str]:
    """Return the parts of a new path to move aside: in a workspace's `.ollm`, all but ollm's own state."""
    if path not in own_folders or os.path.islink(path) or not os.path.isdir(path):
        return [path]
    inside = [os.path.join(path, name) for name in os.listdir(path)]
    return [each for each in inside if not is_own_state(each, own_folders)]


def is_git_folder(path: str) -> bool:
    return os.path.basename(path) == ".git" and os.path.isdir(path) and not os.path.islink(path)


def read_target(path: str) -> str | None:
    """Return the target of a link, or None for anything else."""
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return None


def trace_path(path: str, read: Callable[[str], str | None] = read_target) -> Iterator[str]:
    """Walk a path as the kernel does: return every link on the way, then the end, which may be missing. After a missing
    part `..` goes back by name."""
    place, waiting, links = os.getcwd() if path[:1] != "/" else "/", path.split("/")[::-1], 0
    while waiting and links <= MAX_LINKS:
        part = waiting.pop()
        if part == "..":
            place = os.path.dirname(place)
        elif part not in ("", "."):
            above, place = place, f"{place.rstrip('/')}/{part}"
            if (target := read(place)) is not None:
                yield place
                links += 1
                place = "/" if target.startswith("/") else above
                waiting += target.split("/")[::-1]
    yield place


def follow_pointer(path: str, prefix: str = "gitdir: ") -> str:
    """Return the target of a pointer, or "" if it is not written as git writes it: a detour (`a/..`, a link) may lead
    elsewhere later."""
    text, above = read_pointer(path), os.path.dirname(path)
    target = os.path.realpath(os.path.join(above, text.removeprefix(prefix)))
    return target if text in (prefix + target, prefix + os.path.relpath(target, above)) else ""


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """Normalize a filename as the most lenient file system would compare it."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    import re
    import unicodedata

    visible = re.sub(_INVISIBLE, "", unicodedata.normalize("NFKC", name))
    return visible.casefold().rstrip(". ") or name


def is_environment_file(name: str) -> bool:
    """Return True for `.env*` except examples: recursive reads skip such files and report how many."""
    plain = normalize_name(name)
    return plain.startswith(".env") and not plain.endswith(EXAMPLE_ENDINGS)


def find_executable(name: str, folders: Iterable[str] | None = None) -> str | None:
    """Find a program in folders, by default those of the PATH."""
    places = os.environ.get("PATH", os.defpath).split(":") if folders is None else folders
    paths = (os.path.join(folder, name) for folder in places)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
