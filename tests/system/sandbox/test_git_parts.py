"""What a command leaves in a git repository: links, paths and strategies by which git outside would write, read or run
something else are moved aside, and git's own state stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    f"mkdir -p lfs/objects/ab; {LINK} lfs/objects/ab/cd": {"lfs/objects/ab/cd"},
    f"mkdir -p lost-found/other; {LINK} lost-found/other/x": {"lost-found/other/x"},
    f"mkdir -p .git/tool/a; {LINK} .git/tool/a/x": {".git/tool/a/x"},
    "mkdir rebase-merge; echo ../x > rebase-merge/strategy": {"rebase-merge"},
    "mkdir rebase-merge; printf 'x/evil.sh\\0' > rebase-merge/strategy": {"rebase-merge"},
    "mkdir rebase-apply; (printf 'x\\0'; head -c 17000000 /dev/zero) > rebase-apply/strategy": {"rebase-apply"},
    "mkdir rebase-merge; echo ort > rebase-merge/strategy; chmod 0 rebase-merge/strategy": {"rebase-merge"},
    "mkdir rebase-merge; mkdir rebase-merge/git-rebase-todo": {"rebase-merge"},
    "mkdir sequencer; printf '[options]\\n\\tstrategy = ../x\\n' > sequencer/opts": {"sequencer"},
    "printf '%040d\\t../../secret\\0' 1 > MERGE_RR": {"MERGE_RR"},
    "printf '%040d\\t/etc/passwd\\0' 1 > MERGE_RR": {"MERGE_RR"},
    "ln -s ../../secret ../s; printf '%040d\\ts\\0' 1 > MERGE_RR": {"MERGE_RR"},
}


def make(tmp_path: Path) -> SteeringWatch:
    return SteeringWatch([str(tmp_path / "work")], find_folder=lambda: tmp_path / "taken")


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
                assert taken == expected or (kind, taken) == ("bare", {"HEAD"}), line
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


def test_git_goes_on_with_a_pick_that_a_command_began(work: Path, tmp_path: Path) -> None:
    watch = make(tmp_path)
    watch.begin()
    line = (
        "git init -q -b main && echo 1 > f && git add f && $G commit -qm 1 && git switch -qc o && echo 2 > f && $G commit -qam 2 && "
        "echo 3 > g && git add g && $G commit -qm 3 && git switch -q main && echo 4 > f && $G commit -qam 4; "
        "$G -c rerere.enabled=1 cherry-pick -X patience o~1 o; ls .git/sequencer/opts .git/MERGE_RR"
    )
    subprocess.run(["/bin/bash", "-c", line.replace("$G", " ".join(GIT))], cwd=work, check=True)

    assert watch.look() == []


@pytest.mark.parametrize(
    "change",
    ["echo exec y >> git-rebase-todo", "echo ../x > strategy", "ln git-rebase-todo ../../n", "mv git-rebase-todo todo"],
)
def test_a_rebase_that_a_person_began_stays_until_a_command_changes_it(work: Path, tmp_path: Path, change: str) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    state = work / ".git/rebase-merge"
    state.mkdir()
    (state / "git-rebase-todo").write_text("exec make test\n")
    watch = make(tmp_path)
    watch.begin()
    (state / "message").write_text("")
    assert watch.look() == []
    watch.begin()
    subprocess.run(["/bin/bash", "-c", change], cwd=state, check=True)

    assert [file.path for file in watch.look()] == [str(state)]


def test_the_place_of_a_worktree_outside_cannot_be_changed_and_that_of_one_inside_can(
    work: Path, tmp_path: Path
) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "1"], ["worktree", "add", "-q", "../out"]):
        subprocess.run([*GIT, "-C", work, *words], check=True)
    subprocess.run([*GIT, "-C", work, "worktree", "add", "-q", "in"], check=True)

    protected = make(tmp_path).begin()

    assert str(work / ".git/worktrees/out") in protected
    assert str(work / ".git/worktrees/in") not in protected
