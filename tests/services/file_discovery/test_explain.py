"""Why a path is shown or hidden, and all rules as one list of patterns."""

import os
from pathlib import Path

import pytest

from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import plant, rules


async def test_an_explanation_names_the_rule_its_file_and_line(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/gen/a.py", "src/b.py", "node_modules/x/y.js", "src/c.log")
    rules(root, ".gitignore", "# comment", "gen/")
    rules(root, "src/.ollmignore", "!c.log")
    rules(root, "src/.gitignore", "*.log")

    async def reason(path: str) -> tuple[bool, str]:
        said = await service.explain(str(root), path)
        return said.shown, said.reason

    assert await reason("src/gen/a.py") == (False, ".gitignore:2 hides src/gen: gen/")
    assert await reason("src/b.py") == (True, "no rule hides it")
    assert await reason("src/c.log") == (True, "src/.ollmignore:1 includes it: !c.log")
    assert await reason("node_modules/x/y.js") == (False, "built-in rules:1 hides node_modules: node_modules")
    assert await reason("nowhere.py") == (False, "it does not exist")
    assert await reason("../elsewhere") == (False, f"it is outside {root}")
    assert await reason(".git/config") == (False, ".git is never shown")


async def test_what_needs_no_rule_is_said_in_words(service: FileDiscoveryService, root: Path, tmp_path: Path) -> None:
    plant(root, "a", "src/b", ".hidden")
    (root / "link").symlink_to("a")
    os.mkfifo(root / "pipe")

    async def reason(path: str) -> tuple[bool, str, str]:
        said = await service.explain(str(root), path)
        return said.shown, said.reason, said.decided_at

    assert await reason("link") == (True, "no rule hides it", "")
    (root / "inner").symlink_to("src")
    assert await reason(str(root / "inner")) == (True, "no rule hides it", "")
    assert await reason("pipe") == (False, "it is not a regular file", "pipe")
    assert await reason("a/b") == (False, "part of the path is a file", "a")
    assert await reason("src") == (True, "no rule hides it", "")
    assert await reason(".hidden") == (True, "no rule hides it", "")
    assert await reason(".") == (False, f"it is outside {root}", "")
    assert await reason("x" * 300) == (False, "it cannot be read: File name too long", "x" * 300)
    (tmp_path / "way").symlink_to(root / "src")
    assert await reason(str(tmp_path / "way" / "b")) == (True, "no rule hides it", "")


async def test_a_rule_that_includes_says_of_which_part_it_is(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/c.log", "src/d.log")
    rules(root, ".gitignore", "*.log", "!c.log")

    kept = await service.explain(str(root), "src/c.log")
    hidden = await service.explain(str(root), "src/d.log")

    assert (kept.shown, kept.decided_at, kept.rule, kept.line) == (True, "src/c.log", "!c.log", 2)
    assert (hidden.shown, hidden.decided_at, hidden.rule, hidden.line) == (False, "src/d.log", "*.log", 1)


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


async def test_an_absolute_path_below_the_root_may_be_a_directory(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "out/a", "file")
    rules(root, ".gitignore", "out/", "file/")

    patterns = await service.load_ignore_patterns(str(root))

    assert service.should_ignore(str(root / "out"), patterns)
    assert not service.should_ignore(str(root / "file"), patterns)
    assert service.should_ignore(str(root / "out" / "deep" / "x"), patterns)
