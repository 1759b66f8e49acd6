"""Counts the tokens of a chat request as a Qwen model's server would: its chat template and the vocabulary of a GGUF.

Special tokens stand between messages, so each message is counted alone, once, and remembered.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

MODELS = Path.home() / ".cache" / "ollm-real-model"
TOOLS_BEFORE = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with "
    "function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOLS_AFTER = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)


class Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


class GgufTokenizer:
    """The vocabulary of a GGUF file, asked of llama.cpp in this process. It generates nothing."""

    def __init__(self, path: Path) -> None:
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = 256
        parameters.n_parallel = 1
        parameters.warmup = False
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = 0
        parameters.cache_ram_mib = 0
        parameters.verbosity = 0
        self._server = xllamacpp.Server(parameters)
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self._ask({"content": text, "add_special": False, "parse_special": True}))
        return self._known[text]

    def _ask(self, body: dict[str, Any]) -> list[int]:
        request = urllib.request.Request(
            f"{self._server.listening_address}/tokenize",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            tokens: list[int] = json.load(answer)["tokens"]
        return tokens


class ByteTokenizer:
    """Where no GGUF is at hand: three and a half bytes a token, which no real vocabulary does."""

    def count(self, text: str) -> int:
        return max(1, round(len(text.encode()) / 3.5)) if text else 0


def find_tokenizer(path: str | None = None) -> Tokenizer:
    """The GGUF that is named, else the smallest that was fetched for the tests, else bytes."""
    wanted = path or os.environ.get("OLLM_REAL_MODEL")
    found = [Path(wanted)] if wanted else sorted(MODELS.glob("*.gguf"), key=lambda file: file.stat().st_size)
    return GgufTokenizer(found[0]) if found else ByteTokenizer()


def render_pieces(body: dict[str, Any]) -> list[str]:
    """The prompt of a chat request as its template writes it, a piece for each message."""
    messages = list(body["messages"])
    tools = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in body.get("tools") or ())
    system = messages.pop(0)["content"] if messages and messages[0]["role"] == "system" else ""
    listed = f"{TOOLS_BEFORE}{tools}{TOOLS_AFTER}" if tools else ""
    return [f"<|im_start|>system\n{system}{listed}<|im_end|>\n", *map(_render, messages)]


def _render(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    for call in message.get("tool_calls") or ():
        asked = call["function"]
        given = asked["arguments"] if isinstance(asked["arguments"], str) else json.dumps(asked["arguments"])
        content += f'\n<tool_call>\n{{"name": "{asked["name"]}", "arguments": {given}}}\n</tool_call>'
    if message["role"] == "tool":
        return f"<|im_start|>user\n<tool_response>\n{content}\n</tool_response><|im_end|>\n"
    return f"<|im_start|>{message['role']}\n{content}<|im_end|>\n"


ANSWER_BEGINS = "<|im_start|>assistant\n"


def render_answer(text: str, calls: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """An answer as it is written, and as it comes back in the next request if nobody changes it."""
    asked = [{"function": {"name": name, "arguments": json.dumps(arguments)}} for name, arguments in calls]
    return _render({"role": "assistant", "content": text, "tool_calls": asked})
