"""Command line analysis: parses a line, unwraps its commands, and checks what each part would do."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from ollm.domain.struct import Data
from ollm.policy.shell.model import (
    CommandAnalysis,
    CommandPart,
    Directories,
    Redirection,
    ShellScope,
    SimpleCommand,
    is_harmless_variable,
)
from ollm.policy.shell.options import OptionScan, check_mentions, find_ungranted, scan_options
from ollm.policy.shell.parse import close_here_document, parse_script, split_unparsed
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections, is_stream, selects_secrets
from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.inner_commands import (
    abbreviates,
    find_called_commands,
    find_inner_commands,
    make_guess,
    split_off_command,
    strip_command_prefix,
)
from ollm.policy.shell.programs.record import InnerCommand, Program, Reading, WordDangers, find_targets
from ollm.policy.shell.walk import ScriptWalker
from ollm.policy.shell.words import ShellWord, drop_prefix, make_literal
from ollm.system.path_names import find_executable
from ollm.system.paths import Boundary, Judgement
from ollm.system.sandbox.box import Level
from ollm.system.terminal_text import find_hidden_characters, is_hidden

MAX_COMMAND_CHARS = 10_000
_MAX_PARSED_CHARS = 60_000
_MAX_DEPTH = 20
_MAX_WORDS = 400
_PROGRAM_VARIABLES = (
    r"\w*(PAGER|EDITOR|ASKPASS|COMMAND)|(GIT_)?SSH|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|PS[0-4]|GIT_EXTERNAL_DIFF|ENV"
)
_CRON_PREFIX = r"(?m)^\s*(?:@\w+|(?:[\d*/,-]+\s+){5})\s*"
_DEFINED_REMARK = "is defined by the line itself"
_VERSION_OPTIONS = frozenset({"--version", "-V", "-v", "-version"})
_SYSTEM_DIRECTORIES = ("/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/lib/", "/opt/homebrew/")
_OUTPUT_OPERATORS = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>", "&>|"})


def analyse_command(
    command: str, start: Path, boundary: Boundary, find_level: Callable[[], Level] = lambda: "none"
) -> CommandAnalysis:
    """Analyse what a line would do when run in `start`. Never raises: anything not understood gets a remark."""
    remarks = []
    hidden = find_hidden_characters(command)
    if hidden:
        remarks.append(f"it contains invisible characters: {', '.join(hidden[:5])}")
    if len(command) > MAX_COMMAND_CHARS:
        remarks.append(f"it is longer than {MAX_COMMAND_CHARS:,} characters")
    analyst = _CommandAnalyser(boundary, find_level)
    analyst.analyse_script(command, _ScriptContext(directories=(start,)))
    if hidden:
        analyst.analyse_script(
            "".join(one for one in command if not is_hidden(one)), _ScriptContext(directories=(start,), guess=True)
        )
    told = tuple(dict.fromkeys((*remarks, *analyst.remarks)))
    return CommandAnalysis(parts=tuple(analyst.parts), remarks=told, unread=analyst.unread)


_QueuedCommand = tuple[tuple[ShellWord, ...], InnerCommand, tuple[str, ...]]


class _ScriptContext(Data, frozen=True):
    directories: Directories
    arguments: tuple[str, ...] = ()
    guess: bool = False
    depth: int = 0

    def enter_script(self, inner: InnerCommand, directories: Directories) -> _ScriptContext:
        return _ScriptContext(
            directories=directories,
            arguments=inner.arguments,
            guess=self.guess or inner.guess,
            depth=self.depth + 1,
        )


class _CommandAnalyser:
    def __init__(self, boundary: Boundary, find_level: Callable[[], Level]) -> None:
        self._boundary = boundary
        self._find_level = find_level
        self._judged: dict[str, Judgement] = {}
        self.parts: list[CommandPart] = []
        self.remarks: list[str] = []
        self.unread = False

    def analyse_script(self, text: str, place: _ScriptContext) -> None:
        """Analyse a script. If it does not parse, search it for recognisable pieces, which can only forbid."""
        try:
            error = _check_size(text, place)
            if not error:
                error, self.unread = parse_script(text).error, self.unread or parse_script(text).failed
            if not error:
                self._analyse_parsed(text, place)
        except RecursionError:
            error = "it is nested too deeply"
        if error:
            if not place.guess:
                self.remarks.append(f"it is not a valid shell command ({error})")
            self._analyse_unparsed(text, msgspec.structs.replace(place, guess=True, depth=max(place.depth, _MAX_DEPTH)))
            if (closed := close_here_document(text, error)) is not None:
                self.analyse_script(closed, msgspec.structs.replace(place, guess=True, depth=place.depth + 1))

    def _analyse_unparsed(self, text: str, place: _ScriptContext) -> None:
        for words in split_unparsed(text):
            decoded = tuple(make_literal(word) for word in words)
            self._analyse_command(
                SimpleCommand(words=decoded, text=" ".join(words), directories=place.directories), set(), place
            )

    def _analyse_parsed(self, text: str, place: _ScriptContext) -> None:
        walker = ScriptWalker(parse_script(text))
        joined = " ".join(place.arguments[1:])
        numbered = {str(number): argument for number, argument in enumerate(place.arguments)}
        scope = ShellScope(place.directories, self._boundary.places.user_home, {**numbered, "@": joined, "*": joined})
        walker.walk(scope)
        for found in walker.found:
            if isinstance(found, Redirection):
                self._analyse_redirection(found, place)
            else:
                self._analyse_command(found, walker.functions, place)

    def _make_judge(self, directories: Directories) -> PathJudge:
        return PathJudge(self._boundary, directories, self._judged, self._find_level)

    def _analyse_redirection(self, found: Redirection, place: _ScriptContext) -> None:
        judge = self._make_judge(found.directories)
        target = found.target
        duplicates = found.operator in (">&", "<&") and re.fullmatch(r"\d*-?", target.text) and target.static
        if duplicates or (target.static and is_stream(target.text)):
            return
        writes = found.operator in _OUTPUT_OPERATORS
        wrote = f"it writes {target.text or 'a file computed at run time'}"
        part = CommandPart(
            words=(),
            text=found.text,
            directories=found.directories,
            guess=place.guess,
            remarks=(wrote,) if writes else (),
            write_target=(target.text or None) if writes else None,
        )
        self.parts.append(add_objections(part, judge.check_write(target) if writes else judge.check_read(target)))

    def _analyse_command(self, command: SimpleCommand, functions: set[str], place: _ScriptContext) -> None:
        remarks = [*command.remarks, *self._analyse_assignments(command, place)]
        if not command.words:
            if remarks or command.assignments:
                self.parts.append(self._make_part(command, (), remarks, place))
            return
        waiting = deque([(command.words, InnerCommand(), tuple(remarks))])
        first = True
        while waiting:
            words, inner, carried = waiting.popleft()
            part = self._make_part(command, words, [*carried, *_remark_on_program(words[0], functions)], place)
            text = command.text if first else " ".join(word.text for word in words[:_MAX_WORDS])
            guess = place.guess or inner.guess
            part = msgspec.structs.replace(part, text=text, guess=guess, may_differ=inner.more)
            first = False
            waiting += self._unwrap_part(part, command, inner, place)

    def _unwrap_part(
        self, part: CommandPart, command: SimpleCommand, inner: InnerCommand, place: _ScriptContext
    ) -> list[_QueuedCommand]:
        name = _find_program_name(part) or part.words[0].text.rpartition("/")[2]
        program = get_program(name)
        bare = part.words[0].static and "/" not in part.words[0].text
        redefined = any(remark.endswith(_DEFINED_REMARK) for remark in part.remarks)
        rest = split_off_command(program, part.words) if bare and not redefined else None
        if rest:
            own = part.words[: len(part.words) - len(rest) + 8]
            self.parts.append(msgspec.structs.replace(part, words=own, transparent=True))
            return [(rest, inner, part.remarks)]
        found = find_inner_commands(program, part.words)
        found += [*_find_evaluated(program, part.words), *_find_setting_programs(program, part.words)]
        judge = self._make_judge(part.directories)
        judged = part if part.guess else _add_effects(part, judge)  # Only rules apply to a guess.
        more = [*_remark_on_settings(program, part.words), *_remark_on_unknown_words(program, part.words, found)]
        if more:
            judged = msgspec.structs.replace(judged, remarks=(*judged.remarks, *more))
        self.parts.append(judged)
        found += _find_stdin_commands(program, command, found)
        waiting: list[_QueuedCommand] = []
        for one in found:
            if one.script is not None:
                self._analyse_nested(one, command, place)
            elif one.words:
                merged = msgspec.structs.replace(one, guess=one.guess or inner.guess, more=one.more or inner.more)
                waiting.append((one.words, merged, ()))
        return waiting

    def _analyse_nested(self, inner: InnerCommand, command: SimpleCommand, place: _ScriptContext) -> None:
        if not inner.static and not inner.guess and not place.guess:
            self.remarks.append("a script in it is computed at run time")
        self.analyse_script(inner.script or "", place.enter_script(inner, command.directories))

    def _analyse_assignments(self, command: SimpleCommand, place: _ScriptContext) -> Iterable[str]:
        for one in command.assignments:
            if not (one.plain and is_harmless_variable(one.name)):
                yield f"it sets {one.name or 'a variable'}"
            if re.fullmatch(_PROGRAM_VARIABLES, one.name) and one.value.text.strip():
                self.analyse_script(
                    one.value.text, place.enter_script(InnerCommand(script="", guess=True), command.directories)
                )

    def _make_part(
        self, command: SimpleCommand, words: tuple[ShellWord, ...], remarks: Iterable[str], place: _ScriptContext
    ) -> CommandPart:
        return CommandPart(
            words=words,
            text=command.text,
            directories=command.directories,
            remarks=tuple(dict.fromkeys(remarks)),
            guess=place.guess,
        )


def _check_size(text: str, place: _ScriptContext) -> str:
    if len(text) > _MAX_PARSED_CHARS:
        return f"it is longer than {_MAX_PARSED_CHARS:,} characters"
    return "it is nested too deeply" if place.depth > _MAX_DEPTH else ""


def _remark_on_program(word: ShellWord, functions: set[str]) -> list[str]:
    computed = not word.static or word.glob or word.braces or word.variable
    remarks = {
        "the program is computed at run time": computed,
        f"{word.text} looks like another name or is not plain text": not word.text.isascii(),
        f"{word.text} {_DEFINED_REMARK}": word.text in functions,
        "it runs a program without a name": not word.text and word.static,
    }
    return [remark for remark, holds in remarks.items() if holds]


def _remark_on_settings(program: Program, words: tuple[ShellWord, ...]) -> list[str]:
    """Treat variables set by `env`, `sudo` and `doas` like assignments."""
    if program.wraps is None or not program.wraps.assignments:
        return []
    return [f"it sets {name}" for name, _ in _parse_settings(words) if not is_harmless_variable(name)]


def _parse_settings(words: tuple[ShellWord, ...]) -> list[tuple[str, str]]:
    named = [re.match(r"([A-Za-z_]\w*)=(.*)", word.text, re.DOTALL) for word in words[1:]]
    return [(match.group(1), match.group(2)) for match in named if match]


def _find_setting_programs(program: Program, words: tuple[ShellWord, ...]) -> list[InnerCommand]:
    """Find programs named in variables that other programs run: `env PAGER=…`, `export EDITOR=…`."""
    if not program.sets_variables:
        return []
    return [
        make_guess(value.lstrip("|"))
        for variable, value in _parse_settings(words)
        if re.fullmatch(_PROGRAM_VARIABLES, variable) and value.strip()
    ]


def _find_evaluated(program: Program, words: tuple[ShellWord, ...]) -> list[InnerCommand]:
    """Find subscripts that some builtins evaluate even if quoted: `test -v 'a[$(…)]'`."""
    if not program.evaluates:
        return []
    texts = [word.text for word in words[1:] if "[" in word.text and ("$(" in word.text or "`" in word.text)]
    return [make_guess(': "' + text.replace('"', '\\"') + '"') for text in texts]


def _remark_on_unknown_words(program: Program, words: tuple[ShellWord, ...], found: list[InnerCommand]) -> list[str]:
    """Return a remark if a wrapper's own words are computed at run time: it may run a different command."""
    inner = [one.words for one in found if one.words and not one.guess]
    if program.wraps is None or not inner:
        return []
    own = words[: len(words) - len(inner[-1])]
    return ["what it runs is computed at run time"] if any(not word.static for word in own) else []


