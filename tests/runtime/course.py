"""A conversation of which every line is recorded: requests, events and replies to commands."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.errors import OllmError
from ollm.domain.events import AnyEvent, ConfirmationRequested
from ollm.domain.tools import ConfirmationAnswer
from tests.recorded_courses import compare_course
from tests.runtime.talking import Talk

RECORDED = Path(__file__).with_name("recorded")
# What is counted, what a clock says and what is told to every model changes for reasons of its own.
LEFT_OUT = {
    *("context-usage", "prefill-progress", "text-delta", "thinking-delta"),
    *("message-recorded", "tool-call-recorded", "session-saved"),
}
UNSTEADY = {
    "sessionId",
    "timestamp",
    "seconds",
    "tokenCount",
    "tokens",
    "seq",
    "promptTokens",
    "window",
    "size",
    "hash",
    "duration",
}
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
        compare_course(RECORDED / f"{name}.txt", self.lines)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in UNSTEADY}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
