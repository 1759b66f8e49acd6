"""Programs that run another command they are given: what that command is (safety 1.5 and 1.6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ollm.domain.struct import Data
from ollm.policy.shell_commands.options import Grammar, Scan, scan
from ollm.policy.shell_commands.words import UNKNOWN, Word, literal

SHELLS = frozenset(
    ["bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "posh", "oksh"]
)
TRANSPARENT = frozenset({"timeout", "time", "nice", "nohup", "stdbuf"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class Inner(Data, frozen=True):
    """A command inside another: as words or as a script to be parsed. `arguments` are `$0`, `$1` … of a script.
    `more` says that words may be appended; a `guess` is one of several readings."""

    words: tuple[Word, ...] = ()
    script: str | None = None
    static: bool = True
    arguments: tuple[str, ...] = ()
    more: bool = False
    guess: bool = False


class Wrapper(Data, frozen=True):
    """Options, then `operands` words of its own, then the command: as words, or `joined` into a script."""

    grammar: Grammar
    operands: int = 0
    assignments: bool = False
    joined: bool = False
    more: bool = False
    scripts: tuple[str, ...] = ()  # options whose value is a script


def _plain(values: str = "", *longs: str, operands: int = 0) -> Wrapper:
    return Wrapper(grammar=Grammar(values=values, long_values=longs, stops=True), operands=operands)


def _with(values: str, longs: str, **settings: object) -> Wrapper:
    grammar = Grammar(values=values, long_values=tuple(longs.split()), stops=True)
    return Wrapper(grammar=grammar, **settings)  # type: ignore[arg-type]  # checked by msgspec's constructor


WRAPPERS: dict[str, Wrapper] = {
    "env": _with("uCS", "unset chdir split-string", assignments=True, scripts=("S", "split-string")),
    "nice": _plain("n", "adjustment"),
    "timeout": _plain("ks", "kill-after", "signal", operands=1),
    "gtimeout": _plain("ks", "kill-after", "signal", operands=1),
    "time": _plain("fo", "format", "output"),
    "gtime": _plain("fo", "format", "output"),
    "nohup": _plain(),
    "setsid": _plain(),
    "command": _plain(),
    "builtin": _plain(),
    "exec": _plain("a"),
    "stdbuf": _plain("ioe", "input", "output", "error"),
    "ionice": _plain("cnpPu", "class", "classdata", "pid", "pgid", "uid"),
    "chrt": _plain("TPD", "sched-runtime", "sched-period", "sched-deadline", operands=1),
    "taskset": _plain(operands=1),
    "sudo": _with(
        "ugpCrtThRDUa",
        "user group host prompt close-from role type chdir chroot command-timeout other-user auth-type",
        assignments=True,
    ),
    "doas": _with("uCa", "", assignments=True),
    "pkexec": _plain("", "user"),
    "gosu": _plain(operands=1),
    "su-exec": _plain(operands=1),
    "xargs": _with(
        "aEdILnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var", more=True
    ),
    "watch": _with("nqs", "interval equexit", joined=True),
    "chroot": _plain("", "userspec", "groups", operands=1),
    "unshare": _plain("SGRw", "setuid", "setgid", "root", "wd", "propagation", "setgroups", "map-user", "map-group"),
    "nsenter": _plain("tSGN", "target", "setuid", "setgid"),
    "setpriv": _plain("", "reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits"),
    "prlimit": _plain("p", "pid"),
    "systemd-run": _plain("uptEGM", "unit", "property", "slice", "uid", "gid", "setenv", "working-directory"),
    "ssh": _with("BbcDEeFIiJLlmOoPpQRSWw", "", operands=1, joined=True),
    "flock": _with("wEc", "wait timeout conflict-exit-code command", operands=1, scripts=("c", "command")),
    "script": _with("cEmoOIBtT", "command echo log-io log-in log-out", scripts=("c", "command")),
    "strace": _plain("eopsuaEIbPSOUX", "output", "trace", "attach", "user", "env"),
    "ltrace": _plain("eopsualnxAFw", "output"),
    "valgrind": _plain(),
    "fakeroot": _plain("lsib", "lib", "faked"),
    "proot": _plain("rbwqk"),
    "firejail": _plain(),
    "unbuffer": _plain(),
    "rlwrap": _plain("fHsSCbqDlpw"),
    "faketime": _plain(operands=1),
    "dbus-run-session": _plain(),
    "xvfb-run": _plain("enfsp", "server-args"),
    "linux32": _plain(),
    "linux64": _plain(),
    "setarch": _plain(operands=1),
    "numactl": _plain("ipmNC", "interleave", "membind", "cpunodebind", "physcpubind", "preferred"),
    "cpulimit": _plain("lpePi", "limit", "pid", "exe"),
    "torsocks": _plain(),
    "proxychains": _plain("f"),
    "proxychains4": _plain("f"),
    "busybox": _plain(),
    "toybox": _plain(),
    "entr": _with("", "", more=True),
    "caffeinate": _plain("tw"),
    "runcon": _plain("utrl", "user", "type", "role", "range", operands=1),
    "su": _with("cgGsTw", "command group supp-group shell session-command", scripts=("c", "command", "session-command")),
    "runuser": _with("cgGsuTw", "command group supp-group shell user session-command",
                     scripts=("c", "command", "session-command")),
}  # fmt: skip


def inner_commands(program: str, words: Sequence[Word]) -> list[Inner]:
    """The commands that this one would run; none for an ordinary program."""
    special = _SPECIAL.get("sh" if program in SHELLS else program)
    if special is not None:
        return special(words)
    wrapper = WRAPPERS.get(program)
    return [] if wrapper is None else _unwrap(wrapper, words)


def _unwrap(wrapper: Wrapper, words: Sequence[Word]) -> list[Inner]:
    found = scan(words, wrapper.grammar)
    scripts = [option for option in found.options if option.is_any(wrapper.scripts) and option.value]
    rest = [word for _, word in found.operands]
    inner = [
        Inner(script=" ".join([option.value.text, *(word.text for word in rest)]), static=option.value.static)
        for option in scripts
        if option.value
    ]
    if found.uncertain:
        inner += [Inner(words=tuple(words[index:]), guess=True) for index in range(2, min(len(words), 40))]
    while wrapper.assignments and rest and _ASSIGNMENT.match(rest[0].text):
        rest = rest[1:]
    rest = _rest(rest[wrapper.operands :])
    if wrapper.scripts and len(rest) > 1 and rest[0].text.lstrip("-") in wrapper.scripts:
        inner.append(_joined(rest[1:]))
    elif rest and wrapper.joined:
        inner.append(_joined(rest))
    elif rest:
        inner.append(Inner(words=tuple(rest), more=wrapper.more))
    return inner


def _rest(words: list[Word]) -> list[Word]:
    return words[1:] if words and words[0].text == "--" else words


def _joined(words: Sequence[Word], **more: object) -> Inner:
    static = all(word.static for word in words)
    return Inner(script=" ".join(word.text for word in words), static=static, **more)  # type: ignore[arg-type]


def _shell(words: Sequence[Word]) -> list[Inner]:
    """`bash -c SCRIPT NAME ARGUMENT…`. A script's file is not looked into."""
    found = scan(words, Grammar(values="oO", long_values=("rcfile", "init-file"), known=("command",), stops=True))
    if not any(option.is_any(("c", "command")) for option in found.options) or not found.operands:
        return []
    (_, script), *arguments = found.operands
    texts = tuple(word.text for _, word in arguments)
    return [Inner(script=script.text, static=script.static, arguments=texts)]


