"""An MCP server of the older kind over HTTP: a stream of events at /sse, which names the address for messages."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOOLS = [
    {"name": name, "description": told, "inputSchema": {"type": "object", "properties": {}}}
    for name, told in (
        ("greet", "Says hello."),
        ("hang_up", "Ends the stream."),
        ("garble", "Answers with no message."),
        ("refuse", "Takes no more messages."),
    )
]


class OldMcp:
    """What was asked. `names_address`: false for a stream that never says where messages go."""

    def __init__(self) -> None:
        self.root = ""
        self.streams: dict[str, queue.Queue[str | None]] = {}
        self.refuses = False
        self.names_address = True
        self.methods: list[str] = []
        self.headers: list[str] = []

    @property
    def url(self) -> str:
        return f"{self.root}/sse"

    def answer(self, session: str, message: dict[str, Any]) -> None:
        self.methods.append(message.get("method", ""))
        if "id" not in message:
            return
        name = (message.get("params") or {}).get("name")
        if name == "hang_up":
            self.streams[session].put(None)
            return
        if name == "garble":
            self.streams[session].put("event: message\ndata: Internal Server Error\n\n")
            return
        if name == "refuse":
            self.refuses = True
        said = {"jsonrpc": "2.0", "id": message["id"], "result": self._make_result(message)}
        self.streams[session].put(f"event: message\ndata: {json.dumps(said)}\n\n")

    def _make_result(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                told = {"capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}
                return {"protocolVersion": "2024-11-05", **told}
            case "tools/list":
                return {"tools": TOOLS}
        return {"content": [{"type": "text", "text": "hello from the past"}]}


class OldHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: OldMcp

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        if urlsplit(self.path).path != "/sse":
            self.send_empty(404)
            return
        state, session = self.state, f"s{len(self.state.streams)}"
        state.headers.append(self.headers.get("x-who", ""))
        state.streams[session] = mine = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if state.names_address:
            self.wfile.write(f"event: endpoint\ndata: /messages?session_id={session}\n\n".encode())
        while (said := mine.get()) is not None:
            self.wfile.write(said.encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        address = urlsplit(self.path)
        session = parse_qs(address.query).get("session_id", [""])[0]
        if address.path != "/messages" or session not in self.state.streams or self.state.refuses:
            self.send_empty(404)
            self.state.refuses = False
            return
        self.send_empty(202)
        self.state.answer(session, json.loads(body))

    def send_empty(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serve_old_mcp() -> Iterator[OldMcp]:
    state = OldMcp()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (OldHandler,), {"state": state}))
    server.daemon_threads = True
    state.root = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        for stream in state.streams.values():
            stream.put(None)
        server.shutdown()
        server.server_close()
