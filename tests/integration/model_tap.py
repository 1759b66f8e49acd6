"""Stands between ollm and a model server and keeps every answer as it came: status, type and bytes.

`ReplayedModelServer` gives the same answers again: pages by their path, chats in the order they were given.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

CHAT_PATH = "/v1/chat/completions"


class ModelTap:
    """What was asked and answered since the last `take`."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.base_url = ""
        self._kept: list[dict[str, Any]] = []

    def take(self) -> list[dict[str, Any]]:
        kept, self._kept = self._kept, []
        return kept

    def pass_on(self, method: str, path: str, body: bytes) -> tuple[int, str, bytes]:
        asked = urllib.request.Request(
            self.target + path, body or None, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(asked, timeout=300) as reply:
                answer = reply.status, reply.headers.get("content-type", ""), reply.read()
        except urllib.error.HTTPError as error:
            answer = error.code, error.headers.get("content-type", ""), error.read()
        status, kind, said = answer
        self._kept.append({"path": path, "status": status, "type": kind, "body": said.decode("utf-8", "replace")})
        return answer


class TapHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tap: ModelTap

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on the terminal."""

    def relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, kind, said = self.tap.pass_on(self.command, self.path, body)
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(said)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = relay  # noqa: N815 - the names the base class calls


@contextmanager
def tap_model_server(target: str) -> Iterator[ModelTap]:
    tap = ModelTap(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (TapHandler,), {"tap": tap}))
    tap.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield tap
    finally:
        server.shutdown()
        server.server_close()


class ReplayedModelServer(ScriptedServer):
    """A model server that says what a real one said."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        super().__init__([make_answer(kept) for kept in exchanges if kept["path"] == CHAT_PATH])
        self._pages = {kept["path"]: kept for kept in exchanges if kept["path"] != CHAT_PATH}

    def answer(self, request: Request) -> Answer:
        """The last answer is given again when more are asked for than there were."""
        if isinstance(self.script, list) and len(self.script) > 1:
            return self.script.pop(0)  # type: ignore[return-value]
        return self.script[0]  # type: ignore[index,return-value]

    def page(self, request: Request) -> tuple[int, Any]:
        kept = self._pages.get(request.path)
        return (kept["status"], kept["body"].encode()) if kept else (404, {"detail": "Not Found"})


def make_answer(kept: dict[str, Any]) -> Answer:
    body = kept["body"].encode()
    head = f"HTTP/1.1 {kept['status']} X\r\nContent-Type: {kept['type']}\r\nContent-Length: {len(body)}\r\n\r\n"
    return Answer(raw=head.encode() + body, close=True)
