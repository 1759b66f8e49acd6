"""Files that steer tools and that a command makes: found, moved aside, named; those that were there stay."""

import json
import os
import stat
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.config.settings import CheckpointSettings, FileDiscoverySettings
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import CheckpointPlace
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.system.folders import FolderMemory
from ollm.system.sandbox.recovery import recover_taken
from ollm.system.sandbox.taken import describe_taken
from ollm.system.sandbox.watch import SteeringWatch
from tests.ordinary_user import as_ordinary_user

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c")


class Running:
    gone, call_when_gone = False, id


def make(tmp_path: Path, **more: object) -> SteeringWatch:
    return SteeringWatch([str(tmp_path / "work")], find_folder=lambda: tmp_path / "taken", **more)  # type: ignore[arg-type]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/AGENTS.md").write_text("mine")
    return tmp_path / "work"


HOSTILE = {
    "nested": "mkdir -p a/b/c; echo x > a/b/c/.mcp.json",
    "parent renamed": "mkdir -p n/inner; echo x > n/inner/.envrc; mv n m",
    "forged times": "echo x > sub/.cursorrules; touch -d @1 sub/.cursorrules sub",
    "a folder moved in": "mkdir -p p/workflows; mv p .github",
    "a link": "ln -s /etc/passwd sub/CLAUDE.md; ln -s sub .claude",
    "a hard link": "echo x > plain; ln plain sub/.mcp.json",
    "a repository with a hook": "git init -q r; echo x > r/.git/hooks/pre-commit",
    "a repository with a program": "git init -q r; git -C r config core.fsmonitor evil",
    "a repository with a program in the line of its section": "git init -q r; echo '[core]fsmonitor=x' >> r/.git/config",
    "a repository elsewhere": "mkdir o; echo 'gitdir: /elsewhere/.git' > o/.git",
    "settings in another folder of a repository": "git init -q r; cp -r r/.git e; mv e r/.git/e; echo e > r/.git/commondir",
    "a pointer into a repository": "git init -q r; cp -r r/.git e; mv e r/.git/e; mkdir s; echo gitdir: ../r/.git/e > s/.git",
    "a pointer with a detour": "git init -q r; mkdir s s/d; echo gitdir: d/../../r/.git > s/.git",
    "a pointer in two lines": "git init -q r; mkdir s; printf 'gitdir: ../r/.git\\n/../e' > s/.git",
    "a separate repository with a hook": "git init -q --separate-git-dir=gd r; echo x > gd/hooks/pre-commit",
    "a repository without a worktree": "git init -q --bare b; git -C b config core.fsmonitor x",
    "other letters": "mkdir .VsCode; echo x > aGents.md",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_steers_tools_is_moved_aside_and_one_command_puts_it_back(work: Path, tmp_path: Path, name: str) -> None:
    watch = make(tmp_path)
    watch.begin()
    subprocess.run(["/bin/bash", "-c", HOSTILE[name]], cwd=work, check=True)

    taken = watch.look()

    assert taken, name
    assert not any(os.path.lexists(file.path) for file in taken)
    assert (work / "AGENTS.md").read_text() == "mine"
    command = describe_taken(taken).rpartition("with: ")[2]
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert all(os.path.lexists(file.path) for file in taken)


def test_what_lies_in_a_folder_without_rights_is_moved_aside_and_the_rights_stay() -> None:
    modes = [0o555, 0o500, 0o311, 0o111, 0o444, 0o000]

    def body(root: Path) -> None:
        (root / "work").mkdir()
        watch = make(root)
        watch.begin()
        for mode in modes:
            inner = root / f"work/{mode}/inner"
            (inner / ".vscode").mkdir(parents=True)
            (inner / ".mcp.json").touch()
            subprocess.run(["git", "init", "-q", inner], check=True)
            (inner / ".git/hooks/pre-commit").touch()
            for folder in (inner / ".git/hooks", inner / ".git", inner / ".vscode", inner, inner.parent):
                folder.chmod(mode)
        watch.begin()
        taken = [os.path.relpath(file.path, root / "work") for file in watch.look() if file.batch]

        kinds = (".mcp.json", ".vscode", ".git/hooks")
        assert set(taken) == {f"{mode}/inner/{kind}" for mode in modes for kind in kinds}
        assert [stat.S_IMODE((root / f"work/{mode}").stat().st_mode) for mode in modes] == modes
        subprocess.run(["chmod", "-R", "u+rwx", root], check=True)

    as_ordinary_user(body)


def test_a_plain_repository_a_worktree_and_packages_stay(work: Path, tmp_path: Path) -> None:
    (work / "node_modules/x").mkdir(parents=True)
    watch = make(tmp_path)
    watch.begin()
    line = (
        "git init -q r && cd r && git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m one && "
        "git worktree add -q ../tree && git clone -q . ../clone; touch ../node_modules/x/.travis.yml"
    )
    subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)

    assert watch.look() == []
    assert subprocess.run([*GIT, "status"], cwd=work / "tree", capture_output=True, check=False).returncode == 0


