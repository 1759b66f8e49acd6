"""CONTRIBUTING and the architecture page say where things are: every file is there, and the walks are short and real."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MARK = "zebraquest"
ROWS = [row for row in TEXT.splitlines() if row.startswith(("| a ", "| an "))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_file_of_the_table_is_there_and_a_change_takes_three_at_most(row: str) -> None:
    named = [name for name in re.findall(r"`(src/ollm/[\w/.]+)`", row) if "NAME" not in name]

    assert [name for name in named if not (ROOT / name).exists()] == []
    for what in row.split("|")[2:4]:
        assert len(set(re.findall(r"`(src/ollm/[\w/.]+)`", what))) <= 3


def test_the_table_has_the_seven_usual_changes() -> None:
    assert len(ROWS) == 7


def test_every_file_of_the_architecture_page_is_there() -> None:
    named = re.findall(r"`([a-z_]+/[\w/]*(?:\.py)?)`", re.sub(r"^\| `.*$", "", MAP, flags=re.MULTILINE))

    assert len(named) > 40
    assert [name for name in named if not list((ROOT / "src" / "ollm").glob(f"{name.rstrip('/')}*"))] == []


def test_every_name_in_the_table_of_files_is_in_its_folder() -> None:
    rows = re.findall(r"^\| (`[a-z_]+/.*?) \| (.*) \|$", MAP, re.MULTILINE)

    assert len(rows) > 12
    for folders, files in rows:
        places = [ROOT / "src/ollm" / folder for folder in re.findall(r"`([\w/]+)/`", folders)]
        names = [name.rstrip("/") for name in re.findall(r"`([a-z_]+/?|[a-z_]+\.txt)`", files)]
        assert [name for name in names if not any(list(place.glob(f"{name}*")) for place in places)] == []


def list_walk(walk: str) -> list[str]:
    (text,) = re.findall(rf"\*\*{walk}\*\*(.*?)\.\n(?=\n|-)", MAP, re.DOTALL)
    return re.findall(r"`([\w/]+)`", text.split(":", 1)[1])


@pytest.mark.parametrize(("walk", "most"), [("A user's text to the model", 18), ("A tool call to the disk", 14)])
def test_a_walk_through_the_house_is_short(walk: str, most: int) -> None:
    assert len(list_walk(walk)) <= most


async def run_marked(script: list[str | Answer], *words: str, folder: Path) -> list[str]:
    """The files that a marked text comes through while the command runs against a server that answers so."""
    out = folder / "files.txt"
    async with ScriptedServer(script) as server:
        environment = {"OLLM_HOME": str(folder / "home"), "HOME": str(folder), "PATH": "/usr/bin:/bin"}
        environment |= {"OLLM_PROVIDER": "openai", "OLLM_BASE_URL": server.base_url, "OLLM_MODEL": server.model}
        argv = (str(ROOT / "tests/house/marked_run.py"), str(out), MARK, *words)
        process = await asyncio.create_subprocess_exec(sys.executable, *argv, cwd=folder, env=environment)
        assert await process.wait() == 0
    return out.read_text(encoding="utf-8").split()


async def test_a_users_text_takes_the_walk_to_the_model(tmp_path: Path) -> None:
    reached = await run_marked(["Hello."], "-p", f"{MARK} say hello", folder=tmp_path)

    assert [name for name in list_walk("A user's text to the model") if name not in reached] == []


async def test_a_tool_call_takes_the_walk_to_the_disk(tmp_path: Path) -> None:
    call = Answer(calls=[("write_file", {"path": "b.txt", "content": f"{MARK}\n"})])
    reached = await run_marked([call, "Done."], "-p", "write it", "--yes", folder=tmp_path)

    assert (tmp_path / "b.txt").read_text() == f"{MARK}\n"
    assert [name for name in list_walk("A tool call to the disk") if name not in reached] == []
