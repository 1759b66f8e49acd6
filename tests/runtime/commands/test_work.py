"""Commands about the work: changes, diffs, undo."""

from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, UsageError
from ollm.domain.events import Notice
from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.runtime.talking import Talking
from tests.servers.answers import Answer


async def test_an_edit_is_undone_at_once_and_made_again(talking: Talking) -> None:
    call = Answer(calls=[("write_file", {"path": "a.txt", "content": "new\n", "overwrite": True})])
    made = Answer(calls=[("write_file", {"path": "b.txt", "content": "made"})])
    async with talking([call, "done", made, "done"], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("write")
        for _ in range(2):
            undone = (await talk.run("/undo")).text
            assert "Undid the last edit of `a.txt`; /redo brings it back." in undone
            assert "-new\n+old" in undone
            assert (talk.workspace / "a.txt").read_text() == "old\n"
            with pytest.raises(UsageError, match="Nothing to undo"):
                await talk.run("/undo")
            assert "-old\n+new" in (await talk.run("/redo")).text
            assert (talk.workspace / "a.txt").read_text() == "new\n"
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
    async with talking(["Yes."]) as talk:
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
        await talk.say("hello")
        assert [todo["text"] for todo in (await talk.run("/todos")).data] == ["two", "three"]
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
        await talk.run("/goal lock use sqlite")
        assert "Decided (locked): use sqlite" in (await talk.run("/goal")).text
        for kind in ("subtask", "decision", "artifact", "blocker"):
            assert (await talk.run(f"/goal {kind} a {kind}")).ok
        shown = (await talk.run("/goal")).text
        assert all(f"a {kind}" in shown for kind in ("subtask", "decision", "blocker"))
        done = await talk.run("/goal complete")
        assert done.data["goals"][0]["status"] == "completed"
        with pytest.raises(UsageError, match="Usage: /goal"):
            await talk.run("/goal nonsense x")


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


CHANGE = Answer(calls=[("shell", {"command": "echo new > a.txt"})])

MANY = Answer(calls=[("shell", {"command": "echo new > a.txt; rm b.txt; mkdir d; echo x > d/c.txt"})])


@pytest.mark.parametrize("setting", ["enabled: false", "maxFiles: 1"])
async def test_what_could_not_be_saved_is_said_not_to_be_known(talking: Talking, setting: str) -> None:
    edit = Answer(calls=[("write_file", {"path": "b.txt", "content": "edited\n"})])
    async with talking() as talk:
        home = talk.home
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(f"checkpoints: {{{setting}}}\n")
    async with talking([CHANGE, "Done.", edit, "Done.", "Nothing."], yes=True) as talk:
        for name in ("one", "two"):
            (talk.workspace / name).touch()
        events = [event for text in ("change it", "edit it", "only talk") for event in await talk.say(text)]
        whole = await talk.run("/diff")
        first, second = await talk.run("/diff 1"), await talk.run("/diff 5")
        with pytest.raises(UsageError, match=r"not saved|are off"):
            await talk.run("/rewind 1 files yes")

    told = [event.text for event in events if isinstance(event, Notice) and "/rewind" in event.text]
    assert len(told) == (setting == "maxFiles: 1")
    assert all(text.endswith("(checkpoints.maxFiles). /rewind cannot bring files back.") for text in told)
    assert "changed no files" not in whole.text
    assert "What commands changed is not known: the files were not saved." in first.text
    assert first.data["diffs"] == []
    assert "+edited" in second.text
    assert [turn["kind"] for turn in whole.data["turns"]] == ["missed", "missed"]


async def test_turns_whose_saved_files_are_gone_are_named(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change it")
        (lines,) = (talk.home / "checkpoints").glob("*/sessions/*.jsonl")
        lines.write_text(lines.read_text().replace('"started":"20', '"started":"19'))
        known = talk.conversation.session_id
    async with talking([CHANGE, "Done."], yes=True, session=known) as talk:
        (talk.workspace / "a.txt").write_text("old again\n")
        await talk.say("change it again")
        shown, first = await talk.run("/diff"), await talk.run("/diff 1")

    assert "**Up to message #1**" in shown.text
    assert "not known any more" in shown.text
    assert "-old again" in shown.text
    assert "not known any more" in first.text


async def test_a_damaged_content_hides_no_other_and_is_promised_by_no_preview(talking: Talking) -> None:
    change = Answer(calls=[("shell", {"command": "rm a.txt b.txt"})])
    async with talking([change, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("first\n")
        (talk.workspace / "b.txt").write_text("second\n")
        await talk.say("remove them")
        (damaged,) = (path for path in talk.home.glob("checkpoints/*/objects/*/*") if path.read_bytes() == b"first\n")
        damaged.write_bytes(b"FIRST\n")
        shown, preview = await talk.run("/diff"), await talk.run("/rewind 1")

    assert "is damaged" in shown.text
    assert "-second" in shown.text
    assert [file["path"] for file in preview.data["files"]] == ["b.txt"]
    assert "a.txt: The saved content" in preview.text


async def test_a_diff_shows_what_commands_changed_on_the_whole(talking: Talking) -> None:
    second = Answer(calls=[("shell", {"command": "ln -s a.txt link; chmod 755 a.txt; printf '\\0' > binary"})])
    async with talking([MANY, "Done.", second, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        (talk.workspace / "b.txt").write_text("precious\n")
        await talk.say("one")
        await talk.say("two")
        shown = await talk.run("/diff")
        last = await talk.run("/diff 5")
        with pytest.raises(UsageError, match=r"There is no message 77. This session has messages 1 to 8"):
            await talk.run("/diff 77")
        assert (await talk.run("/diff 4")).text == "Message 4 changed no files."
        with pytest.raises(UsageError, match="Usage: /diff"):
            await talk.run("/diff x")

    for part in ("**This session**", "-precious", "+x", "(mode 644 → 755)", "→ a.txt", "(not text)"):
        assert part in shown.text
    assert "**Message #5**" in last.text
    assert "-precious" not in last.text


async def test_a_diff_of_a_turn_that_was_cut_off_shows_that_turn_alone(talking: Talking) -> None:
    change = Answer(calls=[("shell", {"command": "echo newer > a.txt"})])
    async with talking([CHANGE, "Done.", change, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("one")
        await talk.say("two")
        (records,) = (talk.home / "checkpoints").glob("*/sessions/*.jsonl")
        *begun, _ended = records.read_text().splitlines(keepends=True)
        records.write_text("".join(begun))
        shown = await talk.run("/diff 5")

    assert [turn["messageId"] for turn in shown.data["turns"]] == [5]
    assert "it is not known what its last step changed" in shown.text
    assert "-old" not in shown.text


async def test_messages_are_counted_from_one_and_before_the_first_there_are_none(talking: Talking) -> None:
    async with talking(["Yes."]) as talk:
        with pytest.raises(UsageError, match=r"There is no message 1. This session has no messages yet\."):
            await talk.run("/diff 1")
        await talk.say("hello")
        for number in (0, 3):
            with pytest.raises(UsageError, match=rf"There is no message {number}. This session has messages 1 to 2\."):
                await talk.run(f"/diff {number}")
        for number in (1, 2):
            assert (await talk.run(f"/diff {number}")).text == f"Message {number} changed no files."