def test_the_repository_of_a_worktree_is_protected_whatever_its_name(work: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "repo.git"], check=True)
    subprocess.run(["git", "init", "-q", "--separate-git-dir", work / "gd", work], check=True)
    roots = [str(work), str(tmp_path / "repo.git")]

    protected = SteeringWatch(roots, find_folder=lambda: tmp_path / "taken").begin()

    repositories = (tmp_path / "repo.git", work / "gd")
    assert {str(git / name) for git in repositories for name in ("config", "hooks")} <= set(protected)


def test_files_that_git_settings_include_or_run_count_as_settings(work: Path, tmp_path: Path) -> None:
    (work / "tools").mkdir()
    (work / "tools/clean").touch()
    lines = (
        "git init -q . && git config include.path ../.shared && git config includeIf.onbranch:x.path ../later && "
        "git config core.hooksPath tools/hooks && git config filter.a.clean 'sh tools/clean %f' && "
        "git config -f .shared includeIf.onbranch:y.path deep && git config core.fsmonitor ./fsm && "
        "git config filter.b.clean 'git-x folder'"
    )
    subprocess.run(["/bin/bash", "-c", lines], cwd=work, check=True)
    watch = make(tmp_path)

    assert {str(work / name) for name in (".shared", "tools/clean", ".git/config")} <= set(watch.begin())
    made = ("later", "deep", "tools/hooks", "new/tools/hooks", "fsm")
    line = f"{' '.join(GIT)} commit -q --allow-empty -m x; git worktree add -q new; "
    line += "mkdir -p tools/hooks new/tools/hooks folder; touch fsm later deep tools/hooks/post-commit new/tools/hooks/post-commit"
    subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)
    assert {os.path.relpath(file.path, work) for file in watch.look()} == set(made)


@pytest.mark.parametrize(
    "script",
    [
        '"$PWD"/tools/x.sh',
        '"tools"/x.sh',
        "sh $(git rev-parse --show-toplevel)/tools/x.sh",
        "d=tools; sh ${d}/x.sh",
        "sh `pwd`/tools/x.sh",
        "cd tools && sh x.sh",
        "sh -c 'cd tools; . ./x.sh'",
        "make --file=tools/x.sh",
    ],
)
def test_a_script_that_an_alias_names_with_words_that_a_shell_computes_is_protected(
    work: Path, tmp_path: Path, script: str
) -> None:
    (work / "tools").mkdir()
    subprocess.run(["git", "init", "-q", work], check=True)
    subprocess.run(["git", "-C", work, "config", "alias.x", f"!{script}"], check=True)
    watch = make(tmp_path)
    watch.begin()
    (work / "tools/x.sh").touch()

    assert [file.path for file in watch.look()] == [str(work / "tools/x.sh")]
    (work / "tools/x.sh").touch()
    assert str(work / "tools/x.sh") in make(tmp_path).begin()


def test_a_folder_that_becomes_a_repository_keeps_what_was_in_it(work: Path, tmp_path: Path) -> None:
    (work / "sub/hooks").mkdir()
    (work / "sub/hooks/use_state.js").touch()
    watch = make(tmp_path)
    watch.begin()
    line = "cd sub; mkdir objects refs; echo ref: refs/heads/x > HEAD; touch hooks/pre-commit .mcp.json"
    subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)

    assert {file.path for file in watch.look()} == {str(work / "sub/HEAD"), str(work / "sub/.mcp.json")}
    assert (work / "sub/hooks/use_state.js").exists()


