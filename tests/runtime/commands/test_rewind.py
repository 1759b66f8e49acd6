"""Commands that go back, and what they say first."""

import pytest

from ollm.domain.errors import UsageError
from tests.runtime.talking import Talking
from tests.servers.answers import Answer

CHANGE = Answer(calls=[("shell", {"command": "echo new > a.txt; rm b.txt; mkdir d; echo x > d/c.txt"})])


@pytest.mark.parametrize(
    "line", ["/rewind x", "/rewind 1 talk files", "/rewind 1 dance", "/rewind ²", "/rewind 9999999999999"]
)
async def test_a_rewind_needs_a_number_and_words_it_knows(talking: Talking, line: str) -> None:
    async with talking(["one"]) as talk:
        await talk.say("hi")
        with pytest.raises(UsageError, match=r"Usage: /rewind \[NUMBER\] \[talk\|files\|both\]"):
            await talk.run(line)


async def test_files_go_back_with_the_talk_and_both_come_again(talking: Talking) -> None:
    async with talking([CHANGE, "Done.", "Next."], yes=True) as talk:
        a, b = talk.workspace / "a.txt", talk.workspace / "b.txt"
        a.write_text("old\n")
        b.write_text("precious\n")
        await talk.say("change things")
        preview = await talk.run("/rewind 1")
        shown = await talk.run("/rewind 1 diff")
        assert (a.read_text(), b.exists()) == ("new\n", False)

        done = await talk.run("/rewind 1 yes")

        assert (a.read_text(), b.read_text(), (talk.workspace / "d").exists()) == ("old\n", "precious\n", False)
        redone = await talk.run("/redo")
        assert (a.read_text(), b.exists(), (talk.workspace / "d" / "c.txt").read_text()) == ("new\n", False, "x\n")
        with pytest.raises(UsageError, match="Nothing to redo"):
            await talk.run("/redo")
        await talk.say("and now?")

    for part in ("removes message 1", "3 files would change back", "- `M` a.txt", "- `A` b.txt", "/rewind 1 diff"):
        assert part in preview.text
    assert "-new\n+old" in shown.text
    assert done.data["text"] == "change things"
    assert sorted(file["path"] for file in done.data["files"]) == ["a.txt", "b.txt", "d/c.txt"]
    assert "2 files restored, 1 file deleted" in redone.text
    assert "change things" in str(talk.server.chats[-1])


