"""From a command line to the parts that are judged: parsed, walked, unwrapped, and looked at for what they would do."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ollm.domain.struct import Data
from ollm.policy.shell.effects import program_name, with_effects
from ollm.policy.shell.languages import called
from ollm.policy.shell.launchers import unmarked
from ollm.policy.shell.model import Analysis, Command, Directories, Part, Redirection
from ollm.policy.shell.options import scan
from ollm.policy.shell.parse import parse, stretches, with_marker
from ollm.policy.shell.paths import PathJudge, is_stream
from ollm.policy.shell.programs import EVALUATES
from ollm.policy.shell.runners import INTERPRETERS
from ollm.policy.shell.scope import Scope, is_harmless_variable
from ollm.policy.shell.unwrap import Inner
from ollm.policy.shell.walk import Walker
from ollm.policy.shell.words import Word, literal
from ollm.policy.shell.wrapper_table import WRAPPERS
from ollm.policy.shell.wrappers import SHELLS, inner_commands, splits_off
from ollm.policy.visible import hidden_characters, is_hidden
from ollm.system.paths import Boundary, Judgement

LONGEST = 10_000
_LONGEST_PARSED = 60_000
_DEEPEST = 20
_MOST_WORDS = 400
_RUN_BY_VARIABLE = (
    r"\w*(PAGER|EDITOR|ASKPASS|COMMAND)|(GIT_)?SSH|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|PS[0-4]|GIT_EXTERNAL_DIFF|ENV"
)
_SETTING = frozenset({"env", "sudo", "doas", "export", "declare", "typeset", "readonly", "local"})
_FED = frozenset(
    {"at", "batch", "crontab", "newgrp", "ssh", "make", "ed", "ex", "sqlite3", "psql", "mysql", "gdb", "tmux"}
)
_SCHEDULE = r"(?m)^\s*(?:@\w+|(?:[\d*/,-]+\s+){5})\s*"
_OUTPUT = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>", "&>|"})


def analyse(command: str, start: Path, boundary: Boundary) -> Analysis:
    """Everything a line would do when run in `start`. Never raises: what is not understood is remarked upon."""
    remarks = []
    hidden = hidden_characters(command)
    if hidden:
        remarks.append(f"it holds characters that are not seen: {', '.join(hidden[:5])}")
    if len(command) > LONGEST:
        remarks.append(f"it is longer than {LONGEST:,} characters")
    analyst = _Analyst(boundary)
    analyst.script(command, _Place(directories=(start,)))
    if hidden:
        analyst.script("".join(one for one in command if not is_hidden(one)), _Place(directories=(start,), guess=True))
    return Analysis(parts=tuple(analyst.parts), remarks=tuple(dict.fromkeys((*remarks, *analyst.remarks))))


_Waiting = tuple[tuple[Word, ...], Inner, tuple[str, ...]]


class _Place(Data, frozen=True):
    """Where a script stands: nested how deep, with which arguments, and whether it is a guess."""

    directories: Directories
    arguments: tuple[str, ...] = ()
    guess: bool = False
    depth: int = 0

    def inside(self, inner: Inner, directories: Directories) -> _Place:
        return _Place(
            directories=directories,
            arguments=inner.arguments,
            guess=self.guess or inner.guess,
            depth=self.depth + 1,
        )


class _Analyst:
    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._judged: dict[str, Judgement] = {}
        self.parts: list[Part] = []
        self.remarks: list[str] = []

    def script(self, text: str, place: _Place) -> None:
        """Analyse a script; what does not parse is searched for recognisable pieces, which can only forbid."""
        try:
            error = _too_much(text, place) or parse(text).error
            if not error:
                self._parsed(text, place)
        except RecursionError:
            error = "it is nested too deeply"
        if error:
            if not place.guess:
                self.remarks.append(f"it cannot be read as a shell command ({error})")
            self._recognised(text, msgspec.structs.replace(place, guess=True, depth=max(place.depth, _DEEPEST)))
            if (closed := with_marker(text, error)) is not None:
                self.script(closed, msgspec.structs.replace(place, guess=True, depth=place.depth + 1))

    def _recognised(self, text: str, place: _Place) -> None:
        """What can be made out in a text that does not parse."""
        for words in stretches(text):
            decoded = tuple(literal(word) for word in words)
            self._command(Command(words=decoded, text=" ".join(words), directories=place.directories), set(), place)

    def _parsed(self, text: str, place: _Place) -> None:
        walker = Walker(parse(text))
        joined = " ".join(place.arguments[1:])
        numbered = {str(number): argument for number, argument in enumerate(place.arguments)}
        scope = Scope(place.directories, self._boundary.places.user_home, {**numbered, "@": joined, "*": joined})
        walker.walk(scope)
        for found in walker.found:
            if isinstance(found, Redirection):
                self._redirection(found, place)
            else:
                self._command(found, walker.functions, place)

    def _redirection(self, found: Redirection, place: _Place) -> None:
        judge = PathJudge(self._boundary, found.directories, self._judged)
        target = found.target
        duplicates = found.operator in (">&", "<&") and re.fullmatch(r"\d*-?", target.text) and target.static
        if duplicates or (target.static and is_stream(target.text)):
            return
        part = Part(words=(), text=found.text, directories=found.directories, guess=place.guess)
        if found.operator in _OUTPUT:
            objections = judge.write(target)
            wrote = f"it writes {target.text or 'a file that is only known when it runs'}"
            part = msgspec.structs.replace(
                part, remarks=(wrote, *objections.remarks), locks=objections.locks, write_target=target.text or None
            )
        else:
            objections = judge.read(target)
            part = msgspec.structs.replace(part, remarks=objections.remarks, locks=objections.locks, reads=True)
        self.parts.append(part)

    def _command(self, command: Command, functions: set[str], place: _Place) -> None:
        remarks = [*command.remarks, *self._assignments(command, place)]
        if not command.words:
            if remarks or command.assignments:
                self.parts.append(self._part(command, (), remarks, place))
            return
        waiting = deque([(command.words, Inner(), tuple(remarks))])
        first = True
        while waiting:
            words, inner, carried = waiting.popleft()
            part = self._part(command, words, [*carried, *_command_word(words[0], functions)], place)
            text = command.text if first else " ".join(word.text for word in words[:_MOST_WORDS])
            guess = place.guess or inner.guess
            part = msgspec.structs.replace(part, text=text, guess=guess, may_differ=inner.more)
            first = False
            waiting += self._unwrapped(part, command, inner, place)

    def _unwrapped(self, part: Part, command: Command, inner: Inner, place: _Place) -> list[_Waiting]:
        """Add the part, and hand back the commands inside it."""
        name = program_name(part) or part.words[0].text.rsplit("/", 1)[-1]
        bare = part.words[0].static and "/" not in part.words[0].text
        rest = splits_off(name, part.words) if bare else None
        if rest is not None and name in part_functions(part):
            rest = None
        if rest:
            own = part.words[: len(part.words) - len(rest) + 8]
            self.parts.append(msgspec.structs.replace(part, words=own, transparent=True))
            return [(rest, inner, part.remarks)]
        found = [*inner_commands(name, part.words), *_evaluated(name, part.words)]
        found += _started_by_settings(name, part.words)
        judged = part if part.guess else self._with_effects(part)  # a guess is held against rules alone
        more = [*_settings(name, part.words), *_unsure(name, part.words, found)]
        if more:
            judged = msgspec.structs.replace(judged, remarks=(*judged.remarks, *more))
        self.parts.append(judged)
        found += _from_stdin(name, command, found)
        waiting: list[_Waiting] = []
        for one in found:
            if one.script is not None:
                self._nested(one, command, place)
            elif one.words:
                merged = msgspec.structs.replace(one, guess=one.guess or inner.guess, more=one.more or inner.more)
                waiting.append((one.words, merged, ()))
        return waiting

    def _with_effects(self, part: Part) -> Part:
        return with_effects(part, PathJudge(self._boundary, part.directories, self._judged))

    def _nested(self, inner: Inner, command: Command, place: _Place) -> None:
        if not inner.static and not inner.guess and not place.guess:
            self.remarks.append("a script in it is only known when it runs")
        self.script(inner.script or "", place.inside(inner, command.directories))

    def _assignments(self, command: Command, place: _Place) -> Iterable[str]:
        for one in command.assignments:
            if not (one.plain and is_harmless_variable(one.name)):
                yield f"it sets {one.name or 'a variable'}"
            if re.fullmatch(_RUN_BY_VARIABLE, one.name) and one.value.text.strip():
                self.script(one.value.text, place.inside(Inner(script="", guess=True), command.directories))

    def _part(self, command: Command, words: tuple[Word, ...], remarks: Iterable[str], place: _Place) -> Part:
        return Part(
            words=words,
            text=command.text,
            directories=command.directories,
            remarks=tuple(dict.fromkeys(remarks)),
            guess=place.guess,
        )


def _too_much(text: str, place: _Place) -> str:
    if len(text) > _LONGEST_PARSED:
        return f"it is longer than {_LONGEST_PARSED:,} characters"
    return "it is nested too deeply" if place.depth > _DEEPEST else ""


def part_functions(part: Part) -> frozenset[str]:
    """The part's own name when the line defines it anew."""
    defined = any(remark.endswith(_DEFINED) for remark in part.remarks)
    return frozenset({part.words[0].text}) if defined else frozenset()


