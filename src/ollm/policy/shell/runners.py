"""Programs that are handed a command in an option or in words of their own: git, find, parallel, tar, ssh."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.languages import find_in_awk, find_in_code, find_in_sed
from ollm.policy.shell.launchers import LAUNCHERS, CommandFinder
from ollm.policy.shell.options import OptionGrammar, scan_options
from ollm.policy.shell.tables import split_names
from ollm.policy.shell.unwrap import InnerCommand, join_script, unwrap_command
from ollm.policy.shell.words import UNKNOWN_WORD, ShellWord
from ollm.policy.shell.wrapper_table import WRAPPERS

INTERPRETERS = frozenset(
    split_names(
        "python python2 python3 pypy3 node deno bun ts-node tsx perl ruby php lua luajit tclsh Rscript osascript"
    )
)
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _unwrap_find(words: Sequence[ShellWord]) -> list[InnerCommand]:
    inner: list[InnerCommand] = []
    for start in [index for index, word in enumerate(words) if word.text in _FIND_ACTIONS]:
        end = start + 1
        while end < len(words) and words[end].text != ";" and not _ends_with_braces(words, end):
            end += 1
        command = tuple(UNKNOWN_WORD if word.text == "{}" else word for word in words[start + 1 : end])
        inner += [InnerCommand(words=command, more=True)] if command else []
    return inner


def _ends_with_braces(words: Sequence[ShellWord], index: int) -> bool:
    return words[index].text == "+" and words[index - 1].text == "{}"


def _unwrap_parallel(words: Sequence[ShellWord]) -> list[InnerCommand]:
    grammar = OptionGrammar(
        values="jPnNaISLE",
        long_values=("jobs", "max-procs", "arg-file", "colsep", "delay", "joblog", "results", "timeout", "sshlogin"),
        stops=True,
    )
    rest = [word for _, word in scan_options(words, grammar).operands]
    marks = [index for index, word in enumerate(rest) if re.fullmatch(r":{3,4}\+?", word.text)]
    command, arguments = (rest, []) if not marks else (rest[: marks[0]], rest[marks[0] + 1 :])
    if not command:
        return [InnerCommand(script=word.text, static=word.static) for word in arguments]
    listed = [word for word in arguments if not re.fullmatch(r":{3,4}\+?", word.text)]
    text = " ".join(word.text for word in command)
    filled = [text.replace("{}", word.text) if "{}" in text else f"{text} {word.text}" for word in listed]
    static = all(word.static for word in command)
    return [
        InnerCommand(script=text, static=static, more=True),
        *([InnerCommand(script="\n".join(filled), guess=True)] if filled else []),
    ]


def _unwrap_fd(words: Sequence[ShellWord]) -> list[InnerCommand]:
    for index, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            command = tuple(
                UNKNOWN_WORD if one.text.startswith("{") else one for one in words[index + 1 :] if one.text != ";"
            )
            return [InnerCommand(words=command, more=True)] if command else []
    return []


_GIT_RUNNING_OPTIONS = ("--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd")


def _unwrap_git(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Commands handed to git: in settings, `rebase --exec`, `bisect run`, `submodule foreach`, `grep -O`, filters."""
    texts = [word.text for word in words]
    inner: list[InnerCommand] = []
    for index, word in enumerate(words[1:], 1):
        before, (option, equals, value) = texts[index - 1], word.text.partition("=")
        if before == "-c":
            inner += _unwrap_git_setting(word.text)
        elif "config" in texts[:index] and re.fullmatch(_GIT_PROGRAMS, before):
            inner += _unwrap_git_setting(f"{before}={word.text}")
        elif (
            before in ("-x", *_GIT_RUNNING_OPTIONS)
            or (before == "-u" and "clone" in texts)
            or ("filter-branch" in texts and " " in word.text)
        ):
            inner.append(InnerCommand(script=word.text, static=word.static, guess=True))
        if word.text.startswith("ext::"):
            inner.append(InnerCommand(script=word.text[5:].replace("% ", "\\ "), guess=True))
        if equals and option in _GIT_RUNNING_OPTIONS:
            inner.append(InnerCommand(script=value, static=word.static, guess=True))
        if word.text.startswith(("-O", "-x")) and len(word.text) > 2:
            inner.append(InnerCommand(script=word.text[2:], static=word.static, guess=True))
        if word.text in ("run", "foreach") and before in ("bisect", "submodule"):
            inner.append(join_script([one for one in words[index + 1 :] if one.text != "--recursive"]))
    return inner


