"""Whether the words of a command name places that may be read or written without a question."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.policy.shell.directories import expand_home
from ollm.policy.shell.model import Directories
from ollm.policy.shell.words import Word
from ollm.system.paths import Boundary, Judgement, is_environment_file

_STREAMS = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero")
_NETWORK = ("/dev/tcp", "/dev/udp")
_MOST_MATCHES = 500
_MOST_ENTRIES = 1500
_LEFT_OUT = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class Objections(Data, frozen=True):
    """Reasons to ask; `locks` cannot be answered by a grant or an approval level."""

    remarks: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()

    def __add__(self, other: Objections) -> Objections:
        return Objections(remarks=self.remarks + other.remarks, locks=self.locks + other.locks)

    def __bool__(self) -> bool:
        return bool(self.remarks or self.locks)


NONE = Objections()


class PathJudge:
    """Looks at words as paths, from where the command would run."""

    def __init__(self, boundary: Boundary, directories: Directories, judged: dict[str, Judgement]) -> None:
        """`judged` remembers paths while one line is analysed."""
        self._boundary = boundary
        self._directories = directories
        self._home = boundary.places.user_home
        self._judged_before = judged

    def read(self, word: Word) -> Objections:
        """What stands against reading the place a word names."""
        if word.descriptor or (word.text in ("-", "") and word.static):
            return NONE
        if not word.static:
            return self._unknown(word)
        if word.glob:
            return self._glob(word.text)
        return self._path(word.text, writing=False)

    def names(self, word: Word) -> Objections:
        """What stands against telling the names that a pattern stands for."""
        return self._path(_before_glob(word.text), writing=False) if word.static and word.glob else NONE

    def write(self, word: Word) -> Objections:
        """What stands against writing there."""
        if word.descriptor or (word.static and is_stream(word.text)):
            return NONE
        if not word.static:
            return self._unknown(word)
        found = self._path(word.text, writing=True)
        if word.glob:
            found += self._written_by_glob(word.text)
        return found

    def remove(self, word: Word) -> Objections:
        """What stands against removing a directory with everything in it: a protected one below counts as well."""
        return self._above(word.text) if word.static else self._unknown(word)

    def protected(self, word: Word) -> Objections:
        """Protected places only: for programs of which it is not known what they do with a path."""
        if not word.static or not word.text:
            return NONE
        text = word.text.removeprefix("@")
        judged = [one for one in self._judged(text) if isinstance(one, Judgement)]
        reasons = [one.protected_reading or one.protected_writing for one in judged]
        return Objections(locks=tuple(f"{text}: {reason}" for reason in dict.fromkeys(reasons) if reason))

    def here(self) -> Objections:
        """What stands against reading where the command runs."""
        if self._directories is None:
            return Objections(remarks=("the directory it runs in is not known",))
        outside = [place for place in self._directories if not self._judge(str(place)).inside]
        return Objections(locks=tuple(f"it runs in {place}, outside the workspace" for place in outside))

    def tree(self, word: Word) -> Objections:
        """Secret files below a directory that is read whole, as far as a quick look shows."""
        for entry in itertools.islice(self._below(word), _MOST_ENTRIES):
            if is_environment_file(entry.name):
                return Objections(locks=(f"it reads {entry.name}, which may hold secrets",))
        return NONE

    def links(self, word: Word) -> Objections:
        """Links out below a directory that is read whole, links followed."""
        for number, entry in enumerate(self._below(word)):
            if number >= _MOST_ENTRIES:
                return Objections(remarks=(f"{word.text} is too large to look for links out of the workspace",))
            if entry.is_symlink() and not self._judge(entry.path).inside:
                return Objections(locks=(f"it follows {entry.name}, which leads out of the workspace",))
        return NONE

    def _below(self, word: Word) -> Iterator[os.DirEntry[str]]:
        if not word.static or word.glob:
            return
        for start in self._directories or ():
            yield from _entries(Path(os.path.normpath(start / (expand_home(word.text, self._home) or "."))))

    def _unknown(self, word: Word) -> Objections:
        """Judged by what is known of it: the beginning."""
        text = f"{word.known or word.text or 'a path'} is only known when the command runs"
        beginning = self._path(word.known, writing=False) if "/" in word.known or word.known.startswith("~") else NONE
        return Objections(remarks=(text,), locks=beginning.locks)

    def _path(self, text: str, *, writing: bool) -> Objections:
        if text in _STREAMS or text.startswith("/dev/fd/"):
            return NONE
        if text.startswith(_NETWORK):
            return Objections(remarks=(f"{text} opens a connection",))
        found = NONE
        for judged in self._judged(text):
            if isinstance(judged, Judgement):
                found += _objections(text, judged, writing=writing)
            else:
                found += judged
        return Objections(remarks=tuple(dict.fromkeys(found.remarks)), locks=tuple(dict.fromkeys(found.locks)))

    def _judged(self, text: str) -> Iterator[Judgement | Objections]:
        given = expand_home(text, self._home)
        if given is None:
            yield Objections(locks=(f"{text} is outside the workspace",))
        elif self._directories is None and not given.startswith("/"):
            yield Objections(remarks=(f"where {text} is cannot be known",))
            yield self._judge(given) if "\0" not in given else NONE
        else:
            for start in self._directories or (self._boundary.workspace,):
                try:
                    yield self._judge(str(start / given))
                except ToolFailure as failure:
                    yield Objections(remarks=(str(failure),))

    def _judge(self, path: str) -> Judgement:
        if path not in self._judged_before:
            self._judged_before[path] = self._boundary.judge(path)
        return self._judged_before[path]

    def _glob(self, text: str) -> Objections:
        found = self._path(_before_glob(text), writing=False) + self._path(text, writing=False)
        given = expand_home(text, self._home)
        if given is None or found.locks or not self._directories:
            return found
        for start in self._directories:
            found_names = glob.iglob(given, root_dir=start)  # noqa: PTH207 - as bash: hidden names only when asked for
            matches = list(itertools.islice(found_names, _MOST_MATCHES + 1))
            if len(matches) > _MOST_MATCHES:
                return found + Objections(remarks=(f"{text} stands for very many files",))
            if any(match.startswith("-") for match in matches):
                return found + Objections(remarks=(f"{text} stands for a name that looks like an option",))
            for match in matches:
                found += self._path(str(start / match), writing=False)
        return found

    def _written_by_glob(self, text: str) -> Objections:
        given = expand_home(text, self._home) or text
        found = NONE
        for start in self._directories or (self._boundary.workspace,):
            names = glob.iglob(given, root_dir=start)  # noqa: PTH207 - as bash: hidden names only when asked for
            for match in itertools.islice(names, _MOST_MATCHES):
                found += self._path(str(start / match), writing=True)
        return found

    def _above(self, text: str) -> Objections:
        """Removing or moving a directory takes along what is protected inside it."""
        given = expand_home(text, self._home) or text
        for start in self._directories or (self._boundary.workspace,):
            place = Path(os.path.normpath(start / given.rstrip("*")))
            precious = [self._boundary.workspace, *([self._home] if self._home else [])]
            if any(one == place or one.is_relative_to(place) for one in precious):
                return Objections(locks=(f"{text} holds protected files",))
        return NONE


def _before_glob(text: str) -> str:
    """The directory a pattern starts from."""
    fixed = "/".join(itertools.takewhile(lambda part: not set(part) & set("*?["), text.split("/")))
    return fixed or ("/" if text.startswith("/") else ".")


def selects_secrets(pattern: Word) -> bool:
    """Whether a pattern for the names to be read picks files that may hold secrets."""
    name = pattern.text.rsplit("/", 1)[-1]
    return is_environment_file(name) or any(fnmatchcase(one, name) for one in (".env", ".env.local"))


def is_stream(text: str) -> bool:
    """Output that is no write: nothing is kept."""
    return text in ("/dev/null", "/dev/stdout", "/dev/stderr")


def _objections(text: str, judged: Judgement, *, writing: bool) -> Objections:
    locks = []
    if not judged.inside:
        locks.append(f"{text} is outside the workspace")
    reason = judged.protected_writing if writing else judged.protected_reading
    if reason:
        locks.append(f"{'writing' if writing else 'reading'} {text}: {reason}")
    return Objections(locks=tuple(locks))


def _entries(top: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        yield from entries
        waiting += [
            Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name not in _LEFT_OUT
        ]