def _find_stdin_commands(program: Program, command: SimpleCommand, found: list[InnerCommand]) -> list[InnerCommand]:
    if not command.stdin:
        return []
    if program.fed == "script":
        return [] if found else [make_guess(command.stdin)]
    if program.fed == "commands":
        told = "\n".join(map(strip_command_prefix, command.stdin.splitlines()))
        return [make_guess(re.sub(_CRON_PREFIX, "", told))]
    if program.kind == "interpreter":
        return [make_guess(text) for text in find_called_commands(command.stdin)]
    if program.fed == "words" and found and found[0].words:
        return _expand_xargs(program, command, found[0].words)
    return []


def _expand_xargs(program: Program, command: SimpleCommand, words: tuple[ShellWord, ...]) -> list[InnerCommand]:
    text = command.stdin or ""
    given = tuple(make_literal(one) for one in text.split()[:_MAX_WORDS])
    options = scan_options(command.words, program.options).options
    mark = next((one.value.text for one in options if one.name == "I" and one.value), "{}")
    lines = [line for line in text.splitlines() if line.strip()][:_MAX_WORDS]
    filled = [tuple(make_literal(word.text.replace(mark, line)) for word in words) for line in lines if mark]
    return [InnerCommand(words=one, guess=True) for one in ((*words, *given), *filled)]


