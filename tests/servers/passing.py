"""Stands before a real server and passes everything on, with answers of at most so many tokens.

A tiny model would else talk on to the end of its window. Whole requests and answers are kept, to be counted.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.servers.answers import Answer, Request
from tests.servers.scripted import Server


class PassingServer(Server):
    """`PassingServer(url, longest)`. Its clients are in other processes: it answers one at a time."""

    chat_paths = ("/v1/chat/completions", "/completion")

    def __init__(self, url: str, longest: int) -> None:
        super().__init__()
        self._url = url
        self._longest = longest

    def page(self, request: Request) -> tuple[int, Any]:
        return self._passed(request, request.body)

    def answer(self, request: Request) -> Answer:
        field = "n_predict" if request.path == "/completion" else "max_tokens"
        asked = request.body.get(field) or self._longest
        status, body = self._passed(request, {**request.body, field: min(asked, self._longest)})
        return Answer(status=status, body=body, text=body.decode())

    def events(self, answer: Answer, request: Request) -> list[bytes]:
        return [event.encode() + b"\n\n" for event in answer.text.split("\n\n") if event.strip()]

    def failure(self, message: str) -> bytes:
        return b""

    def _passed(self, request: Request, body: Any) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self._url + request.path, data, headers, method=request.method)
        try:
            with urllib.request.urlopen(asked) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
