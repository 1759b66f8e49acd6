"""What git's settings name, and repositories under other names, in the sandbox: through the command."""

import subprocess
from pathlib import Path

from tests.cli.test_sandbox import place, shell

__all__ = ["place"]  # a fixture


def test_no_command_changes_what_the_users_own_git_settings_name(place: Path) -> None:
    work, home = place / "user/work", place / "user"
    (home / ".gitconfig").write_text(
        "[core]\n\thooksPath = hk\n\tfsmonitor = ./monitor\n\tpager = cd tools && ./shown\n[include]\n\tpath = .linked\n"
        '[includeIf "onbranch:later"]\n\tpath = work/later\n[alias]\n\tx = "!sh tools/run # now"\n\tst = status log\n'
    )
    (home / ".linked").symlink_to("work/included")
    there = ("hk/pre-commit", "tools/run", "included", "log")
    for name in there:
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("")
    missing = ("monitor", "tools/shown", "later", "new/hk/post-commit")
    names = " ".join((*there, *missing, "status"))
    (work / "s.sh").write_text(f"mkdir -p new/hk; git init -q new; for f in {names}; do echo x > $f; done")
    done = shell(place, "sh s.sh", "--yes")

    assert [name for name in (*there, *missing, "status") if (work / name).exists() and (work / name).read_text()] == [
        "log",
        "status",
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
