"""git: its read-only commands, the options that make even those run or write, and commands passed to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data
from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.options import check_secrets
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections
from ollm.policy.shell.programs.git_verbs import GLOBAL_FLAGS, read_git_verb
from ollm.policy.shell.programs.inner_commands import join_script, make_guess
from ollm.policy.shell.programs.record import InnerCommand, Program, WordDangers, read_table, split_names
from ollm.policy.shell.words import ShellWord, make_part_of
from ollm.system.path_names import find_git_directories
from ollm.system.paths import Boundary
from ollm.system.sandbox.git_settings import find_settings_with_login, read_git_settings

_GLOBAL_VALUES = read_table()["@git-values"].split()
_GLOBAL_ANSWERS = frozenset({"--version", "-v", "--help", "-h", "--html-path", "--man-path", "--info-path"})
_RUNNING_OPTIONS = split_names(
    "output ext-diff textconv no-index open-files-in-pager filters exec upload-pack receive-pack show-signature extcmd"
    " submodule"
)
_HARMLESS_OPTIONS = frozenset({"text", "filter"})
_FILE_OPTIONS = ("contents", "exclude-from", "ignore-revs-file", "pathspec-from-file", "orderfile")
_FILE_LETTERS = {"grep": "f", "ls-files": "X", "blame": "S", "diff": "O", "log": "O", "show": "O"}
_GREP_PAGER = r"-[^-efmABCO]*O"
_READ_SUBCOMMANDS = frozenset(
    split_names(
        "status diff log show rev-parse ls-files ls-tree blame annotate describe shortlog grep cat-file rev-list"
        " name-rev merge-base show-ref for-each-ref count-objects check-ignore check-attr diff-tree diff-index"
        " diff-files whatchanged cherry version show-branch verify-pack"
    )
)
_LISTS = "list|merged|no-merged|contains|no-contains|points-at"
_LOOKS = "sort|format|color|no-color|column|no-column|ignore-case"
_LISTING_OPTIONS = {
    "branch": rf"-[arvl]+|-vv|--(all|remotes|verbose|show-current|abbrev|{_LISTS}|{_LOOKS})(=.*)?",
    "tag": rf"-[ln]\d*|--({_LISTS}|{_LOOKS})(=.*)?",
    "remote": r"-v|--verbose",
}
_READING_ACTIONS = {
    "stash": {"list", "show"},
    "remote": {"get-url"},
    "reflog": {"show", "exists", "list"},
    "worktree": {"list"},
    "submodule": {"status", "summary"},
    "notes": {"list", "show"},
    "bisect": {"log"},
    "config": {"get", "--get", "--get-all"},
}
_CHANGES_CONFIG = r"--(unset|add|replace|rename|remove|edit|set|comment)|-e$"
_SHOWING_ACTIONS = {"list", "get", "-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"}
_CONFIG_VALUES = ("-f", "--file", "--blob", "-t", "--type", "--default")
# settings that hold no credential; a list of all, URLs, headers and helpers may
_PLAIN_SETTINGS = (
    r"(?i)(user|core|init|branch|pull|push|merge|diff|log|color|rebase|fetch|status|commit)\..+|remote\..+\.fetch"
)
_RUNNING_SUBCOMMANDS = frozenset(
    {"filter-branch", "bisect run", "submodule foreach", "send-email", "instaweb", "daemon"}
)
_WRITING_SUBCOMMANDS = ("checkout", "restore", "rm", "mv", "clean", "apply", "init", "clone", "worktree", "submodule")
_COMMAND_OPTIONS = ("--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd")
_PROGRAM_SETTINGS = (
    r"(?i)(alias\..*|.*pager.*|.*editor|.*command|.*cmd|.*\.external|.*textconv|.*helper|.*program|core\.fsmonitor"
    r"|.*\.(clean|smudge|process|driver))"
)


class GitCommand(Data, frozen=True):
    """A parsed git command line: the index of the subcommand, and what its words do."""

    subcommand: int | None
    dangers: tuple[tuple[int, str], ...]
    reads: bool
    paths: tuple[ShellWord, ...]


def inspect_git(part: CommandPart, judge: PathJudge) -> CommandPart:
    found = parse_git(part.words)
    objections = judge.check_directory()
    subcommand = None if found.subcommand is None else part.words[found.subcommand].text
    shows = subcommand == "config" and not found.reads and _shows_settings(part.words, found.subcommand)
    if found.reads or shows or subcommand == "add":
        objections += sum((judge.check_read(word) for word in found.paths), NO_OBJECTIONS)
    else:
        objections += _check_writes(part, judge, found.subcommand) + check_secrets(part.words, judge)
    if shows or (
        found.reads and subcommand == "remote" and part.words[-1].text != "remote" and _has_login(judge.boundary)
    ):
        objections += Objections(remarks=("git's settings may contain credentials",))
    elif not found.reads and subcommand == "config" and read_git_verb(part.words) is None:
        settings = tuple(str(place / ".git" / "config") for place in part.directories or ())
        objections += Objections(
            locks=("it sets what git may run or where it looks, which is protected",), opens=settings
        )
    if part.may_differ:
        objections += Objections(remarks=("git's arguments are computed at run time",))
    if judge.is_in_other_repository():
        objections += Objections(remarks=("it runs in a repository inside the workspace, whose settings it follows",))
    if not found.reads and found.subcommand is not None:
        part = _add_notes(part, found.subcommand, judge)
    return add_objections(part, objections, found.dangers, reads=found.reads)


def _has_login(boundary: Boundary) -> bool:
    places = find_git_directories(str(boundary.workspace))
    return any(find_settings_with_login(place) for place in places)


def _add_notes(part: CommandPart, start: int, judge: PathJudge) -> CommandPart:
    texts = [word.text for word in part.words]
    if part.directories and (keys := explain_needed_keys(texts, start, part.directories[0], judge.boundary)):
        return msgspec.structs.replace(part, outside=keys)
    return part


def _shows_settings(words: Sequence[ShellWord], start: int | None) -> bool:
    """Return True unless `git config` writes: with a writing action, or with a value after the name."""
    rest = [word.text for word in words[(start or 0) + 1 :]]
    if any(re.match(_CHANGES_CONFIG, text) for text in rest):
        return False
    pairs = zip(["", *rest], rest, strict=False)
    operands = [text for before, text in pairs if not text.startswith("-") and before not in _CONFIG_VALUES]
    return bool(_SHOWING_ACTIONS & set(rest)) or (len(operands) == 1 and operands != ["edit"])


def _check_writes(part: CommandPart, judge: PathJudge, subcommand: int | None) -> Objections:
    """Check for protected files named to a git command that changes the work tree."""
    if subcommand is None or part.words[subcommand].text not in _WRITING_SUBCOMMANDS:
        return NO_OBJECTIONS
    words = [word for word in part.words[subcommand + 1 :] if not word.text.startswith("-")]
    return sum((judge.check_protected(word) for word in words), NO_OBJECTIONS)


def parse_git(words: Sequence[ShellWord]) -> GitCommand:
    index, dangers = _scan_globals(words)
    if index is None:
        answers = all(word.text in _GLOBAL_ANSWERS for word in words[1:])
        return GitCommand(subcommand=None, dangers=tuple(dangers), reads=answers, paths=())
    dangers += _find_dangers(words, index)
    uncertain = [place for place, word in enumerate(words) if not word.static and word.might_be_option]
    ends = next((place for place, word in enumerate(words) if _ends_options(word)), len(words))
    dangers += [(place, "it may contain an option") for place in uncertain if place < ends]
    name = words[index].text if words[index].static else ""
    reads = name in _READ_SUBCOMMANDS or _is_listing(name, words, index)
    return GitCommand(
        subcommand=index,
        dangers=tuple(dangers),
        reads=reads,
        paths=tuple(_find_paths(name, words, index)),
    )


def _scan_globals(words: Sequence[ShellWord]) -> tuple[int | None, WordDangers]:
    dangers: WordDangers = []
    index = 1
    while index < len(words):
        text = words[index].text
        if not text.startswith("-"):
            return index, dangers
        if text not in GLOBAL_FLAGS and text not in _GLOBAL_ANSWERS:
            dangers.append((index, f"git {text.partition('=')[0]} can make git run or write something else"))
        index += 2 if text in _GLOBAL_VALUES else 1
    return None, dangers


def _find_dangers(words: Sequence[ShellWord], start: int) -> WordDangers:
    name = words[start].text
    found: WordDangers = []
    if not _RUNNING_SUBCOMMANDS.isdisjoint((name, " ".join(word.text for word in words[start : start + 2]))):
        found.append((start, f"git {name} runs commands it is given"))
    for index in range(start + 1, len(words)):
        if _ends_options(words[index]):
            break
        found += [(index, reason) for reason in _find_option_dangers(name, words[index].text)]
    return found


def _ends_options(word: ShellWord) -> bool:
    """Return True for a literal `--`; `--$x` may be any option."""
    return word.static and word.text == "--"


def _find_option_dangers(name: str, text: str) -> Iterator[str]:
    given = text[2:].partition("=")[0] if text.startswith("--") else ""
    if given and given not in _HARMLESS_OPTIONS and any(option.startswith(given) for option in _RUNNING_OPTIONS):
        yield f"git {text.partition('=')[0]} can run or write something"
    if "%G" in text:
        yield "%G runs the program that checks signatures"
    elif name == "status" and re.fullmatch(r"-[a-z]*v[a-z]*|--v\w*", text):
        yield "git status -v shows differences with a program that the repository may name"
    elif name in ("rebase", "difftool") and text.startswith("-x"):
        yield f"git {name} -x runs a command"
    elif name == "grep" and re.match(_GREP_PAGER, text):
        yield "git grep -O runs a program"
    elif name in ("archive", "format-patch", "bundle", "fast-export") and text.startswith("-o"):
        yield f"git {name} -o writes a file"


def _is_listing(name: str, words: Sequence[ShellWord], start: int) -> bool:
    """Return True if a subcommand that can list or change only lists, judged by its words."""
    rest = [word.text for word in words[start + 1 :]]
    if (name in _LISTING_OPTIONS and _has_only_list_options(name, rest)) or (name == "reflog" and not rest):
        return True
    if name == "symbolic-ref":
        return len([text for text in rest if not text.startswith("-")]) == 1 and not {"-d", "--delete"} & set(rest)
    if name == "config" and any(re.match(_CHANGES_CONFIG, text) for text in rest):
        return False
    if name == "config":
        reads = len(rest) == 1 or (len(rest) == 2 and rest[0] in _READING_ACTIONS[name])
        return reads and re.fullmatch(_PLAIN_SETTINGS, rest[-1]) is not None
    return name in _READING_ACTIONS and bool(rest) and rest[0] in _READING_ACTIONS[name]


def _has_only_list_options(name: str, rest: list[str]) -> bool:
    options = [text for text in rest if text.startswith("-")]
    if not all(re.fullmatch(_LISTING_OPTIONS[name], option) for option in options):
        return False
    operands = len(rest) - len(options)
    return not operands or (name != "remote" and any(re.match(rf"-[a-z]*l|--({_LISTS})", option) for option in options))


def _find_paths(name: str, words: Sequence[ShellWord], start: int) -> list[ShellWord]:
    """Return every operand as a path: a revision names nothing outside. `REV:PATH` counts as PATH."""
    found: list[ShellWord] = []
    after = False
    for word in words[start + 1 :]:
        if _ends_options(word):
            after = True
        elif not after and word.text.startswith("-"):
            found += _find_joined_files(name, word)
        elif not after and ":" in word.text:
            found.append(make_part_of(word, word.text.partition(":")[2]))
        else:
            found.append(word)
    return found


def _find_joined_files(name: str, word: ShellWord) -> list[ShellWord]:
    option, equals, path = word.text.partition("=")
    if not (equals and any(one.startswith(option[2:]) for one in _FILE_OPTIONS)) or not option.startswith("--"):
        letter = _FILE_LETTERS.get(name)
        path = word.text.partition(letter)[2] if letter and not word.text.startswith("--") else ""
    return [make_part_of(word, path)] if path else []


def unwrap_git(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Find commands passed to git: settings, `rebase --exec`, `bisect run`, `submodule foreach`, `grep -O`, filters."""
    texts = [word.text for word in words]
    inner: list[InnerCommand] = []
    for index, word in enumerate(words[1:], 1):
        before, (option, equals, value) = texts[index - 1], word.text.partition("=")
        if before == "-c":
            inner += _unwrap_setting(word.text)
        elif "config" in texts[:index] and re.fullmatch(_PROGRAM_SETTINGS, before):
            inner += _unwrap_setting(f"{before}={word.text}")
        elif (
            before in ("-x", *_COMMAND_OPTIONS)
            or (before == "-u" and "clone" in texts)
            or ("filter-branch" in texts and " " in word.text)
        ):
            inner.append(make_guess(word.text))
        if word.text.startswith("ext::"):
            inner.append(make_guess(word.text[5:].replace("% ", "\\ ")))
        if equals and option in _COMMAND_OPTIONS:
            inner.append(make_guess(value))
        if word.text.startswith(("-O", "-x")) and len(word.text) > 2:
            inner.append(make_guess(word.text[2:]))
        if word.text in ("run", "foreach") and before in ("bisect", "submodule"):
            inner.append(join_script([one for one in words[index + 1 :] if one.text != "--recursive"]))
    return inner