def _eval(words: Sequence[Word]) -> list[Inner]:
    rest = _rest(list(words[1:]))
    return [_joined(rest)] if rest else []


def _trap(words: Sequence[Word]) -> list[Inner]:
    rest = _rest(list(words[1:]))
    return [] if len(rest) < 2 or rest[0].text in ("-", "-p", "-l", "") else [_joined(rest[:1])]


def _alias(words: Sequence[Word]) -> list[Inner]:
    values = [word.text.partition("=")[2] for word in words[1:] if "=" in word.text]
    return [Inner(script=value, guess=True) for value in values if value.strip()]


def _command(words: Sequence[Word]) -> list[Inner]:
    found = scan(words, WRAPPERS["command"].grammar)
    asks_only = any(option.name in ("v", "V") for option in found.options)
    return [] if asks_only else _unwrap(WRAPPERS["command"], words)


def _user_shell(program: str) -> Callable[[Sequence[Word]], list[Inner]]:
    """`su [-] [USER] [-c SCRIPT]`: options also stand after the user's name; `runuser -u USER COMMAND` runs words."""

    def inner(words: Sequence[Word]) -> list[Inner]:
        wrapper = WRAPPERS[program]
        grammar = Grammar(values=wrapper.grammar.values, long_values=wrapper.grammar.long_values)
        found = scan(words, grammar)
        if program == "runuser" and any(option.is_any(("u", "user")) for option in found.options):
            return _unwrap(wrapper, words)
        scripts = [option.value for option in found.options if option.is_any(wrapper.scripts) and option.value]
        return [Inner(script=value.text, static=value.static) for value in scripts]

    return inner


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


def _after(keyword: str, *more: str) -> Callable[[Sequence[Word]], list[Inner]]:
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
            inner.append(_joined([one for one in words[index + 1 :] if one.text != "--recursive"]))
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
    return [Inner(script=value.removeprefix("!"), static=word.static, guess=True)]


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


def _running_options(program: str) -> Callable[[Sequence[Word]], list[Inner]]:
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
    return [*_unwrap(WRAPPERS["ssh"], words), *(Inner(script=text, guess=True) for text in commands)]


_SPECIAL: dict[str, Callable[[Sequence[Word]], list[Inner]]] = {
    "sh": _shell,
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "command": _command,
    "su": _user_shell("su"),
    "runuser": _user_shell("runuser"),
    "find": _find,
    "gfind": _find,
    "parallel": _parallel,
    "fd": _fd,
    "fdfind": _fd,
    "git": _git,
    "ssh": _ssh,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **{name: _running_options(name) for name in _RUNNING_OPTIONS},
    **dict.fromkeys(("docker", "podman", "nerdctl"), _after("run", "exec")),
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye"), _after("run")),
    **dict.fromkeys(("bundle", "kubectl", "npm", "pnpm", "yarn", "mise", "direnv", "asdf"), _after("exec", "dlx")),
    "ip": _after("exec"),
}


def splits_off(program: str, words: Sequence[Word]) -> tuple[Word, ...] | None:
    """What a harmless wrapper runs, if this is one used harmlessly; None otherwise (safety 1.6)."""
    if program not in TRANSPARENT:
        return None
    wrapper = WRAPPERS[program]
    found: Scan = scan(words, wrapper.grammar)
    rest = [word for _, word in found.operands]
    own = len(words) - len(rest) + wrapper.operands
    if found.uncertain or len(rest) <= wrapper.operands or not all(word.static for word in words[:own]):
        return None
    if program == "time" and any(option.is_any(("o", "output")) for option in found.options):
        return None
    return tuple(_rest(rest[wrapper.operands :]))


def script_of(inner: Inner) -> str:
    return inner.script or ""


def literal_words(texts: Sequence[str]) -> tuple[Word, ...]:
    return tuple(literal(text) for text in texts)
