"""Commands inside other commands, located by the program records. For programs that only launch a command, its position
is not determined exactly: every reading is considered, and each can only forbid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ollm.policy.shell.options import OptionGrammar, scan_options
from ollm.policy.shell.programs.record import MAX_WORDS, InnerCommand, Launching, Program, Wrapping
from ollm.policy.shell.words import ShellWord

_STRING = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_CALL = (
    r"(?:\b(?:system\w*|popen\w*|exec\w*|spawn\w*|getoutput|getstatusoutput|passthru|shell_exec|proc_open|execute)"
    r"|shell-command|shell script|subprocess\.\w+|\b(?:run|call|check_call|check_output|Popen)(?=\s*\())"
    rf"[\s(\[{{]*({_STRING}(?:\s*,\s*\[?\s*{_STRING})*)"
)
_BACKTICKS = r"`([^`]+)`|(?:qx|%x)\s*[({\[/|!]([^)}\]/|!]+)"


def find_called_commands(code: str) -> Iterator[str]:
    """Find commands in calls that start programs, and between backticks."""
    for call in re.finditer(_CALL, code):
        strings = [one[1:-1] for one in re.findall(_STRING, call.group(1))]
        yield strings[0] if " " in strings[0] else " ".join(strings)
    for found in re.finditer(_BACKTICKS, code):
        yield found.group(1) or found.group(2)


_ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]*\+?="
_COMMAND_PREFIX = (
    r"(?i)\s*(?:--?[\w-]+=)?(?:\+|:?!|\\!|\.(?:shell|system)\b|(?:platform )?shell\b|exec:|system:|spawn\b|system\b"
    r"|exec\b=?|run-shell\b|set-hook\b|\$\{?\w+\}?:)*\s*[\"']?"
)
_MARK = r":{3,4}\+?"


def find_inner_commands(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    found: list[InnerCommand] = []
    if program.find_commands is not None:
        found += program.find_commands(program, words)
    elif program.wraps is not None:
        found += unwrap_command(program, words)
    if program.launches is not None:
        found += _find_launched(program.launches, words)
    if program.commands:
        found += _find_in_options(program.commands.split(), words)
    if program.code:
        found += [make_guess(text) for word in words[1:] for text in find_called_commands(word.text) if text.strip()]
    return found


def make_guess(script: str) -> InnerCommand:
    return InnerCommand(script=script, guess=True)


def split_off_command(program: Program, words: Sequence[ShellWord]) -> tuple[ShellWord, ...] | None:
    """Return the command that a harmless wrapper runs, or None for other uses."""
    if program.wraps is None or not program.wraps.harmless:
        return None
    found, skip = scan_options(words, program.options), program.wraps.operands
    rest = [word for _, word in found.operands]
    own = len(words) - len(rest) + skip
    logs = any(option.is_any(program.wraps.logs) for option in found.options)
    if logs or found.uncertain or len(rest) <= skip or not all(word.static for word in words[:own]):
        return None
    return tuple(_drop_separator(rest[skip:]))


def unwrap_command(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Return the command after a wrapper's own words, and those in its options."""
    wrapper = program.wraps or Wrapping()
    found = scan_options(words, program.options)
    rest = [word for _, word in found.operands]
    inner = [
        InnerCommand(script=" ".join([option.value.text, *(word.text for word in rest)]), static=option.value.static)
        for option in found.options
        if option.value and option.is_any(wrapper.scripts)
    ]
    if found.uncertain:
        inner += [InnerCommand(words=tuple(words[index:]), guess=True) for index in range(2, len(words))]
    while wrapper.assignments and rest and (rest[0].text == "-" or re.match(_ASSIGNMENT, rest[0].text)):
        rest = rest[1:]
    rest = _drop_separator(rest[wrapper.operands :])
    if wrapper.scripts and len(rest) > 1 and rest[0].text.lstrip("-") in wrapper.scripts:
        inner.append(join_script(rest[1:]))
    elif rest and wrapper.as_script:
        inner.append(join_script(rest))
    elif rest:
        inner.append(InnerCommand(words=tuple(rest), more=wrapper.more))
    return inner


def _drop_separator(words: list[ShellWord]) -> list[ShellWord]:
    return words[1:] if words and words[0].text == "--" else words


def join_script(words: Sequence[ShellWord]) -> InnerCommand:
    return InnerCommand(script=" ".join(word.text for word in words), static=all(word.static for word in words))


def _find_launched(how: Launching, words: Sequence[ShellWord]) -> list[InnerCommand]:
    places = [index for index, word in enumerate(words[:MAX_WORDS]) if word.text in how.after]
    if how.after and not places:
        return []
    rest = words[(places[0] if places else 0) + 1 :][:MAX_WORDS]
    found: list[InnerCommand] = []
    if not how.one_word:
        found += [
            InnerCommand(words=tuple(word for word in rest[index:] if word.text != "--"), guess=True)
            for index in _find_starts(rest, how.own)
        ]
    if not how.split:
        quoted = [word.text for word in rest if " " in word.text]
        stripped = map(strip_command_prefix, quoted)
        found += [make_guess(text) for text in stripped if not how.marked or text not in quoted]
    return found


