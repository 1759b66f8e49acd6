"""Slash commands and options in an editor."""

from pathlib import Path

from ollm.acp.session import SCREEN_COMMANDS, build_commands
from tests.acp.editor import editing


async def test_what_only_a_terminal_can_do_is_the_editors_and_no_keys_are_named(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        session = await editor.open()
        for line, told in (
            ("/exit", "close the thread"),
            ("/clear", "Start a new thread"),
            ("/new", "Start a new thread"),
            ("/help", "`/undo [yes]`: Undo"),
            ("/help undo", "Undo the last"),
        ):
            editor.client.updates.clear()
            await editor.say(session, line)
            assert told in editor.client.said()
            assert not any(word in editor.client.said() for word in ("Esc", "Ctrl", "Alt-", "/exit"))


def test_commands_are_ours_and_the_persons_own_but_not_those_of_the_screen(tmp_path: Path) -> None:
    (tmp_path / "review.md").write_text("Review $ARGUMENTS")
    (tmp_path / "exit.md").write_text("no")
    names = {command["name"]: command for command in build_commands((tmp_path,))}

    assert {"status", "compact", "review"} <= names.keys()
    assert not SCREEN_COMMANDS & names.keys()
    assert names["review"]["description"] == "Review $ARGUMENTS"