_DEFINED = "is defined by the line itself"


def _command_word(word: Word, functions: set[str]) -> Iterable[str]:
    if not word.static or word.glob or word.braces or word.variable:
        yield "which program it runs is only known when it runs"
    if not word.text.isascii():
        yield f"{word.text} looks like another name or is not plain text"
    if word.text in functions:
        yield f"{word.text} {_DEFINED}"
    if not word.text and word.static:
        yield "it runs a program without a name"


def _settings(name: str, words: tuple[Word, ...]) -> list[str]:
    """Variables set by `env`, `sudo` and `doas` count like assignments."""
    if name not in ("env", "sudo", "doas"):
        return []
    return [f"it sets {name}" for name, _ in _set_by(words) if not is_harmless_variable(name)]


def _set_by(words: tuple[Word, ...]) -> list[tuple[str, str]]:
    named = [re.match(r"([A-Za-z_]\w*)=(.*)", word.text, re.DOTALL) for word in words[1:]]
    return [(match.group(1), match.group(2)) for match in named if match]


def _started_by_settings(name: str, words: tuple[Word, ...]) -> list[Inner]:
    """Programs named in variables that others start: `env PAGER=…`, `export EDITOR=…`."""
    if name not in _SETTING:
        return []
    return [
        Inner(script=value.lstrip("|"), guess=True)
        for variable, value in _set_by(words)
        if re.fullmatch(_RUN_BY_VARIABLE, variable) and value.strip()
    ]


