"""A file server on loopback for downloads: ranges, redirects, and connections that break."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """Serves `content` at every path. `break_after` ends each answer after so many bytes, once per entry."""

    def __init__(self, content: bytes, *, ranges: bool = True) -> None:
        self.content = content
        self.ranges = ranges
        self.break_after: list[int] = []
        self.redirect_first = False
        self.status = 200
        self.asked: list[str] = []  # the Range header of each request, "" without one
        self.url = ""


@contextmanager
def serving(files: FileServer) -> Iterator[FileServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if files.redirect_first:
                files.redirect_first = False
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            wanted = self.headers.get("Range", "")
            files.asked.append(wanted)
            begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and files.ranges else 0
            status = (
                files.status if files.status != 200 else 416 if begin >= len(files.content) else 206 if begin else 200
            )
            body = files.content[begin:] if status in (200, 206) else b""
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {begin}-{len(files.content) - 1}/{len(files.content)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut = files.break_after.pop(0) if files.break_after else len(body)
            self.wfile.write(body[:cut])
            self.close_connection = self.close_connection or cut < len(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    files.url = f"http://127.0.0.1:{server.server_address[1]}/model.gguf"
    try:
        yield files
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
