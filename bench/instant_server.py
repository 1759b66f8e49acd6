"""A model server that answers at once, and remembers when it was first asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from bench.loopback_server import LoopbackServer

CHUNKS = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello."}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}},
]


class InstantServer(LoopbackServer):
    """Speaks the OpenAI protocol on loopback. `asked` is when the first chat request came, `size` its body's bytes.

    `when_asked` is called at that moment, while whoever asked waits."""

    def __init__(self) -> None:
        self.asked: float | None = None
        self.when_asked: Callable[[], None] = lambda: None
        self.size = 0
        self.prepare(_handler(self))


def _handler(server: InstantServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # otherwise the server itself holds every second packet back for 40 ms

        def do_GET(self) -> None:
            known = {"/v1/models": {"object": "list", "data": [{"id": "instant", "max_model_len": 8192}]}}
            self._answer(200 if self.path in known else 404, json.dumps(known.get(self.path, {})).encode())

        def do_POST(self) -> None:
            if self.path.endswith("/chat/completions") and server.asked is None:
                server.asked = time.perf_counter()
                server.when_asked()
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not self.path.endswith("/chat/completions"):
                self._answer(404, b"{}")
                return
            server.size = server.size or len(body)
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS] + ["data: [DONE]\n\n"]
            self._answer(200, "".join(lines).encode(), "text/event-stream")

        def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    return Handler