def _find_starts(words: Sequence[ShellWord], own: int) -> list[int]:
    found: list[int] = []
    for index, word in enumerate(words):
        if word.text.startswith("-") and word.text != "--":
            continue
        before = words[index - 1].text if index else ""
        if word.text == "--":
            return [*found, index + 1]
        found.append(index)
        own -= not before.startswith("-") or "=" in before
        if own < 0:
            break
    return found


def strip_command_prefix(text: str) -> str:
    """Strip the prefix a host needs before a command: `!` in an editor, `shell` in a debugger, `--exec=`."""
    rest = re.sub(_COMMAND_PREFIX, "", text, count=1)
    return rest.rstrip("\"'") if rest.count('"') % 2 or rest.count("'") % 2 else rest


def _find_in_options(options: Sequence[str], words: Sequence[ShellWord]) -> list[InnerCommand]:
    texts = [word.text for word in words]
    given = [
        value if equals else "".join(texts[index + 1 : index + 2])
        for index, text in enumerate(texts[1:], 1)
        for option, equals, value in [text.partition("=")]
        if option in options or (len(option) > 3 and abbreviates(option, options))
    ]
    return [make_guess(text.removeprefix("exec=")) for text in given if text]


def abbreviates(text: str, options: Sequence[str]) -> bool:
    """Return True if a word is one of these long options, in full or abbreviated."""
    given = text.partition("=")[0]
    return given.startswith("--") and len(given) > 2 and any(one.startswith(given) for one in options)


def unwrap_shell(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Unwrap `bash -c SCRIPT NAME ARGUMENT…`. Script files are not read."""
    words = [word for word in words if not re.fullmatch(r"\+[a-zA-Z]*", word.text)]
    found = scan_options(
        words, OptionGrammar(values="oO", long_values=("rcfile", "init-file"), known=("command",), stops=True)
    )
    if not any(option.is_any(("c", "command")) for option in found.options) or not found.operands:
        return []
    (_, script), *arguments = found.operands
    texts = tuple(word.text for _, word in arguments)
    return [InnerCommand(script=script.text, static=script.static, arguments=texts)]


def unwrap_eval(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    rest = _drop_separator(list(words[1:]))
    return [join_script(rest)] if rest else []


def unwrap_trap(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    rest = _drop_separator(list(words[1:]))
    resets = len(rest) < 2 or (rest[0].static and rest[0].text in ("-", "-p", "-l", ""))
    return [] if resets else [join_script(rest[:1])]


def unwrap_alias(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    values = [word.text.partition("=")[2] for word in words[1:] if "=" in word.text]
    return [make_guess(value) for value in values if value.strip()]


def unwrap_callback(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Unwrap `mapfile -C COMMAND`."""
    found = scan_options(words, program.options)
    return [make_guess(one.value.text) for one in found.options if one.name == "C" and one.value]


def unwrap_command_builtin(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    found = scan_options(words, program.options)
    asks_only = any(option.name in ("v", "V") for option in found.options)
    return [] if asks_only else unwrap_command(program, words)


def unwrap_rest(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    return [InnerCommand(words=tuple(words[1:]))] if len(words) > 1 else []


def unwrap_user_shell(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Unwrap `su [-] [USER] [-c SCRIPT]`, with options also after the user's name, and `runuser -u USER COMMAND`, which
    takes the command as words."""
    found = scan_options(words, msgspec.structs.replace(program.options, stops=False))
    if any(option.is_any(("u", "user")) for option in found.options if "user" in program.options.long_values):
        return unwrap_command(program, words)
    scripts = [option.value for option in found.options if program.wraps and option.is_any(program.wraps.scripts)]
    return [InnerCommand(script=value.text, static=value.static) for value in scripts if value]


def unwrap_ssh(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Unwrap the remote command, and commands in settings: `-o ProxyCommand=…`."""
    found = scan_options(words, program.options)
    settings = [option.value.text for option in found.options if option.name == "o" and option.value]
    commands = [re.split(r"[=\s]", text, maxsplit=1)[1] for text in settings if re.match(r"\w+Command[=\s]", text)]
    return [*(unwrap_command(program, words) if program.wraps else ()), *map(make_guess, commands)]


def unwrap_parallel(program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    rest = [word for _, word in scan_options(words, program.options).operands]
    marks = [index for index, word in enumerate(rest) if re.fullmatch(_MARK, word.text)]
    command, arguments = (rest, []) if not marks else (rest[: marks[0]], rest[marks[0] + 1 :])
    if not command:
        return [InnerCommand(script=word.text, static=word.static) for word in arguments]
    script = msgspec.structs.replace(join_script(command), more=True)
    filled = "\n".join(_fill_command(script.script or "", arguments))
    return [script, *([make_guess(filled)] if filled else [])]


def _fill_command(text: str, arguments: Sequence[ShellWord]) -> Iterator[str]:
    for word in arguments:
        if not re.fullmatch(_MARK, word.text):
            yield text.replace("{}", word.text) if "{}" in text else f"{text} {word.text}"
