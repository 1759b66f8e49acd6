"""Recorded messages (S2.2), their parts, and the form in which they are sent to a model."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, Literal

import msgspec

from ollm.domain.struct import Data, SparseData

Role = Literal["user", "assistant", "system", "tool"]
JsonObject = dict[str, Any]
ThinkingField = Literal[
    "", "reasoning_content", "reasoning", "thinking", "text"
]  # The value "text" means tags in the answer.
UNPARSED_KEY = "_unparsed"  # It holds arguments that are not a JSON object.


class MessagePart(msgspec.Struct, frozen=True, rename="camel", tag_field="type"):
    """A part of a message. Arguments and results of calls are stored once, in the session's `toolCalls`."""


class TextPart(MessagePart, frozen=True, tag="text"):
    text: str


class ThinkingPart(MessagePart, frozen=True, tag="thinking", omit_defaults=True):
    """Thinking, the field in which the server sent it, and the server's own form of it, which goes back untouched."""

    text: str
    field: ThinkingField = ""
    details: tuple[JsonObject, ...] = ()


PICTURE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # Browsers show them too.


class ImagePart(MessagePart, frozen=True, tag="image"):
    media_type: str
    data: str  # It is base64.


class ToolCallPart(MessagePart, frozen=True, tag="tool_call"):
    id: str


class ToolResultPart(MessagePart, frozen=True, tag="tool_result"):
    id: str


AnyPart = TextPart | ThinkingPart | ImagePart | ToolCallPart | ToolResultPart


_CALL_PARTS = (ToolCallPart, ToolResultPart)


class Message(SparseData, frozen=True):
    """A recorded message. Its id is its number in the session, from 1; 0 means not recorded yet."""

    role: Role
    parts: tuple[AnyPart, ...]
    timestamp: str
    id: int = 0
    interrupted: bool = False
    cut: str = ""  # It is the text after a tool call: stored, never shown or sent.
    written: str = ""  # It is the model's own text up to the call, if calls were parsed from text.
    origin: str = ""  # An answer has a hash of its server and model here, a request the paired device.

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ThinkingPart))

    @property
    def mark(self) -> str:
        """The note beside the role: an interruption, or the paired device that sent it."""
        sent = f" from {self.origin}" if self.role == "user" and self.origin else ""
        return f"{sent} (interrupted)" if self.interrupted else sent

    @property
    def call_ids(self) -> tuple[str, ...]:
        """Ids of the calls in an assistant message, or of the results in a tool message."""
        return tuple([part.id for part in self.parts if isinstance(part, _CALL_PARTS)])


class ToolCall(Data, frozen=True):
    """A tool call of the model: a name, and arguments as the model wrote them. `wire_id` is the server's id for it."""

    id: str
    name: str
    arguments: JsonObject
    wire_id: str = ""


class PromptMessage(SparseData, frozen=True):
    """One message as sent to the model: calls and results resolved, long ones shortened.

    `sources` are the numbers of the recorded messages it represents (empty for text by the engine). `failed` marks
    the result of a failed call or command. `own_chars` is the offset at which the message itself ends and the engine's
    additions begin (files for a request, facts about a step), or None without additions. `written` is the model's
    original text from which content and calls were parsed; empty if they were not, or have been shortened since.
    `origin` is the server and model that understand its thinking and the ids of its calls.
    """

    role: Role
    content: str
    thinking: str = ""
    thinking_field: ThinkingField = ""
    thinking_details: tuple[JsonObject, ...] = ()
    origin: str = ""
    images: tuple[ImagePart, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    tool_name: str | None = None
    sources: tuple[int, ...] = ()
    failed: bool = False
    own_chars: int | None = None
    written: str = ""

    def without_thinking(self) -> PromptMessage:
        if not (self.thinking or self.thinking_details):
            return self
        return msgspec.structs.replace(self, thinking="", thinking_details=())

    def without_ids(self) -> PromptMessage:
        """Return the message without the server's ids of its calls."""
        if not any(call.wire_id for call in self.calls):
            return self
        calls = tuple(msgspec.structs.replace(call, wire_id="") for call in self.calls)
        return msgspec.structs.replace(self, calls=calls)

    def split_content(self) -> tuple[str, str]:
        """Split the content into the message itself and the engine's additions."""
        end = self.own_chars
        if end is None or not self.content.startswith("\n\n", end):  # The message was shortened since.
            return self.content, ""
        return self.content[:end], self.content[end + 2 :]


Group = tuple[PromptMessage, ...]


def group_messages(messages: Iterable[PromptMessage]) -> list[Group]:
    """Group each assistant message with the results of its calls. Any other message is a group by itself."""
    groups: list[Group] = []
    for message in messages:
        calls = groups[-1][0].calls if groups and message.role == "tool" else ()
        if calls and (message.call_id is None or any(call.id == message.call_id for call in calls)):
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
    return groups


def encode_calls(calls: Iterable[ToolCall], name_call: Callable[[str], str] = str) -> list[JsonObject]:
    """Encode calls as OpenAI's API and the workspace's record write them. `name_call` turns our ids into others."""
    return [
        {
            "id": name_call(call.id),
            "type": "function",
            "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
        }
        for call in calls
    ]


def replace_surrogates(text: str) -> str:
    """Replace each byte that is not UTF-8 with an escape such as `\\xe9`. File names and arguments may contain such
    bytes, but requests and files cannot."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # The text has half a surrogate pair, which no file name has.
        return text.encode("utf-8", "replace").decode()


def put_in_fence(text: str, language: str = "") -> str:
    """Wrap the text in a fence longer than any fence in it, so that the text cannot close it."""
    mark = max(re.findall(r"^[ \t]*(`{3,})", text, re.MULTILINE), key=len, default="``") + "`"
    return f"{mark}{language}\n{text}\n{mark}"


def count_same_objects(before: Sequence[object], after: Sequence[object]) -> int:
    """Count the leading objects that are identical in both, without comparing their contents."""
    return sum(takewhile(bool, map(operator.is_, before, after)))
