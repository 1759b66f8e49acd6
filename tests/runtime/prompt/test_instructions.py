"""The instructions: as long as the window can bear, and the same for every request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ollm.app import create_tool_registry
from ollm.domain.context import ModeName
from ollm.runtime.prompt.prefix import build_instructions, count_instruction_tokens
from ollm.services.modes import MODES
from ollm.services.token_counting import TokenCounter
from ollm.tools.framework.tool_selection import select_tools


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("window", "limit"), [(2048, 200), (4096, 200), (8192, 500), (16384, 1000), (32768, 1500), (131072, 1500)]
)
def test_instructions_take_little_of_a_small_window(window: int, limit: int, mode: ModeName) -> None:
    text = build_instructions(window, mode)

    assert TokenCounter(factor=1.2).count_text(text) < limit
    assert MODES[mode].told in text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [2048, 4096, 8192, 16384, 32768])
def test_instructions_and_tools_together_take_a_seventh_of_the_window_at_most(
    window: int, mode: ModeName, tmp_path: Path
) -> None:
    counter = TokenCounter()
    told = count_instruction_tokens(window, mode)
    tools = select_tools(mode, create_tool_registry(tmp_path).list(), window, instruction_tokens=told)

    assert counter.count_text(build_instructions(window, mode)) + counter.count_schema_texts(tools) <= 0.15 * window


def test_nothing_in_them_changes_with_time_or_place() -> None:
    for mode in MODES:
        assert not re.search(r"\d{4}|\bUTC\b|branch", build_instructions(32768, mode))
