"""Stands between the command and the model's server: passes everything on and keeps what was sent and counted."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from bench.loopback_server import LoopbackServer

DROPPED_HEADERS = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive"}
READ_BYTES = 65_536
DEFAULT_MINUTES = 30


@dataclass
class Exchanged:
    """One chat request, and what the server said of it. Tokens are None where it said nothing."""

    body: dict[str, Any]
    status: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    answer_tokens: int | None = None
    seconds: float = 0.0
    ended: bool = False

    @property
    def max_tokens(self) -> int:
        found = self.body.get("max_tokens") or self.body.get("max_completion_tokens") or self.body.get("n_predict")
        return int(found or 0)

    def read_chunk(self, chunk: dict[str, Any]) -> None:
        """Take the counts out of an answer or a piece of it: `usage`, and llama.cpp's `timings`."""
        usage, timings = chunk.get("usage") or {}, chunk.get("timings") or {}
        if usage:
            self.prompt_tokens = usage.get("prompt_tokens", self.prompt_tokens)
            self.answer_tokens = usage.get("completion_tokens", self.answer_tokens)
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            self.cached_tokens = self.cached_tokens if cached is None else cached
        if "prompt_n" in timings:
            cached = timings.get("cache_n")
            self.cached_tokens = self.cached_tokens if cached is None else cached
            if self.prompt_tokens is None and cached is not None:
                self.prompt_tokens = timings["prompt_n"] + cached


@dataclass
class Relay(LoopbackServer):
    """Speaks HTTP on loopback and asks `upstream` (the root of the server, without /v1)."""

    upstream: str
    seen: list[Exchanged] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prepare(_make_handler(self))

    def connect(self) -> http.client.HTTPConnection:
        place = urlsplit(self.upstream)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        return kind(place.hostname or "127.0.0.1", place.port, timeout=DEFAULT_MINUTES * 60)


def _make_handler(relay: Relay) -> type[BaseHTTPRequestHandler]:
    base = urlsplit(relay.upstream).path.rstrip("/")

    class RelayHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def _pass_on(self, body: bytes) -> None:
            kept = self._keep(body)
            begin = time.monotonic()
            headers = {name: value for name, value in self.headers.items() if name.lower() not in DROPPED_HEADERS}
            connection = relay.connect()
            try:
                connection.request(self.command, base + self.path, body or None, headers)
                self._answer(connection.getresponse(), kept)
            except OSError as error:
                with suppress(OSError):
                    self.send_error(502, str(error))
            finally:
                connection.close()
                if kept:
                    kept.seconds, kept.ended = time.monotonic() - begin, True

        def _keep(self, body: bytes) -> Exchanged | None:
            if not body or not self.path.endswith("/chat/completions"):
                return None
            kept = Exchanged(json.loads(body))
            relay.seen.append(kept)
            return kept

        def _answer(self, answer: http.client.HTTPResponse, kept: Exchanged | None) -> None:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in DROPPED_HEADERS:
                    self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            if kept:
                kept.status = answer.status
            rest = b""
            while data := answer.read1(READ_BYTES):
                self.wfile.write(data)
                self.wfile.flush()
                rest = _read_lines(rest + data, kept) if kept else b""
            if kept:
                _read_lines(rest + b"\n", kept)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    return RelayHandler


def _read_lines(data: bytes, kept: Exchanged) -> bytes:
    """Read the counts in whole lines of a stream, or in an answer of one line; what is left is given back."""
    *lines, rest = data.split(b"\n")
    for line in lines:
        text = line.removeprefix(b"data:").strip()
        if text.startswith(b"{"):
            with suppress(ValueError):
                kept.read_chunk(json.loads(text))
    return rest