async def test_talk_alone_goes_back_and_files_stay(talking: Talking) -> None:
    async with talking([CHANGE, "Done.", "I see."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change things")
        await talk.run("/rewind 1 talk yes")
        assert (talk.workspace / "a.txt").read_text() == "new\n"
        await talk.run("/redo")
        await talk.say("and now?")

    assert "change things" in str(talk.server.chats[-1])


async def test_nothing_is_redone_after_a_long_turn(talking: Talking) -> None:
    """The words that began it are not among the newest messages."""
    steps = [Answer(calls=[("write_todos", {"action": "add", "text": f"part {number}"})]) for number in range(11)]
    async with talking(["one", "two", *steps, "Done."], yes=True) as talk:
        await talk.say("first")
        await talk.say("second")
        await talk.run("/rewind 3 yes")
        await talk.say("third")
        with pytest.raises(UsageError, match="Nothing to redo"):
            await talk.run("/redo")
        kept = [message.content for message in talk.conversation.parts.prompt.get_active_context().messages]

    assert kept[2].startswith("third")
    assert kept[-1] == "Done."


async def test_a_redo_whose_talk_is_kept_nowhere_else_takes_it_from_the_archive(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change things")
        await talk.run("/rewind 1 yes")
        known = talk.conversation.session_id
    for place in (talk.home / "context-snapshots").rglob("snapshot-*.json"):
        place.unlink()
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.run("/redo")
        await talk.say("and now?")

    assert (talk.workspace / "a.txt").read_text() == "new\n"
    assert "change things" in str(talk.server.chats[-1])


async def test_a_redo_whose_files_are_no_longer_saved_changes_nothing(talking: Talking) -> None:
    async with talking([CHANGE, "Done.", "Well."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change things")
        await talk.run("/rewind 1 yes")
        for place in (talk.home / "checkpoints").glob("*/sessions/*.jsonl"):
            place.unlink()
        with pytest.raises(UsageError, match="no longer saved"):
            await talk.run("/redo")
        await talk.say("and now?")

    assert (talk.workspace / "a.txt").read_text() == "old\n"
    assert "change things" not in str(talk.server.chats[-1])


async def test_files_that_all_stayed_are_not_said_to_have_gone_back(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        await talk.say("change things")
        (talk.workspace / "a.txt").write_text("by hand\n")
        (talk.workspace / "d" / "c.txt").write_text("by hand\n")
        done = await talk.run("/rewind 1 files yes")

    assert done.text.startswith("No files went back to before message 1.")
    assert "2 files left alone:" in done.text


async def test_an_undone_edit_is_the_sessions_own_change(talking: Talking) -> None:
    write = Answer(calls=[("write_file", {"path": "a.txt", "content": "second\n", "overwrite": True})])
    first = Answer(calls=[("shell", {"command": "echo first > a.txt"})])
    async with talking([first, "Done.", write, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("one")
        await talk.say("two")
        await talk.run("/undo")
        assert (talk.workspace / "a.txt").read_text() == "first\n"
        changes = await talk.run("/diff")
        await talk.run("/rewind 1 yes")

    assert (talk.workspace / "a.txt").read_text() == "old\n"
    assert changes.text.startswith("**This session**")
    assert ("-old\n+first" in changes.text, "second" in changes.text) == (True, False)


async def test_what_a_redo_left_alone_can_be_forced_later(talking: Talking) -> None:
    async with talking([CHANGE, "Done.", "And now?"], yes=True) as talk:
        a, b = talk.workspace / "a.txt", talk.workspace / "b.txt"
        a.write_text("old\n")
        b.write_text("precious\n")
        await talk.say("change things")
        await talk.run("/rewind 1 yes")
        a.write_text("by hand\n")
        left = await talk.run("/redo")
        assert (a.read_text(), b.exists()) == ("by hand\n", False)
        with pytest.raises(UsageError, match=r"Nothing to redo. Files that were left alone come with `force`"):
            await talk.run("/redo")
        forced = await talk.run("/redo force")
        assert a.read_text() == "new\n"
        with pytest.raises(UsageError, match="Nothing to redo"):
            await talk.run("/redo force")
        await talk.say("and now?")

    assert "`/redo force` puts back what was left alone too." in left.text
    assert forced.data["skipped"] == []
    assert "change things" in str(talk.server.chats[-1])


async def test_the_model_is_told_once_also_after_a_resume(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change things")
        await talk.run("/rewind 1 files yes")
        known = talk.conversation.session_id
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.say("and now?")

    sent = str(talk.server.chats[-1])
    assert sent.count("The user put files back as they were before message 1: a.txt") == 1
    assert "change things" in sent


async def test_files_that_were_not_saved_are_not_left_behind_without_a_word(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        await talk.say("change things")
        for lines in (talk.home / "checkpoints").glob("*/sessions/*.jsonl"):
            lines.write_text('{"number":1,"kind":"missed","messageId":1,"started":"2026-01-01T00:00:00.000Z"}\n')
        preview = await talk.run("/rewind 1")
        with pytest.raises(UsageError, match=r"not saved. Only the conversation goes back with /rewind 1 talk yes"):
            await talk.run("/rewind 1 yes")
        done = await talk.run("/rewind 1 talk yes")

    assert "Files stay as they are" in preview.text
    assert "To confirm: /rewind 1 talk yes." in preview.text
    assert done.text == "Rewound to before message 1."
