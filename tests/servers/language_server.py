"""A language server for tests: each word BAD… of a file is an error, each WARN… a warning. Its first word is its kind:
push, sparse, slow, elsewhere, probe, or a fault: die, refuse, garbage, hang, mute, crash, flood."""

import json
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any

KIND = sys.argv[1]
TEXTS: dict[str, str] = {}
LAST: dict[str, Any] = {}


def send(**fields: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    line, size = sys.stdin.buffer.readline(), 0
    while line.strip():
        name, _, value = line.decode().partition(":")
        size = int(value) if name.lower() == "content-length" else size
        line = sys.stdin.buffer.readline()
    if not size:
        sys.exit()
    return json.loads(sys.stdin.buffer.read(size))


def problem(line: int, message: str, severity: int = 1) -> dict[str, Any]:
    start = {"line": line, "character": 0}
    return {"range": {"start": start, "end": start}, "message": message, "severity": severity, "code": "c"}


def find_problems(text: str) -> list[dict[str, Any]]:
    if KIND == "probe":
        return [problem(0, try_to_escape())]
    lines = enumerate(text.split("\n"))
    words = [(line, word) for line, text in lines for word in re.findall(r"\b(?:BAD|WARN)\w*", text)]
    return [problem(line, f"{word} is wrong", 2 if word.startswith("WARN") else 1) for line, word in words]


def try_to_escape() -> str:
    done = []
    for name, attempt in {
        "write": lambda: Path("made").write_text("x"),
        "network": lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])), 1),
    }.items():
        try:
            attempt()
            done.append(name)
        except OSError:
            pass
    return f"escaped: {done}"


def publish(uri: str) -> None:
    items = find_problems(TEXTS[uri])
    if KIND == "sparse" and LAST.get(uri) == items:
        return
    LAST[uri] = items
    send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": items})
    for other, text in TEXTS.items() if KIND == "elsewhere" else ():
        if other != uri:
            gone = [problem(4, "helper is gone")] if "helper" in text and "helper" not in TEXTS[uri] else []
            items = [*find_problems(text), *gone]
            send(method="textDocument/publishDiagnostics", params={"uri": other, "diagnostics": items})


def change(uri: str, text: str) -> None:
    TEXTS[uri] = text
    if KIND == "crash":
        sys.exit("out of memory")
    if KIND == "flood":
        while True:
            send(method="window/logMessage", params={"type": 3, "message": "x" * 1_000_000})
    if KIND == "slow":
        time.sleep(0.7)
    if KIND != "mute":
        publish(uri)


def main() -> None:
    if KIND == "die":
        sys.exit("no such option")
    if KIND == "garbage":
        print("Welcome!\n" * 200_000, flush=True)
    while KIND == "hang":
        time.sleep(1)
    while True:
        message = receive()
        match message.get("method"):
            case "initialize" if KIND == "refuse":
                send(id=message["id"], error={"code": -32603, "message": "no compiler"})
            case "initialize":
                send(id=message["id"], result={"capabilities": {}})
                send(id=1, method="workspace/configuration", params={"items": [{"section": "python"}]})
            case "textDocument/didOpen":
                document = message["params"]["textDocument"]
                change(document["uri"], document["text"])
            case "textDocument/didChange":
                change(message["params"]["textDocument"]["uri"], message["params"]["contentChanges"][0]["text"])
            case str() if "id" in message:
                send(id=message["id"], result=None)


if __name__ == "__main__":
    main()