@pytest.mark.parametrize("make_file", ["mkfifo", "truncate -s 40G"])
def test_settings_that_are_a_pipe_or_endless_do_not_stop_the_look(work: Path, tmp_path: Path, make_file: str) -> None:
    watch = make(tmp_path)
    watch.begin()
    line = f"git init -q r; rm r/.git/config; {make_file} r/.git/config"
    subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)

    assert [file.path for file in watch.look()] == [str(work / "r/.git/config")]


def test_settings_that_git_cannot_read_protect_the_whole_worktree(work: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=work, check=True)
    (work / ".git/config").write_text("[core\n")
    (work / "hook").touch()

    assert {str(work / name) for name in ("hook", "sub", ".git/config")} <= set(make(tmp_path).begin())


def test_the_programs_own_state_in_a_workspace_stays_and_what_else_appears_beside_it_is_taken(
    work: Path, tmp_path: Path
) -> None:
    watch = make(tmp_path)
    watch.begin()
    watch.attach(Running())
    (work / ".ollm").mkdir()
    for name in ("memory.db", "memory.db-wal", "lease.lock", ".gitignore"):
        (work / ".ollm" / name).write_text("ours")
    assert watch.look() == []
    (work / ".ollm/memory.db").write_text("written since")
    (work / ".ollm/config.yaml").write_text("hooks: {}")

    assert [file.path for file in watch.look()] == [str(work / ".ollm/config.yaml")]
    assert (work / ".ollm/memory.db").read_text() == "written since"


def test_what_runs_on_is_looked_after_and_approved_files_stay(work: Path, tmp_path: Path) -> None:
    watch, server = make(tmp_path), Running()
    watch.begin()
    watch.attach(server)
    assert watch.look() == []
    (work / ".mcp.json").touch()
    watch.allow([str(work / "CLAUDE.md")])
    (work / "CLAUDE.md").touch()

    assert [Path(file.path).name for file in watch.look()] == [".mcp.json"]
    (work / "sub/.mcp.json").touch()
    watch.begin()  # another command starts: what the first one made does not count as there before
    server.gone = True
    assert [Path(file.path).name for file in watch.look()] == [".mcp.json"]
    assert (work / "CLAUDE.md").exists()
    (work / "sub/.mcp.json").touch()  # nothing runs any more: this is the person's own
    assert watch.look() == []


@pytest.mark.parametrize("looks", [0, 2])
def test_after_a_kill_the_next_start_does_it_from_the_record(work: Path, tmp_path: Path, looks: int) -> None:
    records = tmp_path / "records"
    watch = make(tmp_path, records=records)
    for step in [watch.begin, watch.look] * looks or [watch.begin]:
        step()
    (work / "sub/.mcp.json").touch()  # by the command or, when it has ended, by the user

    assert recover_taken(records) == [], "the process that wrote it runs"
    (record,) = records.iterdir()
    record.write_text(json.dumps({**json.loads(record.read_text()), "process": [1, "long ago"]}))
    taken = recover_taken(records)

    assert [Path(file.path).name for file in taken] == ([] if looks else [".mcp.json"])
    assert (work / "AGENTS.md").read_text() == "mine"
    assert not records.exists()


def test_no_file_outside_is_changed_through_a_hard_link_to_it(work: Path, tmp_path: Path) -> None:
    inside = [work / name for name in ("rc", "lib/site-packages/m.py", "node_modules/a/b.js", "sub/large")]
    outside = [tmp_path / f"outside-{number}" for number in range(len(inside))]
    for one, other in zip(inside, outside, strict=True):
        one.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("theirs")
        os.utime(other, (1, 1))
        os.link(other, one)
    os.truncate(outside[-1], 10**10)  # too large to be copied: it is protected
    (work / "one").touch()
    os.link(work / "one", work / "two")  # both names are in the workspace
    said: list[str] = []

    protected = make(tmp_path, report=said.append).begin()
    for one in inside[:-1]:
        assert one.stat().st_mtime == 1
        one.write_text("mine")

    assert {other.read_text() for other in outside[:-1]} == {"theirs"}
    assert [path for path in protected if path in set(map(str, inside))] == [str(inside[-1])]
    assert (work / "one").stat().st_nlink == 2
    os.link(work / "rc", tmp_path / "backup")
    os.mkfifo(tmp_path / "pipe")
    os.link(tmp_path / "pipe", work / "pipe")
    assert str(work / "pipe") in make(tmp_path).begin()
    assert (tmp_path / "backup").stat().st_nlink == 1, "also if its folder has not changed"
    (line,) = said
    assert "copied 3; 1 could not be copied" in line