def _unwrap_setting(text: str) -> list[InnerCommand]:
    name, _, value = text.partition("=")
    if not value or not re.fullmatch(_PROGRAM_SETTINGS, name):
        return []
    script = value.removeprefix("!") if value.startswith("!") or not name.startswith("alias.") else f"git {value}"
    return [make_guess(script)]


_SIGNS_COMMITS = frozenset({"commit", "merge", "rebase", "cherry-pick", "revert", "am"})
_ASKS_REMOTES = frozenset({"push", "fetch", "pull", "clone", "ls-remote", "remote update", "submodule update"})
_SIGN = {"tag": r"-[af]*[su].*|--sign|--local-user(=.*)?"}
_SIGN_COMMIT = r"-[aenpqsv]*S.*|--gpg-sign(=.*)?"
_SSH = compile_late(r"(git\+)?ssh://|[^/:\s]+:(?!:|//)")  # A `host:path` matches as well.
_LOGIN = compile_late(r"https?://")


def explain_needed_keys(words: Sequence[str], start: int, directory: Path, boundary: Boundary) -> str:
    """Return why a git command needs the user's keys, or "". `start` is the index of its subcommand."""
    name, rest = words[start], list(words[start + 1 :])
    both = " ".join(words[start : start + 2])
    if name not in (*_SIGNS_COMMITS, "tag") and _ASKS_REMOTES.isdisjoint((name, both)):
        return ""
    for option, value in pairwise(words[1:start]):
        directory = directory / value if option == "-C" else directory
    settings = _read_settings(_keep_settings(words[1:start]), directory, boundary)
    if settings is None:
        return f"git's settings could not be read, so git {name} may need your keys, which the sandbox does not show"
    if name in _SIGNS_COMMITS or name == "tag":
        return _explain_signing(name, rest, settings)
    return _explain_remote(name, rest, settings)


