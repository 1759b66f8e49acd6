"""Taking a session up again: what the model is sent, and what the workspace remembers."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import at_terminal
from tests.covers import covers
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


def sent(runner: Runner, number: int) -> list[tuple[str, str]]:
    return [(message["role"], message["content"] or "") for message in runner.server.chats[number]["messages"]]


def records(runner: Runner) -> list[sqlite3.Row]:
    with sqlite3.connect(runner.workspace / ".ollm" / "memory.db") as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT * FROM chat_sessions ORDER BY updated_at DESC").fetchall()


@covers("W14", "W111", "D755")
async def test_a_resume_sends_exactly_what_was_sent_before(tmp_path: Path) -> None:
    async with running(tmp_path, ["The parser is in src/parse.py.", "As I said."]) as runner:
        await runner.run("-p", "Where is the parser?")
        done = await runner.run("-p", "And the lexer?", "--continue")

    assert done.code == 0
    first, second = sent(runner, 0), sent(runner, 1)
    assert second[: len(first)] == first
    assert second[len(first)] == ("assistant", "The parser is in src/parse.py.")
    role, text = second[-1]
    assert role == "user"
    assert text == "And the lexer?"
    (session,) = runner.sessions()
    assert [message["role"] for message in session["messages"]] == ["user", "assistant"] * 2


@covers("W115", "W116", "W119", "W120", "W121", "W157", "W164")
async def test_a_resume_in_another_window_tells_the_model_where_the_work_stood(tmp_path: Path) -> None:
    async with running(tmp_path, ["The parser is in src/parse.py.", "As I said."]) as runner:
        await runner.run("-p", "Where is the parser?")
        (runner.home / "config.yaml").write_text("provider: {contextWindow: 16384}\n", encoding="utf-8")
        done = await runner.run("-p", "And the lexer?", "--continue")

    assert done.code == 0
    role, text = sent(runner, 1)[-1]
    assert role == "user"
    assert text.startswith("And the lexer?")
    assert "conversation is resumed" in text
    assert "Where is the parser?" in text


async def test_a_session_resumed_in_another_window_is_shown_in_that_window(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner:
        await runner.run("-p", "first", OLLM_CONTEXT_WINDOW="4096")
        await runner.run("-p", "second", "--continue", OLLM_CONTEXT_WINDOW="16384")
        shown = await runner.run("context", "show", "--json")

    assert json.loads(shown.out)["window"] == runner.sessions()[0]["metadata"]["contextWindow"] == 16384


@covers("W40", "W41", "W42", "W43", "W126", "W129", "W168", "W6", "W23")
async def test_the_workspace_keeps_a_record_of_each_session(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two"]) as runner:
        await runner.run("-p", "First thing\nwith more lines")
        await runner.run("-p", "Second thing")

    second, first = records(runner)
    assert (first["title"], second["title"]) == ("First thing", "Second thing")
    assert (first["model"], first["status"]) == ("scripted", "closed")
    assert json.loads(second["recent_messages"])[-1]["content"] == "two"
    assert "Second thing" in second["summary"]
    assert first["created_at"] <= first["updated_at"] <= second["updated_at"]


@covers("W142")
async def test_a_session_is_resumed_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two", "three"]) as runner:
        await runner.run("-p", "the older one")
        older = runner.sessions()[0]["sessionId"]
        await runner.run("-p", "the newer one")
        done = await runner.run("-p", "more", "--session", older[:8], "-o", "json")

    assert json.loads(done.out)["sessionId"] == older
    assert "the older one" in str(sent(runner, 2))


@covers("W158")
async def test_a_new_session_leaves_older_ones_alone(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two", "three"]) as runner:
        await runner.run("-p", "first")
        before = runner.sessions()[0]
        await runner.run("-p", "second")

    assert before in runner.sessions()
    assert sent(runner, 1)[-1][1] == "second"
    assert "first" not in str(sent(runner, 1)[1:])


@covers("W170")
async def test_without_the_database_a_session_is_taken_up_from_the_archive(tmp_path: Path) -> None:
    script = [Answer(calls=[("read_file", {"path": "a.txt"})]), "It holds 42.", "Yes, 42."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("42\n")
        await runner.run("-p", "what is in a.txt?")
        shutil.rmtree(runner.workspace / ".ollm")
        done = await runner.run("-p", "sure?", "--continue")

    assert done.code == 0
    roles = [role for role, _ in sent(runner, 2)]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert records(runner)[0]["title"] == "what is in a.txt?"


@covers("W12", "W63", "W125")
async def test_another_model_takes_a_session_up_from_summary_and_window(tmp_path: Path) -> None:
    script = [Answer(calls=[("read_file", {"path": "a.txt"})]), "one", "two"]
    async with running(tmp_path, script, models=("scripted", "other")) as runner:
        (runner.workspace / "a.txt").write_text("it holds 42\n")
        await runner.run("-p", "remember the blue door")
        window = json.loads(records(runner)[0]["recent_messages"])
        done = await runner.run("-p", "go on", "--continue", "--model", "other")

    assert "continuing with other" in done.err
    assert runner.server.chats[-1]["model"] == "other"
    assert [entry["role"] for entry in window] == ["user", "assistant", "tool", "assistant"]
    taken = runner.server.chats[-1]["messages"][1:]
    assert [message["role"] for message in taken] == ["user", "assistant", "tool", "assistant", "user"]
    assert "remember the blue door" in str(taken[0])
    (call,) = taken[1]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == (taken[2]["tool_call_id"], "read_file")
    assert "a.txt" in call["function"]["arguments"]
    assert "it holds 42" in taken[2]["content"]


@covers("W14")
@pytest.mark.parametrize("cap", ["messages: 4", "totalChars: 400"])
async def test_full_brings_back_what_the_window_had_no_room_for(tmp_path: Path, cap: str) -> None:
    script: list[Answer | str] = [f"answer number {n}" for n in range(31)]
    async with running(tmp_path, script) as runner:
        await runner.run("-p", "question 0")
        (runner.home / "config.yaml").write_text(f"resume:\n  {cap}\n")
        for n in range(1, 4):
            await runner.run("-p", f"question {n}", "--continue")
        shutil.rmtree(runner.workspace / ".ollm")
        await runner.run("-p", "short", "--continue")
        shutil.rmtree(runner.workspace / ".ollm")
        await runner.run("-p", "long", "--continue", "--full")

    assert "question 0" not in str(sent(runner, 4)[1:-1])
    assert "question 0" in str(sent(runner, 5)[1:-1])


async def test_a_session_of_another_workspace_is_refused_with_the_way_there(tmp_path: Path) -> None:
    async with ScriptedServer(["one", "two"]) as server:
        here, there = tmp_path / "here", tmp_path / "there"
        here.mkdir()
        there.mkdir()
        first, second = Runner(here, server), Runner(there, server)
        second.home = first.home
        await first.run("-p", "mine")
        session_id = first.sessions()[0]["sessionId"]
        done = await second.run("-p", "yours?", "--session", session_id)

    assert done.code == 2
    assert str(first.workspace) in done.err


async def test_a_moved_folder_keeps_its_sessions_and_a_copy_lists_where_they_come_from(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two", "three", "four", "five"]) as runner:
        await runner.run("-p", "first")
        (first,) = runner.sessions()
        moved = tmp_path / "moved"
        runner.workspace.rename(moved)
        runner.workspace = moved
        await runner.run("-p", "second", "--session", first["sessionId"])
        assert "first" in str(sent(runner, 1))
        shutil.copytree(moved, tmp_path / "copy")
        runner.workspace = tmp_path / "copy"
        await runner.run("trust", str(runner.workspace))
        done = await runner.run("-p", "third", "--continue")
        chosen = await runner.run("-p", "fourth", "--session", first["sessionId"])
        runner.workspace = moved
        assert (await runner.run("-p", "fifth", "--continue")).code == 0

    assert done.code == 0
    assert "first" not in str(sent(runner, 2))
    assert f"worked in {moved}; continuing in {tmp_path / 'copy'}" in chosen.err
    assert "fourth" in str(sent(runner, 4))
    with sqlite3.connect(tmp_path / "copy" / ".ollm" / "memory.db") as connection:
        facts = dict(connection.execute("SELECT name, value FROM identity").fetchall())
    with sqlite3.connect(moved / ".ollm" / "memory.db") as connection:
        original = dict(connection.execute("SELECT name, value FROM identity").fetchall())
    assert facts["id"] != original["id"]
    assert list(json.loads(facts["copied"])) == [str(moved)]
    assert str(tmp_path / "project") in json.loads(original["aliases"])


@covers("W119", "W120", "W126", "W129")
async def test_what_was_said_after_the_record_was_written_is_in_the_window_of_another_model(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two", "three"], models=("scripted", "other")) as runner:
        await runner.run("-p", "remember the blue door")
        shutil.copytree(runner.workspace / ".ollm", tmp_path / "older")
        await runner.run("-p", "and the red gate", "--continue")
        shutil.rmtree(runner.workspace / ".ollm")
        shutil.copytree(tmp_path / "older", runner.workspace / ".ollm")  # as if the program had been killed
        await runner.run("-p", "go on", "--continue", "--model", "other")

    words = [text for _, text in sent(runner, 2)[1:-1]]
    assert words == ["remember the blue door", "one", "and the red gate", "two"]
    assert "red gate" in sent(runner, 2)[-1][1]


async def test_a_resume_of_a_full_context_takes_no_second_snapshot_of_it(tmp_path: Path) -> None:
    answers = [*["blue doors and red gates " * 80] * 3, *["blue doors and red gates " * 24] * 27]
    async with running(tmp_path, answers) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("provider: {contextWindow: 4096}\ncompression: {enabled: false}\n")
        await runner.run("-p", "begin")
        taken: list[list[str]] = []
        while len(taken) < 20 and not any(taken[:-1]):
            done = await runner.run("-p", "and now?", "--continue")
            taken.append(sorted(path.name for path in runner.home.glob("context-snapshots/*/snapshots/snapshot-*")))

    assert done.code == 0, "there was room for one more turn above the threshold"
    assert len(taken[-2]) == 1
    assert taken[-1] == taken[-2]


async def test_a_session_that_went_on_elsewhere_is_resumed_from_its_newest_messages(tmp_path: Path) -> None:
    async with running(tmp_path, ["Noted."] * 9) as runner:
        await runner.run("-p", "Begin")
        (document,) = runner.home.glob("sessions/*.json")
        session = json.loads(document.read_text(encoding="utf-8"))
        first = session["messages"][0]
        session["messages"] += [
            {**first, "id": number, "parts": [{"type": "text", "text": f"Row {number} of /data/part-{number}.csv."}]}
            for number in range(3, 4_003)
        ]
        document.write_text(json.dumps(session), encoding="utf-8")
        done = await runner.run("-p", "And now?", "--continue")

    assert done.code == 0
    text = json.dumps(runner.server.chats[-1]["messages"])
    assert "Row 4002 of" in text
    assert "Row 3 of" not in text
    assert len(runner.server.chats) < 5


async def test_a_moved_folder_keeps_its_sessions_and_says_where_they_come_from(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two", "three", "four"]) as runner:
        (runner.workspace / "AGENTS.md").write_text("Speak briefly.\n")
        await runner.run("trust", "--yes")
        await runner.run("-p", "the blue door")
        (session,) = runner.sessions()
        before = runner.workspace
        runner.workspace = before.rename(tmp_path / "moved")
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("Trust them?")
            terminal.type("n\r")
            await terminal.wait_for("moved from")
        named = await runner.run("-p", "and now?", "--session", session["sessionId"][:8])
        shutil.copytree(runner.workspace, tmp_path / "copy")
        runner.workspace = runner.workspace.rename(tmp_path / "again")
        newest = await runner.run("-p", "still there?", "-c")
        runner.workspace = tmp_path / "copy"
        copied = await runner.run("-p", "what about you?", "-c")

    assert f"moved from {before};" in named.err
    assert f"moved from {tmp_path / 'moved'};" in newest.err
    assert "No session in this workspace yet" in copied.err
    assert [message["content"] for message in runner.server.chats[2]["messages"] if message["role"] == "user"] == [
        "the blue door",
        "and now?",
        "still there?",
    ]


async def test_a_strangers_memory_is_not_taken_for_that_of_a_moved_folder(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two"]) as runner:
        await runner.run("-p", "the blue door")
        runner.workspace = runner.workspace.rename(tmp_path / "moved")
        with sqlite3.connect(runner.workspace / ".ollm" / "memory.db") as connection:
            connection.execute("UPDATE identity SET value = 'guessed' WHERE name = 'id'")
        done = await runner.run("-p", "and now?", "-c")

    assert "came with this folder and is not used" in done.err
    assert "the blue door" not in str(runner.server.chats[1])
