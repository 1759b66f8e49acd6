"""AGENTS.md files: from the root to where one works, and nothing from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from ollm.domain.context import ContextEntry
from ollm.runtime.prompt.project_context import read_project_instructions, shorten_instructions
from ollm.services.context_manager import ContextManager
from ollm.system.paths import Boundary
from tests.covers import covers


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@covers("S5.6")
def test_files_from_the_root_to_the_directory_are_entries_with_the_nearest_last(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "Root rules\x00\n")
    write(tmp_path / "a" / "AGENTS.md", "Rules of a")
    write(tmp_path / "a" / "b" / "AGENTS.md", "Rules of b")
    write(tmp_path / "other" / "AGENTS.md", "Not these")

    entries, warnings = read_project_instructions(Boundary.around(tmp_path), tmp_path / "a" / "b")
    manager = ContextManager()

    assert all(manager.add_entry(entry) for entry in entries)
    assert [entry.key for entry in manager.get_context()] == ["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md"]
    assert manager.get_context()[0].content == "Root rules"
    assert warnings == []


def test_a_link_that_leads_outside_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "secret.md", "Outside")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "AGENTS.md").symlink_to(tmp_path / "secret.md")

    entries, warnings = read_project_instructions(Boundary.around(tmp_path / "inside"))

    assert entries == []
    assert len(warnings) == 1


def test_a_directory_outside_counts_as_the_workspace(tmp_path: Path) -> None:
    write(tmp_path / "w" / "AGENTS.md", "Rules")

    entries, _ = read_project_instructions(Boundary.around(tmp_path / "w"), tmp_path)

    assert [entry.content for entry in entries] == ["Rules"]


def test_a_huge_file_is_cut_and_an_empty_one_left_out(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "rule " * 50_000)
    write(tmp_path / "a" / "AGENTS.md", " \n")

    entries, warnings = read_project_instructions(Boundary.around(tmp_path), tmp_path / "a")

    assert len(entries) == 1
    assert len(entries[0].content) <= 65_536
    assert "first 64 KiB" in warnings[0]


@pytest.mark.parametrize(("count", "tokens", "kept"), [(65, 64 + 25, 64), (64, 99, 32), (65, 64 + 24, 32), (2, 99, 0)])
def test_a_file_that_is_too_long_is_its_beginning_and_the_headings_of_the_rest(
    count: int, tokens: int, kept: int
) -> None:
    lines = [f"rule {number}" for number in range(min(count, 8))] + [f"## {n} " for n in range(8, count)]
    entry = ContextEntry(key="a/AGENTS.md", content="\n".join(lines), timestamp="", priority=1)

    found = shorten_instructions(entry, tokens, lambda text: text.count("\n") + 24)

    if not kept:
        assert found is None
        return
    assert found is not None
    assert found.key == "a/AGENTS.md"
    told = f"[{count - kept} more lines; read a/AGENTS.md for them. They are about:]"
    assert found.content.split("\n") == [*lines[:kept], told, *(line.strip() for line in lines[kept:][:24])]


def test_the_rest_without_headings_is_said_to_be_there_and_nothing_of_it() -> None:
    entry = ContextEntry(key="AGENTS.md", content="a\nb\nc", timestamp="", priority=1)

    found = shorten_instructions(entry, 10, len)
    assert found is None
    found = shorten_instructions(entry, 99, len)
    assert found is not None
    assert found.content == "a\nb\n[1 more lines; read AGENTS.md for them]"
