"""What git says about a directory."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.file_discovery import FileDiscoveryService, git
from ollm.services.file_discovery.git import GitFinder, GitInfo, find_exclude_file, is_repository
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant, rules


@covers("S6.3")
async def test_core_excludesfile_is_found_as_git_finds_it(plain: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept.txt", "left.out")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "config", "core.excludesFile", str(root / "elsewhere")], check=True)
    rules(root, "elsewhere", "*.out")

    assert await files(plain, root) == {"kept.txt", "elsewhere"}


def test_a_repository_is_known_by_its_head_or_its_file(tmp_path: Path) -> None:
    assert not is_repository(str(tmp_path))
    (tmp_path / ".git").mkdir()
    assert not is_repository(str(tmp_path))
    (tmp_path / ".git" / "HEAD").write_text("ref: x\n")
    assert is_repository(str(tmp_path))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: ../.git\n")
    assert is_repository(str(tmp_path / "tree"))


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


def test_outside_a_repository_only_the_usual_excludes_file_is_known(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()

    info = finder(tmp_path).find_info(str(tmp_path / "p"))

    assert isinstance(info, GitInfo)
    assert (info.repository, info.ignore_case) == (None, False)
    assert info.excludes_file == str(tmp_path / "home" / ".config" / "git" / "ignore")
    assert str(tmp_path / "home" / ".gitconfig") in info.settings


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


@pytest.mark.parametrize(
    ("platform", "variable", "asks"),
    [
        ("linux", "", 0),
        ("darwin", "", 1),
        ("linux", "GIT_CONFIG_GLOBAL", 1),
        ("linux", "GIT_CONFIG_SYSTEM", 1),
        ("linux", "GIT_CONFIG_NOSYSTEM", 1),
    ],
)
def test_git_is_started_only_where_its_settings_may_be_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, asks: int
) -> None:
    asked: list[str] = []

    def read_config(root: str, home: str, config_home: str) -> tuple[str, bool]:
        asked.append(root)
        return "said", True

    for name in git._CONFIG_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(git.sys, "platform", platform)
    monkeypatch.setattr(git, "_read_config", read_config)
    monkeypatch.setattr(git, "_may_say", lambda file: False)
    (tmp_path / "p").mkdir()

    info = finder(tmp_path).find_info(str(tmp_path / "p"))

    assert len(asked) == asks
    assert info.ignore_case is bool(asks)


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("[user]\nname = x\n", False),
        ("[core]\nexcludesFile = x\n", True),
        ("[core]\nignoreCase = true\n", True),
        ("[include]\npath = x\n", True),
        ("[extensions]\nworktreeConfig = true\n", True),
        ("[core]\nexcludes\\\nfile = x\n", True),
    ],
)
def test_which_settings_only_git_can_read(tmp_path: Path, said: str, asks: bool) -> None:
    (tmp_path / "config").write_text(said)

    assert git._may_say(str(tmp_path / "config")) is asks
    assert git._may_say(str(tmp_path / "missing")) is True