def _explain_signing(name: str, rest: Sequence[str], settings: Mapping[str, str]) -> str:
    without = "--no-sign" if name == "tag" else "--no-gpg-sign"
    if without in rest:
        return ""
    if any(re.fullmatch(_SIGN.get(name, _SIGN_COMMIT), word) for word in rest):
        return f"git {name} signs with your key, which the sandbox does not show"
    setting = "tag.gpgsign" if name == "tag" else "commit.gpgsign"
    creates = name != "tag" or any(re.match(r"-[af]*[am]|--(annotate|message|file)|-F", word) for word in rest)
    if creates and settings.get(setting, "").lower() in ("true", "yes", "on", "1"):
        return f"{setting} is set, so it signs with your key, which the sandbox does not show ({without} does not sign)"
    return ""


def _explain_remote(name: str, rest: Sequence[str], settings: Mapping[str, str]) -> str:
    urls = _find_urls(name, rest, settings)
    if any(map(_SSH.match, urls)):
        return f"git {name} uses ssh, and the sandbox does not show your keys"
    if name == "push" and any(map(_LOGIN.match, urls)):
        return "git push needs your login, which the sandbox does not show"
    return ""


def _find_urls(name: str, rest: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """Find the URLs it may reach: those among its words, else those of the named or default remote."""
    operands = [word for word in rest if not word.startswith("-")]
    if name == "clone":
        return operands
    remotes: dict[str, list[str]] = {}
    for key, value in settings.items():
        if found := re.fullmatch(r"remote\.(.+)\.(push)?url", key):
            remotes.setdefault(found[1], []).append(value)
    every = [url for urls in remotes.values() for url in urls]
    if name in ("remote", "submodule") or "--all" in rest:
        return every
    named = next((word for word in operands if word in remotes), None)
    if named is None and operands:
        return operands[:1]
    return remotes.get(named or "origin", every)


def _keep_settings(words: Sequence[str]) -> list[str]:
    """Keep the options before the subcommand that set a setting."""
    return [word for option, value in pairwise(words) if option == "-c" for word in (option, value)]


def _read_settings(options: Sequence[str], directory: Path, boundary: Boundary) -> dict[str, str] | None:
    home = str(boundary.places.user_home or Path.home())
    there = next(place for place in (directory, *directory.parents) if place.is_dir())
    found = read_git_settings(home, *options, directory=str(there))
    return None if found is None else dict(found)
