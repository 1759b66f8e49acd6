"""Git in the sandbox, from command to command, and the user's own git after it: through the command."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest

from tests.cli.running import running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.cli.test_sandbox import place, shell, use_level
from tests.servers.answers import Answer

__all__ = ["place"]  # a fixture

START = """
git init -q; echo 1 > f; git add f; git commit -qm base; git branch other
echo main > f; git commit -qam main1; echo m > m; git add m; git commit -qm main2; git switch -q other
echo other > f; git commit -qam other1; echo o > o; git add o; git commit -qm other2; git tag top
git switch -qc feat; mkdir -p .github/workflows .vscode; echo x > .github/workflows/a.yml; echo x > .vscode/s; echo x > AGENTS.md
git add -A; git commit -qm feat; git switch -q other
"""
# each line is a command of its own, as a model writes it
STORIES = {
    "files that steer": ["git switch feat", "echo w >> f && git commit -am 'w'", "git switch main; git switch feat"],
    "merge": ["git merge main 2>&1 | tail -3", "echo x > f && git add f && git merge --continue"],
    "rebase": ["git rebase main || true", "echo x > f; git add f; GIT_EDITOR=true git rebase --continue"],
    "pick": ["git switch -q main; git cherry-pick top~1 top", "echo x > f; git add f; git cherry-pick --continue"],
    "revert": ["git switch -q main && git revert --no-edit main~1 top", "git revert --abort; git revert --no-edit main"],
    "mail": ["git format-patch -q -2 -o p && git switch -q main && git am p/*", "git am --skip; git log --oneline | head -1"],
    "bisect": ["git bisect start top top~2", "git bisect good", "git bisect reset"],
    "worktree": ["git worktree add -q tree -b t && cd tree && echo t > t && git add t && git commit -qm t", "git worktree remove tree"],
    "stash": ["echo 2 > f; git stash -q; git clone -q . cl", "git stash pop && git gc -q && git fsck && git -C cl log --oneline"],
    "settings": ["git config user.name X && git remote add o https://example.invalid/a && git branch -m other new", "git branch -D top main"],
    "messages": ["git commit --allow-empty -m \"$(cat <<'END'\nSubject\n\n- a `b` \"c\"\nEND\n)\"", "git commit --allow-empty -F - <<END && git tag v1\ntext\nEND"],
    "a new repository": ["mkdir n && cd n && git init -q && echo 1 > a && git add -A && git commit -qm n", "git -C n log --oneline"],
    "hooks": ["git commit --allow-empty -qm x", "test -d gone && git add gone || echo none; false && git tag no; git tag yes"],
    "stops at errors": ["set -e\nfalse\ngit tag no", "set -euo pipefail; git tag yes; git log --oneline | tail -1"],
    "exit codes": ['git tag top; [ $? -eq 0 ] && rm -f o; git add nope; echo "code: $?"', "(mkdir q && cd q) && git tag yes"],
    "ignored by the user": ["echo s > token; echo 3 > f; git add -A && git commit -qm all"],
}  # fmt: skip
STATE = "git log --all --format='%s %an %D' | sort; git status -sb; git ls-files -s; git stash list; git branch; git tag; git remote -v"


def start(place: Path, level: str) -> Path:
    copytree(make_repository(place.parent / "repository"), place / "user", dirs_exist_ok=True)
    use_level(place / "user/.ollm", level)
    return place / "user/work"


@cache
def make_repository(place: Path) -> Path:
    """A home with a repository, made once: it takes twenty processes."""
    (place / "user/work").mkdir(parents=True)
    settings = "[user]\n\tname = A\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n[rerere]\n\tenabled = true\n"
    settings += "[core]\n\texcludesFile = ~/ignored\n"
    (place / "user/ignored").write_text("token\n")
    (place / "user/.gitconfig").write_text(settings)
    run(place, START)
    return place / "user"


def run(place: Path, line: str) -> tuple[int, str]:
    """What the user does, with git outside."""
    everything = {**os.environ, "HOME": str(place / "user"), "GIT_EDITOR": "true"}
    done = subprocess.run(
        ["/bin/bash", "-c", line], cwd=place / "user/work", env=everything, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("level", ["full", "bubblewrap", "landlock"])
@pytest.mark.parametrize("story", STORIES)
def test_git_ends_in_the_sandbox_as_it_ends_outside(place: Path, story: str, level: str) -> None:
    start(place, level)
    twin = place / "twin"
    copytree(place / "user", twin / "user")
    for name in ("a.txt", ".env"):
        (twin / "user/work" / name).unlink(missing_ok=True)
        (place / "user/work" / name).unlink(missing_ok=True)

    for line in STORIES[story]:
        told = shell(place, line, "--yes")
        code, _ = run(twin, line)
        assert (told.get("exitCode"), line, told["llmContent"]) == (code, line, told["llmContent"])

    assert run(place, STATE) == run(twin, STATE)


HOSTILE = {
    "a hook that names a program": "git config core.fsmonitor $HOME/evil; git config alias.st '!evil'",
    "a hook that writes settings": "printf '[core]\\nfsmonitor = %s\\n' $HOME/evil >> .git/config",
    "a hook that removes settings": "mv .git/config .git/c; printf '[core]\\nfsmonitor = %s\\n' $HOME/evil > .git/config",
    "a hook that links settings": "printf '[core]\\nfsmonitor = %s\\n' $HOME/evil > e; ln -sf ../e .git/config",
    "a hook that makes a hook": "cp $HOME/evil .git/hooks/post-checkout; mv .git/hooks .git/h; cp $HOME/evil .git/hooks/pre-push",
    "a hook that leaves a process": "(sleep 1; git config core.fsmonitor $HOME/evil) >/dev/null 2>&1 & disown",
    "a hook that adds attributes": "echo '* filter=x' > .git/info/attributes; git config filter.x.clean $HOME/evil",
    "a hook that makes a worktree": "mkdir -p .git/worktrees/x; echo /tmp > .git/worktrees/x/commondir; echo x > .git/worktrees/x/HEAD",
    "a hook that locks the folder": "git config -f .git/config core.fsmonitor $HOME/evil; chmod 555 .git",
    "settings of a worktree": "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $HOME/evil",
}  # fmt: skip


@pytest.mark.parametrize("level", ["full", "landlock"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_code_in_a_git_line_leaves_nothing_that_the_users_own_git_runs(place: Path, kind: str, level: str) -> None:
    work = start(place, level)
    evil, hook = place / "user/work/evil", work / ".git/hooks/post-commit"
    evil.write_text(f"#!/bin/sh\ntouch {place}/ran\n")
    hook.write_text(f"#!/bin/sh\n{HOSTILE[kind].replace('$HOME/', str(work) + '/')}\n")
    for file in (evil, hook):
        file.chmod(0o755)

    shell(place, "echo y > y && git add y && git commit -m y", "--yes")
    hook.unlink()
    run(
        place,
        "sleep 1.2; git status; git checkout -q main; echo z > z; git add z; git commit -qm z; git gc -q; git switch other",
    )

    assert not (place / "ran").exists()
    assert run(place, "git log --all --format=%s | sort | head -3")[0] == 0


def test_code_outside_git_lines_changes_nothing_of_a_repository(place: Path) -> None:
    work = start(place, "full")
    before = run(place, STATE)
    (work / "s.sh").write_text(
        "rm -rf .git; mv .git g; echo x > .git/config; git commit -qam x; git tag t; git update-ref refs/heads/x HEAD\n"
        "python3 -c 'import shutil; shutil.rmtree(\".git\", ignore_errors=True)'\n"
    )

    told = shell(place, "sh s.sh", "--yes")

    assert "plain `git VERB …` commands" in told["llmContent"]
    (work / "s.sh").unlink()
    assert run(place, STATE) == before


def test_a_folder_that_only_the_shell_knows_is_not_guessed(place: Path) -> None:
    work = start(place, "full")
    for name in ("d/b", "b"):
        (work / name).mkdir(parents=True)

    for folder in ('cd "$(dirname d/x)"', "command cd d", "cd d && cd -", "{ cd d; }"):
        told = shell(place, f"{folder} && git add . && rm -rf b", "--yes")
        assert "plain `git VERB …` commands" in told["llmContent"]

    assert (work / "b").is_dir()
    assert (work / "d/b").is_dir()


def test_a_nested_repository_is_not_added_and_the_commit_goes_on_without_it(place: Path) -> None:
    work = start(place, "full")

    told = shell(
        place,
        "git init -q nested && git -C nested commit -q --allow-empty -m n && echo 1 > n && git add -A && git commit -qm n",
        "--yes",
    )

    assert "nested is a repository of its own" in told["llmContent"]
    assert "nested" not in run(place, "git ls-files; git show --stat HEAD")[1]
    assert (work / "nested/.git/HEAD").exists()


async def test_git_that_needs_keys_asks_with_the_reason_and_a_yes_takes_it_outside_once(tmp_path: Path) -> None:
    user, signed, reached = tmp_path / "user", tmp_path / "user/signed", tmp_path / "user/reached"
    user.mkdir()
    sign = f"echo ran >> {signed}; cat > /dev/null; echo signature; printf '\\n[GNUPG:] SIG_CREATED ' >&2"
    for name, line in {"sign": sign, "ssh": f"echo ran >> {reached}"}.items():
        (user / name).write_text(f"#!/bin/sh\n{line}\n")
        (user / name).chmod(0o755)
    (user / ".gitconfig").write_text("[include]\n\tpath = shared\n")
    (user / "shared").write_text(
        f"[user]\n\tname = A\n\temail = a@b.c\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {user}/sign\n"
        f"[core]\n\tsshCommand = {user}/ssh\n"
    )
    lines = ("git commit -qm one --allow-empty", "git push origin HEAD:main", "git commit -qm two --allow-empty")
    calls = [Answer(calls=[("shell", {"command": line})]) for line in lines]
    async with running(tmp_path, [*calls, "done", calls[0], "done"]) as runner:
        for words in (["init", "-q"], ["remote", "add", "origin", "git@example.invalid:a.git"]):
            subprocess.run(["git", *words], cwd=runner.workspace, check=True)
        async with at_terminal(runner, "chat", HOME=str(user)) as terminal:
            await terminal.wait_for("\n›")
            terminal.type("go\r")
            for told, key in (("commit.gpgsign is set", "y"), ("git push uses ssh", "y"), ("-qm two", "n")):
                asked = await terminal.wait_until(
                    lambda told=told: told in terminal.screen() and "[y] yes" in terminal.screen()
                )
                assert asked, terminal.text()
                assert "[s]" not in terminal.screen(), "for longer than once it cannot be given"
                terminal.type(key)
            await terminal.wait_for("Reason (optional)")
            terminal.type("\r")
            await terminal.wait_for("done")
            terminal.type(CTRL_D)
            await terminal.ended()
        refused = await runner.run("-p", "go", "--yes", "-o", "json", HOME=str(user))

    assert signed.read_text() == reached.read_text() == "ran\n"
    log = ["git", "-C", str(runner.workspace), "log", "--format=%s"]
    assert subprocess.run(log, capture_output=True, text=True, check=True).stdout == "one\n"
    assert "outside the sandbox: commit.gpgsign is set" in refused.out


async def test_no_command_runs_outside_beside_a_background_command(tmp_path: Path) -> None:
    hook = "for i in $(seq 600); do printf '#!/bin/sh\ntouch ran' > .envrc; sleep .1; done"
    calls = [
        {"command": "sh s.sh", "background": True},
        {"command": "sh o.sh", "outside": True, "why": "x"},
        {"id": "job-1", "action": "stop"},
        {"command": "sh o.sh", "outside": True, "why": "x"},
    ]
    answers = [Answer(calls=[("shell", call)]) for call in calls]
    async with running(tmp_path, [*answers, "done"]) as runner, at_terminal(runner, "chat") as terminal:
        (runner.workspace / "s.sh").write_text(hook)
        (runner.workspace / "o.sh").write_text("cat .envrc > seen")
        await terminal.wait_for("\n›")
        terminal.type("go\r")
        for told in ("sh s.sh", "sh o.sh"):
            asked = await terminal.wait_until(
                lambda told=told: told in terminal.screen() and "[y] yes" in terminal.screen()
            )
            assert asked, terminal.text()
            terminal.type("y")
        await terminal.wait_for("job-1 in the sandbox could change the files")
        await terminal.wait_for("[y] yes")
        terminal.type("y")
        await terminal.wait_for("done")

    assert (runner.workspace / "seen").exists()


def test_the_environment_that_ollm_runs_from_is_read_only(place: Path) -> None:
    work = place / "user/work"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", work / ".venv"], check=True)
    (packages,) = (work / ".venv/lib").glob("python*/site-packages")
    (packages / "more.pth").write_text("\n".join(path for path in sys.path if path.endswith(("src", "site-packages"))))
    (work / "s.sh").write_text("touch .venv/bin/x; mv .venv v; touch .venv/lib/*/site-packages/x.pth")
    words = ("-m", "ollm", "tools", "run", "shell", "--yes", "--args", json.dumps({"command": "sh s.sh"}))
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # with the parser of shell commands
    environment = {**os.environ, "HOME": str(place / "user"), "OLLM_HOME": str(place / "user/.ollm"), "PATH": programs}
    told = subprocess.run(
        [work / ".venv/bin/python", *words], cwd=work, env=environment, capture_output=True, text=True, check=False
    )

    assert "ollm itself runs from .venv" in told.stdout + told.stderr
    assert not [*work.glob(".venv/bin/x"), *packages.glob("x.pth"), *work.glob("v")]
