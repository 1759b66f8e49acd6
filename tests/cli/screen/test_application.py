"""The application the chat runs in, as the person wants it."""

from pathlib import Path

import pytest
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.output import ColorDepth

from ollm.cli.screen.screen import ChatScreen
from ollm.cli.screen.screen_options import ScreenOptions
from ollm.runtime.base import CommandReply


async def pick_nothing(_current: str | None) -> CommandReply | None:
    return None


def build(directory: Path, **options: bool) -> ChatScreen:
    return ChatScreen(
        ScreenOptions(history=directory / "h", workspace=directory, **options), lambda _: [], pick_nothing
    )


async def test_it_is_inline_and_leaves_nothing_behind(tmp_path: Path) -> None:
    app = build(tmp_path).app

    assert not app.full_screen
    assert app.erase_when_done
    assert not app.mouse_support()
    assert not app.wraps_again
    assert app.ttimeoutlen == 0.05


@pytest.mark.parametrize(("vi", "mode", "wait"), [(True, EditingMode.VI, 1.0), (False, EditingMode.EMACS, 0.25)])
async def test_keys_are_those_of_vi_where_that_is_wanted(
    tmp_path: Path, vi: bool, mode: EditingMode, wait: float
) -> None:
    app = build(tmp_path, vi=vi).app

    assert app.editing_mode is mode
    assert app.timeoutlen == wait


async def test_without_colour_there_is_none(tmp_path: Path) -> None:
    assert build(tmp_path, colour=False).app.color_depth is ColorDepth.DEPTH_1_BIT
    assert build(tmp_path, colour=True).app.color_depth is not ColorDepth.DEPTH_1_BIT


async def test_a_terminal_that_wraps_again_is_known(tmp_path: Path) -> None:
    assert build(tmp_path, wraps_again=True).app.wraps_again
