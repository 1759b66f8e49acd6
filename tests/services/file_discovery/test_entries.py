"""What a caller gets of a listing."""

import os
from pathlib import Path

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant


@covers("D293", "D294", "D295", "D296", "D297", "D311", "D293", "D294", "D295", "D296", "D297", "D311")
async def test_directories_sizes_and_times_come_when_asked_for(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/a.py")
    os.utime(root / "src" / "a.py", (1_700_000_000, 1_700_000_000))

    entries = await service.discover_all(DiscoveryOptions(root=str(root), directories=True, stat=True))

    folder, file = entries
    assert (folder.relative_path, folder.type) == ("src", "directory")
    assert (file.path, file.type, file.size) == (str(root / "src/a.py"), "file", 5)
    assert file.modified is not None
    assert file.modified.isoformat() == "2023-11-14T22:13:20+00:00"


@covers("D303", "D304", "D303", "D304")
async def test_include_and_exclude_globs(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a.ts", "src/b.ts", "src/c.tsx", "src/gen/d.ts", "e.py")

    assert await files(service, root, include_patterns=("*.ts",)) == {"a.ts", "src/b.ts", "src/gen/d.ts"}
    assert await files(service, root, include_patterns=("src/**/*.{ts,tsx}",)) == {
        "src/b.ts",
        "src/c.tsx",
        "src/gen/d.ts",
    }
    assert await files(service, root, include_patterns=("/*.ts", "*.py")) == {"a.ts", "e.py"}
    assert await files(service, root, exclude_patterns=("gen", "*.py")) == {"a.ts", "src/b.ts", "src/c.tsx"}


async def test_include_globs_choose_directories_too_and_a_vanished_file_has_no_size(
    service: FileDiscoveryService, root: Path
) -> None:
    plant(root, "src/a.py", "src/b.txt", "docs/c.py")

    found = await service.discover_all(
        DiscoveryOptions(root=str(root), directories=True, include_patterns=("src", "*.txt"))
    )

    assert [(entry.relative_path, entry.type, entry.size) for entry in found] == [
        ("src", "directory", None),
        ("src/b.txt", "file", None),
    ]
    assert all(entry.modified is None for entry in found)