def _evaluated(name: str, words: tuple[Word, ...]) -> list[Inner]:
    """Subscripts that some builtins evaluate although they were quoted: `test -v 'a[$(…)]'`."""
    if name not in EVALUATES:
        return []
    texts = [word.text for word in words[1:] if "[" in word.text and ("$(" in word.text or "`" in word.text)]
    return [Inner(script=': "' + text.replace('"', '\\"') + '"', guess=True) for text in texts]


def _unsure(name: str, words: tuple[Word, ...], found: list[Inner]) -> list[str]:
    """A wrapper whose own words are not known may run something else than what stands there."""
    inner = [one.words for one in found if one.words and not one.guess]
    if name not in WRAPPERS or not inner:
        return []
    own = words[: len(words) - len(inner[-1])]
    return ["what it runs is only known when it runs"] if any(not word.static for word in own) else []


def _from_stdin(name: str, command: Command, found: list[Inner]) -> list[Inner]:
    """What a shell, xargs or a program with commands of its own is fed, where that stands in the line."""
    if not command.stdin:
        return []
    if (name in SHELLS or name in ("source", ".")) and not found:
        return [Inner(script=command.stdin, guess=True)]
    if name in _FED:
        told = "\n".join(map(unmarked, command.stdin.splitlines()))
        return [Inner(script=re.sub(_SCHEDULE, "", told), guess=True)]
    if name in INTERPRETERS:
        return [Inner(script=text, guess=True) for text in called(command.stdin)]
    if name == "xargs" and found and found[0].words:
        return _fed(command.words, found[0].words, command.stdin)
    return []


def _fed(xargs: tuple[Word, ...], words: tuple[Word, ...], text: str) -> list[Inner]:
    """What xargs makes of its input: more words, or each line in place of a mark."""
    given = tuple(literal(one) for one in text.split()[:_MOST_WORDS])
    options = scan(xargs, WRAPPERS["xargs"].grammar).options
    mark = next((one.value.text for one in options if one.name == "I" and one.value), "{}")
    lines = [line for line in text.splitlines() if line.strip()][:_MOST_WORDS]
    filled = [tuple(literal(word.text.replace(mark, line)) for word in words) for line in lines if mark]
    return [Inner(words=one, guess=True) for one in ((*words, *given), *filled)]
