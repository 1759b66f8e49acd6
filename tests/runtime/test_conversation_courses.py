"""Whole conversations, recorded: every request, every event, every reply to a command, and what is kept of them."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.errors import OllmError
from ollm.domain.events import AnyEvent, ConfirmationRequested
from ollm.domain.tools import ConfirmationAnswer
from ollm.store.workspace_db import WorkspaceDatabase
from tests.recorded_courses import compare_course
from tests.runtime.talking import Talk, Talking
from tests.servers.answers import Answer

RECORDED = Path(__file__).with_name("recorded")
# What is counted, what a clock says and what is told to every model changes for reasons of its own.
LEFT_OUT = {"context-usage", "prefill-progress", "text-delta", "thinking-delta"}
UNSTEADY = {"seconds", "tokenCount", "tokens", "seq", "promptTokens", "window", "size", "hash", "duration"}
IDS = re.compile(r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,64}|[0-9a-f]{8}|call_\w+)\b")
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?|\b1[6-9]\d{11}\b")
COUNTS = re.compile(r"\| \d{3,5} \|")
AGES = re.compile(r"\b(?:just now|now|a minute ago|\d+ (?:s|seconds?|min|minutes?) ago)\b")


class Course:
    """A conversation and its lines."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.lines: list[str] = []
        self.ids: dict[str, str] = {}
        self.seen = 0
        self.last: list[Any] = []  # the messages of the last request
        self.answers: list[ConfirmationAnswer] = []

    def note(self, kind: str, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, sort_keys=True)
        for place, name in ((self.talk.workspace, "PROJECT"), (self.talk.home, "HOME")):
            text = text.replace(str(place), name)
        text = TIMES.sub("TIME", COUNTS.sub("| N |", AGES.sub("AGE", text))).replace(
            self.talk.server.base_url, "SERVER"
        )
        text = IDS.sub(lambda found: self.ids.setdefault(found[0], f"id{len(self.ids) + 1}"), text)
        self.lines += [f"{kind} {line}" for line in text.split("\n")]

    async def say(self, text: str) -> None:
        self.note("SAY", text)
        async with self.talk.conversation.turn(text) as events:
            async for event in events:
                self.note_event(event)
                if isinstance(event, ConfirmationRequested):
                    await self.talk.conversation.respond(event.correlation_id, self.answers.pop(0))
        for chat in self.talk.server.chats[self.seen :]:
            messages = chat["messages"][1:]
            same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(messages, self.last, strict=False))))
            self.note("  sent", f"{same} as before, {len(self.last) - same} not again")
            for message in messages[same:]:
                self.note("  sent", message)
            self.last = messages
        self.seen = len(self.talk.server.chats)

    def note_event(self, event: AnyEvent) -> None:
        said = msgspec.to_builtins(event)
        slow = "files before the first change" in said.get("text", "")
        if said["type"] not in LEFT_OUT and not slow:
            self.note("  event", said)

    async def run(self, *commands: str) -> None:
        for command in commands:
            self.note("RUN", command)
            try:
                reply = await self.talk.run(command)
            except OllmError as error:
                self.note("  error", f"{error.message} | {error.action}")
                continue
            self.note("  reply", reply.text)
            self.note("  data", [msgspec.to_builtins(reply.data), reply.ok, reply.follow_up, reply.argument])

    def end(self, name: str) -> None:
        """With what is kept."""
        self.note("KEPT", self.talk.document)
        database = WorkspaceDatabase(self.talk.workspace / ".ollm")
        session_id = self.talk.conversation.session_id or ""
        self.note("ROW", msgspec.to_builtins(database.get_session(session_id)))
        self.note("EPISODES", msgspec.to_builtins(database.list_episodes(session_id)))
        database.close()
        compare_course(RECORDED / f"{name}.txt", self.lines)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in UNSTEADY}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ollm.runtime.prompt.prefix.build_instructions", lambda window, mode: f"Help. Mode {mode}.")


def call(*calls: tuple[str, Any], **more: Any) -> Answer:
    return Answer(calls=list(calls), **more)


