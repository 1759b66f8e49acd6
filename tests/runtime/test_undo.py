"""Taking an edit back where an editor has the file open: in the editor, and never behind its back."""

from pathlib import Path

import pytest

from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file


@pytest.mark.parametrize("saves", [True, False])
async def test_an_edit_made_in_the_editor_is_taken_back_there(tmp_path: Path, saves: bool) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)], editor.client.saves = "unsaved\ntwo\n", saves
        session = await editor.open()
        await editor.say(session, "change it")
        assert editor.client.buffers[str(file)] == "unsaved\nthree\n"
        await editor.say(session, "/undo")
        await editor.say(session, "/undo yes")
        await editor.say(session, "/undo yes")

    assert editor.client.buffers[str(file)] == "unsaved\ntwo\n"
    assert file.read_text() == ("unsaved\ntwo\n" if saves else "one\ntwo\n")
    assert "-three\n+two" in editor.client.said()  # the difference to what the editor shows
    assert "Nothing to undo" in editor.client.said()


async def test_what_was_typed_since_is_left_alone_in_the_editor_and_on_disk(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)] = "one\ntwo\n"
        session = await editor.open()
        await editor.say(session, "change it")
        editor.client.buffers[str(file)] += "typed\n"
        await editor.say(session, "/undo yes")

    assert "has changed since the edit; not undone" in editor.client.said()
    assert editor.client.buffers[str(file)] == "one\nthree\ntyped\n"
    assert file.read_text() == "one\nthree\n"
