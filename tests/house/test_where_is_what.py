"""CONTRIBUTING says where things are: every file it names is there, and its walks stay short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = [row for row in TEXT.splitlines() if row.startswith(("| a ", "| an "))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_file_of_the_table_is_there_and_a_change_takes_three_at_most(row: str) -> None:
    named = [name for name in re.findall(r"`(src/ollm/[\w/.]+)`", row) if "NAME" not in name]

    assert [name for name in named if not (ROOT / name).exists()] == []
    for what in row.split("|")[2:4]:
        assert len(set(re.findall(r"`(src/ollm/[\w/.]+)`", what))) <= 3


def test_the_table_has_the_seven_usual_changes() -> None:
    assert len(ROWS) == 7


@pytest.mark.parametrize(("walk", "most"), [("A user's text to the model", 18), ("A tool call to the disk", 14)])
def test_a_walk_through_the_house_is_short_and_its_files_are_there(walk: str, most: int) -> None:
    (text,) = re.findall(rf"\*\*{walk}\*\*(.*?)\.\n(?=\n|-)", TEXT, re.DOTALL)
    files = re.findall(r"`([\w/]+)`", text.split(":", 1)[1])

    assert len(files) <= most
    assert [name for name in files if not (ROOT / "src/ollm" / f"{name}.py").exists()] == []