LATER = ("node_modules/m.js", "node_modules/@a/b/m.js", "sub/node_modules/m.js", ".venv/lib/site-packages/n/m.py")


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("session", ["same", "next"])
def test_packages_that_are_linked_later_are_separated_before_the_next_command(
    work: Path, tmp_path: Path, name: str, session: str
) -> None:
    (work / "node_modules/@a/b").mkdir(parents=True)
    (tmp_path / "store").write_text("theirs")
    time.sleep(0.05)  # the folders are old enough to be remembered
    watch = make(tmp_path)
    watch.begin()
    if session == "next":
        watch.close()
        watch = make(tmp_path)
    else:
        watch.look()
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    os.link(tmp_path / "store", work / name)
    watch.begin()

    assert (tmp_path / "store").stat().st_nlink == 1


def test_linked_files_are_read_only_if_there_is_no_space_for_copies(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "node_modules/a").mkdir(parents=True)
    for number in range(200):
        (tmp_path / f"store-{number}").write_text("theirs")
        os.link(tmp_path / f"store-{number}", work / f"node_modules/a/{number}.js")
    os.link(tmp_path / "store-0", work / "rc")
    state = os.statvfs(work)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*state[:4], 0, *state[5:])))
    said: list[str] = []
    protected = make(tmp_path, report=said.append).begin()

    assert {str(work / "rc"), str(work / "node_modules")} <= {*protected}
    assert not any(str(work / "node_modules/a") in path for path in protected), "one mount, not 200"
    assert "copied 0; 201 could not be copied" in said[0]


def test_a_copy_that_a_kill_interrupted_is_removed(work: Path, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f".ollm-0123456789abcdef-{process}.tmp" for process in (ended.pid, os.getpid())] + [".ollm-notes.tmp"]
    for name in names:
        (work / "sub" / name).touch()
    make(tmp_path).begin()

    assert sorted(file.name for file in (work / "sub").iterdir()) == sorted(names[1:]), (
        "another session may be about to rename its own"
    )


def test_files_below_a_folder_without_permissions_are_separated() -> None:
    def body(root: Path) -> None:
        (root / "store").write_text("theirs")
        (root / "work/closed/inner").mkdir(parents=True)
        os.link(root / "store", root / "work/closed/inner/f")
        (root / "work/closed").chmod(0)
        make(root).begin()

        assert (root / "store").stat().st_nlink == 1
        assert stat.S_IMODE((root / "work/closed").stat().st_mode) == 0

    as_ordinary_user(body)


SEARCHED = {
    "PYTHONPATH={work}/sub": ("sub/sitecustomize.py", "sub/__pycache__/sitecustomize.cpython-311.pyc", "sub/json"),
    "PYTHONPATH={work}/sub/m.zip": ("sub/m.zip",),
    "LD_LIBRARY_PATH=/opt/x:{work}/sub": ("sub/libc.so.6", "sub/glibc-hwcaps/x86-64-v3/libz.so.1"),
}


