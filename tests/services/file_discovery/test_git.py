"""Git's own settings and exclude files."""

import subprocess
from pathlib import Path

from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant, rules


@covers("S6.3")
async def test_core_excludesfile_is_found_as_git_finds_it(plain: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept.txt", "left.out")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "config", "core.excludesFile", str(root / "elsewhere")], check=True)
    rules(root, "elsewhere", "*.out")

    assert await files(plain, root) == {"kept.txt", "elsewhere"}


async def test_the_settings_of_a_repository_are_read_again_when_they_change(
    plain: FileDiscoveryService, root: Path
) -> None:
    plant(root, "deep/kept.LOG", "deep/left.log")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    rules(root, ".gitignore", "*.log")
    assert await files(plain, root / "deep") == {"kept.LOG"}

    subprocess.run(["git", "-C", str(root), "config", "core.ignorecase", "true"], check=True)

    assert await files(plain, root / "deep") == set()
