"""Short words for what tests of discovery do over and over."""

from pathlib import Path

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery.service import FileDiscoveryService


async def files(service: FileDiscoveryService, root: Path, **options: object) -> set[str]:
    """The paths that are discovered."""
    found = await service.discover_all(DiscoveryOptions(root=str(root), **options))  # type: ignore[arg-type]
    return {entry.relative_path for entry in found}


def plant(root: Path, *paths: str, **contents: str) -> None:
    """Make files below the root, and the directories they need."""
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("text\n", encoding="utf-8")


def rules(root: Path, path: str, *lines: str) -> None:
    """Write an ignore file."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
