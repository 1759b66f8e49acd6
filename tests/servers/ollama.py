"""A stand-in Ollama: its pages and its NDJSON, and its habit of loading a model anew when `num_ctx` changes.

    async with OllamaServer(["Hello."], model="qwen3:8b") as server:
        ...  # server.base_url, server.requests, server.chats, server.loads

As a process: `python -m tests.servers.ollama --script FILE` prints its URL.
"""

from __future__ import annotations

import json
from typing import Any

from tests.servers.answers import Answer, Request
from tests.servers.scripted import Script, Server, main, words

DEFAULT_WINDOW = 4096


class OllamaServer(Server):
    chat_paths = ("/api/chat",)
    content_type = "application/x-ndjson"

    def __init__(
        self,
        script: Script = (),
        *,
        trained: int = 32768,
        capabilities: tuple[str, ...] = ("completion", "tools"),
        others: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        super().__init__(script, **options)
        self.models = (self.model, *others) if self.model else others
        self.trained = trained
        self.capabilities = capabilities
        self.loads: list[tuple[str, int]] = []  # model and window, each time one was loaded

    def answer(self, request: Request) -> Answer:
        model = request.body["model"]
        if not self._has(model):
            return Answer(status=404, body={"error": f"model '{model}' not found"})
        if request.body.get("tools") and "tools" not in self.capabilities:
            return Answer(status=400, body={"error": f"{model} does not support tools"})
        window = request.body.get("options", {}).get("num_ctx", DEFAULT_WINDOW)
        if not self.loads or self.loads[-1] != (model, window):
            self.loads.append((model, window))
        return super().answer(request)

    def page(self, request: Request) -> tuple[int, Any]:
        if request.path == "/api/version":
            return 200, {"version": "0.12.0"}
        if request.path == "/api/tags":
            return 200, {"models": [{"name": name, "model": name, "size": 5_000_000} for name in self.models]}
        if request.path == "/api/ps":
            return 200, {"models": [self._running()] if self.loads else []}
        if request.path == "/api/show":
            return self._show(request.body["model"])
        return 404, b"404 page not found"

    def _has(self, model: str) -> bool:
        return model in self.models or f"{model}:latest" in self.models

    def _running(self) -> dict[str, Any]:
        model, window = self.loads[-1]
        return {"name": model, "model": model, "context_length": window}

    def _show(self, model: str) -> tuple[int, Any]:
        if not self._has(model):
            return 404, {"error": f"model '{model}' not found"}
        facts = {"general.architecture": "qwen2", "qwen2.context_length": self.trained}
        parameters = 'stop                           "<|end|>"\ntemperature                    0.6'
        return 200, {"model_info": facts, "capabilities": list(self.capabilities), "parameters": parameters}

    def events(self, answer: Answer, request: Request) -> list[bytes]:
        pieces: list[dict[str, Any]] = [{"content": "", "thinking": piece} for piece in words(answer.thinking)]
        pieces += [{"content": piece} for piece in words(answer.text)]
        for name, arguments in answer.calls:
            pieces.append({"content": "", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]})
        lines = [self._line(request, {"role": "assistant", **piece}) for piece in pieces]
        end = {"done_reason": answer.reason or "stop", "done": True}
        counts = {"prompt_eval_count": answer.prompt_tokens, "eval_count": answer.completion_tokens}
        return [*lines, self._line(request, {"role": "assistant", "content": ""}, **end, **counts)]

    def _line(self, request: Request, message: dict[str, Any], **more: Any) -> bytes:
        value = {
            "model": request.body["model"],
            "created_at": "2026-01-01T00:00:00Z",
            "message": message,
            "done": False,
        }
        return json.dumps(value | more, ensure_ascii=False).encode() + b"\n"

    def failure(self, message: str) -> bytes:
        return json.dumps({"error": message}).encode() + b"\n"


if __name__ == "__main__":
    main(OllamaServer)
