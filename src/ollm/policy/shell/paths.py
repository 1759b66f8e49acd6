"""Checks whether the words of a command name paths that may be read or written without a confirmation."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.policy.rules import explain_steering, find_glob_base, is_system_file
from ollm.policy.shell.model import CommandPart, Directories, expand_home
from ollm.policy.shell.words import ShellWord
from ollm.system.path_names import is_environment_file
from ollm.system.paths import Boundary, Judgement, explain_read_protection
from ollm.system.sandbox.box import WHOLE_LEVELS, Level
from ollm.system.sandbox.git_settings import find_settings_with_login
from ollm.system.sandbox.repositories import NoRepository, find_repository

_TEMPORARY_PLACES = ("/tmp", "/dev/shm")  # noqa: S108 - the sandbox has its own
_STREAM = r"/dev/(null|stdin|stdout|stderr|tty|zero|fd/\d+)"
_NETWORK = ("/dev/tcp", "/dev/udp")
_MAX_GLOB_MATCHES = 500
_MAX_TREE_ENTRIES = 1500
_SKIPPED_DIRECTORIES = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class Objections(Data, frozen=True):
    """Reasons to ask. `locks` cannot be answered by a grant or an approval level."""

    remarks: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()  # Resolved paths of `locks`, which a person's yes opens.
    notes: tuple[str, ...] = ()  # They are shown with a question but are no reason to ask.

    def __add__(self, other: Objections) -> Objections:
        remarks, locks = self.remarks + other.remarks, self.locks + other.locks
        return Objections(remarks=remarks, locks=locks, opens=self.opens + other.opens, notes=self.notes + other.notes)


NO_OBJECTIONS = Objections()


class PathJudge:
    """Checks words as paths, relative to the directories where the command would run."""

    def __init__(
        self,
        boundary: Boundary,
        directories: Directories,
        judged: dict[str, Judgement],
        find_level: Callable[[], Level],
    ) -> None:
        """`judged` caches paths during the analysis of one line. `find_level` returns the sandbox level."""
        self.boundary = boundary
        self._find_level = find_level
        self._directories = directories
        self._home = boundary.places.user_home
        self._holds_home = self._home is not None and self._home.is_relative_to(boundary.workspace)
        self._judged_before = judged

    def check_read(self, word: ShellWord) -> Objections:
        if word.descriptor or (word.text in ("-", "") and word.static):
            return NO_OBJECTIONS
        if not word.static:
            return self._check_unknown(word)
        if word.glob:
            return self._check_glob(word.text)
        return self._check_path(word.text, writing=False)

    def check_names(self, word: ShellWord) -> Objections:
        return (
            self._check_path(find_glob_base(word.text), writing=False) if word.static and word.glob else NO_OBJECTIONS
        )

    def check_write(self, word: ShellWord) -> Objections:
        if word.descriptor or (word.static and is_stream(word.text)):
            return NO_OBJECTIONS
        if not word.static:
            return self._check_unknown(word, writing=True)
        found = self._check_path(word.text, writing=True)
        if word.glob:
            found += self._check_glob_write(word.text)
        return found

    def check_removal(self, word: ShellWord) -> Objections:
        """Return the objections to removing a directory tree, including protected paths below it."""
        return self._check_contents(word) if word.static else self._check_unknown(word)

    def check_protected(self, word: ShellWord) -> Objections:
        """Check for protected paths only: for programs whose use of a path is unknown."""
        if not word.static or not word.text:
            return NO_OBJECTIONS
        text = word.text.removeprefix("@")
        judged = [one for one in self._judge_places(text) if isinstance(one, Judgement)]
        found = [(one, reason) for one in judged if (reason := one.read_protection or one.write_protection)]
        locks = dict.fromkeys(f"{text}: {reason}" for _, reason in found)
        return Objections(locks=tuple(locks), opens=tuple(str(one.resolved) for one, _ in found))

    def check_secret(self, word: ShellWord) -> Objections:
        """Check only for paths that need a confirmation to read."""
        judged = [one for one in self._judge_places(word.text) if isinstance(one, Judgement)] if word.static else []
        return Objections(locks=tuple(f"{word.text}: {one.read_protection}" for one in judged if one.read_protection))

    def check_directory(self) -> Objections:
        if self._directories is None:
            return Objections(remarks=("its working directory is unknown",))
        outside = [judged for place in self._directories if not (judged := self._judge(str(place))).inside]
        texts = {one: f"it runs in {one.named}, outside the workspace" for one in outside}
        free = tuple(text for one, text in texts.items() if self._is_open(one, writing=False))
        return Objections(remarks=free, locks=tuple(text for text in texts.values() if text not in free))

    def is_in_other_repository(self) -> bool:
        """Return True if a directory between the workspace and the working directory is a separate repository."""
        workspace = self.boundary.workspace
        below = [place for place in self._directories or () if place != workspace and place.is_relative_to(workspace)]
        return any(
            _is_repository(above)
            for place in below
            for above in (place, *place.parents)
            if above != workspace and above.is_relative_to(workspace)
        )

    def check_tree(self, word: ShellWord) -> Objections:
        """Check for secret files below a directory that is read recursively, as far as a quick search shows."""
        for entry in itertools.islice(self._walk_below(word), _MAX_TREE_ENTRIES):
            if is_environment_file(entry.name) or (self._holds_home and self._is_private(entry.path)):
                return Objections(locks=(f"it reads {entry.name}, which may contain secrets",))
        return NO_OBJECTIONS

    def check_logins(self, word: ShellWord) -> Objections:
        """Logins in the settings of git below a directory that is read whole, as far as a quick look shows."""
        tops = [one.resolved for one in self._judge_places(word.text) if isinstance(one, Judgement)]
        below = itertools.islice(self._walk_below(word), _MAX_TREE_ENTRIES)
        folders = [*map(str, tops), *(entry.path for entry in below if entry.name == ".git")]
        found = next(filter(None, map(find_settings_with_login, folders)), None)
        return Objections(locks=(f"it reads {found}, which contains a login for git",)) if found else NO_OBJECTIONS

    def _is_private(self, path: str) -> bool:
        return explain_read_protection(Path(path), self.boundary.places) is not None

    def check_links(self, word: ShellWord) -> Objections:
        """Check for outward links below a directory that is read recursively with links followed."""
        for number, entry in enumerate(self._walk_below(word)):
            if number >= _MAX_TREE_ENTRIES:
                return Objections(remarks=(f"{word.text} is too large to check for links that leave the workspace",))
            if entry.is_symlink() and not self._judge(entry.path).inside:
                return Objections(locks=(f"it follows {entry.name}, which leaves the workspace",))
        return NO_OBJECTIONS

    def _walk_below(self, word: ShellWord) -> Iterator[os.DirEntry[str]]:
        if not word.static:
            return
        given = expand_home(word.text, self._home) or "."
        for start in self._directories or ():
            for match in _iter_matches(given, start) if word.glob else (given,):
                yield from _walk_entries(Path(os.path.normpath(start / match)))

    def _check_unknown(self, word: ShellWord, *, writing: bool = False) -> Objections:
        """Check a path computed at run time by its known beginning, and by its likely value if that is protected."""
        text = f"{word.known or word.text or 'a path'} is computed at run time"
        beginning = (
            self._check_path(word.known, writing=False)
            if "/" in word.known or word.known.startswith("~")
            else NO_OBJECTIONS
        )
        likely = self._check_likely(word.text, writing=writing) if word.text != word.known else NO_OBJECTIONS
        locks = tuple(dict.fromkeys((*beginning.locks, *likely.locks)))
        return Objections(remarks=(text,), locks=locks, opens=beginning.opens + likely.opens)

    def _check_likely(self, text: str, *, writing: bool) -> Objections:
        found = NO_OBJECTIONS
        for judged in self._judge_places(text):
            if isinstance(judged, Judgement) and (judged.write_protection if writing else judged.read_protection):
                found += self._list_objections(text, judged, writing=writing)
        return found

    def _check_path(self, text: str, *, writing: bool) -> Objections:
        if re.fullmatch(_STREAM, text):
            return NO_OBJECTIONS
        if text.startswith(_NETWORK):
            return Objections(remarks=(f"{text} opens a connection",))
        found = NO_OBJECTIONS
        for judged in self._judge_places(text):
            if isinstance(judged, Judgement):
                found += self._list_objections(text, judged, writing=writing)
            else:
                found += judged
        remarks, locks = tuple(dict.fromkeys(found.remarks)), tuple(dict.fromkeys(found.locks))
        return Objections(remarks=remarks, locks=locks, opens=found.opens, notes=found.notes)

    def _judge_places(self, text: str) -> Iterator[Judgement | Objections]:
        given = expand_home(text, self._home)
        if given is None:
            yield Objections(locks=(f"{text} is outside the workspace",))
        elif self._directories is None and not given.startswith("/"):
            yield Objections(remarks=(f"the location of {text} is unknown",))
            yield self._judge(given) if "\0" not in given else NO_OBJECTIONS
        else:
            for start in self._directories or (self.boundary.workspace,):
                try:
                    yield self._judge(str(start / given))
                except ToolFailure as failure:
                    yield Objections(remarks=(str(failure),))

    def _list_objections(self, text: str, judged: Judgement, *, writing: bool) -> Objections:
        outside = () if judged.inside else (f"{text} is outside the workspace",)
        reason = judged.write_protection if writing else judged.read_protection
        protected = (f"{'writing' if writing else 'reading'} {text}: {reason}",) if reason else ()
        if outside and not protected and self._is_open(judged, writing=writing):
            return Objections(remarks=outside)
        locks = (*outside, *protected)
        notes = (explain_steering(judged, self.boundary),) if writing and not locks else ()
        return Objections(locks=locks, opens=(str(judged.resolved),) if locks else (), notes=tuple(filter(None, notes)))

    def _is_in_own_repository(self, path: Path) -> bool:
        with suppress(NoRepository, OSError):
            found = find_repository(*map(str, (self.boundary.workspace, self.boundary.workspace, self._home or "/")))
            return path.is_relative_to(found.top) and self._find_level() != "none"
        return False

    def _is_open(self, judged: Judgement, *, writing: bool) -> bool:
        """Return True for a path outside that `--yes` opens: installed software and the repository around the workspace
        to read, and the sandbox's own temporary folders. A folder there that holds the workspace or the home is not one
        of the sandbox."""
        if not writing and (is_system_file(judged.resolved) or self._is_in_own_repository(judged.resolved)):
            return True
        top = next((Path(place) for place in _TEMPORARY_PLACES if judged.resolved.is_relative_to(place)), None)
        if top is None or self._find_level() not in WHOLE_LEVELS:
            return False
        kept = (self.boundary.workspace, self._home, self.boundary.places.ollm_home)
        below = judged.resolved.relative_to(top).parts[:1]
        return not any(one and one.is_relative_to(top) and one.relative_to(top).parts[:1] == below for one in kept)

    def _judge(self, path: str) -> Judgement:
        if path not in self._judged_before:
            self._judged_before[path] = self.boundary.judge(path)
        return self._judged_before[path]

    def _check_glob(self, text: str) -> Objections:
        found = self._check_path(find_glob_base(text), writing=False) + self._check_path(text, writing=False)
        given = expand_home(text, self._home)
        if given is None or found.locks or not self._directories:
            return found
        for start in self._directories:
            matches = list(_iter_matches(given, start))
            if len(matches) == _MAX_GLOB_MATCHES:
                return found + Objections(remarks=(f"{text} matches too many files",))
            if any(match.startswith("-") for match in matches):
                return found + Objections(remarks=(f"{text} matches a name that looks like an option",))
            for match in matches:
                found += self._check_path(str(start / match), writing=False)
        return found

    def _check_glob_write(self, text: str) -> Objections:
        given = expand_home(text, self._home) or text
        found = NO_OBJECTIONS
        for start in self._directories or (self.boundary.workspace,):
            for match in _iter_matches(given, start):
                found += self._check_path(str(start / match), writing=True)
        return found

    def _check_contents(self, word: ShellWord) -> Objections:
        """Check for protected files inside a directory that is removed or moved."""
        text = word.text
        given = expand_home(text, self._home) or text
        for start in self._directories or (self.boundary.workspace,):
            place = Path(os.path.normpath(start / given.rstrip("*")))
            precious = [self.boundary.workspace, *([self._home] if self._home else [])]
            if any(one == place or one.is_relative_to(place) for one in precious):
                return Objections(locks=(f"{text} contains protected files",))
        return NO_OBJECTIONS


def add_objections(
    part: CommandPart,
    found: Objections,
    runs: Sequence[tuple[int, str]] = (),
    *,
    reads: bool = False,
    unknown: Sequence[str] = (),
) -> CommandPart:
    """Add objections to a part. A program run by path or with unknown words does not count as only reading."""
    bare = bool(part.words) and "/" not in part.words[0].text
    return msgspec.structs.replace(
        part,
        remarks=tuple(dict.fromkeys((*part.remarks, *found.remarks))),
        locks=tuple(dict.fromkeys((*part.locks, *found.locks))),
        opens=(*part.opens, *found.opens),
        notes=tuple(dict.fromkeys((*part.notes, *found.notes))),
        runs=(*part.runs, *runs),
        unknown=(*part.unknown, *unknown),
        reads=reads and bare and not part.may_differ,
    )


def _is_repository(directory: Path) -> bool:
    bare = all(os.path.lexists(directory / name) for name in ("HEAD", "objects", "refs"))
    return bare or os.path.lexists(directory / ".git")


def _iter_matches(pattern: str, directory: Path) -> Iterator[str]:
    """Iterate over the first names that match a pattern as in bash: hidden names only if it asks for them."""
    return itertools.islice(glob.iglob(pattern, root_dir=directory), _MAX_GLOB_MATCHES)  # noqa: PTH207


def selects_secrets(pattern: ShellWord) -> bool:
    """Return True if a filename pattern selects files that may contain secrets."""
    name = pattern.text.rpartition("/")[2]
    return is_environment_file(name) or any(fnmatchcase(one, name) for one in (".env", ".env.local"))


def is_stream(text: str) -> bool:
    """Return True for output targets that store nothing, such as /dev/null."""
    return text in ("/dev/null", "/dev/stdout", "/dev/stderr")


def _walk_entries(top: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        yield from entries
        waiting += [
            Path(entry.path)
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED_DIRECTORIES
        ]
