"""What git's settings name, and repositories under other names, in the sandbox: through the command."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.command import ollm
from tests.cli.test_sandbox import place, shell

__all__ = ["place"]  # a fixture


def test_no_command_changes_what_the_users_own_git_settings_name(place: Path) -> None:
    work, home = place / "user/work", place / "user"
    (home / ".gitconfig").write_text(
        "[core]\n\thooksPath = hk\n\tfsmonitor = ./monitor\n\tpager = cd tools && ./shown\n[include]\n\tpath = .linked\n"
        '[includeIf "onbranch:later"]\n\tpath = work/later\n[alias]\n\tx = "!sh tools/run # now"\n\tst = status log\n'
        '\ty = "!cd \\"t x\\" && sh ./run"\n\tz = "!sh \\"$HOME/work/u v/run\\""\n\tw = !sh ~/work/v\\\\ w/run\n'
        '\tv = "!sh \\"$(git rev-parse --show-toplevel)/w x/run\\""\n[commit]\n\ttemplate = ~/work/x y/t\n'
    )
    (home / ".linked").symlink_to("work/included")
    there = ("hk/pre-commit", "tools/run", "included", "t x/run", "u v/run", "v w/run", "w x/run", "x y/t")
    for name in there:
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("")
    missing = ("monitor", "tools/shown", "later", "new/hk/post-commit")
    names = shlex.join((*there, *missing, "status"))
    (work / "s.sh").write_text(f'mkdir -p new/hk; git init -q new; for f in {names}; do echo x > "$f"; done')
    done = shell(place, "sh s.sh", "--yes")

    assert [name for name in (*there, *missing, "status") if (work / name).exists() and (work / name).read_text()] == [
        "status"
    ]
    assert "hk" in done["llmContent"]
    assert "monitor" in done["llmContent"].partition("Moved aside")[2]


def test_a_repository_stays_known_when_a_command_takes_it_apart(place: Path) -> None:
    work = place / "user/work"
    subprocess.run(["git", "init", "-q", "--separate-git-dir", work / "gd", work / "sub"], check=True)
    before = (work / "gd/config").read_text()
    for line in (
        "mv gd/HEAD H; mv gd/objects o; mv gd/refs r; rm -rf gd/refs gd/objects",
        "echo x >> gd/config; echo x > gd/hooks/pre-commit; touch gd/commondir",
        "echo x >> gd/config; mv H gd/HEAD",
    ):
        (work / "s.sh").write_text(line)
        done = shell(place, "sh s.sh", "--yes")

    assert (work / "gd/config").read_text() == before
    assert not (work / "gd/hooks/pre-commit").exists()
    assert (work / "gd/HEAD").exists()
    assert "Moved aside" not in done["llmContent"]
    assert "gd steers git" in str(shell(place, "mv gd elsewhere", "--yes"))


# a path that programs outside read, by the kind of the link that leads from it into the workspace
ANCHORS = (".rc-{}", ".ssh/rc-{}", ".config/tool/rc-{}", ".ollm/rc-{}", "work/.git/hooks/{}", "work/.vscode/{}")
LINKS = {  # target of the link, what exists in the workspace, what a command tries
    "direct": ("t{0}", "echo good > t{0}", "echo evil > t{0}; rm -f t{0}; cp evil t{0}"),
    "missing": ("m{0}/f", "", "mkdir -p m{0}; cp evil m{0}/f"),
    "chain": ("c{0}/f", "mkdir a{0} b{0}; echo good > a{0}/f; cp evil b{0}/f; ln -s a{0} c{0}", "ln -sfn b{0} c{0}"),
    "detour": ("q{0}/../f{0}", "mkdir -p z{0}/q; cp evil z{0}/f{0}", "ln -s z{0}/q q{0}"),
}


def test_no_command_changes_what_a_path_outside_leads_to(place: Path) -> None:
    home, work = place / "user", place / "user/work"
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / "evil").write_text("evil\n")
    made, tried, read = [], [], []
    for number, (anchor, link) in enumerate((anchor, link) for anchor in ANCHORS for link in LINKS):
        target, before, attempt = (text.format(number) for text in LINKS[link])
        read.append(path := home / anchor.format(link))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(work / target)
        made.append(before or "true")
        tried.append(attempt)
    subprocess.run("\n".join(made), shell=True, check=True, cwd=work)
    (work / "s.sh").write_text("\n".join(tried))
    shell(place, "sh s.sh", "--yes")

    assert [str(path) for path in read if path.exists() and "good" not in path.read_text()] == []
    assert "t0 is used through .rc-direct" in str(shell(place, "echo x > t0", "--yes"))
    assert (work / "z3/f3").read_text() == "evil\n"  # was there before: only the link to it is taken


def test_git_reads_no_setting_that_a_command_brings_in_by_a_pointer_or_another_name(place: Path) -> None:
    work = place / "user/work"
    subprocess.run(["git", "init", "-q", work / "old"], check=True)
    (work / "old-name").hardlink_to(work / "old/.git/config")
    (work / "evil").write_text("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = evil\n")
    for line in (
        "git init -q new; mkdir -p common/objects common/refs; cp evil common/config; echo ../../common > new/.git/commondir",
        "git init -q other; ln other/.git/config name; git init -q kept",
        "cat evil > old-name; cat evil > name",
    ):
        (work / "s.sh").write_text(line)
        shell(place, "sh s.sh", "--yes")

    for name in ("new", "other", "old"):
        told = subprocess.run(["git", "-C", work / name, "config", "core.fsmonitor"], capture_output=True, check=False)
        assert told.stdout == b"", name
    assert (work / "kept/.git/config").exists()
    assert (work / "old-name").read_text() == (work / "evil").read_text()


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


def test_a_folder_with_a_repository_in_it_is_removed_whole_or_not_at_all(place: Path) -> None:
    work = place / "user/work"
    subprocess.run(["git", "init", "-q", work / "v/r"], check=True)
    (work / "v/file").write_text("")
    refused = str(shell(place, "rm -rf v", "--yes"))

    assert "v contains the repository v/r/.git" in refused
    assert (work / "v/file").exists()


def test_file_tools_and_commands_ask_alike_about_what_a_steering_link_leads_to(place: Path) -> None:
    work, home = place / "user/work", place / "user/.ollm"
    for name in ("docs/agents.txt", "commands/one.txt", "docs/other.txt"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("good")
    (work / "lib/.claude").mkdir(parents=True)
    (work / "lib/AGENTS.md").symlink_to("../docs/agents.txt")
    (work / "lib/.claude/commands").symlink_to("../../commands")
    (work / "s.sh").write_text("echo evil > docs/agents.txt; echo evil > commands/one.txt")
    shell(place, "sh s.sh", "--yes")
    said = {}
    for name in ("docs/agents.txt", "commands/one.txt", "commands/new.txt", "docs/other.txt"):
        given = json.dumps({"path": name, "content": "evil", "overwrite": True})
        done = ollm("tools", "run", "write_file", "--args", given, "--yes", home=home, cwd=work, HOME=str(home.parent))
        said[name] = (work / name).exists() and (work / name).read_text(), done.stderr

    assert {name: text for name, (text, _) in said.items()} == {
        "docs/agents.txt": "good",
        "commands/one.txt": "good",
        "commands/new.txt": False,
        "docs/other.txt": "evil",
    }
    assert "AGENTS.md, which steers tools or agents, leads to it" in said["docs/agents.txt"][1]


def test_a_command_that_goes_on_without_a_protected_file_is_explained(place: Path) -> None:
    work = place / "user/work"
    (work / "AGENTS.md").write_text("main\n")
    (work / "nested/.vscode").mkdir(parents=True)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-C", str(work)]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "1"], ["switch", "-qc", "other"]):
        subprocess.run([*git, *words], check=True)
    (work / "AGENTS.md").write_text("other\n")
    for words in (["commit", "-qam", "2"], ["switch", "-q", "main"]):
        subprocess.run([*git, *words], check=True)

    switched = shell(place, "git switch other", "--yes")["llmContent"]
    assert "AGENTS.md steers tools" in switched, switched
    removed = shell(place, "rm -rf nested; echo done", "--yes")["llmContent"]
    assert "nested/.vscode steers tools" in removed, removed


def test_git_says_why_it_cannot_clean_up_beside_a_worktree_elsewhere(place: Path) -> None:
    work = place / "user/work"
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    for words in (
        ["init", "-q"],
        [*who, "commit", "-q", "--allow-empty", "-m", "1"],
        ["worktree", "add", "-q", "../o"],
    ):
        subprocess.run(["git", "-C", work, *words], check=True)

    assert ".git/worktrees/o belongs to a worktree outside" in str(shell(place, "git gc", "--yes"))


def test_an_address_in_a_setting_names_no_file_and_its_login_is_not_shown(place: Path) -> None:
    settings = '[url "https://x:ghp_1@example.org/"]\n\tinsteadOf = https://example.org/\n\tinsteadOf = tools/x.sh\n'
    (place / "user/.gitconfig").write_text(settings)
    clone, write = ({"command": line} for line in ("git clone https://example.org/a/b", "echo x > tools/x.sh"))
    said = [
        ollm("policy", "check", "shell", "--args", json.dumps(one), home=place / "user/.ollm", cwd=place / "user/work", HOME=str(place / "user")).stdout
        for one in (clone, write)
    ]  # fmt: skip

    assert "named by git" not in said[0]
    assert "named by git's settings (url.….insteadof)" in said[1]
