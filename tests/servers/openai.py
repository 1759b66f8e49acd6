"""A scripted OpenAI-compatible server. `kind` makes it look like llama.cpp, vLLM, LM Studio or a plain one.

    async with ScriptedServer(["Hello.", Answer(calls=[("read_file", {"path": "a.txt"})])]) as server:
        ...  # server.base_url, server.requests, server.chats

As a process: `python -m tests.servers.openai --script FILE` prints its URL.
"""

from __future__ import annotations

import json
from typing import Any

from tests.servers.answers import Answer, Request
from tests.servers.scripted import Script, Server, main, words

OWNERS = {
    "llama.cpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "lm-studio": "organization_owner",
    "other": "someone",
}


class ScriptedServer(Server):
    chat_paths = ("/v1/chat/completions",)

    def __init__(
        self,
        script: Script = (),
        *,
        kind: str = "other",
        window: int = 8192,
        models: tuple[str, ...] | None = None,
        strict: bool = False,
        slots: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(script, **options)
        self.kind = kind
        self.window = window
        self.slots = slots
        self.models = (self.model,) if models is None else models
        self.slot_busy: bool | None = None  # what a llama.cpp server says of its slot; None: it has no such page
        self.strict = strict  # 404 for a model that is not on the list

    @property
    def chats(self) -> list[Any]:
        return [request.body for request in self.requests if request.path == self.chat_paths[0]]

    def answer(self, request: Request) -> Answer:
        model = request.body.get("model")
        if self.strict and model not in self.models:
            message = f"The model `{model}` does not exist."
            return Answer(status=404, body={"error": {"message": message, "type": "NotFoundError", "code": 404}})
        return super().answer(request)

    def page(self, request: Request) -> tuple[int, Any]:
        if request.path == "/v1/models" and self.models:
            return 200, {"object": "list", "data": [self._model(name) for name in self.models]}
        extra = {"llama.cpp": self._llama_page, "vllm": self._vllm_page, "lm-studio": self._studio_page}
        found = extra[self.kind](request) if self.kind in extra else None
        return (200, found) if found is not None else super().page(request)

    def _model(self, name: str) -> dict[str, Any]:
        model: dict[str, Any] = {"id": name, "object": "model", "owned_by": OWNERS[self.kind]}
        if self.kind == "vllm":
            model["max_model_len"] = self.window
        if self.kind == "llama.cpp":
            model["meta"] = {"n_ctx_train": 32768, "size": 1000}
        return model

    def _llama_page(self, request: Request) -> Any:
        if request.path == "/props":
            return {
                "default_generation_settings": {"n_ctx": self.window, "params": {"temperature": 0.8, "top_k": 40}},
                "total_slots": self.slots,
                "modalities": {"vision": True},
            }
        if request.path == "/slots" and self.slot_busy is not None:
            return [{"id": 0, "is_processing": self.slot_busy}]
        if request.path == "/apply-template":
            return {"prompt": "".join(f"<{m['role']}>{m['content']}" for m in request.body["messages"])}
        if request.path == "/tokenize":
            return {"tokens": request.body["content"].split()}
        return None

    def _vllm_page(self, request: Request) -> Any:
        if request.path != "/tokenize":
            return None
        text = request.body.get("prompt") or " ".join(m["content"] for m in request.body["messages"])
        text += json.dumps(request.body.get("tools", ""))
        return {"count": len(text.split()), "tokens": list(range(len(text.split()))), "max_model_len": self.window}

    def _studio_page(self, request: Request) -> Any:
        if request.path != "/api/v0/models":
            return None
        return {"data": [{"id": name, "type": "vlm", "loaded_context_length": self.window} for name in self.models]}

    def events(self, answer: Answer, request: Request) -> list[bytes]:
        chunks: list[dict[str, Any]] = [
            {"choices": [], "prompt_progress": {"processed": done, "total": total}} for done, total in answer.progress
        ]
        chunks += [_delta(delta) for delta in answer.deltas]
        chunks += [_delta({"reasoning_content": piece}) for piece in words(answer.thinking)]
        chunks += [_delta({"content": piece}) for piece in words(answer.text)]
        for index, (name, arguments) in enumerate(answer.calls):
            chunks += _call(index, name, arguments)
        chunks.append(_delta({}, answer.reason or ("tool_calls" if answer.calls else "stop")))
        usage: dict[str, Any] = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
        if answer.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": answer.cached_tokens}
        timings = {"timings": {"prompt_ms": 1000 * answer.read_seconds}} if answer.read_seconds else {}
        chunks.append({"choices": [], "usage": usage, **timings})
        return [_event(chunk) for chunk in chunks] + [b"data: [DONE]\n\n"]

    def failure(self, message: str) -> bytes:
        return _event({"error": {"message": message, "type": "server_error", "code": 500}})


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def _delta(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _call(index: int, name: str, arguments: Any) -> list[dict[str, Any]]:
    """The name first, then the arguments in fragments, as servers send them."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    head = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": written[at : at + 7]}} for at in range(0, len(written), 7)]
    return [_delta({"tool_calls": [fragment]}) for fragment in [head, *rest]]


if __name__ == "__main__":
    main(ScriptedServer)
