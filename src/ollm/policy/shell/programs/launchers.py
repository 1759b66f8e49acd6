"""Programs that start another one they are told about somewhere in their words: containers, terminals, task runners."""

from __future__ import annotations

from ollm.policy.shell.programs.record import Granting, Launching, Program, launch_command, share_record

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
