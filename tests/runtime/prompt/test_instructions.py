"""The parts of a prompt: instructions, skills, a map of the project, and what each takes."""

import re
from pathlib import Path

import msgspec
import pytest

from ollm.app.toolbox import create_tool_registry
from ollm.domain.context import ContextEntry, ModeName
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.breakdown import count_hidden_tools, describe_hidden_tools, list_context_parts
from ollm.runtime.prompt.prefix import build_instructions, count_instruction_tokens
from ollm.runtime.prompt.project_context import (
    Skill,
    build_skills_entry,
    find_skills,
    read_project_instructions,
    shorten_instructions,
)
from ollm.services.context_manager import ContextManager
from ollm.services.modes import MODES
from ollm.services.token_counting import TokenCounter
from ollm.system.paths import Boundary
from ollm.tools.framework.tool_selection import select_tools
from tests.covers import covers
from tests.runtime.prompt.test_prompt import Talk


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("window", "limit"), [(2048, 200), (4096, 200), (8192, 500), (16384, 1000), (32768, 1500), (131072, 1500)]
)
def test_instructions_take_little_of_a_small_window(window: int, limit: int, mode: ModeName) -> None:
    text = build_instructions(window, mode)

    assert TokenCounter(factor=1.2).count_text(text) < limit
    assert MODES[mode].role in text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [2048, 4096, 8192, 16384, 32768])
def test_instructions_and_tools_together_take_a_seventh_of_the_window_at_most(
    window: int, mode: ModeName, tmp_path: Path
) -> None:
    counter = TokenCounter()
    told = count_instruction_tokens(window, mode)
    tools = select_tools(mode, create_tool_registry(tmp_path).list(), window, instruction_tokens=told)

    assert counter.count_text(build_instructions(window, mode)) + counter.count_schema_texts(tools) <= 0.15 * window


def test_instructions_and_tools_together_take_8_kilobytes_at_most(tmp_path: Path) -> None:
    told = count_instruction_tokens(131_072, "code")
    tools = select_tools("code", create_tool_registry(tmp_path).list(), 131_072, instruction_tokens=told)

    assert len(build_instructions(131_072, "code").encode()) + len(msgspec.json.encode(tools)) <= 8_192


def test_nothing_in_them_changes_with_time_or_place() -> None:
    for mode in MODES:
        assert not re.search(r"\d{4}|\bUTC\b|branch", build_instructions(32768, mode))


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


def plant_skills(directory: Path, name: str, text: str) -> None:
    (directory / name).mkdir(parents=True)
    (directory / name / "SKILL.md").write_text(text)


def test_the_workspace_comes_before_the_home_and_odd_folders_are_left_out(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "home", tmp_path / "project" / ".ollm" / "skills"
    plant_skills(mine, "review", "---\ndescription: mine\n---\n")
    plant_skills(mine, "other", "# What it is for\n")
    plant_skills(theirs, "review", "---\nname: review\ndescription: theirs\x07\n---\n")
    plant_skills(theirs, "Odd Name", "# no\n")
    plant_skills(theirs, "wordy", f"---\ndescription: {'d' * 500}\n---\n")
    plant_skills(theirs, "named", "---\nname: ../../etc\ndescription: d\n---\n")
    (theirs / "empty").mkdir()
    (theirs / "linked").symlink_to(mine / "other")

    found = find_skills([theirs, mine], tmp_path / "project")

    assert [(skill.name, skill.description) for skill in found] == [
        ("named", "d"),
        ("other", "What it is for"),
        ("review", "theirs"),
        ("wordy", "d" * 200),
    ]
    assert found[2].path == ".ollm/skills/review/SKILL.md"
    assert found[1].path == str(mine / "other" / "SKILL.md")


def test_a_small_window_gets_few_lines_and_a_tiny_one_none() -> None:
    skills = [Skill(name=f"skill-{number}", description="d" * 60, path=f"p{number}") for number in range(50)]

    large, small = build_skills_entry(skills, 32_768), build_skills_entry(skills, 4096)

    assert large is not None
    assert small is not None
    assert 0 < small.content.count("\n- ") < large.content.count("\n- ") <= 50
    assert len(small.content) <= 420
    assert build_skills_entry(skills, 1024) is None
    assert build_skills_entry([], 32_768) is None


PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

TOOLS = (ToolSchema(name="read_file", description="Read a file.", parameters=PATH),)


def parts(talk: Talk) -> dict[str, int]:
    return {part.name: part.tokens for part in list_context_parts(talk.prompt)}


def test_every_part_is_listed_in_the_order_it_is_sent() -> None:
    talk = Talk()
    talk.prompt.set_tools(TOOLS)
    talk.user("Build it")
    talk.step("all good")
    talk.assistant("Done.")

    listed = parts(talk)

    assert list(listed) == [
        "instructions",
        "context entries",
        "tool schemas",
        "checkpoints",
        "user messages",
        "assistant messages",
        "tool messages",
        "system messages",
    ]
    context = talk.prompt.get_active_context().messages
    assert listed["user messages"] == talk.counter.count_message(context[0])
    assert listed["assistant messages"] == sum(map(talk.counter.count_message, (context[1], context[3])))
    assert listed["tool schemas"] == talk.counter.count_schemas(TOOLS)
    assert listed["instructions"] == talk.counter.count_text(talk.prompt.get_system_prompt()) + 4
    assert abs(sum(listed.values()) - talk.prompt.used_tokens) <= len(listed)
    assert (listed["checkpoints"], listed["system messages"], listed["context entries"]) == (0, 0, 0)


def test_the_parts_of_a_model_that_writes_blocks_come_to_what_is_sent() -> None:
    talk = Talk()
    talk.entries.add_context("note", "Use tabs.", source="user")
    talk.prompt.set_tools(TOOLS)
    talk.prompt.set_forms(ModelFacts(key="", call_form="blocks", result_form="user"))
    talk.user("Build it")

    listed = parts(talk)

    assert listed["instructions"] <= 4  # the protocol has its own
    assert listed["context entries"] > 0
    assert abs(sum(listed.values()) - talk.prompt.used_tokens) <= 2 * len(listed)


def test_tools_that_are_listed_in_the_prompt_count_as_schemas() -> None:
    talk = Talk()
    talk.prompt.set_tools(TOOLS)
    talk.prompt.set_forms(ModelFacts(key="k", call_form="none", takes_tools=False))
    (system, *_), schemas = talk.prompt.render_prefix()
    listed = system.content.replace(talk.prompt.get_system_prompt(), "")

    assert schemas == ()
    assert parts(talk)["tool schemas"] == talk.counter.count_text(listed) > 0


def test_tools_without_room_are_counted_by_server() -> None:
    talk = Talk()
    assert (count_hidden_tools(talk.prompt), describe_hidden_tools(talk.prompt)) == ({}, "")
    finder = ToolSchema(name="find_tool", description="Find one (9). There are: git (12), web-docs (3)", parameters={})
    talk.prompt.set_tools([*TOOLS, finder])

    assert count_hidden_tools(talk.prompt) == {"git": 12, "web-docs": 3}
    told = "Tools without room, found with find_tool: 12 of git, 3 of web-docs."
    assert describe_hidden_tools(talk.prompt) == told
