"""`/rewind` and `/redo` where an editor has files open: what was changed there goes back there, or is named."""

from pathlib import Path

import pytest

from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.servers.answers import Answer

RUN = Answer(calls=[("shell", {"command": "echo made > b.txt; echo more >> c.txt"})])


@pytest.mark.parametrize("saves", [True, False])
async def test_files_go_back_and_forth_in_the_editor_and_on_disk(tmp_path: Path, saves: bool) -> None:
    file = prepare_file(tmp_path)
    other = file.with_name("c.txt")
    other.write_text("some\n")
    async with editing(tmp_path, [EDIT, RUN, "Done."], "once", FILES) as (editor, _):
        shown = editor.client.buffers
        shown[str(file)], shown[str(other)], editor.client.saves = "unsaved\ntwo\n", "some\n", saves
        session = await editor.open()
        await editor.say(session, "change it")
        await editor.say(session, "/diff")
        await editor.say(session, "/rewind 1 files diff")
        assert editor.client.said().count("-three\n+two") == 1
        await editor.say(session, "/rewind 1 files yes")
        assert shown[str(file)] == "unsaved\ntwo\n"
        assert file.read_text() == ("unsaved\ntwo\n" if saves else "one\ntwo\n")
        assert "Files are as they were" in editor.client.said()
        await editor.say(session, "/redo")

    assert shown[str(file)] == "unsaved\nthree\n"
    assert file.with_name("b.txt").read_text() == "made\n"
    assert "+three" in editor.client.said()  # /diff knows what is not saved


async def test_what_was_typed_since_is_named_and_left_alone(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    other = file.with_name("c.txt")
    other.write_text("some\n")
    async with editing(tmp_path, [EDIT, RUN, "Done."], "once", FILES) as (editor, _):
        shown = editor.client.buffers
        shown[str(file)] = "one\ntwo\n"
        session = await editor.open()
        await editor.say(session, "change it")
        shown[str(file)] += "typed\n"
        shown[str(other)] = "typed too\n"
        await editor.say(session, "/rewind 1 files yes")

    said = editor.client.said()
    assert "Not all files went back" in said
    assert "a.txt: changed in the editor since" in said
    assert "c.txt: has changes in the editor that are not saved" in said
    assert (shown[str(file)], shown[str(other)]) == ("one\nthree\ntyped\n", "typed too\n")
    assert (file.read_text(), other.read_text()) == ("one\nthree\n", "some\nmore\n")
    assert not file.with_name("b.txt").exists()


async def test_an_editor_that_no_longer_gives_the_file_or_refuses_it_is_told(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)], editor.client.saves = "unsaved\ntwo\n", False
        session = await editor.open()
        await editor.say(session, "change it")
        kept = editor.client.buffers.pop(str(file))
        await editor.say(session, "/rewind 1 files yes")
        assert "a.txt: was changed in the editor, which does not give it now" in editor.client.said()
        editor.client.buffers[str(file)], editor.client.refuses = kept, True
        await editor.say(session, "/rewind 1 files yes")

    assert "a.txt: The editor did not write a.txt" in editor.client.said()
    assert "Files are as they were" not in editor.client.said()
    assert file.read_text() == "one\ntwo\n"
