"""Slash commands and options in an editor."""

from pathlib import Path

from tests.acp.editor import editing


async def test_what_only_a_terminal_can_do_is_the_editors_and_no_keys_are_named(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        session = await editor.open()
        for line, told in (
            ("/exit", "close the thread"),
            ("/clear", "Start a new thread"),
            ("/new", "Start a new thread"),
            ("/help", "`/undo`: Undo"),
            ("/help undo", "Undo the last"),
        ):
            editor.client.updates.clear()
            await editor.say(session, line)
            assert told in editor.client.said()
            assert not any(word in editor.client.said() for word in ("Esc", "Ctrl", "Alt-", "/exit"))
