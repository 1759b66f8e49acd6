"""A session of any length, written as the archive keeps it."""

import json
from pathlib import Path

from ollm.store.session_files.document import iter_document

LONG = "11111111-1111-4111-8111-111111111111"
AT = "2026-01-02T03:04:05.000Z"


def write_long_session(home: Path, workspace: Path, count: int, *, foreign: bool = False) -> None:
    """In our own layout, or as another program may write it."""
    messages = [
        {
            "role": "user" if number % 2 else "assistant",
            "id": number,
            "parts": [
                {"type": "text", "text": f"Message {number}. " + "Some **bold** words and `code`. " * (number % 7)}
            ],
            "timestamp": AT,
        }
        for number in range(1, count + 1)
    ]
    head = {
        "sessionId": LONG,
        "startTime": AT,
        "lastActivity": AT,
        "model": "m",
        "provider": "p",
        "metadata": {"title": "A long one", "workspace": str(workspace), "tokenCount": 1},
    }
    (home / "sessions").mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(message, separators=(",", ":")).encode() for message in messages)
    whole = b"".join(iter_document(head, lines, ()))
    whole = json.dumps(json.loads(whole), indent=2).encode() if foreign else whole
    (home / "sessions" / f"{LONG}.json").write_bytes(whole)
