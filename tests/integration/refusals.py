"""Requests that model servers refuse, each in words of its own: asked of the real ones, and understood as what they mean."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from ollm.domain.errors import (
    ModelError,
    PromptTooLongError,
    ToolsUnsupportedError,
    UnknownModelError,
)

FOX = "The quick brown fox jumps over the lazy dog. "
PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SEEN = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
LS = {"name": "ls", "description": "List a directory.", "parameters": {"type": "object", "properties": {}}}
REQUESTS: dict[str, dict[str, Any]] = {
    "overflow": {"messages": [{"role": "user", "content": FOX * 1200}]},
    "answer": {"max_tokens": 30_000},
    "sum": {"messages": [{"role": "user", "content": FOX * 200}], "max_tokens": 7000},
    "tools": {"tools": [{"type": "function", "function": LS}]},
    "picture": {"messages": [{"role": "user", "content": SEEN}]},
    "model": {"model": "no-such-model"},
}
MEANINGS: dict[str, type[ModelError]] = {
    "overflow": PromptTooLongError,
    "answer": PromptTooLongError,
    "sum": PromptTooLongError,
    "tools": ToolsUnsupportedError,
    "picture": ModelError,
    "model": UnknownModelError,
}


def ask_for_refusals(url: str, model: str, *, bounded: bool = True) -> dict[str, dict[str, Any]]:
    """What the server says to each; one that it takes is left out. `bounded`: it refuses a prompt that is too long."""
    found = {}
    for name, more in REQUESTS.items():
        if name == "overflow" and not bounded:
            continue
        plain = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "stop": [".", " ", "!"]}
        body = json.dumps({"model": model, **plain, **more}).encode()
        asked = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=600):
                continue
        except urllib.error.HTTPError as error:
            said, kind = error.read().decode("utf-8", "replace"), error.headers.get("content-type", "")
            found[name] = {"status": error.code, "type": kind, "body": said}
    return found
