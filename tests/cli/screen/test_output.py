"""What the screen writes through."""

import io
import sys

import pytest
from prompt_toolkit.data_structures import Size

from ollm.cli.screen.output import ERASE_FROM_SECOND_CELL, TmuxSafeOutput, open_output


def test_a_screen_is_cleared_from_its_second_cell() -> None:
    out = io.StringIO()
    output = TmuxSafeOutput(out, lambda: Size(rows=24, columns=80))
    output.erase_down()
    output.flush()

    assert out.getvalue() == ERASE_FROM_SECOND_CELL == "\x1b[C\x1b[J\x1b[D\x1b[K"


def test_it_is_standard_output_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("PROMPT_TOOLKIT_BELL", "false")
    output = open_output()

    assert isinstance(output, TmuxSafeOutput)
    assert output.stdout is stream
    assert output.get_size() == Size(rows=24, columns=80)
    assert output.term == "xterm-256color"
    assert not output.enable_bell
