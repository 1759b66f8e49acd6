"""git commands: which only read, and which options make even those run or write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.domain.struct import Data
from ollm.policy.shell.programs.git_options import GIT_LONG_OPTIONS
from ollm.policy.shell.tables import split_names
from ollm.policy.shell.words import ShellWord

_GLOBAL_VALUES = frozenset(
    {"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"}
)
_HARMLESS_GLOBALS = frozenset(
    (
        "--no-pager",
        "-P",
        "--no-optional-locks",
        "--literal-pathspecs",
        "--no-replace-objects",
        "--icase-pathspecs",
        "--glob-pathspecs",
    )
)
_GLOBAL_ANSWERS = frozenset({"--version", "-v", "--help", "-h", "--html-path", "--man-path", "--info-path"})
_RUNNING_OPTIONS = (
    "output",
    "ext-diff",
    "textconv",
    "no-index",
    "open-files-in-pager",
    "filters",
    "exec",
    "upload-pack",
    "receive-pack",
    "show-signature",
    "extcmd",
)
_HARMLESS_OPTIONS = frozenset({"text", "filter"})
_FILE_OPTIONS = ("contents", "exclude-from", "ignore-revs-file", "pathspec-from-file", "orderfile")
_FILE_LETTERS = {"grep": "f", "ls-files": "X", "blame": "S", "diff": "O", "log": "O", "show": "O"}
_GREP_PAGER = r"-[^-efmABCO]*O"
_READ_SUBCOMMANDS = frozenset(
    split_names(
        "status diff log show rev-parse ls-files ls-tree blame annotate describe shortlog grep cat-file "
        "rev-list name-rev merge-base show-ref for-each-ref count-objects check-ignore check-attr diff-tree "
        "diff-index diff-files whatchanged range-diff cherry version show-branch merge-tree verify-pack "
    )
)
_LISTING_OPTIONS = {
    "branch": (
        r"-[arvl]+|-vv|--(all|remotes|list|verbose|show-current|merged|no-merged|contains|no-contains|points-at|sort|format|color|no-color|column|no-column|ignore-case|abbrev)(=.*)?"
    ),
    "tag": (
        r"-[ln]\d*|--(list|merged|no-merged|contains|no-contains|points-at|sort|format|color|column|no-column|ignore-case)(=.*)?"
    ),
    "remote": r"-v|--verbose",
}
_READING_ACTIONS = {
    "stash": {"list", "show"},
    "remote": {"get-url"},
    "reflog": {"show", "exists", "list"},
    "worktree": {"list"},
    "submodule": {"status", "summary"},
    "notes": {"list", "show"},
    "bisect": {"log", "view"},
    "config": {"get", "list", "--get", "--list", "-l", "--get-all", "--get-regexp", "--show-origin"},
}
_CHANGES_CONFIG = r"--(unset|add|replace|rename|remove|edit|set|comment)|-e$"
_RUNNING_SUBCOMMANDS = frozenset(
    {"filter-branch", ("bisect", "run"), ("submodule", "foreach"), "send-email", "instaweb", "daemon"}
)
_PATH_LIKE = r"/|~|\.\.(/|$)|.*/\.\.(/|$)"


class GitCommand(Data, frozen=True):
    """A git command line sorted out: where the subcommand stands, and what its words do."""

    subcommand: int | None
    dangers: tuple[tuple[int, str], ...]
    reads: bool
    paths: tuple[ShellWord, ...]
    unknown: tuple[str, ...] = ()


def parse_git(words: Sequence[ShellWord]) -> GitCommand:
    """What a `git …` command is."""
    index, dangers = _scan_globals(words)
    if index is None:
        answers = len(words) == 1 or all(word.text in _GLOBAL_ANSWERS for word in words[1:])
        return GitCommand(subcommand=None, dangers=tuple(dangers), reads=answers and not dangers, paths=())
    dangers += _find_dangers(words, index)
    uncertain = [place for place, word in enumerate(words) if not word.static and word.might_be_option]
    ends = next((place for place, word in enumerate(words) if word.text == "--"), len(words))
    dangers += [(place, "it may contain an option") for place in uncertain if place < ends]
    name = words[index].text if words[index].static else ""
    reads = name in _READ_SUBCOMMANDS or _is_listing(name, words, index)
    return GitCommand(
        subcommand=index,
        dangers=tuple(dangers),
        reads=reads,
        paths=tuple(_find_paths(name, words, index)),
        unknown=tuple(_list_unknown(words[index + 1 : ends])) if reads else (),
    )


def _list_unknown(words: Sequence[ShellWord]) -> list[str]:
    """Long options of which it is not known what they do; `--no-…` undoes what it names."""
    names = [word.text[2:].partition("=")[0].removeprefix("no-") for word in words if word.text.startswith("--")]
    return [f"it is not known what git --{name} does" for name in names if name and name not in GIT_LONG_OPTIONS]


def _scan_globals(words: Sequence[ShellWord]) -> tuple[int | None, list[tuple[int, str]]]:
    dangers: list[tuple[int, str]] = []
    index = 1
    while index < len(words):
        text = words[index].text
        if not text.startswith("-"):
            return index, dangers
        if text not in _HARMLESS_GLOBALS and text not in _GLOBAL_ANSWERS:
            dangers.append((index, f"git {text.partition('=')[0]} can make git run or write something else"))
        index += 2 if text in _GLOBAL_VALUES else 1
    return None, dangers


def _find_dangers(words: Sequence[ShellWord], start: int) -> list[tuple[int, str]]:
    name = words[start].text
    found: list[tuple[int, str]] = []
    if (
        name in _RUNNING_SUBCOMMANDS
        or (name, *(word.text for word in words[start + 1 : start + 2])) in _RUNNING_SUBCOMMANDS
    ):
        found.append((start, f"git {name} runs commands it is given"))
    for index in range(start + 1, len(words)):
        text = words[index].text
        if text == "--":
            break
        if text.startswith("--"):
            given = text[2:].partition("=")[0]
            if given in _HARMLESS_OPTIONS:
                continue
            if any(option.startswith(given) for option in _RUNNING_OPTIONS if given):
                found.append((index, f"git {text.partition('=')[0]} can run or write something"))
        if "%G" in text:
            found.append((index, "%G runs the program that checks signatures"))
        elif name in ("rebase", "difftool") and text.startswith("-x"):
            found.append((index, f"git {name} -x runs a command"))
        elif name == "grep" and re.match(_GREP_PAGER, text):
            found.append((index, "git grep -O runs a program"))
        elif name in ("archive", "format-patch", "bundle", "fast-export") and text.startswith("-o"):
            found.append((index, f"git {name} -o writes a file"))
    return found


def _is_listing(name: str, words: Sequence[ShellWord], start: int) -> bool:
    """Subcommands that list or change, by their words."""
    rest = [word.text for word in words[start + 1 :]]
    if name in _LISTING_OPTIONS and _has_only_list_options(name, rest):
        return True
    if name == "reflog" and not rest:
        return True
    if name == "symbolic-ref":
        return len([text for text in rest if not text.startswith("-")]) == 1 and not {"-d", "--delete"} & set(rest)
    if name == "config" and any(re.match(_CHANGES_CONFIG, text) for text in rest):
        return False
    if name == "config" and len(rest) == 1 and not rest[0].startswith("-") and "." in rest[0]:
        return True
    return name in _READING_ACTIONS and bool(rest) and rest[0] in _READING_ACTIONS[name]


def _has_only_list_options(name: str, rest: list[str]) -> bool:
    options = [text for text in rest if text.startswith("-")]
    if not all(re.fullmatch(_LISTING_OPTIONS[name], option) for option in options):
        return False
    operands = [text for text in rest if not text.startswith("-")]
    asks = (
        "--list",
        "-l",
        "--merged",
        "--no-merged",
        "--contains",
        "--no-contains",
        "--points-at",
        "--sort",
        "--format",
    )
    return not operands or (name != "remote" and any(option.startswith(asks) for option in options))


def _find_paths(name: str, words: Sequence[ShellWord], start: int) -> list[ShellWord]:
    """Words that are or may be paths: everything after `--`, and what looks like a path before it. In `REV:PATH` the
    path counts."""
    found: list[ShellWord] = []
    after = False
    for word in words[start + 1 :]:
        if word.text == "--":
            after = True
        elif after or (not word.text.startswith("-") and _may_be_path(name, word)):
            found.append(word)
        elif word.text.startswith("-"):
            found += _find_joined_files(name, word)
        elif not word.text.startswith("-") and ":" in word.text:
            path = word.text.partition(":")[2]
            found.append(ShellWord(text=path, known=path if word.static else "", static=word.static))
    return found


def _find_joined_files(name: str, word: ShellWord) -> list[ShellWord]:
    """The file in `--contents=FILE` or `-fFILE`."""
    option, equals, path = word.text.partition("=")
    if not (equals and any(one.startswith(option[2:]) for one in _FILE_OPTIONS)) or not option.startswith("--"):
        letter = _FILE_LETTERS.get(name)
        path = word.text.partition(letter)[2] if letter and not word.text.startswith("--") else ""
    return [ShellWord(text=path, known=path if word.static else "", static=word.static)] if path else []


def _may_be_path(name: str, word: ShellWord) -> bool:
    if ".." in word.text and not re.match(_PATH_LIKE, word.text):
        return False
    return (
        bool(re.match(_PATH_LIKE, word.text))
        or (name not in ("config", "grep") and word.text.startswith("."))
        or (name in ("blame", "annotate", "diff", "ls-files", "check-ignore", "grep", "add") and ":" not in word.text)
    )
