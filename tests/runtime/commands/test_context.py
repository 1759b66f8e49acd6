"""Commands about what the model sees."""

import json
import re

import pytest

from ollm.domain.errors import UsageError
from ollm.domain.events import TurnFinished
from tests.covers import covers
from tests.runtime.talking import Talking
from tests.servers.answers import Answer, Request


@covers("H257", "H258")
async def test_a_snapshot_brings_the_context_back(talking: Talking) -> None:
    async with talking(["one", "two", "three"]) as talk:
        await talk.say("first")
        taken = (await talk.run("/context snapshot")).data["id"]
        await talk.say("second")
        await talk.run(f"/context restore {taken[:6]}")
        await talk.say("third")

    assert [m["content"] for m in talk.server.chats[2]["messages"][1:]] == ["first", "one", "third"]


@covers("H253")
async def test_a_snapshot_brings_back_the_mode_with_its_tools_and_approval(talking: Talking) -> None:
    async with talking(["one", "two"]) as talk:
        await talk.run("/mode plan")
        await talk.say("first")
        taken = (await talk.run("/context snapshot")).data["id"]
        await talk.run("/mode code")
        await talk.run(f"/context restore {taken}")
        await talk.say("second")
        status = await talk.conversation.status()

    assert (status.mode, status.approval) == ("plan", "read-only")
    assert "edit_file" not in [tool["function"]["name"] for tool in talk.server.chats[1]["tools"]]
    assert talk.document["metadata"]["modeHistory"][-1]["to"] == "plan"


async def test_expand_shows_a_message_a_call_or_what_holds_some_words(talking: Talking) -> None:
    async with talking([Answer(calls=[("ls", {})]), "The parser is elsewhere."]) as talk:
        (talk.workspace / "lexer.py").write_text("x = 1\n")
        await talk.say("Where is the lexer?")
        call = talk.document["toolCalls"][0]["id"]

        assert "Where is the lexer?" in (await talk.run("/expand 1")).text
        assert "lexer.py" in (await talk.run("/expand #3")).text
        assert "lexer.py" in (await talk.run(f"/expand {call}")).text
        assert (await talk.run("/expand the PARSER")).data[0]["messageId"] == 4


@pytest.mark.parametrize(("window", "told"), [("1024", True), ("2048", False)])
async def test_a_window_too_small_to_work_in_is_told_and_used_all_the_same(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, window: str, told: bool
) -> None:
    monkeypatch.setenv("OLLM_CONTEXT_WINDOW", window)
    async with talking(["one", "two"]) as talk:
        notices = (await talk.conversation.status()).notices
        events = await talk.say("Read this. " * 400)
        reply = (await talk.run(f"/context size {window}")).text

    assert any("too small" in notice for notice in notices) is told
    assert ("too small" in reply) is told
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].reason == "answered"


async def test_entries_are_added_listed_removed_and_cleared(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        entries = talk.conversation.parts.prompt.entries
        entries.add_context("theirs", "x", source="system")
        assert (
            await talk.run("/context add a Use tabs.")
        ).text == "Added context entry 'a'; undo with /context remove a."
        await talk.run("/context add b Be brief.")
        await talk.run("/context add c Go on.")
        listed = await talk.run("/context entries")
        assert "| a | 50 | user | Use tabs. |" in listed.text
        assert (await talk.run("/context remove a")).text == "Removed context entry 'a'."
        with pytest.raises(UsageError, match="No context entry 'a'"):
            await talk.run("/context remove a")
        await talk.say("hello")
        assert "Be brief." in talk.server.chats[0]["messages"][0]["content"]

        assert (await talk.run("/context clear")).text == "Removed 2 context entries."
        assert [entry.key for entry in entries.get_context()] == ["theirs"]
        assert (await talk.run("/context clear")).data == {"removed": 0}


async def test_the_parts_of_the_context_are_shown_with_bars(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.say("hello")
        shown = await talk.run("/context")

        assert shown.data["used"] == talk.conversation.parts.prompt.used_tokens
        assert "| instructions | " in shown.text
        assert "checkpoints" not in shown.text
        longest = max(part["tokens"] for part in shown.data["parts"])
        assert f"| {longest} | {'█' * 30} |" in shown.text
        assert f"compaction starts at {shown.data['trigger']:,}." in shown.text


async def test_snapshots_need_a_session_and_are_named_by_a_unique_beginning(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        with pytest.raises(UsageError, match="No session yet"):
            await talk.run("/context snapshot")
        await talk.say("hello")
        assert (await talk.run("/context list")).text == "No snapshots yet."
        taken = (await talk.run("/context snapshot")).data["id"]
        assert taken[:8] in (await talk.run("/context list")).text
        with pytest.raises(UsageError, match="0 snapshots start with 'zzz'"):
            await talk.run("/context restore zzz")
        assert (await talk.run(f"/context restore {taken[:6]}")).text.startswith("Restored snapshot ")


@pytest.mark.parametrize(("turns", "words"), [(4, 35), (6, 45), (9, 60)])
async def test_compacting_never_makes_the_prompt_larger(talking: Talking, turns: int, words: int) -> None:
    def answer(request: Request) -> Answer:
        asked = json.dumps(request.body)
        text = "- The user wanted words and got words as asked. " * 8 if "ummar" in asked[-6000:] else "word " * words
        return Answer(text=text, prompt_tokens=len(asked) // 5)

    async with talking(answer) as talk:
        for number in range(turns):
            await talk.say(f"message {number} blah blah blah blah")
        said = (await talk.run("/compact")).text
        await talk.say("and now")

    counts = [int(count.replace(",", "")) for count in re.findall(r"[\d,]{3,}", said)]
    assert counts == sorted(set(counts), reverse=True)
    assert bool(counts) == (turns == 9), "short talk is left alone"
    tools = [tool["function"]["name"] for tool in talk.server.chats[-1]["tools"]]
    assert ("recall" in tools) == bool(counts)


async def test_a_reused_part_is_told_where_the_server_says_so(talking: Talking) -> None:
    counted = [Answer(text="two", cached_tokens=20), Answer(text="three", cached_tokens=8)]
    async with talking(["one", *counted]) as talk:
        await talk.say("hello")
        first = (await talk.run("/context")).text
        await talk.say("again")
        second = (await talk.run("/context")).text
        await talk.run("/context add style Be brief.")
        await talk.say("more")
        third = (await talk.run("/context")).text

    assert "reused" not in first
    assert "Prompt cache: 100% reused." in second
    assert re.search(r"Prompt cache: 40% reused; the .* changed\.", third)
