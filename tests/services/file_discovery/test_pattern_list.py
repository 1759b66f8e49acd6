"""All rules of a tree as one list of patterns."""

from pathlib import Path

import pytest

from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import plant, rules


@covers("P22", "D321", "D321")
@pytest.mark.parametrize(
    ("path", "patterns", "expected"),
    [
        ("node_modules/x/y.js", ["node_modules"], True),
        ("a.log", ["*.log", "!a.log"], False),
        ("deep/a.log", ["/a.log"], False),
        ("out/a.txt", ["out/", "!out/a.txt"], True),
        ("out", ["out/"], False),
        ("out/", ["out/"], True),
        ("a/b/c", ["a/**/c"], True),
        ("", ["*"], False),
    ],
)
def test_should_ignore_reads_patterns_as_git_does(service: FileDiscoveryService, path, patterns, expected) -> None:
    assert service.should_ignore(path, patterns) is expected


@covers("D320")
async def test_patterns_know_their_root(service: FileDiscoveryService, root) -> None:
    (root / "sub").mkdir()
    (root / ".gitignore").write_text("/top.txt\n")
    patterns = await service.load_ignore_patterns(str(root))

    assert service.should_ignore(str(root / "top.txt"), patterns)
    assert not service.should_ignore(str(root / "sub" / "top.txt"), patterns)
    assert "node_modules" in patterns


async def test_rules_from_above_and_below_become_patterns_from_the_root(
    service: FileDiscoveryService, root: Path
) -> None:
    plant(root, "src/lib/a", "src/x[1]/b")
    rules(root, ".gitignore", "*.log", "/src/lib/out", "docs/y", "!src/**/keep.log", "/src/*/gen")
    rules(root, "src/.gitignore", "tmp", "/top", "!a/b")
    rules(root, "src/x[1]/.gitignore", "deep")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    patterns = await service.load_ignore_patterns(str(root / "src"))

    mine = [pattern for pattern in patterns if pattern not in service._settings.builtin_ignores]
    assert mine == ["*.log", "/lib/out", "!/**/keep.log", "/*/gen", "tmp", "/top", "!/a/b", "/x\\[1]/**/deep"]


@pytest.mark.parametrize(
    ("path", "ignored"),
    [("a.log", True), ("d/a.log", True), ("./a.log", True), ("a.txt", False), ("/elsewhere/a.log", True), ("", False)],
)
def test_paths_are_read_from_the_root_of_the_patterns(service: FileDiscoveryService, path: str, ignored: bool) -> None:
    assert service.should_ignore(path, ["*.log"]) is ignored


async def test_an_absolute_path_below_the_root_may_be_a_directory(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "out/a", "file")
    rules(root, ".gitignore", "out/", "file/")

    patterns = await service.load_ignore_patterns(str(root))

    assert service.should_ignore(str(root / "out"), patterns)
    assert not service.should_ignore(str(root / "file"), patterns)
    assert service.should_ignore(str(root / "out" / "deep" / "x"), patterns)
