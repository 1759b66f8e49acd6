"""Programs that run the command behind their own options and words."""

from __future__ import annotations

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.inner_commands import (
    unwrap_alias,
    unwrap_callback,
    unwrap_eval,
    unwrap_parallel,
    unwrap_rest,
    unwrap_shell,
    unwrap_ssh,
    unwrap_trap,
    unwrap_user_shell,
)
from ollm.policy.shell.programs.record import (
    Granting,
    Launching,
    Program,
    Writing,
    launch_command,
    share_record,
    wrap_command,
)

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
