"""What the services promise is seen through the command: switch one off in the product and a test here fails."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, Runner, running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer

STORY = " ".join(
    f"Point {number} is about thing {number * number % 97} of {chr(97 + number % 26) * 4}." for number in range(60)
)

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def configure(runner: Runner, **sections: dict[str, Any]) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps(sections))


async def ask(runner: Runner, text: str, *more: str) -> Ended:
    done = await runner.run("-p", text, "--yes", *more)
    assert done.code == 0, done.err
    return done


def read_prompt(runner: Runner, number: int = -1) -> str:
    return json.dumps(runner.server.chats[number]["messages"], ensure_ascii=False)


@covers("S8.4", "D193", "H612", "P12")
@pytest.mark.parametrize(("strategy", "asked"), [("truncate", False), ("hybrid", True), ("summarize", True)])
async def test_the_strategy_decides_whether_a_model_writes_the_summary(
    tmp_path: Path, strategy: str, asked: bool
) -> None:
    async with running(tmp_path, [f"Noted. {STORY}"] * 12, window=8192) as runner:
        configure(runner, compression={"strategy": strategy, "preserveRecent": 256, "idle": "off"})
        await ask(runner, "Remember the number 4711.")
        await ask(runner, "Go on.", "--continue")
        before = len(runner.server.chats)
        await ask(runner, "/compact", "--continue")
        summaries = runner.server.chats[before:]
        await ask(runner, "And now?", "--continue")

    assert bool(summaries) == asked
    assert len(read_prompt(runner)) < len(read_prompt(runner, before - 1)) + len(STORY)
    assert "Remember the number 4711." in read_prompt(runner), "what the user said stays as it was said"


@covers("W98")
async def test_a_turn_in_an_open_chat_sets_the_time_of_its_session(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(text="First.", delay=0.1)]) as runner:
        async with at_terminal(runner, "chat", "--new", OLLM_PLAIN="1") as terminal:
            await terminal.wait_for("\n>")
            terminal.type("hi\n")
            await terminal.wait_for("First.")
            async with asyncio.timeout(60):
                while not [row for row in read_times(runner) if row[0] < row[1]]:
                    await asyncio.sleep(0.1)
            ((_, after_turn),) = read_times(runner)
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0

    assert read_times(runner)[0][1] > after_turn, "the close sets it too"


def read_times(runner: Runner) -> list[tuple[int, int]]:
    with suppress(sqlite3.Error), closing(sqlite3.connect(runner.workspace / ".ollm" / "memory.db")) as connection:
        return connection.execute("SELECT created_at, updated_at FROM chat_sessions").fetchall()
    return []


@covers("D247")
async def test_two_turns_may_make_the_same_calls(tmp_path: Path) -> None:
    look = Answer(calls=[("ls", {})])
    async with running(tmp_path, [look, look, "First.", look, look, "Second."]) as runner:
        async with at_terminal(runner, "chat", "--new", OLLM_PLAIN="1") as terminal:
            await terminal.wait_for("\n>")
            for text in ("First.", "Second."):
                terminal.type("look\n")
                await terminal.wait_for(text)
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0

    assert len(runner.server.chats) == 6


@covers("D248")
async def test_the_same_call_now_and_then_is_no_loop(tmp_path: Path) -> None:
    lines = ["echo a", "echo a", "echo b", "echo a", "echo a", "echo c", "echo a", "echo a", "echo d"]
    script = [Answer(text=f"Step {at}.", calls=[("shell", {"command": line})]) for at, line in enumerate(lines)]
    async with running(tmp_path, [*script, "Done."]) as runner:
        done = await ask(runner, "go")

    assert done.out.endswith("Done.\n")
    assert len(runner.server.chats) == len(lines) + 1


@covers("D248")
async def test_a_cycle_is_found_in_the_newest_calls_whatever_came_before(tmp_path: Path) -> None:
    lines = ["echo first", *["echo a", "echo b"] * 4]
    script = [Answer(text=f"Step {at}.", calls=[("shell", {"command": line})]) for at, line in enumerate(lines)]
    async with running(tmp_path, [*script, "Done."]) as runner:
        done = await runner.run("-p", "go", "--yes")

    assert "Stopped: the model is looping: the same 2 calls were repeated 3 times" in done.err
    assert len(runner.server.chats) == 7, "the third round is not finished"


@covers("D260", "P19")
@pytest.mark.parametrize(("seconds", "there"), [(0, False), (3600, True)])
async def test_an_entry_of_a_hook_lasts_from_the_time_it_was_added(tmp_path: Path, seconds: int, there: bool) -> None:
    entry = {"key": "build", "content": "THE BUILD IS GREEN", "ttl": seconds or 1}
    async with running(tmp_path, [Answer(text="First.", delay=0 if seconds else 2), "Second."]) as runner:
        configure(runner, hooks={"session-start": [f"echo '{json.dumps({'context': [entry]})}'"]})  # type: ignore[arg-type]
        async with at_terminal(runner, "chat", "--new", OLLM_PLAIN="1") as terminal:
            await terminal.wait_for("\n>")
            for text in ("First.", "Second."):
                terminal.type("hi\n")
                await terminal.wait_for(text)
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0

    assert "THE BUILD IS GREEN" in read_prompt(runner, 0) or not seconds
    assert ("THE BUILD IS GREEN" in read_prompt(runner, 1)) == there


@covers("H281", "H303", "H50", "H51", "H251", "H318")
@pytest.mark.parametrize("thinks", [True, False])
async def test_a_snapshot_says_what_was_asked_and_whether_the_model_thinks(tmp_path: Path, thinks: bool) -> None:
    answer = Answer(text="It is blue.", thinking="Let me think of doors." if thinks else "")
    async with running(tmp_path, [answer]) as runner:
        await ask(runner, "Which colour has the door?")
        await ask(runner, "/goal set Paint the door", "--continue")
        taken = await ask(runner, "/context snapshot", "--continue")
        await ask(runner, "/mode plan", "--continue")
        listed = await runner.run("snapshots", "list")
        newer, shown = json.loads((await runner.run("snapshots", "list", "--json")).out)
        document = json.loads((await runner.run("snapshots", "show", shown["id"], "--json")).out)

    assert taken.code == 0
    assert "Which colour has the door?" in " ".join(listed.out.split())
    assert document["metadata"]["isReasoningModel"] is thinks
    assert [goal["text"] for goal in document["goalStack"]["goals"]] == ["Paint the door"]
    thoughts = [trace["text"] for trace in document["reasoningStorage"]["traces"]]
    assert thoughts == (["Let me think of doors."] if thinks else [])
    assert (shown["trigger"], newer["trigger"]) == ("manual", "mode"), "another mode is a change of the context"
    (index,) = runner.home.rglob("snapshots-index.json")
    assert json.loads(index.read_text()) == [shown, newer]


@covers("S1.8", "D113", "D114", "H84", "H481", "P3", "P13")
async def test_the_archive_names_the_model_and_every_compression_and_the_history_its_times(tmp_path: Path) -> None:
    async with running(tmp_path, [f"Noted. {STORY}"] * 8, window=8192) as runner:
        configure(runner, compression={"strategy": "truncate", "preserveRecent": 256, "idle": "off"})
        await ask(runner, "Remember the number 4711.")
        await ask(runner, "Go on.", "--continue")
        (before,) = runner.sessions()
        await ask(runner, "/compact", "--continue")
        await ask(runner, "And then?", "--continue")
        await ask(runner, "/compact", "--continue")
        history = await ask(runner, "/history", "--continue")

    (session,) = runner.sessions()
    assert (session["model"], session["provider"]) == ("scripted", "openai")
    assert session["sessionId"] == before["sessionId"]
    assert TIME.fullmatch(session["startTime"])
    assert session["startTime"] == before["startTime"] < before["lastActivity"] <= session["lastActivity"]
    assert session["metadata"]["tokenCount"] < 3 * len(STORY), "tokens, not letters"
    assert session["metadata"]["tokenCount"] > 3 * len(STORY) // 8
    assert (before["metadata"]["compressionCount"], session["metadata"]["compressionCount"]) == (0, 2)
    first, second = session["metadata"]["compressionHistory"]
    assert all(one["compressedTokenCount"] < one["originalTokenCount"] for one in (first, second))
    assert TIME.fullmatch(first["timestamp"])
    assert first["timestamp"] < second["timestamp"]
    assert len(re.findall(r"^\*\*#\d (?:user|assistant)\*\* (?:just now|.* ago)$", history.out, re.MULTILINE)) == 6


PLAN = Answer(calls=[("write_todos", {"action": "add", "text": "paint the door"})])


@covers("W121", "W122", "W157", "W68")
async def test_a_resume_holds_summary_and_plan_step_and_says_to_go_on(tmp_path: Path) -> None:
    script = ["The door is blue.", PLAN, "Planned.", "Going on."]
    async with running(tmp_path, script, models=("scripted", "other")) as runner:
        await ask(runner, "Which colour has the door?")
        await ask(runner, "Plan it.", "--continue")
        await ask(runner, "go on", "--continue", "--model", "other")

    said = runner.server.chats[-1]["messages"]
    newest = str(said[-1]["content"])
    assert ("assistant", "The door is blue.") in [(one["role"], one["content"]) for one in said], "the recent messages"
    assert "conversation is resumed" in newest
    assert "Current step: paint the door" in newest
    assert "Which colour has the door?" in newest, "the notes of what was said"
    assert re.search(r"[Cc]ontinue", newest.partition("Current step")[2])


@covers("T10.3", "T10.4")
@pytest.mark.parametrize(
    ("name", "arguments", "touched"),
    [
        ("write_file", {"path": "sub/new.txt", "content": "x"}, "sub/new.txt"),
        ("edit_file", {"path": "old.txt", "edits": [{"target": "text", "replacement": "x"}]}, "old.txt"),
        ("read_file", {"path": "/etc/hostname"}, "/etc/hostname"),
        ("shell", {"command": "touch made.txt"}, "touch made.txt"),
        ("read_file", {"path": "old.txt"}, ""),
        ("ls", {}, ""),
    ],
)
async def test_what_must_be_confirmed_is_said_with_what_it_touches(
    tmp_path: Path, name: str, arguments: dict[str, Any], touched: str
) -> None:
    async with running(tmp_path, [Answer(calls=[(name, arguments)]), "Done."]) as runner:
        (runner.workspace / "old.txt").write_text("text\n")
        done = await runner.run("-p", "go", "-o", "json")

    (call,) = json.loads(done.out)["toolCalls"]
    assert (call["status"] == "denied") == bool(touched), call
    if touched:
        assert touched in json.dumps(call["result"]) + done.err
    assert not (runner.workspace / "sub").exists()
    assert not (runner.workspace / "made.txt").exists()


@covers("D285", "P19", "P21")
async def test_entries_of_different_sources_stand_apart_under_their_names(tmp_path: Path) -> None:
    entries = [{"key": f"key {at}", "content": f"{'TEXT ' * 40}{at}", "priority": at} for at in (10, 90, 50)]
    async with running(tmp_path, ["one"]) as runner:
        configure(runner, hooks={"session-start": [f"echo '{json.dumps({'context': entries})}'"]})  # type: ignore[arg-type]
        await ask(runner, "hi")

    system = runner.server.chats[0]["messages"][0]["content"]
    found = re.findall(r"^## From a hook: (key \d+)\n\n(TEXT .*)$", system, re.MULTILINE)
    assert found == [(f"key {at}", f"{'TEXT ' * 40}{at}") for at in (90, 50, 10)]


@covers("S1.8", "D113")
async def test_the_token_count_holds_what_was_said_and_what_tools_brought(tmp_path: Path) -> None:
    count = Answer(calls=[("shell", {"command": "seq 1001 1400"})])
    async with running(tmp_path, ["Hello.", count, "Counted.", "Bye."], window=32_768) as runner:
        tokens = [0]
        for text, *more in (("hi",), ("count", "--continue"), ("bye", "--continue")):
            await ask(runner, text, *more)
            tokens.append(runner.sessions()[0]["metadata"]["tokenCount"])

    said, counted, thanked = (after - before for before, after in pairwise(tokens))
    assert 2 <= said < 20
    assert 400 < counted < 4000
    assert 2 <= thanked < 20


@covers("P28", "S10.7")
async def test_neither_an_error_nor_the_log_holds_a_secret(tmp_path: Path) -> None:
    secrets = {"MY_TOKEN": "sesame-street-4711", "PLAINLY": "hidden-by-rule-4712"}
    refused = Answer(status=400, body={"error": {"message": f"{' or '.join(secrets.values())} is not known here"}})
    async with running(tmp_path, [f"Noted. {STORY}", f"Noted. {STORY}", *[refused] * 4], window=8192) as runner:
        configure(
            runner,
            compression={"strategy": "summarize", "preserveRecent": 256, "idle": "off"},
            environment={"denyPatterns": ["PLAIN*"]},
        )
        await ask(runner, "Remember the number 4711.")
        await ask(runner, "Go on.", "--continue")
        compacted = await runner.run("-p", "/compact", "--continue", **secrets)
        refused_turn = await runner.run("-p", "And now?", "--continue", **secrets)

    log = (runner.home / "logs" / "ollm.log").read_text()
    assert (compacted.code, refused_turn.code != 0) == (0, True)
    assert "is not known here" in refused_turn.err
    assert "is not known here" in log
    assert "sesame" not in refused_turn.err + log
    assert "hidden-by-rule" not in log


@covers("P13")
async def test_every_compression_of_an_open_chat_counts(tmp_path: Path) -> None:
    async with running(tmp_path, [f"{STORY}\nEnd {at}." for at in range(4)], window=8192) as runner:
        configure(runner, compression={"strategy": "truncate", "preserveRecent": 256, "idle": "off"})
        async with at_terminal(runner, "chat", "--new", OLLM_PLAIN="1") as terminal:

            def count_compacted(times: int) -> bool:
                return terminal.text().count("Compacted") == times

            await terminal.wait_for("\n>")
            for at, compacted in enumerate((0, 1, 1, 2)):
                terminal.type("Go on.\n")
                await terminal.wait_for(f"\nEnd {at}.\n>")
                terminal.type("/compact\n" if at % 2 else "")
                assert await terminal.wait_until(partial(count_compacted, compacted))
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0

    (session,) = runner.sessions()
    assert session["metadata"]["compressionCount"] == len(session["metadata"]["compressionHistory"]) == 2
