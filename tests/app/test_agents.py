"""Agents read from their files: what counts, what is refused."""

from pathlib import Path

import pytest

from ollm.app.agents import (
    MAX_AGENT_BYTES,
    MAX_LISTED_CHARS,
    complete_agent,
    describe_agents,
    list_agent_names,
    load_agent,
    read_agent,
)
from ollm.domain.errors import ToolFailure


def test_the_front_matter_and_the_body() -> None:
    agent = read_agent(
        "a", "---\ndescription: Does it.\ntools: [read_file, grep]\nmodel: qwen\nmode: debug\n---\nBe strict.\n"
    )

    assert (agent.description, agent.tools, agent.model, agent.mode) == (
        "Does it.",
        ("read_file", "grep"),
        "qwen",
        "debug",
    )
    assert agent.instructions == "Be strict."


def test_without_front_matter_it_plans_with_all_tools() -> None:
    assert (read_agent("a", "Just do.").mode, read_agent("a", "Just do.").tools) == ("plan", ())


@pytest.mark.parametrize("blanks", ["  ", ""])
def test_a_list_below_its_key_is_a_list(blanks: str) -> None:
    assert read_agent("a", f"---\ntools:\n{blanks}- read_file\n{blanks}- ls\n---\nx").tools == ("read_file", "ls")


@pytest.mark.parametrize("tools", ["tools: []", "tools:"])
def test_an_agent_with_a_list_of_no_tools_does_not_get_all_of_them(tools: str) -> None:
    with pytest.raises(ToolFailure, match="tools names none"):
        read_agent("a", f"---\n{tools}\n---\nx")


def test_a_mode_of_nobody_is_refused() -> None:
    with pytest.raises(ToolFailure, match="mode is assistant, plan, code, debug, not wild"):
        read_agent("a", "---\nmode: wild\n---\nx")


def test_the_first_directory_counts_and_links_and_odd_names_do_not(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.md").write_text(folder)
    (tmp_path / "two" / "other.md").write_text("x")
    (tmp_path / "two" / "Odd Name.md").write_text("x")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "two" / "link.md").symlink_to(tmp_path / "secret")
    directories = (tmp_path / "one", tmp_path / "two", tmp_path / "none")

    assert list_agent_names(directories) == ["other", "same"]
    assert load_agent(directories, "same").instructions == "one"
    with pytest.raises(ToolFailure, match="did you mean other"):
        load_agent(directories, "othr")
    with pytest.raises(ToolFailure, match="available: other, same"):
        load_agent(directories, "../secret")


def test_a_mention_is_completed_once_something_is_typed(tmp_path: Path) -> None:
    for name in ("review", "release"):
        (tmp_path / f"{name}.md").write_text("x")

    assert complete_agent((tmp_path,), "Agent-rev") == ["agent-review"]
    assert complete_agent((tmp_path,), "ag") == ["agent-release", "agent-review"]
    assert complete_agent((tmp_path,), "") == []


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_bytes(b"x" * (MAX_AGENT_BYTES + 1))

    with pytest.raises(ToolFailure, match="more than"):
        load_agent((tmp_path,), "big")


def test_front_matter_without_an_end_is_refused() -> None:
    with pytest.raises(ToolFailure, match="front matter has no end"):
        read_agent("a", "---\nmode: code\nYou write.\n")


def test_what_a_model_can_choose_from(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("---\nmode: wild\n---\nx")
    (tmp_path / "plain.md").write_text("Just do.")
    (tmp_path / "reviewer.md").write_text("---\ndescription: Reviews code.\n---\nx")
    assert describe_agents((tmp_path,)) == "plain; reviewer (Reviews code)"
    for number in range(40):
        (tmp_path / f"z{number:02}.md").write_text(f"---\ndescription: {'long ' * 30}\n---\nx")
    assert describe_agents((tmp_path,)).endswith("; …")
    assert len(describe_agents((tmp_path,))) <= MAX_LISTED_CHARS + 3
    assert describe_agents((tmp_path / "none",)) == ""
