"""Git in the sandbox, from command to command, and the user's own git after it: through the command."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest

from tests.cli.running import running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.cli.test_sandbox import place, shell, use_level, wait_for
from tests.servers.answers import Answer

__all__ = ["place"]  # a fixture

START = """
git init -q; echo 1 > f; git add f; git commit -qm base; git branch other
echo main > f; git commit -qam main1; echo m > m; git add m; git commit -qm main2; git switch -q other
echo other > f; git commit -qam other1; echo o > o; git add o; git commit -qm other2; git tag top
"""
# one session for each step; the second one of a pair goes on with what the first one began
STEPS = {
    "merge": ("git merge main; git status | head -2", "echo x > f; git add f; git merge --continue"),
    "rebase": ("git rebase main", "echo x > f; git add f; git rebase --continue"),
    "rebase of merges": (
        "git switch -qc side top~1; echo s > s; git add s; git commit -qm s; git merge -q --no-edit top; git rebase -r main",
        "echo x > f; git add f; git rebase --continue",
    ),
    "rebase with a program": (
        "git rebase -x 'echo ran >> ran' -x false HEAD~1",
        "git rebase --continue; cat ran; test -s ran",
    ),
    "pick": ("git switch -q main; git cherry-pick top~1 top", "echo x > f; git add f; git cherry-pick --continue"),
    "revert": ("git switch -q main; git revert --no-edit main~1 top", "git revert --abort; git revert --no-edit main"),
    "mail": (
        "git format-patch -q -2 -o /var/tmp/p; cp -r /var/tmp/p p; git switch -q main; git am p/*",
        "git am --show-current-patch | grep -q other1 && git am --skip; git log --oneline | head -1",
    ),
    "bisect": ("git bisect start top top~2", "git bisect run test ! -e o; git bisect log | grep -q 'first bad'; git bisect reset"),
    "worktree": (
        "git worktree add -q tree -b t; cd tree; echo t > t; git add t; git commit -qm t",
        "echo u > tree/u; git -C tree add u; git -C tree commit -qm u; git worktree add -q --detach new; git worktree remove new",
    ),
    "stash": ("echo 2 > f; git stash -q; git clone -q . cl", "git stash pop; git gc -q; git fsck; git -C cl log --oneline"),
}  # fmt: skip


OPERATIONS = ("rebase-merge", "rebase-apply", "sequencer", "BISECT_LOG")
CLEAN = """
git reset -q --hard; git clean -qfdx -e s.sh -e a.txt -e .env; git worktree prune; git switch -q other; git reset -q --hard top
git branch -f main $(git rev-list --all --grep=main2 | head -1); git branch -D side t; rm -rf .git/rr-cache
"""


def start(place: Path, level: str) -> Path:
    copytree(make_repository(place.parent / "repository"), place / "user", dirs_exist_ok=True)
    use_level(place / "user/.ollm", level)
    return place / "user/work"


@cache
def make_repository(place: Path) -> Path:
    """A home with a repository, made once: it takes twenty processes."""
    (place / "user/work").mkdir(parents=True)
    settings = "[user]\n\tname = A\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n[rerere]\n\tenabled = true\n"
    (place / "user/.gitconfig").write_text(settings)
    run(place, START)
    return place / "user"


def run(place: Path, line: str) -> str:
    """What the user does, with git outside."""
    everything = {**os.environ, "HOME": str(place / "user"), "GIT_EDITOR": "true"}
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=place / "user/work", env=everything, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def command(place: Path, line: str, file: str = "s.sh") -> str:
    """What a model does, with git in the sandbox."""
    (place / "user/work" / file).write_text(f"export GIT_EDITOR=true\n{line}\n")
    return str(shell(place, f"sh {file}", "--yes")["llmContent"])


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_git_goes_on_from_command_to_command(place: Path, level: str) -> None:
    work = start(place, level)
    run(place, "printf '%s\\n' s.sh .env a.txt > .git/info/exclude")
    for name, (first, second) in STEPS.items():
        said = command(place, first)
        assert not {*OPERATIONS} & {one.name for one in (work / ".git").iterdir()}, (name, said)
        told = command(place, second)
        assert "Moved aside" not in said + told, (name, said, told)
        assert "exit code" not in told, (name, said, told)
        assert "in progress for commands in the sandbox" not in told.partition("MERGE_RR")[0], (name, told)
        run(place, CLEAN)


SIGN = 'python3 -c \'import hashlib; b = open(".git/index", "rb").read()[:-20]; open(".git/index", "wb").write(b + hashlib.sha1(b).digest())\''
# what a model leaves, one command after the other, and what the user does then; `RUN` is a program of the model
HOSTILE = {
    "a strategy in a real rebase": (
        "git rebase main",
        "echo x/RUN > .git/rebase-merge/strategy",
        "git rebase --continue",
    ),
    "a step": ("git rebase main", "echo 'exec ./RUN' >> .git/rebase-merge/git-rebase-todo", "git rebase --continue"),
    "options of a pick": (
        "git switch -q main; git cherry-pick top~1 top",
        "printf '[options]\\n\\tstrategy = x/RUN\\n' > .git/sequencer/opts; cp -r .git/sequencer ../s 2> /dev/null",
        "git cherry-pick --continue",
    ),
    "conflicts to record": (
        "mkdir -p .git/rr-cache/$(printf %040d 1); touch .git/rr-cache/*/preimage; printf '%040d\\t../.ssh/id_rsa\\0' 1 > .git/MERGE_RR",
        "git commit -q --allow-empty -m x",
    ),
    "a run of bisect": (
        "git bisect start top top~2",
        "echo './RUN; git bisect good' >> .git/BISECT_LOG; echo x > .git/BISECT_RUN",
        "git bisect replay .git/BISECT_LOG",
    ),
    "a pointer to settings": (
        "mkdir -p y/objects y/refs y/worktrees; printf '[core]\\n\\tfsmonitor=./RUN\\n' > y/config",
        "git init -q --separate-git-dir $PWD/y/worktrees/g sub; git -C sub commit -q --allow-empty -m 1; git add sub",
        "echo ../.. > y/worktrees/g/commondir; cp -r y/worktrees/g/refs/. y/refs/; cp -r y/worktrees/g/objects/. y/objects/",
        "echo ../y > .git/commondir",
        "git status; git -C sub status",
    ),
    "an index behind a broken HEAD": (
        f"git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),12/.bashrc; sed -i s,12/.bashrc,../.bashrc, .git/index; {SIGN}; mv .git/HEAD H",
        "mv H .git/HEAD",
        "git restore .",
    ),
    "links": (
        "cd .git; for f in COMMIT_EDITMSG FETCH_HEAD ORIG_HEAD; do ln -sf ~/.bashrc $f; done; echo evil > MERGE_MSG",
        "s=$(echo evil | git hash-object -w --stdin); mkdir -p .git/lost-found/other; ln -s ~/.bashrc .git/lost-found/other/$s",
        "git fsck --lost-found; git commit -q --allow-empty; git fetch -q . main; git reset -q HEAD~1",
    ),
    "repositories where nobody looks": (
        "mkdir -p node_modules/p/e; chmod 0 node_modules/p",
        "chmod 755 node_modules/p; for d in node_modules/p/e .git/objects/ab .ollm/x.lock $(printf '.g\\342\\200\\214it'); do mkdir -p $d; git init -q $d/e; git -C $d/e commit -q --allow-empty -m 1; git -C $d/e config core.fsmonitor ./RUN; done; ln -s .git/objects/ab/e demo; git add -f node_modules/p/e/e .ollm .g*t/e; chmod 0 node_modules/p",
        "chmod 755 node_modules/p",
        "git clone -q --bare . b; mkdir .git/refs/x; echo ~/work/RUN > b/hooks/pre-receive; chmod +x b/hooks/*; mv b .git/refs/x/e",
        "for d in node_modules/p/e/e demo .ollm/x.lock/e .g*t/e; do cp RUN $d; git -C $d status; done; git push -q .git/refs/x/e HEAD:new",
    ),
    "settings of a worktree": (
        "git worktree add -q tree -b t; printf '[core]\\n\\tfsmonitor=../RUN\\n' > .git/worktrees/tree/config.worktree; git init -q n; echo './RUN' > n/.git/hooks/post-index-change; chmod +x n/.git/hooks/*",
        "printf '[core]\\n\\tfsmonitor=./RUN\\n' >> .git/config; git -C n config core.fsmonitor ../RUN",
        "git -C tree status; git status; git -C n status",
    ),
}


@pytest.mark.parametrize("level", ["full", "landlock"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_next_git_command_of_the_user_runs_writes_and_reads_nothing_for_the_model(
    place: Path, kind: str, level: str
) -> None:
    work, home = start(place, level), place / "user"
    (home / ".bashrc").write_text("mine\n")
    run(place, "git config extensions.worktreeConfig true; mkdir git-merge-x")
    for program in (work / "RUN", work / "git-merge-x/RUN"):
        program.write_text(f"#!/bin/sh\ntouch {home}/ran\n")
        program.chmod(0o755)
    *lines, after = HOSTILE[kind]
    for line in lines:
        command(place, line)
    run(place, "git status; git add f; echo x > f; git add f")
    run(place, after)
    run(place, "git status")

    assert not (home / "ran").exists()
    assert (home / ".bashrc").read_text() == "mine\n"
    assert not [*work.glob(".git/rr-cache/*/postimage")]


def test_the_user_is_told_of_an_operation_in_progress_and_can_take_it_over(place: Path) -> None:
    start(place, "full")
    said = command(place, "git rebase main")
    assert "rebase-merge in " in said
    assert "rebase in progress" not in run(place, "git status")

    assert "rebase in progress" in str(shell(place, "git status")["llmContent"])
    assert "rebase in progress" not in run(place, "git status")

    run(place, said.rpartition("hand it over with: ")[2].partition("]")[0])
    assert "rebase in progress" in run(place, "git status")
    command(place, "touch unrelated")
    done = run(place, "echo x > f; git add f; git rebase --continue; git log --format=%s")

    assert "other2\nother1\nmain2\n" in done, done


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_what_the_user_replaces_while_a_command_runs_stays_and_is_named(place: Path, level: str) -> None:
    work = start(place, level)
    (work / "AGENTS.md").write_text("mine\n")
    mine = "until test -e go; do sleep .05; done; git remote add r /x; echo new > n; mv n AGENTS.md; touch done"
    with ThreadPoolExecutor(1) as user:
        acting = user.submit(run, place, mine)
        said = command(place, "touch go; until test -e done; do sleep .05; done; touch .envrc")
        acting.result()
    assert (
        "Replaced or renamed while a command ran, which could change them from then on: .git/config, AGENTS.md." in said
    )
    assert (work / "AGENTS.md").read_text() == "new\n"
    assert run(place, "git remote") == "r\n"
    assert not (work / ".envrc").exists()


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_the_last_look_of_a_session_comes_after_its_last_process(place: Path, level: str) -> None:
    work = start(place, level)
    command(place, "(while mkdir -p .vscode; do echo evil > .vscode/tasks.json; done) > /dev/null 2>&1 & sleep .5")
    assert not (work / ".vscode").exists()


def test_what_the_user_renames_and_brings_back_is_named_where_a_command_could_change_it(place: Path) -> None:
    work = start(place, "landlock")
    (work / ".envrc").write_text("mine\n")
    mine = "until test -e go; do sleep .05; done; mv .envrc off; until test -e changed; do sleep .05; done; mv off .envrc; touch done"
    with ThreadPoolExecutor(1) as user:
        acting = user.submit(run, place, mine)
        said = command(
            place,
            "touch go; until echo theirs >> off; do sleep .05; done; touch changed; until test -e done; do sleep .05; done",
        )
        acting.result()
    assert "Replaced or renamed while a command ran, which could change them from then on: .envrc." in said


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_what_two_sessions_make_one_after_the_other_is_moved_aside_by_both(place: Path, level: str) -> None:
    work = start(place, level)
    first = """
    git clone -q --bare . y; git -C y config core.fsmonitor 'touch ~/ran;false'; git -C y config core.bare false
    git -C y config core.worktree .; echo one > .envrc; touch made; until test -e seen; do sleep .05; done
    """
    second = """
    touch seen; until ! test -e .envrc; do sleep .05; done; while test -e y/HEAD && test -e y/config; do sleep .05; done
    echo two > .envrc; echo ref: refs/heads/main > y/HEAD
    """
    with ThreadPoolExecutor(1) as other:
        acting = other.submit(command, place, first, "first.sh")
        run(place, "until test -e made; do sleep .05; done")
        command(place, second)
        assert ".envrc" in acting.result()
    run(place, "git -C y status")
    assert not (work / ".envrc").exists()
    assert not (place / "user/ran").exists()


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


STAGE = "export GIT_INDEX_FILE=/tmp/i; git read-tree main; git update-index --add --cacheinfo 100644,$BLOB"
# what a model commits or stages without touching the workspace, and what is named
HIDDEN = {
    "a commit": ("git update-index --add --cacheinfo 100644,$BLOB,.envrc; git commit -qm x", ".envrc in other"),
    "a branch": (f"{STAGE},a/AGENTS.md; git branch -f main $(git commit-tree -m x $(git write-tree))", "a/AGENTS.md in main"),
    "in place": (f"{STAGE},.mcp.json; git commit-tree -m x $(git write-tree) > .git/refs/heads/main", ".mcp.json in main"),
    "the index": ("git update-index --add --cacheinfo 100755,$BLOB,.husky/commit-msg", ".husky/commit-msg in the index"),
    "a replacement": ("git replace $(git rev-parse HEAD:f) $BLOB", " in refs/replace/"),
    "a mode": ("git update-index --chmod=+x CLAUDE.md; git commit -qm x", "CLAUDE.md in other"),
    "a folder": ("ln -s u h; git update-index --add --cacheinfo 120000,$(printf u | git hash-object -w --stdin),hooks; git commit -qm x", "hooks in other"),
    "a stash": ("git add -f t; git stash -q; git update-ref refs/stash $(git commit-tree -m x -p HEAD -p HEAD~1 -p $(git commit-tree -m x $(printf '100644 blob %s\t.envrc\n' $BLOB | git mktree)) HEAD^{tree})", ".envrc in "),
}  # fmt: skip


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_commands_commit_or_stage_of_files_that_steer_tools_is_named(place: Path, kind: str) -> None:
    (start(place, "full") / "CLAUDE.md").write_text("mine\n")
    run(
        place,
        "git add CLAUDE.md; git commit -qm claude; git config core.hooksPath hooks/h; mkdir -p hooks/h; touch hooks/h/x",
    )
    line, named = HIDDEN[kind]
    said = command(
        place, f"git branch $(printf 'a\\342\\200\\250b'); echo theirs > t; BLOB=$(git hash-object -w t); {line}"
    )
    plain = command(place, "echo 2 > f; git commit -qam two; git switch -q main; git switch -q other")

    assert named in said.partition("which the workspace does not have: ")[2], said
    assert "does not have" not in plain


async def test_what_a_background_command_makes_moves_aside_when_it_ends_while_the_chat_waits(tmp_path: Path) -> None:
    line = "until test -e go; do sleep .05; done; echo x > .envrc; touch made"
    calls = [
        Answer(calls=[("shell", {"command": "sh s.sh", "background": True})]),
        "started",
        "done",
    ]
    async with running(tmp_path, calls) as runner, at_terminal(runner, "chat") as terminal:
        (runner.workspace / "s.sh").write_text(line)
        await terminal.wait_for("\n›")
        terminal.type("go\r")
        await terminal.wait_for("[y] yes")
        terminal.type("y")
        await terminal.wait_for("started")
        (runner.workspace / "go").touch()
        await wait_for((runner.workspace / "made").exists, "the command did not go on")
        await wait_for(lambda: not (runner.workspace / ".envrc").exists(), "the file stays")
        terminal.type("go on\r")
        await terminal.wait_for("Moved aside")


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
        await terminal.wait_for("job-1 in the sandbox could make files")
        await terminal.wait_for("[y] yes")
        terminal.type("y")
        await terminal.wait_for("done")

    assert (runner.workspace / "seen").read_text() == ""


ADDRESSES = {  # of a remote in a new repository, and whether it stays
    "plain": ("$PWD", True),
    "far": ("a@b:c/d.git", True),
    "web": ("https://example.invalid/a.git", True),
    "kept": ("$HOME/.ollm/taken/parked/e", False),
    "url": ("file://$HOME/.ollm/cache/box/e", False),
    "coded": ("file://$HOME/%2eollm/cache/box/e", False),
    "detour": ("$PWD/link/../plain", False),
    "none": ("$PWD/later", False),
    "linked": ("$PWD/link", False),
}


def test_a_new_repository_keeps_no_address_of_a_folder_where_hooks_may_hide(place: Path) -> None:
    work = start(place, "full")
    lines = [f"git init -q {name}; git -C {name} remote add x {address}" for name, (address, _) in ADDRESSES.items()]
    twice = (
        'git init -q twice; printf \'[remote "%s"]\\nx = y\\n[remote "x"]\\nurl = %s\\n\' $B $B >> twice/.git/config'
    )
    said = command(place, "\n".join(["ln -s . link; B=$HOME/.ollm/cache/box/e", *lines, twice]))

    kept = {name for name in (*ADDRESSES, "twice") if (work / name / ".git/config").exists()}
    assert kept == {name for name, (_, stays) in ADDRESSES.items() if stays}, said
