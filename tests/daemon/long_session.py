"""A session of any length, written as the archive keeps it."""

import json
from pathlib import Path

LONG = "11111111-1111-4111-8111-111111111111"
AT = "2026-01-02T03:04:05.000Z"


def write_long_session(home: Path, workspace: Path, count: int) -> None:
    messages = [
        {
            "id": number,
            "role": "user" if number % 2 else "assistant",
            "parts": [
                {"type": "text", "text": f"Message {number}. " + "Some **bold** words and `code`. " * (number % 7)}
            ],
            "timestamp": AT,
        }
        for number in range(1, count + 1)
    ]
    document = {
        "sessionId": LONG,
        "startTime": AT,
        "lastActivity": AT,
        "model": "m",
        "provider": "p",
        "messages": messages,
        "toolCalls": [],
        "metadata": {"title": "A long one", "workspace": str(workspace), "tokenCount": 1},
    }
    (home / "sessions").mkdir(parents=True, exist_ok=True)
    (home / "sessions" / f"{LONG}.json").write_text(json.dumps(document), encoding="utf-8")
