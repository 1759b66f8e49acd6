"""Why a file is or is not there."""

import os
from pathlib import Path

from ollm.services.file_discovery import FileDiscoveryService
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

    assert await reason("link") == (False, "it is a symbolic link, and those are not followed", "link")

    assert await reason("pipe") == (False, "it is not a regular file", "pipe")
    assert await reason("a/b") == (False, "part of the path is a file", "a")
    assert await reason("src") == (True, "no rule hides it", "")
    assert await reason(".hidden") == (True, "no rule hides it", "")
    assert await reason(".") == (False, f"it is outside {root}", "")
    assert await reason("x" * 300) == (False, "it cannot be read: File name too long", "x" * 300)
    (tmp_path / "way").symlink_to(root / "src")
    assert await reason(str(tmp_path / "way" / "b")) == (True, "no rule hides it", "")


async def test_the_rule_is_given_with_its_file_and_line(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/x.log", "src/y.log")
    rules(root, ".gitignore", "", "*.log", "!y.log")

    hidden = await service.explain(str(root), "src/x.log")
    shown = await service.explain(str(root), "src/y.log")

    assert (hidden.shown, hidden.rule, hidden.source, hidden.line) == (False, "*.log", ".gitignore", 2)
    assert (hidden.decided_at, hidden.path) == ("src/x.log", "src/x.log")
    assert (shown.shown, shown.rule, shown.line) == (True, "!y.log", 3)
    assert hidden.reason == ".gitignore:2 hides it: *.log"


async def test_a_rule_that_includes_says_of_which_part_it_is(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/c.log", "src/d.log")
    rules(root, ".gitignore", "*.log", "!c.log")

    kept = await service.explain(str(root), "src/c.log")
    hidden = await service.explain(str(root), "src/d.log")

    assert (kept.shown, kept.decided_at, kept.rule, kept.line) == (True, "src/c.log", "!c.log", 2)
    assert (hidden.shown, hidden.decided_at, hidden.rule, hidden.line) == (False, "src/d.log", "*.log", 1)
