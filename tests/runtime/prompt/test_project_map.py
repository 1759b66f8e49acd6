"""A map of the project as a context entry."""

from pathlib import Path

from ollm.config.settings import CodeMapSettings, FileDiscoverySettings
from ollm.runtime.prompt.breakdown import PROJECT_MAP_KEY
from ollm.runtime.prompt.project_map import INTRODUCTION, build_project_map_entry
from ollm.services.code_map import CodeMapService
from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.token_counting import estimate_units
from tests.recorded_courses import compare_course
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


async def test_a_map_for_every_number_of_tokens(tmp_path: Path) -> None:
    """Which files and which definitions it names, and from where on it names definitions at all."""
    root = tmp_path / "p"
    for one in range(12):
        folder = root / f"part{one % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        uses = "".join(f"from part{other % 3}.m{other} import make_{other}\n" for other in range(one))
        made = "".join(f"def make_{one}_{more}(value):\n    return value\n\n\n" for more in range(3))
        (folder / f"m{one}.py").write_text(f"{uses}\n\n{made}def make_{one}(value):\n    return value\n")
    discovery = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    code_map = CodeMapService(CodeMapSettings(), tmp_path / "facts")
    lines = []
    for tokens in (10, 26, 40, 60, 100, 132, 133, 134, 135, 150, 200, 300, 500, 900):
        entry = await build_project_map_entry(discovery, root, tokens, code_map)
        shown = entry.content.split("\n") if entry else ["nothing"]
        lines += [f"{tokens}: {estimate_units(entry.content) if entry else 0}", *(f"  {line}" for line in shown)]

    compare_course(Path(__file__).parents[1] / "recorded" / "project_map.txt", lines)
