"""Commands about the session."""

import json
import os

import pytest

from ollm.domain.errors import UsageError
from ollm.domain.events import TurnFinished
from ollm.domain.messages import TextPart
from tests.covers import covers
from tests.runtime.talking import Talking
from tests.servers.answers import Answer


@covers("H479", "H480", "H481", "H482", "H620", "H621")
async def test_history_shows_everything_in_full_and_exports_it(talking: Talking) -> None:
    script = [Answer(calls=[("ls", {})], thinking="let me look"), "Nothing here."]
    async with talking(script) as talk:
        await talk.say("what is here?")
        shown = await talk.run("/history")
        await talk.run("/export talk.md")
        await talk.run("/export talk.json")
        os.mkfifo(talk.workspace / "pipe.md")
        for name in ("talk.md", "pipe.md"):
            with pytest.raises(UsageError, match="already exists"):
                await talk.run(f"/export {name}")
        with pytest.raises(UsageError, match=r"No such directory: .*/gone"):
            await talk.run("/export gone/talk.md")
        for name, said in (("talk.txt", "Cannot tell the format"), ("n" * 300 + ".md", "File name too long")):
            with pytest.raises(UsageError, match=said):
                await talk.run(f"/export {name}")

    for part in ("#1 user", "what is here?", "> let me look", "`ls` {}", "Nothing here."):
        assert part in shown.text
    assert "what is here?" in (talk.workspace / "talk.md").read_text()
    assert len(json.loads((talk.workspace / "talk.json").read_text())["messages"]) == 4


async def test_the_history_shows_what_was_typed_as_it_was_typed(talking: Talking) -> None:
    async with talking(["Yes."]) as talk:
        await talk.say("# one\n*two*\n~~~\n  three")
        shown = (await talk.run("/history")).text

    assert "~~~~\n# one\n*two*\n~~~\n  three\n~~~~" in shown


async def test_long_texts_are_folded_in_the_history_unless_all_is_asked_for(talking: Talking) -> None:
    async with talking(["Yes."]) as talk:
        await talk.say("\n".join(f"row {number}" for number in range(300)))
        shown, whole, last = [(await talk.run(f"/history{more}")).text for more in ("", " all", " 2")]

    assert "row 11\n… 288 more lines: /expand 1\n~~~" in shown
    assert "row 299" in whole
    assert "row 299" in last


async def test_continue_names_the_loop_to_the_model(talking: Talking) -> None:
    script = [Answer(calls=[("ls", {})]) for _ in range(3)]
    async with talking([*script, "done"]) as talk:
        events = await talk.say("list")
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].reason == "loop"
        await talk.say((await talk.run("/continue")).argument)

    assert "not like this again" in talk.server.chats[-1]["messages"][-1]["content"]


async def test_a_page_of_the_history_says_what_came_before(talking: Talking) -> None:
    async with talking(["one", "two"]) as talk:
        assert (await talk.run("/history")).text == "No messages yet."
        await talk.say("first")
        await talk.say("second")
        page = await talk.run("/history 1")

        assert page.text.startswith("3 earlier messages: `/history all`.")
        assert [found["id"] for found in page.data] == [4]
        assert len((await talk.run("/history all")).data) == 4
        with pytest.raises(UsageError, match=r"Usage: /history \[N"):
            await talk.run("/history some")
        with pytest.raises(UsageError, match="Usage: /export"):
            await talk.run("/export")


async def test_the_last_answer_is_copied_and_changes_are_shown(talking: Talking) -> None:
    call = Answer(text="Writing.", calls=[("write_file", {"path": "a.txt", "content": "new\n"})])
    async with talking([call, "All done."], yes=True) as talk:
        with pytest.raises(UsageError, match="There is no answer to copy yet"):
            await talk.run("/copy")
        assert (await talk.run("/diff")).text == "This session changed no files."
        await talk.say("write")

        assert (await talk.run("/copy")).text == "All done."
        changes = await talk.run("/diff")
        assert "+new" in changes.text
        assert len(changes.data["diffs"]) == 1


async def test_other_sessions_are_listed_and_opened_by_a_unique_beginning(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        assert (await talk.run("/sessions")).text == "No sessions in this workspace yet."
        await talk.say("hello")
        known = talk.conversation.session_id
        listed = await talk.run("/sessions")
        assert listed.data == [known]
        assert "| hello | scripted |" in listed.text
        reply = await talk.run(f"/resume {(known or '')[:6]}")
        assert (reply.follow_up, reply.argument) == ("open-session", known)
        with pytest.raises(UsageError, match="0 sessions start with 'zzz'"):
            await talk.run("/sessions zzz")


@pytest.mark.parametrize(
    ("line", "follow_up", "argument"),
    [
        ("/new", "new-session", ""),
        ("/clear", "new-session", ""),
        ("/exit", "exit", ""),
        ("/quit", "exit", ""),
        ("/continue", "send", "Go on."),
        ("/continue with tests", "send", "Go on. with tests"),
    ],
)
async def test_what_only_a_front_end_can_do_is_asked_of_it(
    talking: Talking, line: str, follow_up: str, argument: str
) -> None:
    async with talking() as talk:
        reply = await talk.run(line)

    assert (reply.follow_up, reply.argument) == (follow_up, argument)


async def test_what_is_copied_is_the_last_that_the_model_said_in_words(talking: Talking) -> None:
    async with talking(["First.", Answer(thinking="hm", calls=[("ls", {})]), ""]) as talk:
        await talk.say("hello")
        await talk.say("again")

        assert (await talk.run("/copy")).text == "First."


async def test_a_new_session_has_the_model_that_was_chosen(talking: Talking) -> None:
    async with talking() as talk:
        await talk.run("/model other")
        reply = await talk.run("/new")

    assert (reply.text, reply.follow_up, reply.argument) == ("New session.", "new-session", "other")


async def test_init_asks_for_a_file_about_the_project(talking: Talking) -> None:
    async with talking() as talk:
        reply = await talk.run("/init in German")

    assert reply.follow_up == "send"
    assert reply.argument.startswith("Write AGENTS.md for this project.")
    assert reply.argument.endswith(" in German")


async def test_long_histories_are_shown_from_their_end_and_a_silent_answer_is_not_copied(talking: Talking) -> None:
    async with talking(["said", Answer(text=" ", calls=[("ls", {})]), " \n"]) as talk:
        await talk.say("one")
        recorder = talk.conversation.parts.session
        for number in range(199):
            await recorder.record_message("user", (TextPart(text=f"more {number}"),))
        shown = await talk.run("/history")

        assert len(shown.data) == 200
        assert shown.text.startswith("1 earlier messages: `/history all`.\n\n**#2 assistant**")
        assert len((await talk.run("/history all")).data) == 201
        assert (await talk.run("/copy")).text == "said"
        await talk.say("two")
        with pytest.raises(UsageError, match="There is no answer to copy yet"):
            await talk.run("/copy")


async def test_of_two_sessions_each_is_named_by_as_much_as_tells_it_apart(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.say("hello")
    async with talking(["two"]) as talk:
        await talk.say("again")
        listed = await talk.run("/sessions")

    newest, oldest = listed.data
    short = [next(found for found in range(8, 37) if not oldest.startswith(newest[:found]))] * 2
    assert listed.text == (
        "| session | title | model |  |\n| --- | --- | --- | --- |\n"
        f"| {newest[: short[0]]} | again | scripted | active |\n| {oldest[: short[1]]} | hello | scripted | closed |"
    )
