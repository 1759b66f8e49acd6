"""Programs that run the command behind their own options and words."""

from __future__ import annotations

from ollm.policy.shell.programs.inner_commands import unwrap_parallel, unwrap_rest, unwrap_ssh, unwrap_user_shell
from ollm.policy.shell.programs.record import Launching, Program, share_record, wrap_command

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
