"""The table of plain wrappers: options, words of their own, then the command they run."""

from __future__ import annotations

from ollm.domain.struct import Data
from ollm.policy.shell.options import Grammar


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
    "xargs": _with("aEdILnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var", more=True),
    "watch": _with("nqs", "interval equexit", joined=True),
    "chroot": _plain("", "userspec", "groups", operands=1),
    "unshare": _plain("SGRw", "setuid", "setgid", "root", "wd", "propagation", "setgroups", "map-user", "map-group"),
    "nsenter": _plain("tSGN", "target", "setuid", "setgid"),
    "setpriv": _plain("", "reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits"),
    "prlimit": _plain("p", "pid"),
    "systemd-run": _plain("upEMH", "unit", "property", "slice", "uid", "gid", "setenv", "working-directory"),
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
    "sg": _with("c", "command", operands=1, joined=True, scripts=("c", "command")),
    "sshpass": _plain("pfdPe"),
    "mosh": _plain("p", "port", operands=1),
    "watchexec": _plain("wefidsoE", "watch", "exts", "filter", "ignore", "debounce", "signal", "shell"),
    "tini": _plain("pe"),
    "dumb-init": _plain("r", "rewrite"),
    "chronic": _plain(),
    "daemonize": _plain("acelopuE"),
    "catchsegv": _plain(),
    "su": _with(
        "cgGsTw", "command group supp-group shell session-command", scripts=("c", "command", "session-command")
    ),
    "runuser": _with(
        "cgGsuTw", "command group supp-group shell user session-command", scripts=("c", "command", "session-command")
    ),
}
