"""Whole conversations, recorded: every request, every event, every reply to a command, and what is kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from ollm.domain.tools import ConfirmationAnswer
from tests.runtime.course import Course
from tests.runtime.talking import Talking
from tests.servers.answers import Answer

pytestmark = pytest.mark.usefixtures("steady")


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
        await course.run("/diff", "/undo", "/redo", "/undo", "/undo", "/diff 1", "/diff 9", "/diff x")
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
