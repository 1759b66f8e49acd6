"""Programs that are handed a command in an option or in a language of their own: git, find, awk, tar, docker, ssh."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ollm.policy.shell_commands.options import Grammar, scan
from ollm.policy.shell_commands.tables import names
from ollm.policy.shell_commands.unwrap import Inner, joined, unwrap
from ollm.policy.shell_commands.words import UNKNOWN, Word
from ollm.policy.shell_commands.wrapper_table import WRAPPERS

Finder = Callable[[Sequence[Word]], list[Inner]]

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
        values="jPnNaISLEX",
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
    filled = [text.replace("{}", word.text) if "{}" in text else f"{text} {word.text}" for word in listed[:40]]
    static = all(word.static for word in command)
    return [Inner(script=text, static=static, more=True), *(Inner(script=one, guess=True) for one in filled)]


def _fd(words: Sequence[Word]) -> list[Inner]:
    for index, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            command = tuple(
                UNKNOWN if one.text.startswith("{") else one for one in words[index + 1 :] if one.text != ";"
            )
            return [Inner(words=command, more=True)] if command else []
    return []


def _after(keyword: str, *more: str) -> Finder:
    """`uv run COMMAND`, `docker exec NAME COMMAND`: what follows the keyword, read generously: any suffix of it."""

    def inner(words: Sequence[Word]) -> list[Inner]:
        places = [index for index, word in enumerate(words) if word.text in (keyword, *more)]
        if not places:
            return []
        after = range(places[0] + 1, min(len(words), places[0] + 40))
        return [
            Inner(words=tuple(words[index:]), guess=True) for index in after if not words[index].text.startswith("-")
        ]

    return inner


def _anywhere(words: Sequence[Word]) -> list[Inner]:
    """Programs with options of many words before the command: any suffix of the words may be it."""
    places = range(1, min(len(words), 40))
    return [Inner(words=tuple(words[index:]), guess=True) for index in places if words[index].text[:1] != "-"]


def _git(words: Sequence[Word]) -> list[Inner]:
    """Commands handed to git: in `-c` settings, `rebase --exec`, `bisect run`, `submodule foreach`, `grep -O`."""
    inner: list[Inner] = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        if word.text == "-c" and following is not None and index < 20:
            inner += _git_setting(following)
        if word.text in ("-x", "--exec", "--upload-pack", "--receive-pack") and following is not None:
            inner.append(Inner(script=following.text, static=following.static, guess=True))
        for prefix in ("--exec=", "--upload-pack=", "--receive-pack=", "--open-files-in-pager=", "-O"):
            if word.text.startswith(prefix) and len(word.text) > len(prefix):
                inner.append(Inner(script=word.text[len(prefix) :], static=word.static, guess=True))
        if word.text in ("run", "foreach") and index > 1 and words[index - 1].text in ("bisect", "submodule"):
            inner.append(joined([one for one in words[index + 1 :] if one.text != "--recursive"]))
    return inner


_GIT_PROGRAMS = re.compile(
    r"(alias\..*|.*pager.*|.*editor|.*command|.*cmd|.*\.external|.*textconv|.*helper|.*program|core\.fsmonitor"
    r"|.*\.(clean|smudge|process|driver))",
    re.IGNORECASE,
)


def _git_setting(word: Word) -> list[Inner]:
    name, _, value = word.text.partition("=")
    if not value or not _GIT_PROGRAMS.fullmatch(name):
        return []
    script = value.removeprefix("!") if value.startswith("!") or not name.startswith("alias.") else f"git {value}"
    return [Inner(script=script, static=word.static, guess=True)]


_SYSTEM_CALL = re.compile(r"""(?:system\s*\(\s*|\|\s*(?:getline|&)?\s*)"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|""")


def _awk(words: Sequence[Word]) -> list[Inner]:
    texts = [match[0] or match[1] for word in words[1:] for match in _SYSTEM_CALL.findall(word.text)]
    return [Inner(script=text, guess=True) for text in texts if text.strip()]


_RUNNING_OPTIONS = {
    "tar": (
        "--to-command",
        "--use-compress-program",
        "-I",
        "--checkpoint-action",
        "--rsh-command",
        "--info-script",
        "-F",
    ),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--compress-program",),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S",),
    "sftp": ("-S",),
    "tmux": ("new", "new-session", "new-window", "neww", "split-window", "run-shell", "run"),
    "screen": ("-X", "-dm", "-dmS"),
    "nix-shell": ("--run", "--command"),
    "expect": ("-c",),
    "man": ("-P", "--pager"),
    "make": ("--eval",),
}


def _running_options(program: str) -> Finder:
    def inner(words: Sequence[Word]) -> list[Inner]:
        found: list[Inner] = []
        for index, word in enumerate(words[1:], 1):
            for name in _RUNNING_OPTIONS[program]:
                if word.text == name and index + 1 < len(words):
                    found.append(Inner(script=words[index + 1].text.removeprefix("exec="), guess=True))
                elif name.startswith("--") and word.text.startswith(f"{name}="):
                    found.append(Inner(script=word.text[len(name) + 1 :].removeprefix("exec="), guess=True))
        return found

    return inner


def _ssh(words: Sequence[Word]) -> list[Inner]:
    found = scan(words, WRAPPERS["ssh"].grammar)
    settings = [option.value.text for option in found.options if option.name == "o" and option.value]
    commands = [re.split(r"[=\s]", text, maxsplit=1)[1] for text in settings if re.match(r"\w+Command[=\s]", text)]
    return [*unwrap(WRAPPERS["ssh"], words), *(Inner(script=text, guess=True) for text in commands)]


RUNNERS: dict[str, Finder] = {
    "find": _find,
    "gfind": _find,
    "parallel": _parallel,
    "fd": _fd,
    "fdfind": _fd,
    "git": _git,
    "ssh": _ssh,
    **dict.fromkeys(names("awk gawk mawk nawk"), _awk),
    **{name: _running_options(name) for name in _RUNNING_OPTIONS},
    **dict.fromkeys(names("docker podman nerdctl"), _after("run", "exec")),
    **dict.fromkeys(names("uv poetry pipenv pdm hatch rye"), _after("run")),
    **dict.fromkeys(names("bundle kubectl npm pnpm yarn mise direnv asdf"), _after("exec", "dlx")),
    "ip": _after("exec"),
    **dict.fromkeys(names("bwrap gdb perf start-stop-daemon capsh nodemon ld.so ld-linux-x86-64.so.2"), _anywhere),
}
