"""Commands inside other commands, located by the program records. For programs that only launch a command, its position
is not determined exactly: every reading is considered, and each can only forbid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ollm.policy.shell.options import OptionGrammar, scan_options
from ollm.policy.shell.programs.record import (
    MAX_WORDS,
    Granting,
    InnerCommand,
    Launching,
    Program,
    Wrapping,
    Writing,
    launch_command,
    share_record,
    wrap_command,
)
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
    elif rest and wrapper.joined:
        inner.append(join_script(rest))
    elif rest:
        inner.append(InnerCommand(words=tuple(rest), more=wrapper.more))
    return inner


def _drop_separator(words: list[ShellWord]) -> list[ShellWord]:
    return words[1:] if words and words[0].text == "--" else words


def join_script(words: Sequence[ShellWord]) -> InnerCommand:
    return InnerCommand(script=" ".join(word.text for word in words), static=all(word.static for word in words))


def _find_launched(how: Launching, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Find everything the words could make the program run."""
    places = [index for index, word in enumerate(words[:MAX_WORDS]) if word.text in how.after]
    if how.after and not places:
        return []
    rest = words[(places[0] if places else 0) + 1 :][:MAX_WORDS]
    found: list[InnerCommand] = []
    if how.words:
        found += [InnerCommand(words=_drop_dashes(rest[index:]), guess=True) for index in _find_starts(rest, how.own)]
    if how.quoted:
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


def _drop_dashes(words: Sequence[ShellWord]) -> tuple[ShellWord, ...]:
    """Drop `--`: `PROGRAM -- ARGUMENT…` runs the program with these arguments."""
    return tuple(word for word in words if word.text != "--")


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


_SCRIPTS = ("c", "command", "session-command")
_ANYWHERE = Launching()