async def test_work_on_files_taken_back_and_put_back(talking: Talking) -> None:
    script = [
        call(("read_file", {"path": "a.txt"}), thinking="I look first."),
        call(("edit_file", {"path": "a.txt", "oldText": "two", "newText": "2"})),
        "Changed.",
        call(("write_file", {"path": "new/b.txt", "content": "b\n"}), ("shell", {"command": "rm gone.txt; echo out"})),
        "Both done.",
        call(("write_file", {"path": "a.txt", "content": "again\n"})),
        "Written.",
        "Nothing more.",
    ]
    async with talking(script, yes=True) as talk:
        course = Course(talk)
        (talk.workspace / "a.txt").write_text("one\ntwo\nthree\n")
        (talk.workspace / "gone.txt").write_text("gone\n")
        await course.run("/diff", "/rewind", "/redo", "/undo", "/history", "/copy", "/expand 1", "/sessions")
        await course.say("Change two to 2.")
        await course.run("/diff", "/undo", "/undo yes", "/undo yes", "/diff 1", "/diff 9", "/diff x")
        await course.say("Write b and remove gone.")
        await course.run("/rewind 7", "/rewind 7 files", "/rewind 2 talk", "/rewind 7 diff", "/rewind x", "/rewind 7 x")
        (talk.workspace / "new" / "b.txt").write_text("mine\n")
        await course.run("/rewind 7 files yes", "/diff", "/redo", "/redo", "/redo force", "/redo x")
        await course.run("/rewind 7 yes", "/history 2", "/redo", "/rewind 7 talk yes", "/rewind 7 talk yes")
        await course.say("Go on.")
        await course.run("/redo", "/diff", "/rewind 1 diff", "/rewind 1 force yes", "/redo", "/rewind 11", "/expand #1")
        await course.run("/expand rm", "/expand 99", "/expand c2", "/expand", "/history", "/history 0", "/history nine")
        await course.run("/copy", "/sessions", "/sessions zz", "/new", "/export")
        course.end("work")


async def test_goals_notes_and_settings_by_command(talking: Talking) -> None:
    async with talking(["One.", "Two.", "Three."]) as talk:
        course = Course(talk)
        await course.run("/goal", "/goal set Ship it", "/goal subtask One", "/goal decision Tabs", "/goal lock SQLite")
        await course.run("/goal artifact a.py", "/goal blocker No key", "/goal x y", "/goal set", "/goal")
        await course.run(
            "/todos", "/todos add first", "/todos add second", "/todos done 1", "/todos done 9", "/todos x"
        )
        await course.run(
            "/plan", "/plan pause", "/plan", "/plan resume", "/plan x", "/memory", "/memory set build make"
        )
        await course.run(
            "/memory set", "/memory", "/memory get build", "/memory get x", "/memory delete x", "/memory x"
        )
        await course.say("hello")
        await course.run("/mode", "/mode plan", "/mode plan", "/mode auto", "/mode nothing", "/mode code")
        await course.run("/approval", "/approval read-only", "/approval nothing", "/approval ask", "/permissions")
        await course.run("/model", "/model nothing", "/model other", "/model scripted", "/agents", "/skills", "/trust")
        await course.say("again")
        await course.run("/context add a", "/context add a Be brief.", "/context add b Be nice.", "/context entries")
        await course.run(
            "/context remove a", "/context remove a", "/context clear", "/context entries", "/context list"
        )
        await course.run(
            "/context size 511", "/context size 512", "/context size x", "/context size 8192", "/context x"
        )
        await course.run("/context restore", "/context restore zz", "/continue", "/continue now", "/init too")
        await course.run("/goal complete", "/goal", "/todos remove 1", "/todos", "/memory delete build", "/nothing")
        await course.run("/contex", "/clear", "/exit", "/mcp", "/resource")
        await course.say("last")
        course.end("settings")


async def test_what_goes_wrong_in_a_turn_and_what_is_asked(talking: Talking) -> None:
    refused, approved = ConfirmationAnswer(approved=False), ConfirmationAnswer(approved=True)
    script = [
        call(("nothing", {"a": 1}), ("read_file", {}), ("read_file", {"path": "missing.txt"}), ("ls", "{broken")),
        call(("read_file", {"path": "a.txt", "offset": "x"}), ("edit_file", {"path": "a.txt", "oldText": "zz"})),
        "I give up.",
        call(("shell", {"command": "echo hi > made.txt"}), text="May I?"),
        "Not allowed.",
        call(("write_file", {"path": "made.txt", "content": "x\n"}), ("shell", {"command": "exit 3"})),
        Answer(text="It ended so.", reason="length"),
        "",
        Answer(text="one two three four", reset_after=3),
        *[call(("ls", {"path": "."}))] * 3,
        Answer(text="Go on then.", prompt_tokens=400, completion_tokens=9, cached_tokens=40),
    ]
    async with talking(script) as talk:
        course = Course(talk)
        (talk.workspace / "a.txt").write_text("one\n")
        course.answers = [refused, approved, approved]
        for text in ("Try it.", "Make it.", "Make it now.", "And?", "Say four.", "List it."):
            await course.say(text)
        await course.run("/continue", "/diff", "/permissions")
        await course.say("Go on.")
        course.end("failures")
