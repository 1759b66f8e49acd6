"""Discovery shows what git shows, on trees made to find the corners."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ollm.services.file_discovery.service import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant, rules
from tests.services.file_discovery.trees import RandomTree, git_says
from tests.sizes import size

BATCHES = 10


@covers("S6.3", "P22", "T4.12")
@pytest.mark.parametrize("batch", range(BATCHES))
async def test_random_trees_show_what_git_shows(plain: FileDiscoveryService, tmp_path: Path, batch: int) -> None:
    """Feature: services-sessions, Property 22: ignored files are not discovered, and nothing else is left out."""
    for seed in range(batch, size(100, 20_000), BATCHES):
        root = tmp_path / str(seed)
        RandomTree(seed, root).make()

        assert await files(plain, root) == git_says(root), f"seed {seed}"

        shutil.rmtree(root)


@covers("S6.3")
async def test_the_answer_is_the_same_without_a_repository(plain: FileDiscoveryService, tmp_path: Path) -> None:
    for seed in range(20):
        root = tmp_path / str(seed)
        RandomTree(seed, root).make()
        (root / ".git" / "info" / "exclude").unlink(missing_ok=True)
        inside = await files(plain, root)
        shutil.rmtree(root / ".git")

        assert await files(plain, root) == inside


@covers("S6.3")
async def test_a_folder_of_a_repository_hears_the_rules_above_it(plain: FileDiscoveryService, tmp_path: Path) -> None:
    for seed in range(size(8, 20)):
        root = tmp_path / str(seed)
        tree = RandomTree(seed, root)
        tree.make()
        shown = git_says(root)
        for folder in tree.folders[1:4]:
            prefix = f"{folder.relative_to(root)}/"
            expected = {path.removeprefix(prefix) for path in shown if path.startswith(prefix)}
            if expected:
                assert await files(plain, folder) == expected


@covers("S6.2", "P22", "D320")
async def test_the_flat_list_of_patterns_says_the_same_to_git(plain: FileDiscoveryService, tmp_path: Path) -> None:
    for seed in range(size(25, 60)):
        root = tmp_path / str(seed)
        tree = RandomTree(seed, root)
        tree.make(second=".ollmignore")
        everything = {
            str(path.relative_to(root)) for folder in tree.folders for path in folder.iterdir() if path.is_file()
        }
        patterns = await plain.load_ignore_patterns(str(root))
        shown = await files(plain, root)
        listed = tmp_path / "patterns"
        listed.write_bytes("\n".join(patterns).encode())
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-o", "-X", str(listed)]
        said = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")

        assert shown == {path for path in said if path}, f"seed {seed}"
        assert {path for path in everything if not plain.should_ignore(path, patterns)} == shown, f"seed {seed}"


@covers("S6.3")
async def test_a_persons_own_excludes_file_counts(tmp_path: Path) -> None:
    from ollm.config.settings import FileDiscoverySettings

    home, root = tmp_path / "home", tmp_path / "project"
    plant(root, "kept.txt", "mine.swp", "exception.swp")
    rules(root, ".gitignore", "!exception.swp")
    rules(home, ".config/git/ignore", "*.swp")
    service = FileDiscoveryService(FileDiscoverySettings(), home)

    assert await files(service, root) == {".gitignore", "kept.txt", "exception.swp"}


async def test_a_repository_inside_keeps_its_own_rules(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a.log", "inner/a.log", "inner/b.tmp", "inner/c.txt")
    rules(root, ".gitignore", "*.log")
    rules(root, "inner/.gitignore", "*.tmp")
    subprocess.run(["git", "init", "-q", str(root / "inner")], check=True)
    rules(root, "inner/.git/info/exclude", "c.txt")

    assert await files(service, root) == {".gitignore", "inner/.gitignore", "inner/a.log"}


async def test_a_worktree_hears_the_exclude_file_of_its_repository(
    service: FileDiscoveryService, tmp_path: Path
) -> None:
    main, worktree = tmp_path / "main", tmp_path / "worktree"
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True, capture_output=True)
    rules(main, ".git/info/exclude", "*.secret")
    plant(worktree, "a.secret", "b.txt")

    assert await files(service, worktree) == {"b.txt"}


@covers("S6.3")
async def test_a_rule_file_that_is_a_link_says_nothing(plain: FileDiscoveryService, tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    plant(root, "a.log", "b.txt", "inner/a.log")
    elsewhere.write_text("*.log\n[unfinished\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for link in (root / ".gitignore", root / ".ollmignore", root / "inner" / ".gitignore"):
        link.symlink_to(elsewhere)

    assert await files(plain, root) == {"a.log", "b.txt", "inner/a.log"}
    assert plain.list_bad_rules() == []
    assert await files(plain, root, follow_symlinks=True) == {"a.log", "b.txt", "inner/a.log"}


async def test_a_repository_whose_git_directory_is_a_link_keeps_its_rules(
    plain: FileDiscoveryService, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    plant(root, "a.log", "b.txt")
    subprocess.run(["git", "init", "-q", "--separate-git-dir", str(tmp_path / "kept"), str(root)], check=True)
    (root / ".git").unlink()
    (root / ".git").symlink_to(tmp_path / "kept")
    rules(tmp_path, "kept/info/exclude", "*.log")

    assert await files(plain, root) == {"b.txt"} == git_says(root)
