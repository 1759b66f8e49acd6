"""Forks: a new session from any message of another, which stays as it is."""

import json
from pathlib import Path
from typing import Any

from ollm.cli.sessions.session_list import SessionListItem
from ollm.domain.session import arrange_forks
from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.servers.answers import Answer

WRITE = Answer(calls=[("write_file", {"path": "a.txt", "content": "one\n"})])


async def begin(runner: Runner) -> tuple[str, bytes]:
    await runner.run("-p", "write the file", "--yes")
    await runner.run("--continue", "-p", "second question")
    (path,) = (runner.home / "sessions").glob("*.json")
    return path.stem, path.read_bytes()


async def read_json(runner: Runner, *arguments: str) -> Any:
    done = await runner.run(*arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


async def test_a_fork_has_the_messages_up_to_a_number_and_lives_on_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, [WRITE, "Written.", "Second answer.", "Third answer."]) as runner:
        parent, before = await begin(runner)
        fork = await read_json(runner, "sessions", "fork", parent, "--at", "2")
        listed = await read_json(runner, "sessions", "list")
        document = await read_json(runner, "sessions", "view", fork["sessionId"])
        asked = await runner.run("--session", fork["sessionId"], "-p", "other question")
        found = await read_json(runner, "sessions", "search", "other", "question")
        rewound = await read_json(runner, "sessions", "rewind", fork["sessionId"], "--to", "1", "--files")
        unchanged = (runner.home / "sessions" / f"{parent}.json").read_bytes()
        checked = await runner.run("sessions", "check")
        deleted = await runner.run("sessions", "delete", parent, "--yes")
        left = await read_json(runner, "sessions", "list")
        wrong = await runner.run("sessions", "fork", fork["sessionId"], "--at", "99")

    assert (fork["messageId"], fork["messageCount"]) == (2, 3)  # a call comes with its result
    assert {row["sessionId"]: row["parent"] for row in listed} == {
        parent: None,
        fork["sessionId"]: {"sessionId": parent, "messageId": 2},
    }
    assert document["metadata"]["parent"] == {"sessionId": parent, "messageId": 2}
    original = json.loads(before)
    assert document["messages"] == original["messages"][:3]
    assert document["toolCalls"] == original["toolCalls"]
    assert 0 < document["metadata"]["tokenCount"] < original["metadata"]["tokenCount"]
    assert asked.code == 0
    sent = [(message["role"], message["content"] or "") for message in runner.server.chats[-1]["messages"]]
    assert [role for role, _ in sent][-4:] == ["user", "assistant", "tool", "user"]
    assert not any("second question" in text for _, text in sent)
    assert [hit["sessionId"] for hit in found] == [fork["sessionId"]] * len(found) != []
    assert rewound["files"] == []
    assert (runner.workspace / "a.txt").read_text() == "one\n"
    assert unchanged == before
    assert checked.code == 0, checked.out
    assert deleted.code == 0
    assert [row["sessionId"] for row in left] == [fork["sessionId"]]
    assert (wrong.code, "no message 99" in wrong.err) == (2, True)


async def test_the_chat_goes_on_in_the_fork_and_the_picker_shows_the_tree(tmp_path: Path) -> None:
    async with running(tmp_path, [WRITE, "Written.", "Second answer.", "Third answer."]) as runner:
        parent, before = await begin(runner)
        async with at_terminal(runner, "--session", parent) as terminal:
            await terminal.wait_for("Second answer.")
            terminal.type("/fork 4" + ENTER)
            await terminal.wait_for("Forked session", "Session resumed.")
            terminal.type("another way" + ENTER)
            await terminal.wait_for("● Third answer.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for(" write the file (from #4)")  # its parent is in the list of one-shots
            terminal.type("\x03")
            await terminal.ended()
        rows = await read_json(runner, "sessions", "list")
        assert "↳ write the file (from #4)" in (await runner.run("-p", "/sessions")).out

    assert rows[0]["parent"] == {"sessionId": parent, "messageId": 4}
    assert rows[0]["messageCount"] == 6
    after = (runner.home / "sessions" / f"{parent}.json").read_bytes()
    assert json.loads(after)["messages"] == json.loads(before)["messages"]
    assert not any("second question" in str(message["content"]) for message in runner.server.chats[-1]["messages"])


def test_the_tree_keeps_every_session_even_if_parents_form_a_circle() -> None:
    def item(name: str, parent: str | None = None) -> SessionListItem:
        return SessionListItem(session_id=name, title=name, model="", updated_at=0, parent=parent)

    tree = arrange_forks([item("b", "a"), item("x"), item("c", "b"), item("a"), item("d", "a"), item("lost", "gone")])
    circle = arrange_forks([item("a", "b"), item("b", "a"), item("self", "self")])

    assert [line.title for line in tree] == ["a", "↳ b", "  ↳ c", "↳ d", "x", "lost"]
    assert sorted(line.session_id for line in circle) == ["a", "b", "self"]