WRAPPERS: dict[str, Program] = {
    **share_record(
        "setsid builtin valgrind firejail unbuffer dbus-run-session linux32 linux64 torsocks busybox toybox chronic"
        " catchsegv",
        wrap_command(),
    ),
    **share_record("taskset gosu su-exec faketime", wrap_command(operands=1)),
    "env": wrap_command(
        "uCS",
        "unset chdir split-string",
        assignments=True,
        scripts=("S", "split-string"),
        acting="--chdir --split-string -C -S",
        sets_variables=True,
    ),
    "nice": wrap_command("n", "adjustment", harmless=True),
    "timeout": wrap_command("ks", "kill-after signal", operands=1, harmless=True),
    "gtimeout": wrap_command("ks", "kill-after signal", operands=1),
    "time": wrap_command("fo", "format output", logs=("o", "output"), harmless=True),
    "gtime": wrap_command("fo", "format output"),
    "nohup": wrap_command(harmless=True),
    "stdbuf": wrap_command("ioe", "input output error", harmless=True),
    "exec": wrap_command("a", changes="runs code that cannot be checked"),
    "ionice": wrap_command("cnpPu", "class classdata pid pgid uid"),
    "chrt": wrap_command("TPD", "sched-runtime sched-period sched-deadline", operands=1),
    "sudo": wrap_command(
        "ugpCrtThRDUa",
        "user group host prompt close-from role type chdir chroot command-timeout other-user auth-type",
        assignments=True,
        sets_variables=True,
    ),
    "doas": wrap_command("uCa", assignments=True, sets_variables=True),
    "pkexec": wrap_command("", "user"),
    "xargs": wrap_command(
        "aEdILnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var", more=True, fed="words"
    ),
    "watch": wrap_command("nqs", "interval equexit", joined=True),
    "chroot": wrap_command("", "userspec groups", operands=1),
    "unshare": wrap_command("SGRw", "setuid setgid root wd propagation setgroups map-user map-group"),
    "nsenter": wrap_command("tSGN", "target setuid setgid"),
    "setpriv": wrap_command("", "reuid regid groups inh-caps ambient-caps bounding-set securebits"),
    "prlimit": wrap_command("p", "pid"),
    "systemd-run": wrap_command("upEMH", "unit property slice uid gid setenv working-directory"),
    "ssh": wrap_command(
        "BbcDEeFIiJLlmOoPpQRSWw",
        operands=1,
        joined=True,
        acting_words=r"-[oFS].*",
        find_commands=unwrap_ssh,
        fed="commands",
    ),
    "flock": wrap_command("wEc", "wait timeout conflict-exit-code command", operands=1, scripts=("c", "command")),
    "script": wrap_command(
        "cEmoOIBtT", "command echo log-io log-in log-out", scripts=("c", "command"), launches=_ANYWHERE
    ),
    "strace": wrap_command("eopsuaEIbPSOUX", "output trace attach user env"),
    "ltrace": wrap_command("eopsualnxAFw", "output"),
    "fakeroot": wrap_command("lsib", "lib faked"),
    "proot": wrap_command("rbwqk"),
    "rlwrap": wrap_command("fHsSCbqDlpw"),
    "xvfb-run": wrap_command("enfsp", "server-args"),
    "setarch": wrap_command(operands=1, launches=_ANYWHERE),
    "numactl": wrap_command("ipmNC", "interleave membind cpunodebind physcpubind preferred"),
    "cpulimit": wrap_command("lpePi", "limit pid exe"),
    **share_record("proxychains proxychains4", wrap_command("f")),
    "entr": wrap_command(more=True, launches=_ANYWHERE),
    "caffeinate": wrap_command("tw"),
    "runcon": wrap_command("utrl", "user type role range", operands=1),
    "sg": wrap_command("c", "command", operands=1, joined=True, scripts=("c", "command")),
    "sshpass": wrap_command("pfdPe"),
    "mosh": wrap_command("p", "port", operands=1),
    "watchexec": wrap_command("wefidsoE", "watch exts filter ignore debounce signal shell", launches=_ANYWHERE),
    "tini": wrap_command("pe"),
    "dumb-init": wrap_command("r", "rewrite"),
    "daemonize": wrap_command("acelopuE"),
    "su": wrap_command(
        "cgGsTw",
        "command group supp-group shell session-command",
        scripts=_SCRIPTS,
        find_commands=unwrap_user_shell,
    ),
    "runuser": wrap_command(
        "cgGsuTw",
        "command group supp-group shell user session-command",
        scripts=_SCRIPTS,
        find_commands=unwrap_user_shell,
    ),
    "parallel": wrap_command(
        "jPnNaISLE",
        "jobs max-procs arg-file colsep delay joblog results timeout sshlogin",
        find_commands=unwrap_parallel,
    ),
    "--": Program(find_commands=unwrap_rest),
}

_MARKED = Launching(words=False, marked=True)
_CONTAINERS = launch_command("run exec", own=1, quoted=False)
_TMUX_COMMANDS = (
    "new new-session new-window neww split-window splitw run-shell run if-shell if respawn-pane respawn-window"
    " send-keys send pipe-pane popup display-popup"
)

LAUNCHERS: dict[str, Program] = {
    **share_record(
        "bwrap perf start-stop-daemon nodemon ld.so ld-linux-x86-64.so.2 capsh flatpak-spawn ssh-agent cgexec dtach"
        " abduco sem dotenv envdir setlock chpst softlimit concurrently torify tsocks graftcp wine qemu-x86_64"
        " qemu-aarch64 autossh pssh clush et lldb rr xterm konsole alacritty kitty gnome-terminal screen hyperfine"
        " watchmedo chokidar nc ncat socat",
        launch_command(),
    ),
    "gdb": launch_command(fed="commands"),
    **share_record("at batch", launch_command(fed="commands")),
    **share_record("crontab newgrp", Program(fed="commands")),
    **share_record("npx pnpx bunx uvx", launch_command(own=0)),
    "docker": Program(
        launches=_CONTAINERS.launches,
        grants=Granting(third=("compose",)),
        global_values="-H --host -c --context --config -l --log-level",
    ),
    **share_record("podman nerdctl docker-compose podman-compose", _CONTAINERS),
    "kubectl": launch_command(
        "exec run debug",
        own=1,
        quoted=False,
        global_values="-n --namespace --context --kubeconfig -s --server --cluster --user",
    ),
    **share_record("oc lxc incus", launch_command("exec run debug", own=1, quoted=False)),
    "uv": launch_command("run", own=0, grants=Granting(third=("run",))),
    **share_record("poetry pipenv pdm hatch rye pixi conda mamba micromamba pipx", launch_command("run", own=0)),
    **share_record("op doppler dotenvx infisical zellij nix", launch_command("run shell develop exec", own=1)),
    **share_record("bundle mise direnv asdf aws-vault chamber", launch_command("exec dlx x", own=1)),
    "ip": launch_command("exec"),
    "adb": launch_command("shell"),
    **share_record("vagrant gcloud", launch_command("ssh", words=False)),
    **share_record("ansible nix-shell expect", launch_command(words=False)),
    "tmux": launch_command(_TMUX_COMMANDS, fed="commands"),
    **share_record("view less more most mariadb ftp lftp", Program(launches=_MARKED)),
    **share_record("sqlite3 psql mysql", Program(launches=_MARKED, fed="commands")),
    "man": Program(commands="-P --pager", acting="--html --browser --config-file -H -C"),
    "systemctl": Program(global_values="-H --host -M --machine -t --type"),
}

