"""`/diff`: what changed, and where that is not known."""

from typing import Any

import pytest

from ollm.domain.errors import UsageError
from tests.runtime.talking import Talking
from tests.servers.answers import Answer

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
        await talk.say("change it")
        await talk.say("edit it")
        await talk.say("only talk")
        whole = await talk.run("/diff")
        first, second = await talk.run("/diff 1"), await talk.run("/diff 5")
        with pytest.raises(UsageError, match=r"not saved|are off"):
            await talk.run("/rewind 1 files yes")

    assert "changed no files" not in whole.text
    assert "What commands changed is not known: the files were not saved." in first.text
    assert first.data["diffs"] == []
    assert "+edited" in second.text
    assert [turn["kind"] for turn in whole.data["turns"]] == ["missed", "missed"]


async def test_turns_whose_saved_files_are_gone_are_named(talking: Talking) -> None:
    async with talking([CHANGE, "Done.", CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change it")
        checkpoints, known = talk.conversation.parts.checkpoints.get(), talk.conversation.session_id
        assert known
        (lines,) = (talk.home / "checkpoints").glob("*/sessions/*.jsonl")
        lines.write_text(lines.read_text().replace('"started":"20', '"started":"19'))
        checkpoints._cleaned = False
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


async def test_a_diff_shows_what_commands_changed_turn_by_turn(talking: Talking) -> None:
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

    for part in ("**Message #1**", "-precious", "+x", "**Message #5**", "(mode 644 → 755)", "→ a.txt", "(not text)"):
        assert part in shown.text
    assert [turn["messageId"] for turn in last.data["turns"]] == [5]
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
    assert "+newer" in shown.text
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


def edit(*diffs: str | None) -> list[dict[str, Any]]:
    return [{"result": {"diff": diff} if diff else None} for diff in diffs]
