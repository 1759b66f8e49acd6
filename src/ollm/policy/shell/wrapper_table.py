"""The table of plain wrappers: options, words of their own, then the command they run."""

from __future__ import annotations

from ollm.domain.struct import Data
from ollm.policy.shell.options import OptionGrammar


class Wrapper(Data, frozen=True):
    """Options, then `operands` words of its own, then the command: as words, or `joined` into a script."""

    grammar: OptionGrammar
    operands: int = 0
    assignments: bool = False
    joined: bool = False
    more: bool = False
    scripts: tuple[str, ...] = ()  # options whose value is a script


def _make_plain_wrapper(values: str = "", *longs: str, operands: int = 0) -> Wrapper:
    return Wrapper(grammar=OptionGrammar(values=values, long_values=longs, stops=True), operands=operands)


def _make_wrapper(values: str, longs: str, **settings: object) -> Wrapper:
    grammar = OptionGrammar(values=values, long_values=tuple(longs.split()), stops=True)
    return Wrapper(grammar=grammar, **settings)  # type: ignore[arg-type]  # checked by msgspec's constructor


WRAPPERS: dict[str, Wrapper] = {
    "env": _make_wrapper("uCS", "unset chdir split-string", assignments=True, scripts=("S", "split-string")),
    "nice": _make_plain_wrapper("n", "adjustment"),
    "timeout": _make_plain_wrapper("ks", "kill-after", "signal", operands=1),
    "gtimeout": _make_plain_wrapper("ks", "kill-after", "signal", operands=1),
    "time": _make_plain_wrapper("fo", "format", "output"),
    "gtime": _make_plain_wrapper("fo", "format", "output"),
    "nohup": _make_plain_wrapper(),
    "setsid": _make_plain_wrapper(),
    "command": _make_plain_wrapper(),
    "builtin": _make_plain_wrapper(),
    "exec": _make_plain_wrapper("a"),
    "stdbuf": _make_plain_wrapper("ioe", "input", "output", "error"),
    "ionice": _make_plain_wrapper("cnpPu", "class", "classdata", "pid", "pgid", "uid"),
    "chrt": _make_plain_wrapper("TPD", "sched-runtime", "sched-period", "sched-deadline", operands=1),
    "taskset": _make_plain_wrapper(operands=1),
    "sudo": _make_wrapper(
        "ugpCrtThRDUa",
        "user group host prompt close-from role type chdir chroot command-timeout other-user auth-type",
        assignments=True,
    ),
    "doas": _make_wrapper("uCa", "", assignments=True),
    "pkexec": _make_plain_wrapper("", "user"),
    "gosu": _make_plain_wrapper(operands=1),
    "su-exec": _make_plain_wrapper(operands=1),
    "xargs": _make_wrapper("aEdILnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var", more=True),
    "watch": _make_wrapper("nqs", "interval equexit", joined=True),
    "chroot": _make_plain_wrapper("", "userspec", "groups", operands=1),
    "unshare": _make_plain_wrapper(
        "SGRw", "setuid", "setgid", "root", "wd", "propagation", "setgroups", "map-user", "map-group"
    ),
    "nsenter": _make_plain_wrapper("tSGN", "target", "setuid", "setgid"),
    "setpriv": _make_plain_wrapper(
        "", "reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits"
    ),
    "prlimit": _make_plain_wrapper("p", "pid"),
    "systemd-run": _make_plain_wrapper(
        "upEMH", "unit", "property", "slice", "uid", "gid", "setenv", "working-directory"
    ),
    "ssh": _make_wrapper("BbcDEeFIiJLlmOoPpQRSWw", "", operands=1, joined=True),
    "flock": _make_wrapper("wEc", "wait timeout conflict-exit-code command", operands=1, scripts=("c", "command")),
    "script": _make_wrapper("cEmoOIBtT", "command echo log-io log-in log-out", scripts=("c", "command")),
    "strace": _make_plain_wrapper("eopsuaEIbPSOUX", "output", "trace", "attach", "user", "env"),
    "ltrace": _make_plain_wrapper("eopsualnxAFw", "output"),
    "valgrind": _make_plain_wrapper(),
    "fakeroot": _make_plain_wrapper("lsib", "lib", "faked"),
    "proot": _make_plain_wrapper("rbwqk"),
    "firejail": _make_plain_wrapper(),
    "unbuffer": _make_plain_wrapper(),
    "rlwrap": _make_plain_wrapper("fHsSCbqDlpw"),
    "faketime": _make_plain_wrapper(operands=1),
    "dbus-run-session": _make_plain_wrapper(),
    "xvfb-run": _make_plain_wrapper("enfsp", "server-args"),
    "linux32": _make_plain_wrapper(),
    "linux64": _make_plain_wrapper(),
    "setarch": _make_plain_wrapper(operands=1),
    "numactl": _make_plain_wrapper("ipmNC", "interleave", "membind", "cpunodebind", "physcpubind", "preferred"),
    "cpulimit": _make_plain_wrapper("lpePi", "limit", "pid", "exe"),
    "torsocks": _make_plain_wrapper(),
    "proxychains": _make_plain_wrapper("f"),
    "proxychains4": _make_plain_wrapper("f"),
    "busybox": _make_plain_wrapper(),
    "toybox": _make_plain_wrapper(),
    "entr": _make_wrapper("", "", more=True),
    "caffeinate": _make_plain_wrapper("tw"),
    "runcon": _make_plain_wrapper("utrl", "user", "type", "role", "range", operands=1),
    "sg": _make_wrapper("c", "command", operands=1, joined=True, scripts=("c", "command")),
    "sshpass": _make_plain_wrapper("pfdPe"),
    "mosh": _make_plain_wrapper("p", "port", operands=1),
    "watchexec": _make_plain_wrapper("wefidsoE", "watch", "exts", "filter", "ignore", "debounce", "signal", "shell"),
    "tini": _make_plain_wrapper("pe"),
    "dumb-init": _make_plain_wrapper("r", "rewrite"),
    "chronic": _make_plain_wrapper(),
    "daemonize": _make_plain_wrapper("acelopuE"),
    "catchsegv": _make_plain_wrapper(),
    "su": _make_wrapper(
        "cgGsTw", "command group supp-group shell session-command", scripts=("c", "command", "session-command")
    ),
    "runuser": _make_wrapper(
        "cgGsuTw", "command group supp-group shell user session-command", scripts=("c", "command", "session-command")
    ),
}
