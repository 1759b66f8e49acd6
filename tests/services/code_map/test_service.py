"""The service: limits, symbols, and work that stops with its caller."""

import asyncio
from pathlib import Path

import pytest

from ollm.config.settings import CodeMapSettings
from ollm.services.code_map import CodeMapService
from ollm.services.token_counting import TokenCounter

COUNT = TokenCounter().count_text


def plant(root: Path, count: int) -> list[str]:
    root.mkdir()
    for number in range(count):
        (root / f"m{number}.py").write_text(f"class Thing{number}: pass\nThing{number - 1}()\n")
    (root / "notes.md").write_text("# Notes\n")
    (root / "data.bin").write_bytes(b"\0")
    return sorted(path.name for path in root.iterdir())


async def test_no_more_files_are_read_than_allowed_and_code_comes_first(tmp_path: Path) -> None:
    paths = plant(tmp_path / "project", 5)
    service = CodeMapService(CodeMapSettings(max_files=3), tmp_path / "cache")

    drawn = await service.build_map(tmp_path / "project", paths, None, COUNT)

    assert (drawn.files, drawn.left_out) == (3, 3)
    assert drawn.notes == ("3 more files not read (codeMap.maxFiles); name a directory for the rest",)


async def test_a_symbol_is_found_in_its_file(tmp_path: Path) -> None:
    paths = plant(tmp_path / "project", 5)
    service = CodeMapService(CodeMapSettings(), tmp_path / "cache")

    found = await service.find_symbol(tmp_path / "project", paths, "Thing3")

    assert [(one.path, one.definition.line) for one in found] == [("m3.py", 1)]


async def test_a_cancelled_caller_leaves_a_cache_that_can_be_used(tmp_path: Path) -> None:
    paths = plant(tmp_path / "project", 300)
    service = CodeMapService(CodeMapSettings(), tmp_path / "cache")
    task = asyncio.create_task(service.build_map(tmp_path / "project", paths, None, COUNT))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    drawn = await service.build_map(tmp_path / "project", paths, None, COUNT)

    assert drawn.files == 301
    assert "class Thing" in drawn.text


async def test_a_symbol_is_found_in_a_file_too_large_for_a_map_and_all_names_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    paths = [*plant(root, 2), "large.py"]
    filler = "# nothing to see here\n" * 30_000
    (root / "large.py").write_text(f"{filler}class Rare:\n    def run(self): pass\n")
    service = CodeMapService(CodeMapSettings(), tmp_path / "cache")

    found = await service.find_symbol(root, paths, "Rare.run")

    assert [(one.path, one.definition.full_name, one.definition.line) for one in found] == [
        ("large.py", "Rare.run", 30_002)
    ]
    assert await service.find_symbol(root, paths, "Nobody") == []
    assert await service.list_symbols(root, paths) == ["Thing0", "Thing1"]


async def test_a_map_says_whether_nothing_fits_or_nothing_is_there(tmp_path: Path) -> None:
    paths = plant(tmp_path / "project", 2)
    service = CodeMapService(CodeMapSettings(max_tokens=1000), tmp_path / "cache")

    small = await service.build_map(tmp_path / "project", paths, 1, COUNT)
    usual = await service.build_map(tmp_path / "project", paths, None, COUNT, prefix="in/")
    nothing = await service.build_map(tmp_path / "project", ["data.bin"], None, COUNT)

    assert (small.text, small.files, small.left_out, small.has_more, small.notes) == ("", 3, 0, True, ())
    assert usual.text == "in/m0.py\n  1 class Thing0"
    assert (nothing.text, nothing.files, nothing.has_more) == ("", 0, False)