_GIT_PROGRAMS = (
    r"(?i)(alias\..*|.*pager.*|.*editor|.*command|.*cmd|.*\.external|.*textconv|.*helper|.*program|core\.fsmonitor"
    r"|.*\.(clean|smudge|process|driver))"
)


def _unwrap_git_setting(text: str) -> list[InnerCommand]:
    name, _, value = text.partition("=")
    if not value or not re.fullmatch(_GIT_PROGRAMS, name):
        return []
    script = value.removeprefix("!") if value.startswith("!") or not name.startswith("alias.") else f"git {value}"
    return [InnerCommand(script=script, guess=True)]


_RUNNING_OPTIONS = {
    "tar": (
        "--to-command",
        "--use-compress-program",
        "-I",
        "--checkpoint-action",
        "--rsh-command",
        "--rmt-command",
        "--info-script",
        "--new-volume-script",
        "-F",
    ),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--compress-program",),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S",),
    "sftp": ("-S",),
    "man": ("-P", "--pager"),
    "make": ("--eval",),
    "zip": ("-TT", "--unzip-command"),
}


def _make_option_finder(program: str) -> CommandFinder:
    def inner(words: Sequence[ShellWord]) -> list[InnerCommand]:
        texts = [word.text for word in words]
        given = [
            value if equals else next(iter(texts[index + 1 : index + 2]), "")
            for index, text in enumerate(texts[1:], 1)
            for option, equals, value in [text.partition("=")]
            if any(_spells(option, name) for name in _RUNNING_OPTIONS[program])
        ]
        return [InnerCommand(script=text.removeprefix("exec="), guess=True) for text in given if text]

    return inner


def _spells(option: str, name: str) -> bool:
    """The option itself, or a long one abbreviated."""
    return option == name or (len(option) > 3 and option.startswith("--") and name.startswith(option))


def _unwrap_ssh(words: Sequence[ShellWord]) -> list[InnerCommand]:
    return [*unwrap_command(WRAPPERS["ssh"], words), *_unwrap_ssh_settings(words)]


def _unwrap_ssh_settings(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Commands in settings: `-o ProxyCommand=…`."""
    found = scan_options(words, WRAPPERS["ssh"].grammar)
    settings = [option.value.text for option in found.options if option.name == "o" and option.value]
    commands = [re.split(r"[=\s]", text, maxsplit=1)[1] for text in settings if re.match(r"\w+Command[=\s]", text)]
    return [InnerCommand(script=text, guess=True) for text in commands]


def _combine_finders(one: CommandFinder, other: CommandFinder) -> CommandFinder:
    return lambda words: [*one(words), *other(words)]


def _find_nothing(_words: Sequence[ShellWord]) -> list[InnerCommand]:
    return []


def _make_unwrapper(name: str) -> CommandFinder:
    return lambda words: unwrap_command(WRAPPERS[name], words)


RUNNERS: dict[str, CommandFinder] = {
    **LAUNCHERS,
    **{name: _combine_finders(_make_unwrapper(name), LAUNCHERS[name]) for name in LAUNCHERS if name in WRAPPERS},
    "find": _unwrap_find,
    "gfind": _unwrap_find,
    "parallel": _unwrap_parallel,
    "fd": _unwrap_fd,
    "fdfind": _unwrap_fd,
    "git": _unwrap_git,
    "ssh": _unwrap_ssh,
    "sed": find_in_sed,
    **dict.fromkeys(split_names("awk gawk mawk nawk"), find_in_awk),
    **{name: _make_option_finder(name) for name in _RUNNING_OPTIONS},
    **{name: _combine_finders(_make_option_finder(name), _unwrap_ssh_settings) for name in ("scp", "sftp")},
    **{
        name: _combine_finders(LAUNCHERS.get(name, _find_nothing), find_in_code)
        for name in (*INTERPRETERS, "vim", "vi", "nvim", "emacs")
    },
}
