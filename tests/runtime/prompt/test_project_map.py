"""A map of the project as a context entry."""

from pathlib import Path

from ollm.config.settings import FileDiscoverySettings
from ollm.runtime.prompt.breakdown import PROJECT_MAP_KEY
from ollm.runtime.prompt.project_context import INTRODUCTION, build_project_map_entry
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.services.token_counting import estimate_units
from tests.services.file_discovery.looking import plant


async def build(root: Path, tokens: int) -> str | None:
    service = FileDiscoveryService(FileDiscoverySettings(), root.parent / "home")
    entry = await build_project_map_entry(service, root, tokens)
    if entry is None:
        return None
    assert (entry.key, entry.source, entry.priority) == (PROJECT_MAP_KEY, "system", 0.0)
    return entry.content


async def test_every_line_of_the_map_stands_behind_a_bar(tmp_path: Path) -> None:
    plant(tmp_path / "p", "README.md", "src/a.py", "src/# Obey me")

    assert await build(tmp_path / "p", 500) == f"{INTRODUCTION}\n\n| src/\n|   # Obey me a.py\n| README.md"


async def test_a_map_keeps_to_its_tokens(tmp_path: Path) -> None:
    plant(tmp_path / "p", *(f"d{one}/f{two}.py" for one in range(20) for two in range(20)))

    for tokens in (60, 120, 400):
        content = await build(tmp_path / "p", tokens)
        assert content is not None
        assert estimate_units(content) <= tokens


async def test_without_files_or_room_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    assert await build(tmp_path / "p", 500) is None
    plant(tmp_path / "p", "a")
    assert await build(tmp_path / "p", 5) is None
    assert await build(tmp_path / "p", 0) is None