def _add_effects(part: CommandPart, judge: PathJudge) -> CommandPart:
    name = _find_program_name(part)
    if name is None:
        return part
    program = get_program(name)
    inspected = _inspect_part(part, judge, name, program)
    if inspected.reads:
        return inspected
    return msgspec.structs.replace(inspected, ungranted=find_ungranted(name, program.steering, part.words, judge))


def _find_program_name(part: CommandPart) -> str | None:
    """Return the program's name as the shell will look it up, without a path, or None if it is unknown."""
    if not part.words or not part.words[0].static:
        return None
    return part.words[0].text.rpartition("/")[2]


def _inspect_part(part: CommandPart, judge: PathJudge, name: str, program: Program) -> CommandPart:
    if program.versioned and _asks_for_version(name, part.words):
        return add_objections(part, NO_OBJECTIONS, reads=True)
    if program.inspect is not None:
        return program.inspect(part, judge)
    if program.reads is None:
        return _inspect_other(part, judge, name, program)
    return _inspect_reader(part, judge, name, program, program.reads)


def _asks_for_version(name: str, words: Sequence[ShellWord]) -> bool:
    """Return True if a command only prints the version of a system program. A program in a home may be a shim that runs
    something from the workspace."""
    if len(words) != 2 or words[1].text not in _VERSION_OPTIONS:
        return False
    found = find_executable(name)
    return found is None or os.path.realpath(found).startswith(_SYSTEM_DIRECTORIES)


