"""What is changed in an editor reaches the checkpoints; without any, and where they fail, the change is made all
the same."""

from pathlib import Path

from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file


async def test_without_checkpoints_a_change_in_the_editor_is_made_all_the_same(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("checkpoints: {enabled: false}\n")
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)] = "unsaved\ntwo\n"
        session = await editor.open()
        await editor.say(session, "change it")
        await editor.say(session, "/rewind 1 files yes")

    assert editor.client.buffers[str(file)] == "unsaved\nthree\n"
    assert "Checkpoints are off" in editor.client.said()
