"""Servers on loopback: models that answer at once, by a script or with one answer, and a relay to a real server."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

Chunks = Sequence[dict[str, Any]]
HOP_HEADERS = ("connection", "content-length", "host", "keep-alive", "transfer-encoding", "accept-encoding")
CHUNK_BYTES = 65_536
ANSWER_SECONDS = 1_800


class LoopbackServer:
    """An HTTP server in a thread of its own. A subclass calls `prepare` with its handler."""

    def prepare(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


@dataclass
class Moment:
    """One chat request: when it came, when it was answered, its bytes, and the CPU seconds spent until it came."""

    asked: float
    asked_cpu: float
    size: int = 0
    answered: float = 0.0


class ScriptedServer(LoopbackServer):
    """Speaks the OpenAI protocol and gives one answer after the other; the last one is repeated."""

    def __init__(self, answers: Sequence[Chunks], model: str = "scripted", window: int = 131_072) -> None:
        self.answers = answers
        self.models = {"object": "list", "data": [{"id": model, "max_model_len": window}]}
        self.moments: list[Moment] = []
        self.read_cpu: Callable[[], float] = lambda: 0.0
        self.connections = 0
        self.prepare(_make_handler(self))


class InstantServer(ScriptedServer):
    """Says hello to every request."""

    def __init__(self) -> None:
        super().__init__([describe_text("Hello.")], "instant", 8192)

    @property
    def asked(self) -> float | None:
        return self.moments[0].asked if self.moments else None

    @property
    def size(self) -> int:
        return self.moments[0].size


def describe_text(text: str) -> Chunks:
    return (*_describe_delta({"role": "assistant", "content": text}, "stop"), _describe_usage(10))


def describe_read(path: str, number: int) -> Chunks:
    """Describe an answer that reads a file."""
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    call = {"index": 0, "id": f"x{number}", "type": "function", "function": function}
    return (*_describe_delta({"tool_calls": [call]}, "tool_calls"), _describe_usage(1000 + 60 * number))


def _describe_delta(delta: dict[str, Any], finish: str) -> Chunks:
    ending = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return {"choices": [{"index": 0, "delta": delta}]}, ending


def _describe_usage(prompt_tokens: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    return {"choices": [], "usage": usage}


def _make_handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # otherwise every second packet waits for 40 ms

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_GET(self) -> None:
            known = self.path.endswith("/models")
            self._answer(200 if known else 404, json.dumps(server.models if known else {}).encode())

        def do_POST(self) -> None:
            asked = time.perf_counter()
            if not self.path.endswith("/chat/completions"):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self._answer(404, b"{}")
                return
            moment = Moment(asked, server.read_cpu())
            moment.size = len(self.rfile.read(int(self.headers.get("content-length", 0))))
            chunks = server.answers[min(len(server.moments), len(server.answers) - 1)]
            server.moments.append(moment)
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
            moment.answered = time.perf_counter()
            self._answer(200, "".join(lines).encode(), "text/event-stream")

        def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class Relay(LoopbackServer):
    """Passes every request on to another server. A subclass may change the body and look at the answer."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream)
        self.prepare(_make_relay_handler(self))

    @property
    def base_url(self) -> str:
        return self.root + self.upstream.path

    def change_body(self, path: str, body: bytes) -> bytes:
        return body

    def note_answer(self, path: str, body: bytes, status: int, answer: bytes) -> None:
        pass

    def connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self.upstream.scheme == "https" else http.client.HTTPConnection
        return kind(self.upstream.netloc, timeout=ANSWER_SECONDS)


def _make_relay_handler(relay: Relay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = relay.change_body(self.path, self.rfile.read(int(self.headers.get("content-length") or 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
            connection = relay.connect()
            status, read = 0, bytearray()
            try:
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                status = answer.status
                self.copy_answer(answer, read)
            except OSError as error:  # the client may stop reading, the server may be gone
                with suppress(OSError):
                    self.send_error(502, str(error))
            finally:
                connection.close()
                relay.note_answer(self.path, body, status, bytes(read))
            self.close_connection = True

        def copy_answer(self, answer: http.client.HTTPResponse, read: bytearray) -> None:
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_HEADERS:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while chunk := answer.read1(CHUNK_BYTES):
                read += chunk
                self.wfile.write(chunk)

        do_GET = do_POST = do_DELETE = forward  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler
