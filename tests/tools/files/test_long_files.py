"""A file too long for one result: head, _, outline."""

from pathlib import Path

from ollm.config.settings import CodeMapSettings, FileDiscoverySettings, OutputSettings, ToolSettings
from ollm.services.code_map import CodeMapService
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.token_counting import TokenCounter
from ollm.tools.read_file import ReadFile, ReadFileNeeds
from ollm.tools.search.code_files import CodeNeeds
from tests.covers import covers
from tests.tools.drive import Driver, content

COUNT = TokenCounter().count_text
LONG = "".join(f"def part_{number}(value):\n    return value + {number}\n\n\n" for number in range(300))


def reader(workspace: Path, max_tokens: int | None, **limits: int) -> Driver:
    driver = Driver(workspace, settings=ToolSettings(output=OutputSettings(**limits)))
    code = CodeNeeds(
        discovery=FileDiscoveryService(FileDiscoverySettings(), workspace),
        code_map=CodeMapService(CodeMapSettings(), workspace.parent / "cache"),
        count=COUNT,
    )
    needs = ReadFileNeeds(ledger=EditLedger(), code=lambda: code, max_tokens=lambda: max_tokens, count=COUNT)
    driver.registry.register(ReadFile, needs)
    return driver


@covers("T9.1")
async def test_a_file_over_the_share_of_the_window_comes_as_head_notice_and_outline(workspace: Path) -> None:
    (workspace / "long.py").write_text(LONG)

    record = await reader(workspace, 1200)("read_file", path="long.py")

    text = content(record)
    head, _, outline = text.partition("[lines 1 to ")
    shown = int(outline.split(" ")[0])
    assert head == "".join(LONG.splitlines(keepends=True)[:shown])
    assert f"of 1,200 are shown; read on with startLine {shown + 1}, or name a symbol." in outline
    assert f"def part_{shown // 4 + 1}(value)" in outline
    assert "more definitions not shown" in outline
    assert 600 < COUNT(text) <= 1200
    assert record.result is not None
    assert record.result.full_output == LONG, "recall still reads all of it"


async def test_the_limits_of_output_hold_with_the_outline(workspace: Path) -> None:
    (workspace / "long.py").write_text(LONG)

    text = content(await reader(workspace, None, max_chars=6_000, max_lines=200)("read_file", path="long.py"))

    assert "Outline of the rest:" in text
    assert "omitted" not in text
    assert len(text) <= 6_000
    assert text.count("\n") < 200


async def test_what_fits_or_has_no_outline_stays_as_it_was(workspace: Path) -> None:
    (workspace / "short.py").write_text(LONG[:400])
    (workspace / "log.txt").write_text("word\n" * 3000)

    assert content(await reader(workspace, 1200)("read_file", path="short.py")) == LONG[:400]
    assert "Outline" not in content(await reader(workspace, 100)("read_file", path="log.txt"))


async def test_a_range_is_given_as_asked(workspace: Path) -> None:
    (workspace / "long.py").write_text(LONG)

    text = content(await reader(workspace, 200)("read_file", path="long.py", startLine=1, endLine=400))

    assert "Outline" not in text