_VARIABLES = "changes the shell's variables"
_NAMES = "changes what a name means"
_CODE = "runs code that cannot be checked"
_SHELL = Program(kind="shell", find_commands=unwrap_shell, fed="script")
_INTERPRETER = Program(kind="interpreter", code=True)
_EDITOR = Program(options=OptionGrammar(values="cSu"), writes=Writing(shape="all"), launches=_MARKED, code=True)
_CALLBACK = Program(options=OptionGrammar(values="dnOsuCc"), find_commands=unwrap_callback, changes=_VARIABLES)

SHELLS: dict[str, Program] = {
    **share_record("sh dash ksh mksh ash fish rbash csh tcsh yash posh oksh", _SHELL),
    **share_record("bash zsh", Program(kind="shell", find_commands=unwrap_shell, fed="script", versioned=True)),
    **share_record(
        "export declare typeset local readonly", Program(changes=_VARIABLES, evaluates=True, sets_variables=True)
    ),
    **share_record("read unset", Program(changes=_VARIABLES, evaluates=True)),
    "getopts": Program(changes=_VARIABLES),
    "let": Program(evaluates=True),
    **share_record("mapfile readarray", _CALLBACK),
    "alias": Program(changes=_NAMES, find_commands=unwrap_alias),
    **share_record("unalias hash enable compopt bind", Program(changes=_NAMES)),
    "complete": Program(changes=_NAMES, launches=Launching(words=False)),
    **share_record("set shopt ulimit umask", Program(changes="changes how the shell works")),
    **share_record("source .", Program(changes=_CODE, fed="script")),
    "eval": Program(changes=_CODE, find_commands=unwrap_eval),
    "fc": Program(changes=_CODE),
    "trap": Program(find_commands=unwrap_trap),
    **share_record("python2 pypy3 deno ts-node tsx php lua luajit tclsh Rscript osascript", _INTERPRETER),
    "node": Program(kind="interpreter", code=True, versioned=True),
    **share_record(
        "python python3", Program(kind="interpreter", code=True, versioned=True, grants=Granting(third=("-m",)))
    ),
    "java": Program(versioned=True),
    "perl": Program(
        options=OptionGrammar(values="eEIMm"),
        writes=Writing(shape="all", needs=("i",)),
        acting="-e -E -i -M -m",
        kind="interpreter",
        code=True,
        versioned=True,
    ),
    "ruby": Program(
        options=OptionGrammar(values="eIr"),
        writes=Writing(shape="all", needs=("i",)),
        acting="-e -i -r",
        kind="interpreter",
        code=True,
    ),
    **share_record("vim vi nvim", _EDITOR),
    "emacs": Program(writes=Writing(shape="all"), launches=_MARKED, code=True),
    "ed": Program(writes=Writing(shape="all"), launches=_MARKED, fed="commands"),
    "ex": Program(options=OptionGrammar(values="c"), writes=Writing(shape="all"), launches=_MARKED, fed="commands"),
}