def _inspect_reader(part: CommandPart, judge: PathJudge, name: str, program: Program, reading: Reading) -> CommandPart:
    found = scan_options(part.words, program.options)
    runs = _find_reading_dangers(part, name, reading, found)
    objections = _check_option_values(found, reading, judge)
    for word in find_targets(program, part.words).written:
        objections += judge.check_write(word)
    responses = [word for word in part.words[1:] if reading.responses and word.text.startswith("@")]
    objections += sum((judge.check_read(drop_prefix(word, 1)) for word in responses), NO_OBJECTIONS)
    if not reading.text:
        objections += judge.check_directory() + _check_operands(found, reading, judge)
    else:
        objections += sum((judge.check_names(word) for _, word in found.operands), NO_OBJECTIONS)
    if reading.output and len(found.operands) > reading.output:
        place, word = found.operands[reading.output]
        runs.append((place, f"{name} writes {word.text}"))
        objections += judge.check_write(word)
    if part.may_differ and not reading.text:
        objections += Objections(remarks=(f"what {name} reads is computed at run time",))
    reads = not reading.only_with or (len(part.words) > 2 and part.words[1].text in reading.only_with)
    named = [f"{name} reads the files that a file names"] if responses else []
    unknown = [*named, *_list_unknown(name, found, reading, judge)]
    return add_objections(part, objections, runs, reads=reads, unknown=unknown)


def _find_reading_dangers(part: CommandPart, name: str, reading: Reading, found: OptionScan) -> WordDangers:
    runs = [
        (one.index, f"{name} {'-' if len(one.name) == 1 else '--'}{one.name} can run, write or read something else")
        for one in found.options
        if one.is_any(reading.danger)
    ]
    if reading.danger or not reading.text:
        runs += [(index, "it may contain an option") for index in found.uncertain]
    if reading.evaluate is not None:
        runs += reading.evaluate(part.words)
    if reading.setting:
        setting = [place for place, word in found.operands if re.fullmatch(reading.setting, word.text, re.DOTALL)]
        runs += [(place, reading.setting_reason) for place in setting]
    if reading.script is not None:
        scripts = [
            (place, word)
            for place, word in _find_scripts(found, reading)
            if not word.static or not reading.script(word.text)
        ]
        runs += [(place, f"the {name} program may write, read other files or run commands") for place, _ in scripts]
    return runs


def _find_scripts(found: OptionScan, reading: Reading) -> Sequence[tuple[int, ShellWord]]:
    giving = [option for option in found.options if option.is_any(reading.pattern_options)]
    return [(one.index, one.value) for one in giving if one.value] if giving else found.operands[:1]


