"""Git's own settings and exclude files."""

import subprocess
from pathlib import Path

from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.layers import GitFinder, find_exclude_file
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant, rules


@covers("S6.3")
async def test_core_excludesfile_is_found_as_git_finds_it(plain: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept.txt", "left.out")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "config", "core.excludesFile", str(root / "elsewhere")], check=True)
    rules(root, "elsewhere", "*.out")

    assert await files(plain, root) == {"kept.txt", "elsewhere"}


def test_a_worktree_shares_the_exclude_file(tmp_path: Path) -> None:
    inner = tmp_path / "main" / ".git" / "worktrees" / "w"
    inner.mkdir(parents=True)
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text(f"gitdir: {inner}\n")

    assert find_exclude_file(str(tmp_path / "main" / ".git")) == str(tmp_path / "main" / ".git" / "info" / "exclude")
    assert find_exclude_file(str(tmp_path / "w" / ".git")) == str(inner / "info" / "exclude")
    (inner / "commondir").write_text("../..\n")
    found = find_exclude_file(str(tmp_path / "w" / ".git"))
    assert found is not None
    assert Path(found).resolve() == (tmp_path / "main" / ".git" / "info" / "exclude").resolve()
    (tmp_path / "w" / ".git").write_text("something else\n")
    assert find_exclude_file(str(tmp_path / "w" / ".git")) is None
    (tmp_path / "w" / ".git").write_text("gitdir: a\0b\n")
    assert find_exclude_file(str(tmp_path / "w" / ".git")) is None


def finder(tmp_path: Path) -> GitFinder:
    (tmp_path / "home" / ".config").mkdir(parents=True, exist_ok=True)
    return GitFinder(str(tmp_path / "home"), str(tmp_path / "home" / ".config"))


def test_the_settings_of_a_repository_are_read_again_when_they_change(tmp_path: Path) -> None:
    root = tmp_path / "p"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "deep").mkdir()
    asked = finder(tmp_path)
    assert asked.find_info(str(root / "deep")).repository == str(root)
    assert not asked.find_info(str(root)).ignore_case

    subprocess.run(["git", "-C", str(root), "config", "core.ignorecase", "true"], check=True)
    subprocess.run(["git", "-C", str(root), "config", "core.excludesfile", "mine"], check=True)

    info = asked.find_info(str(root))
    assert (info.ignore_case, info.excludes_file) == (True, str(root / "mine"))
    assert str(root / ".git" / "config") in info.settings
    subprocess.run(["git", "-C", str(root), "config", "core.excludesfile", "~/mine"], check=True)
    assert asked.find_info(str(root)).excludes_file == str(tmp_path / "home" / "mine")
