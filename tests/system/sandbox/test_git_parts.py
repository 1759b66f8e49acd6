"""What a command leaves in a git directory: data stays, operations in progress are parked, all else is moved aside."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.system.sandbox.names import find_repository_part
from ollm.system.sandbox.recovery import recover_taken
from ollm.system.sandbox.taken import describe_taken
from ollm.system.sandbox.watch import SteeringWatch
from tests.ordinary_user import as_ordinary_user

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c")
LINK = "ln -s ../../../../home/file"
HOSTILE = {  # what a command does in a new repository: what is moved aside
    f"{LINK} COMMIT_EDITMSG; {LINK} objects/ab": {"COMMIT_EDITMSG", "objects/ab"},
    f"mkdir -p logs/refs/heads/objects/ab/cd; {LINK} logs/refs/heads/objects/ab/cd/x": {
        "logs/refs/heads/objects/ab/cd/x"
    },
    f"mkdir logs; {LINK} logs/HEAD; chmod 0 logs": {"logs/HEAD"},
    f"mkdir -p lfs/objects/ab; {LINK} lfs/objects/ab/cd; mkfifo FETCH_HEAD": {"lfs/objects/ab/cd", "FETCH_HEAD"},
    f"mkdir -p lost-found/other; {LINK} lost-found/other/x": {"lost-found"},
    f"{LINK} sequencer; mkdir COMMIT_EDITMSG; touch COMMIT_EDITMSG/x": {"sequencer", "COMMIT_EDITMSG"},
    "mkdir -p remotes branches; echo URL: x > remotes/origin; echo x > branches/y": {"remotes", "branches"},
    "echo x > info/attributes; echo x > objects/info/alternates; echo x > author-script; mkdir -p modules/a; echo x > modules/a/config": {
        "info/attributes",
        "objects/info/alternates",
        "author-script",
        "modules/a/config",
    },
    "mkdir -p empty/folder lfs/objects; touch index.lock X_HEAD sharedindex.1": set(),
}


def make(tmp_path: Path, **more: object) -> SteeringWatch:
    return SteeringWatch([str(tmp_path / "work")], find_folder=lambda: tmp_path / "taken/1", **more)  # type: ignore[arg-type]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_nothing_in_a_repository_leads_git_out_of_it() -> None:
    def body(root: Path) -> None:
        (root / "work").mkdir()
        watch = make(root)
        for number, (line, expected) in enumerate(HOSTILE.items()):
            for kind in ("bare", "."):
                top = root / f"work/{number}{kind}"
                git = top / ".git" if kind == "." else top
                watch.begin()
                subprocess.run(["git", "init", "-q", *(["--bare"] if kind == "bare" else []), top], check=True)
                subprocess.run(["/bin/bash", "-c", line], cwd=git, check=True)

                taken = {os.path.relpath(file.path, git) for file in watch.look()}
                assert taken == expected or (kind == "bare" and "HEAD" in taken), line
                subprocess.run(["rm", "-rf", top], check=True)

    as_ordinary_user(body)


@pytest.mark.parametrize("head", ["", "ref: refs/heads/main"])
@pytest.mark.parametrize(
    "line",
    [
        "echo ../y > .git/commondir",
        "git init -q n; echo ../../y > n/.git/commondir",
        "mkdir s; echo gitdir: ../y > s/.git; echo ref: refs/heads/m > y/HEAD",
        "mkdir -p s y/worktrees/w; echo gitdir: ../y/worktrees/w > s/.git; cd y/worktrees/w; echo ../.. > commondir; echo ../../../s/.git > gitdir; cp ../../../.git/HEAD .",
    ],
)
def test_no_pointer_leads_to_a_repository_that_an_earlier_command_or_a_clone_prepared(
    work: Path, tmp_path: Path, line: str, head: str
) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    for folder in ("objects", "refs"):
        (work / "y" / folder).mkdir(parents=True)
    (work / "y/config").write_text("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch ran; false\n")
    if head:
        (work / "y/HEAD").write_text(head)
    watch = make(tmp_path)
    watch.begin()
    subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)
    watch.look()
    for top in (work, work / "n", work / "s"):
        if top.is_dir():
            subprocess.run(["git", "status"], cwd=top, capture_output=True, check=False)

    assert not [*tmp_path.rglob("ran")]


EVIL = "mkdir -p objects refs worktrees; printf '[core]\\n\\tfsmonitor=touch ran\\n' > config"


@pytest.mark.parametrize(
    "lines",
    [
        (
            f"mkdir y; cd y; {EVIL}",
            "git init -q --separate-git-dir $PWD/y/worktrees/g s",
            "echo ../.. > y/worktrees/g/commondir",
        ),
        (
            "git init -q --separate-git-dir $PWD/g sub",
            f"mkdir g/y; cd g/y; {EVIL}",
            "mkdir -p s g/y/worktrees/w; echo gitdir: ../g/y/worktrees/w > s/.git; cd g/y/worktrees/w; cp ../../../HEAD .; echo ../.. > commondir; echo ../../../../s/.git > gitdir",
        ),
    ],
)
def test_a_pointer_does_not_vouch_for_the_repository_that_it_leads_to(
    work: Path, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    watch = make(tmp_path)
    for line in lines:
        watch.begin()
        subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)
        watch.look()
    subprocess.run(["git", "status"], cwd=work / "s", capture_output=True, check=False)

    assert not [*tmp_path.rglob("ran")]


@pytest.mark.parametrize("above", ["", "z/"])
def test_a_folder_does_not_become_a_repository_whose_settings_run_programs(
    work: Path, tmp_path: Path, above: str
) -> None:
    """Git takes a folder for a repository if its own `.git` is none."""
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / above / "objects").mkdir(parents=True)
    (work / above / "refs").mkdir()
    (work / above / "config").write_text("[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch ran\n")
    watch = make(tmp_path)
    for line in (f"mkdir -p {above}.git; echo ref: refs/heads/m > ./{above}HEAD", f"rm -f {above}.git/HEAD"):
        watch.begin()
        subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)
        watch.look()
    subprocess.run(["git", "status"], cwd=work / above, capture_output=True, check=False)

    assert not [*work.rglob("ran")]
    assert find_repository_part(str(work / above / "HEAD"), str(work)), "asks"


def test_a_worktree_of_a_separate_repository_with_programs_of_its_own_stays(work: Path, tmp_path: Path) -> None:
    for words in (["init", "-q", "--separate-git-dir", work / "gd", work], ["config", "core.pager", "less -R"]):
        subprocess.run([*GIT, "-C", work, *words], check=True)
    subprocess.run([*GIT, "-C", work, "commit", "-q", "--allow-empty", "-m", "1"], check=True)
    watch = make(tmp_path)
    watch.begin()
    subprocess.run([*GIT, "-C", work, "worktree", "add", "-q", "tree"], check=True)

    assert watch.look() == []


INDEX = """
import hashlib, subprocess, sys
name, long = sys.argv[1].encode(), b"x" * len(sys.argv[1])
subprocess.run(["git", "update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},{long.decode()}"], check=True)
body = open(".git/index", "rb").read()[:-20].replace(long, name)
open(".git/index", "wb").write(body + hashlib.sha1(body).digest())
"""


@pytest.mark.parametrize(
    "path", ["../../.bashrc", "/etc/passwd", ".git/hooks/post-checkout", "a/.GIT/config", "a/../../b"]
)
def test_an_index_that_leads_out_of_its_worktree_is_moved_aside_and_a_plain_one_stays(
    work: Path, tmp_path: Path, path: str
) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    watch = make(tmp_path)
    watch.begin()
    subprocess.run([sys.executable, "-c", INDEX, "a/..git/.github/x"], cwd=work, check=True)
    assert watch.look() == []
    watch.begin()
    (work / ".git/index").unlink()
    subprocess.run([sys.executable, "-c", INDEX, path], cwd=work, check=True)

    assert [file.path for file in watch.look()] == [str(work / ".git/index")]


def test_a_link_that_was_in_a_repository_stays_and_is_put_back_if_a_command_changes_it(
    work: Path, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / ".git/logs").symlink_to("../elsewhere")
    watch = make(tmp_path)
    protected = watch.begin()
    assert watch.look() == []
    watch.begin()
    (work / ".git/logs").unlink()
    (work / ".git/logs").symlink_to("../../home")
    watch.look()

    assert (work / ".git/logs").readlink() == Path("../elsewhere")
    assert not any("elsewhere" in path for path in protected), "git writes through it"


STATE = ("rebase-merge/strategy", "rebase-apply/apply-opt", "sequencer/opts", "MERGE_RR", "BISECT_LOG")


def write_states(git: Path, text: str) -> None:
    for name in STATE:
        (git / name).parent.mkdir(exist_ok=True)
        (git / name).write_text(text)


def read_states(git: Path) -> set[str]:
    return {(git / name).read_text() if (git / name).exists() else "" for name in STATE}


def test_operations_in_progress_are_there_for_commands_and_not_for_the_user(work: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    git, reported = work / ".git", []
    watch = make(tmp_path, report=reported.append)
    watch.begin()
    write_states(git, "theirs")
    (said,) = describe_taken(watch.look()).splitlines()
    assert read_states(git) == {""}
    assert "in progress for commands in the sandbox only" in said

    for session in (watch, make(tmp_path)):
        session.begin()
        assert read_states(git) == {"theirs"}
        assert session.look() == [], "it is said once"
        assert read_states(git) == {""}
    watch.close()
    assert reported == [said]
    subprocess.run(["/bin/sh", "-c", said.rpartition("with: ")[2]], check=True)
    watch.begin()
    assert watch.look() == []
    assert read_states(git) == {"theirs"}, "handed over, and no command changed it"


def test_an_operation_of_the_user_stays_until_a_command_changes_it(work: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    git, watch = work / ".git", make(tmp_path)
    write_states(git, "mine")
    watch.begin()
    (git / "HEAD").write_text("ref: refs/heads/x")
    assert watch.look() == []
    watch.begin()
    (git / "rebase-merge/message").touch()
    (git / "MERGE_RR").unlink()

    assert [Path(file.path).name for file in watch.look()] == ["rebase-merge"]
    assert (git / "sequencer/opts").read_text() == "mine"


def test_an_operation_that_the_user_began_meanwhile_is_not_overwritten(work: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    git, watch = work / ".git", make(tmp_path)
    watch.begin()
    write_states(git, "theirs")
    watch.look()
    write_states(git, "mine")
    watch.begin()

    taken = [file for file in watch.look() if file.kind == "moved"]
    assert sorted(os.path.relpath(file.path, git) for file in taken) == sorted(name.split("/")[0] for name in STATE)
    assert read_states(git) == {"mine"}
    assert {Path(file.batch, os.path.relpath(git, file.root)).exists() for file in taken} == {True}


@pytest.mark.parametrize("moment", ["first", "again"])
def test_after_a_kill_an_operation_of_a_command_is_parked_and_given_back(
    work: Path, tmp_path: Path, moment: str
) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    git, records = work / ".git", tmp_path / "records"
    watch = make(tmp_path, records=records)
    watch.begin()
    write_states(git, "theirs")
    if moment == "again":
        watch.look()
        watch.begin()
        assert read_states(git) == {"theirs"}
    (record,) = records.iterdir()
    record.write_text(json.dumps({**json.loads(record.read_text()), "process": [1, "long ago"]}))
    recover_taken(records)

    assert read_states(git) == {""}
    make(tmp_path).begin()
    assert read_states(git) == {"theirs"}


def test_a_worktree_that_a_command_made_can_be_removed_by_the_next_one(work: Path, tmp_path: Path) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "1"]):
        subprocess.run([*GIT, "-C", work, *words], check=True)
    watch = make(tmp_path)
    watch.begin()
    subprocess.run([*GIT, "-C", work, "worktree", "add", "-q", "in"], check=True)
    assert watch.look() == []

    assert not [path for path in watch.begin() if "/in" in path.removeprefix(str(work))]
    (work / "in/.git").write_text("gitdir: ../x")
    assert {Path(file.path).name for file in watch.look()} == {".git", "gitdir", "commondir"}


def test_the_place_of_a_worktree_outside_cannot_be_changed_and_that_of_one_inside_can(
    work: Path, tmp_path: Path
) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "1"], ["worktree", "add", "-q", "../out"]):
        subprocess.run([*GIT, "-C", work, *words], check=True)
    subprocess.run([*GIT, "-C", work, "worktree", "add", "-q", "in"], check=True)

    protected = make(tmp_path).begin()

    assert str(work / ".git/worktrees/out") in protected
    assert str(work / ".git/worktrees/in") not in protected