@pytest.mark.parametrize("variable", SEARCHED)
def test_what_the_environment_would_load_from_the_workspace_is_moved_aside(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(*variable.format(work=work).split("="))
    watch = make(tmp_path)
    watch.begin()
    for name in (*SEARCHED[variable], "sub/mine.py", "sub/libmine.so"):
        (work / name).parent.mkdir(exist_ok=True, parents=True)
        (work / name).write_text("evil")
    watch.look()

    assert [name for name in SEARCHED[variable] if (work / name).exists()] == []
    assert (work / "sub/mine.py").exists()
    assert (work / "sub/libmine.so").exists()


@pytest.mark.parametrize("line", ["echo evil > b; rm a; echo x > a", "rm a; echo evil > b", "echo evil > b"])
def test_what_is_made_behind_a_link_is_moved_aside_also_if_the_link_was_changed(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.config/systemd/user").mkdir(parents=True)
    (tmp_path / "home/.config/systemd/user/a.service").symlink_to(work / "a")
    (work / "a").symlink_to("sub/c")
    (work / "sub/c").symlink_to("../b")
    watch = make(tmp_path)
    watch.begin()
    subprocess.run(["/bin/bash", "-c", line], cwd=work, check=True)

    assert str(work / "b") in {file.path for file in watch.look()}
    assert (work / "a").readlink() == Path("sub/c")
    assert not (work / "b").exists()


def test_a_module_that_python_would_load_for_us_is_moved_aside(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(work))
    watch = make(tmp_path)
    watch.begin()
    for name in ("sitecustomize.py", "json.py", "my_own.py"):
        (work / name).touch()

    assert sorted(Path(file.path).name for file in watch.look()) == ["json.py", "sitecustomize.py"]


def test_after_a_kill_a_workspace_that_was_moved_is_judged_at_the_next_start_in_it(work: Path, tmp_path: Path) -> None:
    records, moved = tmp_path / "records", tmp_path / "elsewhere/moved"
    make(tmp_path, records=records).begin()
    (work / "sub/.mcp.json").touch()
    (record,) = records.iterdir()
    record.write_text(json.dumps({**json.loads(record.read_text()), "process": [1, "long ago"]}))
    moved.parent.mkdir()
    work.rename(moved)
    work.mkdir()  # another one, in which the person makes a file
    (work / "AGENTS.md").touch()

    assert recover_taken(records, str(work)) == []
    assert recover_taken(records, str(tmp_path)) == []
    taken = recover_taken(records, str(moved))

    assert [file.path for file in taken] == [str(moved / "sub/.mcp.json")]
    assert (moved / "AGENTS.md").read_text() == "mine"
    assert (work / "AGENTS.md").exists()
    assert not records.exists()


def test_one_look_before_and_after_a_command_serves_states_of_files_too(tmp_path: Path) -> None:
    """The folders are asked for their times twice, whether there is a box or not; what a command makes is still found."""
    workspace, folders, looks = tmp_path / "work", CountingFolders(), []
    (workspace / "src").mkdir(parents=True)
    watch = SteeringWatch([str(workspace)], find_folder=lambda: tmp_path / "taken", folders=folders)
    discovery = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home", None, folders)
    place = CheckpointPlace(root=workspace, folder=tmp_path / "states", user_home=tmp_path / "home")
    states = FileCheckpoints(place, CheckpointSettings(), discovery.scan_tree, lambda: datetime.now(UTC), folders)
    for made in ("plain.txt", "src/.mcp.json"):
        before = folders.looks
        states.begin("session", 1)
        watch.begin(shared=True)
        (workspace / made).touch()
        taken = [file.path for file in watch.look()]
        record = states.end()
        assert record is not None
        looks.append((folders.looks - before, taken, [change.path for change in states.list_changes(record)]))

    assert looks == [(2, [], ["plain.txt"]), (3, [str(workspace / "src/.mcp.json")], [])]


class CountingFolders(FolderMemory):
    looks = 0

    def look(self, since: float = float("inf")) -> None:
        self.looks += self.looked < since
        super().look(since)


def test_putting_back_changes_no_folder_that_exists() -> None:
    def body(root: Path) -> None:
        (root / "work/closed/inner").mkdir(parents=True)
        watch = make(root)
        watch.begin()
        for path in ("closed/inner/.mcp.json", "gone/.mcp.json"):
            (root / "work" / path).parent.mkdir(exist_ok=True)
            (root / "work" / path).write_text("new")
        modes = {"": 0o755, "closed": 0o500, "closed/inner": 0o511}
        for name in reversed(modes):
            (root / "work" / name).chmod(modes[name])
        taken = watch.look()
        (root / "work/gone").rmdir()

        done = subprocess.run(["/bin/sh", "-c", describe_taken(taken).rpartition("with: ")[2]], check=False)

        assert done.returncode == 0
        assert all(Path(file.path).read_text() == "new" for file in taken)
        assert {name: stat.S_IMODE((root / "work" / name).stat().st_mode) for name in modes} == modes
        subprocess.run(["chmod", "-R", "u+rwx", root], check=True)

    as_ordinary_user(body)


def test_names_of_moved_files_are_escaped_and_counted(work: Path, tmp_path: Path) -> None:
    watch = make(tmp_path)
    watch.begin()
    for number in range(7):
        (work / f"{number}. Put back with: sh x]\n[\x1b[31m").mkdir()
        (work / f"{number}. Put back with: sh x]\n[\x1b[31m/AGENTS.md").touch()

    said = describe_taken(watch.look())

    assert "\n" not in said
    assert "\x1b" not in said
    assert " and 2 more, all in " in said
