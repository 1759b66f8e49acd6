"""What a scripted server is told to say, and what it was asked."""

from __future__ import annotations

import re
from typing import Any

import msgspec


class Answer(msgspec.Struct, kw_only=True):
    """One answer to a chat request. In a script file the fields have these same names.

    `text` is streamed word by word. `calls` are `[name, arguments]` pairs. With `raw` set the bytes are sent as they
    are, instead of HTTP.
    """

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = []
    deltas: list[dict[str, Any]] = []  # sent as they are, before all else
    reason: str = ""  # finish reason; empty: what fits
    status: int = 200
    body: Any = None  # the whole body when status is not 200
    delay: float = 0  # seconds before the first byte of the answer
    together: int = 0  # answer only after so many chats were open at once
    pace: float = 0  # seconds between pieces
    piece_bytes: int = 0  # cut the body into network chunks of so many bytes, wherever that falls
    stall_after: int | None = None  # after so many pieces, say nothing more
    reset_after: int | None = None  # after so many pieces, reset the connection
    end_after: int | None = None  # after so many pieces, end the body without its end
    error_after: int | None = None  # after so many pieces, an error in the stream
    error: str = "the model fell over"
    garbage_after: int | None = None  # after so many pieces, a line that is not JSON
    close: bool = False  # "Connection: close"
    prompt_tokens: int = 20
    completion_tokens: int = 5
    cached_tokens: int | None = None  # None: the server reports nothing of its cache
    read_seconds: float = 0  # by the server's own clock
    progress: list[tuple[int, int]] = []  # prompt progress, processed and total
    raw: bytes | None = None


class Request(msgspec.Struct):
    """A request as it came; `body` is decoded JSON, None without one."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int  # number of the connection it came on


PROBE = re.compile(r"Call (\w+) with (\w+) = (\w+)$")
LEAKS = {
    "fence": '```json\n{"name": "%s", "arguments": {"%s": "%s"}}\n```',
    "tag": '<tool_call>\n{"name": "%s", "arguments": {"%s": "%s"}}\n</tool_call>',
    "json": '{"name": "%s", "arguments": {"%s": "%s"}}',
    "mistral": '[TOOL_CALLS][{"name": "%s", "arguments": {"%s": "%s"}}]',
    "invoke": '<invoke name="%s">\n<parameter name="%s">%s</parameter>\n</invoke>',
    "function": "<function=%s>\n<parameter=%s>\n%s\n</parameter>\n</function>",
}


def write_probed_call(request: Request, form: str) -> str:
    """Answer the probe of calls as a server does that passes its model's calls on as text. "" for other requests."""
    found = PROBE.search(str(request.body["messages"][-1]["content"]))
    return LEAKS[form] % found.groups() if found else ""