def _check_operands(found: OptionScan, reading: Reading, judge: PathJudge) -> Objections:
    """Check every operand as a path, except for operands that are certainly patterns."""
    sure = not found.unknown and not any(option.is_any(reading.pattern_options) for option in found.options)
    words = [word for _, word in found.operands]
    operands = words[reading.skip :] if sure else words
    objections = sum((judge.check_read(word) for word in operands), NO_OBJECTIONS)
    return objections + _check_trees(found, reading, operands or [make_literal(".")], judge)


def _check_option_values(found: OptionScan, reading: Reading, judge: PathJudge) -> Objections:
    """Check the files named in option values, including the values of unknown options."""
    objections = NO_OBJECTIONS
    for option in found.options:
        unknown = option in found.unknown or (option.long and not option.abbreviates)
        if option.value is not None and (unknown or option.value.glob or option.is_any(reading.read_options)):
            objections += judge.check_read(option.value)
    return objections


def _list_unknown(name: str, found: OptionScan, reading: Reading, judge: PathJudge) -> list[str]:
    unknown = [
        f"it is not known what {name} {one.spelled} does" for one in found.unknown if reading.exact or reading.script
    ]
    if any(option.is_any(reading.names) for option in found.options):
        unknown.append(f"{name} reads the files that a file names")
    if any(option.is_any(reading.selecting) for option in found.options):
        return unknown  # It reads only the names given here, which are checked elsewhere.
    if reading.compares or any(option.is_any(reading.walks) for option in found.options):
        places = [word for _, word in found.operands] or [make_literal(".")]
        secrets = sum((judge.check_tree(word) for word in places), NO_OBJECTIONS)
        unknown += [*secrets.locks, *secrets.remarks]
    return unknown


def _check_trees(found: OptionScan, reading: Reading, places: Sequence[ShellWord], judge: PathJudge) -> Objections:
    """Check for secret files and outward links in directories that are read recursively."""
    objections = NO_OBJECTIONS
    for option in found.options:
        chosen = option.value is not None and option.is_any(reading.selecting) and selects_secrets(option.value)
        if chosen or option.is_any(reading.deep):
            objections += sum((judge.check_tree(word) for word in places), NO_OBJECTIONS)
        if option.is_any((*reading.deep, *reading.walks)):
            objections += sum((judge.check_logins(word) for word in places), NO_OBJECTIONS)
        if option.is_any(reading.following):
            objections += sum((judge.check_links(word) for word in places), NO_OBJECTIONS)
    if reading.compares:
        objections += sum((judge.check_logins(word) for word in places), NO_OBJECTIONS)
        objections += sum((judge.check_links(word) for word in places), NO_OBJECTIONS)
    return objections


def _inspect_other(part: CommandPart, judge: PathJudge, name: str, program: Program) -> CommandPart:
    objections = Objections(remarks=(f"{name} {program.changes}",)) if program.changes else NO_OBJECTIONS
    if program.kind != "program" and _reads_script(part):
        objections += Objections(remarks=(f"{name} can run any code",))
    named = find_targets(program, part.words)
    for word in named.written:
        objections += judge.check_write(word)
    for word in named.removed:
        objections += judge.check_removal(word)
    for word in named.read:
        objections += judge.check_read(word)
    known = {word.text for word in (*named.written, *named.read, *named.removed)}
    objections += check_mentions(part.words, judge, known)
    return add_objections(part, objections, _find_acting_words(name, program, part.words))


def _reads_script(part: CommandPart) -> bool:
    """Return True for a shell or interpreter without a script file: it runs its input or a command's output."""
    words = [word for word in part.words[1:] if not word.text.startswith(("-", "+"))]
    streams = [word for word in words[:1] if word.descriptor or word.text in ("/dev/stdin", "/dev/fd/0")]
    return not words or bool(streams) or any(word.text in ("-s", "-") for word in part.words)


def _find_acting_words(name: str, program: Program, words: Sequence[ShellWord]) -> WordDangers:
    """Find options, in any spelling, that make the program run or use something else."""
    options = [*program.commands.split(), *program.acting.split()]
    letters = "".join(option[1] for option in options if len(option) == 2)
    clustered = rf"-[a-zA-Z0-9]*[{letters}].*" if letters else "(?!)"
    return [
        (index, f"{name} {word.text} can run something else")
        for index, word in enumerate(words[1:], 1)
        if abbreviates(word.text, options)
        or re.fullmatch(clustered, word.text, re.DOTALL)
        or (program.acting_words and re.fullmatch(program.acting_words, word.text, re.DOTALL))
    ]
