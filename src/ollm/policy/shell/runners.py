"""Programs that are handed a command in an option or in words of their own: git, find, parallel, tar, ssh."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.languages import in_awk, in_code, in_sed
from ollm.policy.shell.launchers import LAUNCHERS, Finder
from ollm.policy.shell.options import Grammar, scan
from ollm.policy.shell.tables import names
from ollm.policy.shell.unwrap import Inner, joined, unwrap
from ollm.policy.shell.words import UNKNOWN, Word
from ollm.policy.shell.wrapper_table import WRAPPERS

INTERPRETERS = frozenset(
    names("python python2 python3 pypy3 node deno bun ts-node tsx perl ruby php lua luajit tclsh Rscript osascript")
)
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _find(words: Sequence[Word]) -> list[Inner]:
    inner: list[Inner] = []
    for start in [index for index, word in enumerate(words) if word.text in _FIND_ACTIONS]:
        end = start + 1
        while end < len(words) and words[end].text != ";" and not _ends_with_braces(words, end):
            end += 1
        command = tuple(UNKNOWN if word.text == "{}" else word for word in words[start + 1 : end])
        inner += [Inner(words=command, more=True)] if command else []
    return inner


def _ends_with_braces(words: Sequence[Word], index: int) -> bool:
    return words[index].text == "+" and words[index - 1].text == "{}"


def _parallel(words: Sequence[Word]) -> list[Inner]:
    grammar = Grammar(
        values="jPnNaISLE",
        long_values=("jobs", "max-procs", "arg-file", "colsep", "delay", "joblog", "results", "timeout", "sshlogin"),
        stops=True,
    )
    rest = [word for _, word in scan(words, grammar).operands]
    marks = [index for index, word in enumerate(rest) if re.fullmatch(r":{3,4}\+?", word.text)]
    command, arguments = (rest, []) if not marks else (rest[: marks[0]], rest[marks[0] + 1 :])
    if not command:
        return [Inner(script=word.text, static=word.static) for word in arguments]
    listed = [word for word in arguments if not re.fullmatch(r":{3,4}\+?", word.text)]
    text = " ".join(word.text for word in command)
    filled = [text.replace("{}", word.text) if "{}" in text else f"{text} {word.text}" for word in listed]
    static = all(word.static for word in command)
    return [
        Inner(script=text, static=static, more=True),
        *([Inner(script="\n".join(filled), guess=True)] if filled else []),
    ]


def _fd(words: Sequence[Word]) -> list[Inner]:
    for index, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            command = tuple(
                UNKNOWN if one.text.startswith("{") else one for one in words[index + 1 :] if one.text != ";"
            )
            return [Inner(words=command, more=True)] if command else []
    return []


_GIT_RUNS = ("--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd")


def _git(words: Sequence[Word]) -> list[Inner]:
    """Commands handed to git: in settings, `rebase --exec`, `bisect run`, `submodule foreach`, `grep -O`, filters."""
    texts = [word.text for word in words]
    inner: list[Inner] = []
    for index, word in enumerate(words[1:], 1):
        before, (option, equals, value) = texts[index - 1], word.text.partition("=")
        if before == "-c":
            inner += _git_setting(word.text)
        elif "config" in texts[:index] and re.fullmatch(_GIT_PROGRAMS, before):
            inner += _git_setting(f"{before}={word.text}")
        elif (
            before in ("-x", *_GIT_RUNS)
            or (before == "-u" and "clone" in texts)
            or ("filter-branch" in texts and " " in word.text)
        ):
            inner.append(Inner(script=word.text, static=word.static, guess=True))
        if word.text.startswith("ext::"):
            inner.append(Inner(script=word.text[5:].replace("% ", "\\ "), guess=True))
        if equals and option in _GIT_RUNS:
            inner.append(Inner(script=value, static=word.static, guess=True))
        if word.text.startswith(("-O", "-x")) and len(word.text) > 2:
            inner.append(Inner(script=word.text[2:], static=word.static, guess=True))
        if word.text in ("run", "foreach") and before in ("bisect", "submodule"):
            inner.append(joined([one for one in words[index + 1 :] if one.text != "--recursive"]))
    return inner


_GIT_PROGRAMS = (
    r"(?i)(alias\..*|.*pager.*|.*editor|.*command|.*cmd|.*\.external|.*textconv|.*helper|.*program|core\.fsmonitor"
    r"|.*\.(clean|smudge|process|driver))"
)


def _git_setting(text: str) -> list[Inner]:
    name, _, value = text.partition("=")
    if not value or not re.fullmatch(_GIT_PROGRAMS, name):
        return []
    script = value.removeprefix("!") if value.startswith("!") or not name.startswith("alias.") else f"git {value}"
    return [Inner(script=script, guess=True)]


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


def _running_options(program: str) -> Finder:
    def inner(words: Sequence[Word]) -> list[Inner]:
        texts = [word.text for word in words]
        given = [
            value if equals else next(iter(texts[index + 1 : index + 2]), "")
            for index, text in enumerate(texts[1:], 1)
            for option, equals, value in [text.partition("=")]
            if any(_spells(option, name) for name in _RUNNING_OPTIONS[program])
        ]
        return [Inner(script=text.removeprefix("exec="), guess=True) for text in given if text]

    return inner


def _spells(option: str, name: str) -> bool:
    """The option itself, or a long one abbreviated."""
    return option == name or (len(option) > 3 and option.startswith("--") and name.startswith(option))


def _ssh(words: Sequence[Word]) -> list[Inner]:
    return [*unwrap(WRAPPERS["ssh"], words), *_ssh_settings(words)]


def _ssh_settings(words: Sequence[Word]) -> list[Inner]:
    """Commands in settings: `-o ProxyCommand=…`."""
    found = scan(words, WRAPPERS["ssh"].grammar)
    settings = [option.value.text for option in found.options if option.name == "o" and option.value]
    commands = [re.split(r"[=\s]", text, maxsplit=1)[1] for text in settings if re.match(r"\w+Command[=\s]", text)]
    return [Inner(script=text, guess=True) for text in commands]


def _both(one: Finder, other: Finder) -> Finder:
    return lambda words: [*one(words), *other(words)]


def _nothing(_words: Sequence[Word]) -> list[Inner]:
    return []


def _wrapping(name: str) -> Finder:
    return lambda words: unwrap(WRAPPERS[name], words)


RUNNERS: dict[str, Finder] = {
    **LAUNCHERS,
    **{name: _both(_wrapping(name), LAUNCHERS[name]) for name in LAUNCHERS if name in WRAPPERS},
    "find": _find,
    "gfind": _find,
    "parallel": _parallel,
    "fd": _fd,
    "fdfind": _fd,
    "git": _git,
    "ssh": _ssh,
    "sed": in_sed,
    **dict.fromkeys(names("awk gawk mawk nawk"), in_awk),
    **{name: _running_options(name) for name in _RUNNING_OPTIONS},
    **{name: _both(_running_options(name), _ssh_settings) for name in ("scp", "sftp")},
    **{name: _both(LAUNCHERS.get(name, _nothing), in_code) for name in (*INTERPRETERS, "vim", "vi", "nvim", "emacs")},
}
