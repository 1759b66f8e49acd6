"""The box around commands, hooks and servers, through the command: what is changed, read or reached, and what is said."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ollm.system.process_tree import find_descendants
from ollm.system.sandbox.sandbox import Sandbox
from tests.cli.command import SCRIPT, ollm
from tests.cli.running import Runner, running
from tests.servers.answers import Answer
from tests.servers.postgres import free_port

SECRET = "canary-51d0"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with secrets, a workspace in it, and something beside both."""
    for path, text in {
        "user/.ssh/id_rsa": SECRET,
        "user/work/.env": SECRET,
        "user/work/a.txt": "text\n",
        "user/notes.txt": "notes",
        "outside/file": "untouched",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def shell(place: Path, command: str, *options: str, settings: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """One call of the shell tool, by hand; its result as a document."""
    home = place / "user" / ".ollm"
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(json.dumps(settings or {}))
    given = json.dumps({"command": command, **arguments})
    done = ollm(
        "tools",
        "run",
        "shell",
        "--args",
        given,
        "--json",
        *options,
        home=home,
        cwd=place / "user" / "work",
        HOME=str(place / "user"),
    )
    return json.loads(done.stdout)


def trust_workspace(place: Path) -> None:
    done = ollm("trust", home=place / "user" / ".ollm", cwd=place / "user" / "work", HOME=str(place / "user"))
    assert done.returncode == 0, done.stderr


def test_the_box_is_on(place: Path) -> None:
    reading = shell(place, "echo $$; ls /proc/1/root", "--allow", "shell")
    allowed = shell(place, "cat /proc/self/status", "--yes", "--allow", "shell:cat /proc/self/status")
    doctor = ollm("doctor", "--json", home=place / "home")

    assert int(reading["llmContent"].split()[0]) < 100  # processes are counted anew inside
    assert "PermissionDenied" not in str(allowed)
    assert json.loads(doctor.stdout)["sandbox"].startswith("full")


GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c")
SHOWN_BY_A_PROGRAM = """\
[diff "shown"]
\tcommand = PROGRAM
\ttextconv = PROGRAM
[diff]
\texternal = PROGRAM
\tsubmodule = diff
[log]
\tshowSignature = true
[gpg]
\tprogram = PROGRAM
[stash]
\tshowPatch = true
[remote "origin"]
\tpromisor = true
\turl = .
\tuploadpack = PROGRAM
[extensions]
\tpartialClone = origin
"""


def test_git_that_runs_unasked_starts_no_program_that_a_repository_names(place: Path) -> None:
    work = place / "user/work"
    (work / "show.sh").write_text("#!/bin/sh\necho ran''-it; echo ran''-it >&2\n")
    (work / "show.sh").chmod(0o755)
    (work / ".gitattributes").write_text("*.txt diff=shown\n")
    git = [*GIT, "-C", str(work)]
    for words in (["init", "-q"], ["add", "a.txt", ".gitattributes"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    (work / "a.txt").write_text("stashed\n")
    subprocess.run([*git, "stash", "-q"], check=True)
    (work / "a.txt").write_text("changed\n")
    with (work / ".git/config").open("a") as config:
        config.write(SHOWN_BY_A_PROGRAM.replace("PROGRAM", str(work / "show.sh")))
    missing = "0123456789abcdef0123456789abcdef01234567"
    lines = {
        "git diff; git --no-pager diff HEAD; timeout 9 git diff-files -p": "+changed",
        "git show; git log -p -1; git log -Stext; git whatchanged -p": "+text",
        "git blame a.txt; git annotate HEAD -- a.txt": "changed",
        "git stash show -p; git stash show; git stash list -p; git reflog show -p": "+stashed",
        f"git log --oneline; git cat-file -p {missing}; git status -s": "one",
    }

    said = shell(place, "; ".join(lines))["llmContent"]
    without_switch = ("git status -v", "git diff --submodule=diff", "git range-diff HEAD HEAD", "git status -s")
    checked = ollm(
        *("policy", "check", "shell", "--batch"),
        home=place / "user/.ollm",
        cwd=work,
        stdin="".join(json.dumps({"id": line, "params": {"command": line}}) + "\n" for line in without_switch),
        HOME=str(place / "user"),
    )

    assert "ran-it" not in said
    assert all(text in said for text in lines.values()), said
    assert [json.loads(line)["decision"] for line in checked.stdout.splitlines()] == ["ask", "ask", "ask", "allow"]
    assert "ran-it" in subprocess.run([*git, "diff"], capture_output=True, text=True, check=False).stdout


def test_what_runs_unasked_changes_nothing_even_when_policy_is_mistaken(place: Path) -> None:
    (place / "user/work/payload").write_text(f"a[$(echo x > {place}/outside/file; cat {place}/user/.ssh/id_rsa >&2)]")

    found = [
        shell(place, 'for x in "$(cat payload)"; do echo $((x)); done'),
        shell(place, "cat a.txt; ls"),
    ]

    assert (place / "outside/file").read_text() == "untouched"
    assert SECRET not in str(found)
    assert "text" in found[1]["llmContent"]


def test_what_was_allowed_writes_in_the_workspace_and_nowhere_else(place: Path) -> None:
    script = (
        "import os\n"
        f"for path in ('made', '{place}/outside/file', '{place}/user/notes.txt', '.git/x', '.ollm/x'):\n"
        "    try:\n        os.makedirs(os.path.dirname(path) or '.', exist_ok=True); open(path, 'w').write('x')\n"
        "    except OSError as error:\n        print(path, error)\n"
        f"print(os.path.exists('{place}/user/.ssh/id_rsa'))\n"
    )
    (place / "user/work/attack.py").write_text(script)
    for name in (".git", ".ollm"):
        (place / "user/work" / name).mkdir(exist_ok=True)

    done = shell(place, "python3 attack.py", "--yes")

    assert (place / "user/work/made").read_text() == "x"
    assert (place / "outside/file").read_text() == "untouched"
    assert (place / "user/notes.txt").read_text() == "notes"
    assert not (place / "user/work/.git/x").exists()
    assert not (place / "user/work/.ollm/x").exists()
    assert "False" in done["llmContent"]


def test_downloads_are_kept_and_the_rest_of_our_own_folder_is_not_there(place: Path) -> None:
    kept = 'mkdir "$XDG_RUNTIME_DIR/kept-$$" || exit; mkdir -p "$npm_config_cache"; cd "$npm_config_cache"; echo kept >> x; cat x; ls -A ~/.ollm\n'
    (place / "user/work/keep.sh").write_text(kept)

    shell(place, "sh keep.sh", "--allow", "shell")
    again = shell(place, "sh keep.sh", "--allow", "shell")["llmContent"]

    assert again.startswith("kept\nkept\ncache\n"), again
    assert "config.yaml" not in again


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_an_installed_program_is_found_by_the_next_command_behind_all_others(place: Path) -> None:
    package = place / "user/work/package"
    package.mkdir()
    programs = {"newtool": "tool.js", "ls": "tool.js"}
    (package / "package.json").write_text(json.dumps({"name": "tool", "version": "1.0.0", "bin": programs}))
    (package / "tool.js").write_text("#!/usr/bin/env node\nconsole.log('from npm')\n")
    given = subprocess.run(["npm", "config", "get", "cafile"], capture_output=True, text=True, check=True, cwd=place)

    shell(place, "npm install -g --offline ./package", "--allow", "shell")

    found = shell(place, "newtool; ls a.txt; npm config get cafile", "--allow", "shell")["llmContent"]
    assert found.splitlines() == ["from npm", "a.txt", given.stdout.strip()], found
    assert ".ollm" not in shell(place, 'echo "$PATH"')["llmContent"]


def test_outside_is_asked_about_whatever_was_granted(place: Path) -> None:
    refused = shell(place, "ls", "--yes", "--allow", "shell", outside=True, why="it must")

    assert refused["error"]["type"] == "Denied"
    assert "outside the sandbox: it must" in refused["error"]["message"]


def test_a_workspace_file_changes_nothing_about_the_box(place: Path) -> None:
    own = place / "user" / "work" / ".ollm"
    own.mkdir()
    (own / "config.yaml").write_text(json.dumps({"sandbox": {"mode": "off", "writable": [str(place / "outside")]}}))
    trust_workspace(place)

    shell(place, f"echo x > {place}/outside/file", "--yes", "--allow", "shell")
    shell(place, f'python3 -c \'open("{place}/outside/fi" + "le", "w")\'', "--yes")

    assert (place / "outside/file").read_text() == "untouched"


def test_settings_of_the_user_count(place: Path) -> None:
    writable = {"sandbox": {"writable": [str(place / "outside")], "hidden": [str(place / "user/work/a.txt")]}}
    write = f'python3 -c \'open("{place}/outside/fi" + "le", "w").write("w")\''

    shell(place, write, "--yes", settings=writable)
    hidden = shell(place, "cat a.txt", settings=writable)
    off = shell(place, "echo $$", "--yes", settings={"sandbox": {"mode": "off"}})

    assert (place / "outside/file").read_text() == "w"
    assert "text" not in hidden["llmContent"]
    assert int(off["llmContent"]) > 100


def test_another_persons_home_is_not_there_wherever_it_is(place: Path) -> None:
    accounts, home = place / "accounts", place / "outside/ada"
    home.mkdir()
    (home / "key").write_text(SECRET)
    accounts.write_text(f"{Path('/etc/passwd').read_text()}ada:x:1999:1999::{home}:/bin/sh\n")
    (place / "user/work/read.sh").write_text(f"cat {place}/outside/file {home}/key")
    call = ("tools", "run", "shell", "--yes", "--args", json.dumps({"command": "sh read.sh"}))
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'mount --bind {accounts} /etc/passwd; exec {SCRIPT} "$@"', "sh", *call],
        cwd=place / "user/work",
        env={**os.environ, "HOME": str(place / "user"), "OLLM_HOME": str(place / "user/.ollm")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "untouched" in done.stdout, done.stderr
    assert SECRET not in done.stdout


def test_require_refuses_where_there_is_no_box(place: Path) -> None:
    required = {"sandbox": {"mode": "require"}}
    home = place / "user" / ".ollm"
    home.mkdir()
    (home / "config.yaml").write_text(json.dumps(required))

    arguments = ("tools", "run", "shell", "--args", '{"command": "echo ran"}', "--json", "--yes")
    done = ollm(*arguments, home=home, cwd=place / "user", HOME=str(place / "user"))
    said = ollm("doctor", "--json", home=home, cwd=place / "user", HOME=str(place / "user"))

    assert json.loads(done.stdout)["error"]["type"] == "Denied"
    assert "home directory" in json.loads(said.stdout)["sandbox"]


@pytest.mark.parametrize("workspace", ["home", "/"])
def test_a_workspace_that_cannot_be_boxed_is_said_and_asks(place: Path, workspace: str) -> None:
    user = place / "user"
    (user / "a.txt").write_text("text\n")
    where = user if workspace == "home" else Path("/")
    options: dict[str, Any] = {"home": user / ".ollm", "cwd": where, "HOME": str(user)}

    doctor = ollm("doctor", "--json", **options)
    reading = ollm("tools", "run", "shell", "--args", f'{{"command": "sort {user}/a.txt"}}', "--json", **options)
    plain = ollm("tools", "run", "shell", "--args", f'{{"command": "cat {user}/a.txt"}}', "--json", **options)

    assert json.loads(doctor.stdout)["sandbox"].startswith("none: the workspace is")
    assert not json.loads(doctor.stdout)["visible"]
    refused = json.loads(reading.stdout)
    assert refused["error"]["type"] == "Denied"
    assert "no sandbox" in refused["error"]["message"]
    assert json.loads(plain.stdout)["ok"]
    assert "Sandbox level none: the workspace is" in plain.stderr


def test_without_a_box_only_the_simplest_commands_read_unasked(place: Path) -> None:
    off = {"sandbox": {"mode": "off"}}

    assert shell(place, "cat a.txt", settings=off)["ok"]
    assert shell(place, "sort a.txt", settings=off)["error"]["type"] == "Denied"
    assert shell(place, "sort a.txt")["ok"]


def test_network_none_is_none_and_said(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        line = f"echo x > /dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        none = shell(place, line, "--yes", settings={"sandbox": {"network": "none"}})
        with pytest.raises(BlockingIOError):
            server.accept()
        shell(place, line, "--yes")
        server.accept()[0].close()

    assert "without a network" in none["llmContent"]


def test_auto_approve_runs_in_the_box_without_network_and_keeps_questions_that_count(place: Path) -> None:
    auto = {"sandbox": {"autoApprove": True}}

    assert shell(place, 'python3 -c \'open("made", "w")\'', settings=auto)["ok"]
    assert (place / "user/work/made").exists()
    assert shell(place, f"echo x > {place}/outside/file", settings=auto)["error"]["type"] == "Denied"
    assert shell(place, "echo x > .git/config", settings=auto)["error"]["type"] == "Denied"
    rule = {
        "policy": {
            "rules": [
                {
                    "tool": "shell",
                    "action": "ask",
                    "conditions": [{"param": "command", "operator": "program", "value": "make"}],
                }
            ]
        }
    }
    assert shell(place, "make", settings={**auto, **rule})["error"]["type"] == "Denied"


LIKELY = ("cat ${B:-.env}", "B=.env; cat $B", "B=1; cat ${B:+.env}", "cat $(echo .env)", "echo x > ${B-.env}")


def test_auto_approve_asks_about_environment_files_and_programs_find_theirs(place: Path) -> None:
    auto = {"sandbox": {"autoApprove": True}}
    refused = [shell(place, line, settings=auto)["error"] for line in LIKELY]
    (place / "user/work/app.py").write_text("print(open('.env').read())")
    done = shell(place, "python3 app.py", settings=auto)

    assert [error["type"] for error in refused] == ["Denied"] * len(LIKELY)
    assert all(".env may contain secrets" in error["message"] for error in refused)
    assert (place / "user/work/.env").read_text() == SECRET
    assert SECRET in done["llmContent"], "in the working box they are there"
    assert SECRET not in json.dumps(shell(place, "cat a.txt .en*")), "in the reading box they are not"


def configure(runner: Runner, settings: dict[str, Any]) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps(settings))


async def test_a_hook_is_boxed_unless_the_users_own_file_says_otherwise(tmp_path: Path) -> None:
    boxed, free, brought = tmp_path / "boxed", tmp_path / "free", tmp_path / "brought"
    async with running(tmp_path, ["done"]) as runner:
        hooks = [f"touch {boxed} inside", {"command": f"touch {free}", "sandbox": "off"}]
        configure(runner, {"hooks": {"before-turn": hooks}})
        own = runner.workspace / ".ollm"
        own.mkdir()
        theirs = {"hooks": {"after-turn": [{"command": f"touch {brought}; touch theirs", "sandbox": "off"}]}}
        (own / "config.yaml").write_text(json.dumps(theirs))
        await runner.run("trust")
        await runner.run("-p", "hi")

    assert (runner.workspace / "inside").exists()
    assert free.exists()
    assert not boxed.exists()
    assert not brought.exists()


async def test_a_server_in_the_background_is_there_for_the_next_command(tmp_path: Path) -> None:
    port = free_port()  # taken from the machine if the box has no network of its own
    serve = f"python3 -m http.server {port} --bind 127.0.0.1"
    ask = f"for i in $(seq 50); do python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/').status)\" 2>/dev/null && break; sleep 0.1; done"
    calls = [
        Answer(calls=[("shell", {"command": serve, "background": True})]),
        Answer(calls=[("shell", {"command": ask})]),
        "done",
    ]
    async with running(tmp_path, calls) as runner:
        configure(runner, {"sandbox": {"network": "loopback"}})
        done = await runner.run("-p", "go", "--yes", "-o", "json")

    assert "200" in json.loads(done.out)["toolCalls"][1]["result"]["llmContent"]


def test_git_that_we_start_ourselves_changes_nothing_and_is_told_no_secret(place: Path) -> None:
    """A `git` on the PATH that tries to do harm: that it ran is seen by the ignore file it names."""
    programs, ignore, work = place / "bin", place / "ignore", place / "user/work"
    programs.mkdir()
    ignore.write_text("left-out.txt\n")
    git = programs / "git"
    git.write_text(
        f"#!/bin/sh\necho x > {place}/outside/file; echo x > {work}/made; key=$(cat {place}/user/.ssh/id_rsa)\n"
        f'[ -z "$key$SERVICE_TOKEN" ] && [ "$GIT_CONFIG_COUNT" -gt 4 ] && '
        f"printf 'core.excludesfile\\n{ignore}\\0'\n"
    )
    git.chmod(0o755)
    (work / "left-out.txt").write_text("text\n")
    (place / "user/.gitconfig").write_text("[core]\n\tignorecase = false\n")  # something that only git can tell
    paths = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(place / "user"), "SERVICE_TOKEN": "tok-123456789"}

    done = ollm("tools", "run", "grep", "--args", '{"pattern": "text"}', home=place / "home", cwd=work, **paths)

    assert "a.txt" in done.stdout
    assert "left-out.txt" not in done.stdout  # it ran, without the key and the token, and with our settings
    assert (place / "outside/file").read_text() == "untouched"
    assert not (work / "made").exists()


def test_no_command_changes_what_a_trusted_hook_or_server_runs(place: Path) -> None:
    work = place / "user/work"
    for path, text in {
        ".ollm/config.yaml": json.dumps({"hooks": {"before-turn": ["sh scripts/check.sh"]}}),
        ".mcp.json": json.dumps({"mcpServers": {"own": {"command": "python3", "args": ["srv/main.py"]}}}),
        "scripts/check.sh": "true",
        "srv/main.py": "pass",
    }.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
    trust_workspace(place)
    (work / "attack.py").write_text(
        "import os, shutil\n"
        "def attempt(*steps):\n"
        "    for step in steps:\n"
        "        try: step()\n"
        "        except OSError: pass\n"
        "os.makedirs('n', exist_ok=True); open('n/check.sh', 'w').write('x'); shutil.copy('n/check.sh', 'n/new.sh')\n"
        "for name in ('scripts/check.sh', 'srv/main.py'):\n"
        "    attempt(lambda: os.makedirs(os.path.dirname(name)), lambda: open(name, 'w').write('x'), lambda: os.remove(name),\n"
        "            lambda: os.rename('n/check.sh', name), lambda: os.rename(os.path.dirname(name), 'away'),\n"
        "            lambda: os.rmdir(os.path.dirname(name)), lambda: os.symlink('n', os.path.dirname(name)),\n"
        "            lambda: os.link(name, 'second'), lambda: open('second', 'w').write('x'))\n"
    )

    done = shell(place, "python3 attack.py", "--yes")

    assert (work / "n/new.sh").exists(), done
    assert (work / "scripts/check.sh").read_text() == "true"
    assert (work / "srv/main.py").read_text() == "pass"


def use_level(home: Path, level: str) -> None:
    """Let the command take this level as the one that was found since the machine was started."""
    cache = home / "cache/sandbox.json"
    Sandbox(Path("/usr"), home, cache=cache.parent).probe()
    cache.write_text(json.dumps({**json.loads(cache.read_text()), "level": level}))


async def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("level", ["full", "landlock"])
async def test_an_agent_that_is_killed_leaves_no_process_mount_or_directory(
    tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    begun = tmp_path / "project" / "begun"
    line = "(setsid sleep 4321 &) ; trap '' TERM; sleep 4321 & echo x > $TMPDIR/left; echo x > begun; sleep 4321"
    mounts = Path("/proc/self/mountinfo").read_text()
    async with running(tmp_path, [Answer(calls=[("shell", {"command": line})]), "done"]) as runner:
        use_level(runner.home, level)
        process = await runner.start("-p", "go", "--yes")
        await wait_for(begun.exists, "the command did not start")
        started = find_descendants([process.pid])
        made = [*temporary.glob("ollm-box-*")]

        process.kill()
        await process.communicate()

        await wait_for(lambda: not any(map(is_alive, started)), "processes are left")
        await wait_for(lambda: not any(path.exists() for path in made), "a temporary directory is left")
    assert len(started) >= 5
    assert bool(made) == (level == "landlock")
    assert Path("/proc/self/mountinfo").read_text() == mounts


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
