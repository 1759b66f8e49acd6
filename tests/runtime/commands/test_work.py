"""Commands about goals, todos, memory and edits."""

from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, UsageError
from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.runtime.talking import Talking
from tests.servers.answers import Answer


async def test_goals_todos_memory_and_context_entries_are_kept(talking: Talking) -> None:
    async with talking(["ok"]) as talk:
        assert (await talk.run("/goal set ship it")).text == "Goal set: ship it"
        await talk.run("/goal lock use sqlite")
        assert "Decided (locked): use sqlite" in (await talk.run("/goal")).text
        await talk.run("/todos add write tests")
        added = (await talk.run("/todos add run tests")).data
        await talk.run(f"/todos done {added[0]['id']}")
        assert "1 of 2 done" in (await talk.run("/plan")).text
        await talk.run("/memory set colour blue")
        assert "colour" in (await talk.run("/memory")).text
        await talk.run("/context add style Write short sentences.")
        await talk.say("hello")
        assert [entry["key"] for entry in (await talk.run("/context entries")).data] == ["style"]
        await talk.run("/context remove style")
        assert (await talk.run("/context entries")).data == []

    assert "Write short sentences." in talk.server.chats[0]["messages"][0]["content"]


async def test_an_edit_is_undone_at_once_and_made_again(talking: Talking) -> None:
    call = Answer(calls=[("write_file", {"path": "a.txt", "content": "new", "overwrite": True})])
    made = Answer(calls=[("write_file", {"path": "b.txt", "content": "made"})])
    async with talking([call, "done", made, "done"], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old")
        await talk.say("write")
        for _ in range(2):
            undone = (await talk.run("/undo")).text
            assert "Undid the last edit of `a.txt`; /redo brings it back." in undone
            assert "-new\n+old" in undone
            assert (talk.workspace / "a.txt").read_text() == "old"
            with pytest.raises(UsageError, match="Nothing to undo"):
                await talk.run("/undo")
            assert "-old\n+new" in (await talk.run("/redo")).text
            assert (talk.workspace / "a.txt").read_text() == "new"
            with pytest.raises(UsageError, match="Nothing to redo"):
                await talk.run("/redo")
        await talk.run("/undo")
        await talk.say("make another")
        with pytest.raises(UsageError, match="Nothing to redo"):
            await talk.run("/redo")
        assert "Deleted `b.txt`" in (await talk.run("/undo")).text
        assert not (talk.workspace / "b.txt").exists()
        (talk.workspace / "b.txt").write_text("by hand")
        with pytest.raises(BusyError, match="has changed since the edit; not redone"):
            await talk.run("/redo")
        (talk.workspace / "b.txt").unlink()
        await talk.run("/redo")
        assert (talk.workspace / "b.txt").read_text() == "made"


async def test_a_plan_is_shown_paused_and_resumed(talking: Talking) -> None:
    async with talking() as talk:
        assert (await talk.run("/plan")).text == "No plan yet; the model creates one as a todo list."
        for step in ("one", "two", "three"):
            added = (await talk.run(f"/todos add {step}")).data
        await talk.run(f"/todos done {added[0]['id']}")

        assert (await talk.run("/plan pause")).text == "1 of 3 done, paused.\n\n✔ one\n→ two\n· three"
        assert (await talk.run("/plan resume")).text.startswith("1 of 3 done.\n")
        with pytest.raises(UsageError, match=r"Usage: /plan \[pause \| resume\]"):
            await talk.run("/plan stop")
        left = (await talk.run(f"/todos remove {added[0]['id']}")).data
        assert [todo["text"] for todo in left] == ["two", "three"]
        for wrong in ("/todos add", "/todos done", "/todos nonsense"):
            with pytest.raises(UsageError, match="Usage: /todos"):
                await talk.run(wrong)


async def test_memory_is_set_read_and_deleted(talking: Talking) -> None:
    async with talking() as talk:
        assert (await talk.run("/memory")).text == "Nothing in memory."
        assert (await talk.run("/memory set colour deep blue")).text == "Remembered: colour"
        assert (await talk.run("/memory get colour")).text == "colour: deep blue"
        assert (await talk.run("/memory")).data == ["colour"]
        assert (await talk.run("/memory delete colour")).text == "Forgotten: colour"
        assert (await talk.run("/memory")).data == []
        with pytest.raises(UsageError, match="Usage: /memory"):
            await talk.run("/memory nonsense")


async def test_goals_are_set_and_completed(talking: Talking) -> None:
    async with talking() as talk:
        assert (await talk.run("/goal")).text == "No goal is set."
        await talk.run("/goal set ship it")
        for kind in ("subtask", "decision", "artifact", "blocker"):
            assert (await talk.run(f"/goal {kind} a {kind}")).ok
        shown = (await talk.run("/goal")).text
        assert all(f"a {kind}" in shown for kind in ("subtask", "decision", "blocker"))
        done = await talk.run("/goal complete")
        assert done.data["goals"][0]["status"] == "completed"
        with pytest.raises(UsageError, match="Usage: /goal"):
            await talk.run("/goal nonsense x")


async def test_undo_takes_no_words(talking: Talking) -> None:
    async with talking() as talk:
        with pytest.raises(UsageError, match=r"Usage: /undo\."):
            await talk.run("/undo maybe")


async def test_an_edit_that_is_taken_back_is_a_change_of_the_session(talking: Talking) -> None:
    call = Answer(calls=[("write_file", {"path": "b.txt", "content": "new"})])
    async with talking([call, "done"], yes=True) as talk:
        await talk.say("write")
        await talk.run("/undo")
        records = talk.conversation.parts.checkpoints.get().list_records(talk.conversation.session_id or "")

    assert [(record.kind, record.message_id, bool(record.end)) for record in records] == [
        ("turn", 1, True),
        ("undo", 4, True),
    ]


@pytest.mark.parametrize("saves", [True, False])
async def test_an_edit_made_in_the_editor_is_taken_back_there(tmp_path: Path, saves: bool) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)], editor.client.saves = "unsaved\ntwo\n", saves
        session = await editor.open()
        await editor.say(session, "change it")
        assert editor.client.buffers[str(file)] == "unsaved\nthree\n"
        await editor.say(session, "/undo")
        await editor.say(session, "/redo")
        assert editor.client.buffers[str(file)] == "unsaved\nthree\n"
        await editor.say(session, "/undo")
        await editor.say(session, "/undo")

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
        await editor.say(session, "/undo")

    assert "has changed since the edit; not undone" in editor.client.said()
    assert editor.client.buffers[str(file)] == "one\nthree\ntyped\n"
    assert file.read_text() == "one\nthree\n"
