"""find: its tests, which only look, and its actions, which run, write or delete."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections
from ollm.policy.shell.programs.record import InnerCommand, Program, WordDangers, share_record, split_names
from ollm.policy.shell.words import UNKNOWN_WORD, ShellWord

_RUNNING = ("-exec", "-execdir", "-ok", "-okdir")
_WRITING = ("-fls", "-fprint", "-fprint0", "-fprintf")
_LEAVING = ("-L", "-follow", "-files0-from")
_FILE_TESTS = ("-newer", "-anewer", "-cnewer", "-samefile", "-files0-from")
_VALUE_TESTS = frozenset(
    split_names(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime"
        " -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -maxdepth -mindepth -links -inum -fstype -used"
        " -printf -regextype -context -D"
    )
)
_FLAGS = frozenset(
    split_names(
        "-H -P -a -and -o -or -not -true -false -print -print0 -ls -prune -quit -depth -d -daystart -empty -executable"
        " -readable -writable -nouser -nogroup -mount -xdev -noleaf -warn -nowarn -ignore_readdir_race"
        " -noignore_readdir_race -help -version --help --version -L -follow --"
    )
)


def _inspect_find(part: CommandPart, judge: PathJudge) -> CommandPart:
    objections = judge.check_directory()
    if part.may_differ:
        objections += Objections(remarks=("what find reads is computed at run time",))
    runs: WordDangers = []
    words, starting, index = part.words, True, 1
    while index < len(words):
        word = words[index]
        runs += [(index, reason) for reason in _find_dangers(word)]
        if word.text.startswith(("-", "(", ")", "!", ",")) and not re.fullmatch(r"-[HLP]|-O\d|-D|--", word.text):
            starting = False
        elif starting and not word.text.startswith("-"):
            objections += judge.check_read(word)
        valued = word.text in _VALUE_TESTS or word.text in (*_FILE_TESTS, *_WRITING)
        if valued and index + 1 < len(words):
            value = words[index + 1]
            objections += _check_value(word.text, value, judge)
            runs += [(index + 1, "it may contain an option")] if value.several else []
        index += 2 if valued else 1
    unknown = [f"it is not known what find {word.text} does" for word in _list_unknown(words)]
    return add_objections(part, objections, runs, reads=True, unknown=unknown)


def _check_value(test: str, value: ShellWord, judge: PathJudge) -> Objections:
    if test in _WRITING:
        return judge.check_write(value)
    return judge.check_read(value) if value.glob or test in _FILE_TESTS else NO_OBJECTIONS


def _find_dangers(word: ShellWord) -> list[str]:
    if word.text in (*_RUNNING, *_WRITING, "-delete"):
        return [f"find {word.text} runs, writes or deletes"]
    if word.text in _LEAVING:
        return [f"find {word.text} leaves the workspace"]
    return ["it may contain an option"] if not word.static and word.might_be_option else []


def _list_unknown(words: Sequence[ShellWord]) -> list[ShellWord]:
    """Words that are neither paths nor tests and actions that are known."""
    named = {*_FLAGS, *_VALUE_TESTS, *_FILE_TESTS, *_RUNNING, *_WRITING, "-delete"}
    found, index = [], 1
    while index < len(words):
        text = words[index].text
        if text.startswith("-") and len(text) > 1 and text not in named:
            found += [] if re.fullmatch(r"-O\d|-newer[aBcmt][aBcmt]", text) else [words[index]]
        index += 2 if text in _VALUE_TESTS or text in _FILE_TESTS else 1
    return found


def _unwrap_find(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    inner: list[InnerCommand] = []
    for start in [index for index, word in enumerate(words) if word.text in _RUNNING]:
        end = start + 1
        while end < len(words) and words[end].text != ";" and not _ends_with_braces(words, end):
            end += 1
        command = tuple(UNKNOWN_WORD if word.text == "{}" else word for word in words[start + 1 : end])
        inner += [InnerCommand(words=command, more=True)] if command else []
    return inner


def _ends_with_braces(words: Sequence[ShellWord], index: int) -> bool:
    return words[index].text == "+" and words[index - 1].text == "{}"


FIND_TOOLS: dict[str, Program] = share_record("find gfind", Program(inspect=_inspect_find, find_commands=_unwrap_find))
