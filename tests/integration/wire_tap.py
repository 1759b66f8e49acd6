"""Stands between ollm and an MCP server that is a program, and writes every line to $WIRE_TAP: `wire_tap.py COMMAND…`.

`load_exchanges` reads that file as exchanges: each request with all the server said until it was answered.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO


def pump(source: BinaryIO, target: BinaryIO, log: BinaryIO, mark: bytes, lock: threading.Lock) -> None:
    for line in iter(source.readline, b""):
        with lock:
            log.write(mark + line)
            log.flush()
        target.write(line)
        target.flush()
    target.close()


def main() -> int:
    file, command = os.environ["WIRE_TAP"], sys.argv[1:]
    lock = threading.Lock()
    with Path(file).open("ab") as log, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        asking = (sys.stdin.buffer, run.stdin, log, b">", lock)
        threading.Thread(target=pump, args=asking, daemon=True).start()
        pump(run.stdout, sys.stdout.buffer, log, b"<", lock)  # type: ignore[arg-type]
        return run.wait()


def load_exchanges(file: Path) -> list[dict[str, Any]]:
    """Requests in the order they were answered; what a server asks meanwhile belongs to what it has not answered yet."""
    waiting: dict[Any, dict[str, Any]] = {}
    found: list[dict[str, Any]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            message = json.loads(line[1:])
        except ValueError:
            continue
        if line[0] == ">":
            if "method" in message and "id" in message:
                waiting[message["id"]] = {"method": message["method"], "params": message.get("params"), "said": []}
        elif "method" in message or message.get("id") not in waiting:
            for exchange in list(waiting.values())[-1:]:
                exchange["said"].append(message)
        else:
            exchange = waiting.pop(message["id"])
            kept = {key: message[key] for key in ("result", "error") if key in message}
            found.append({**exchange, "answer": kept})
    return found


if __name__ == "__main__":
    sys.exit(main())
