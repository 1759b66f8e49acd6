"""A scripted OpenAI-compatible server that counts every prompt with a real vocabulary and may refuse, cut or hang."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from bench.context_simulation.scenario import ScriptedTurn, Step
from bench.context_simulation.tokenizer import ANSWER_BEGINS, Tokenizer, render_answer, render_pieces
from bench.servers import LoopbackServer

Refuse = Callable[[int, int, int], tuple[int, dict[str, Any]]]


def _vllm(prompt: int, most: int, window: int) -> tuple[int, dict[str, Any]]:
    words = (
        f"This model's maximum context length is {window} tokens. However, you requested {prompt + most} tokens "
        f"({prompt} in the messages, {most} in the completion). Please reduce the length of the messages or completion."
    )
    return 400, {"object": "error", "message": words, "type": "BadRequestError", "param": None, "code": 400}


def _vllm_new(prompt: int, most: int, window: int) -> tuple[int, dict[str, Any]]:
    words = (
        f"'max_tokens' or 'max_completion_tokens' is too large: {most}. This model's maximum context length is "
        f"{window} tokens and your request has {prompt} input tokens ({most} > {window} - {prompt})."
    )
    return 400, {"error": {"message": words, "type": "BadRequestError", "param": "max_tokens", "code": 400}}


def _tgi(prompt: int, most: int, window: int) -> tuple[int, dict[str, Any]]:
    words = (
        f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. Given: {prompt} `inputs` "
        f"tokens and {most} `max_new_tokens`"
    )
    return 422, {"error": words, "error_type": "validation"}


def _tabby(prompt: int, _most: int, window: int) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": f"Prompt length {prompt} is greater than max_seq_len {window}", "trace": None}}


def _studio(prompt: int, _most: int, window: int) -> tuple[int, dict[str, Any]]:
    words = (
        f"Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded with "
        f"context length of only {window} tokens, which is not enough. Load it with a larger one"
    )
    return 400, {"error": words}


def _llama(prompt: int, _most: int, window: int) -> tuple[int, dict[str, Any]]:
    words = f"the request exceeds the available context size ({window} tokens), try increasing it"
    error = {
        "code": 400,
        "message": words,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": prompt,
        "n_ctx": window,
    }
    return 400, {"error": error}


def _openai(prompt: int, _most: int, window: int) -> tuple[int, dict[str, Any]]:
    words = f"Please shorten your input. Used {prompt}, allowed {window}."
    return 400, {"error": {"message": words, "type": "invalid_request_error", "code": "context_length_exceeded"}}


def _unknown(_prompt: int, _most: int, _window: int) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": "Bad request: too big for us, sorry."}}


# How a server refuses, and whether it counts the room for the answer in.
REFUSALS: dict[str, tuple[Refuse, bool]] = {
    "vllm": (_vllm, True),
    "vllm-new": (_vllm_new, True),
    "tgi": (_tgi, True),
    "tabby": (_tabby, False),
    "studio": (_studio, False),
    "llama": (_llama, False),
    "openai": (_openai, False),
    "unknown": (_unknown, False),
}
REFUSAL = "I'm sorry, but I can't help with that request. As an AI model I am not able to write these minutes."
FACT_FREE = "Goal:\n- The user and the assistant talked about the project.\nOpen points:\n- They will go on with it."
SUMMARY_ORDER = "Write the minutes"
SUMMARIES = ("good", "refusal", "garbage", "fact-free", "empty", "copied", "inflated", "hang", "foreign")


@dataclass
class Heard:
    """One chat request as the server saw it."""

    turn: int
    body: dict[str, Any]
    pieces: list[str]
    prompt_tokens: int
    summary: bool
    status: int = 200
    answer: str = ""  # as the template writes it

    @property
    def max_tokens(self) -> int:
        return int(self.body.get("max_tokens") or self.body.get("max_completion_tokens") or 0)

    @property
    def text(self) -> str:
        return "\n".join(self.pieces)


@dataclass
class CountingServer(LoopbackServer):
    """Speaks the OpenAI protocol on loopback. `window` is what it serves, `said_window` what its models page says."""

    tokenizer: Tokenizer
    window: int
    said_window: int | None = None
    refuses: str = ""
    clamps: bool = False  # cuts a prompt that is too long to its window and says nothing
    reports: bool = True  # tells how many tokens it read
    summaries: str = "good"
    hang_seconds: float = 60.0
    heard: list[Heard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turn = ScriptedTurn(0, "", ())
        self._steps: list[Step] = []
        self.prepare(_handler(self))
        self.left = threading.Event()

    def play(self, turn: ScriptedTurn) -> None:
        """What the model says and calls in this turn."""
        self._turn, self._steps = turn, list(turn.steps)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any] | list[dict[str, Any]]]:
        pieces = render_pieces(body)
        tokens = sum(map(self.tokenizer.count, pieces)) + self.tokenizer.count(ANSWER_BEGINS)
        summary = not body.get("tools") or SUMMARY_ORDER in str(body["messages"][-1]["content"])
        heard = Heard(self._turn.number, body, pieces, tokens, summary)
        self.heard.append(heard)
        if self.refuses:
            refuse, with_answer = REFUSALS[self.refuses]
            if tokens + (heard.max_tokens if with_answer else 0) > self.window:
                heard.status, refusal = refuse(tokens, heard.max_tokens, self.window)
                return heard.status, refusal
        step = Step(text=self._summary(body)) if summary else self._next(body)
        heard.answer = render_answer(step.text, step.calls)
        read = min(tokens, self.window) if self.clamps else tokens
        return 200, self._chunks(step, read)

    def _next(self, body: dict[str, Any]) -> Step:
        return self._steps.pop(0) if self._steps else Step(text="That is all.")

    def _summary(self, body: dict[str, Any]) -> str:
        messages = body["messages"]
        record = "\n".join(map(_note, messages[1:-1])) if body.get("tools") else str(messages[-1]["content"])
        match self.summaries:
            case "refusal":
                return REFUSAL
            case "garbage":
                return "lorem <|x|> }}{{ ;;; qq zx zx zx " * 12
            case "foreign":
                return "目标：\n- 用户和助手讨论了项目，决定继续工作，并记录所有重要的事情以便以后查看。"
            case "fact-free":
                return FACT_FREE
            case "empty":
                return ""
            case "copied":
                return record[:4000]
            case "inflated":
                return "Goal:\n" + "\n".join(
                    f"- item number {n} of a list that does not end for a long while" for n in range(400)
                )
            case "hang":
                self.left.wait(self.hang_seconds)
                return "Goal:\n- late"
        lines = dict.fromkeys(re.findall(r"FACT-\d+: [^.\n]{10,140}", record))
        if not lines:  # as a model would: the beginning of every other note, file names included
            said = re.findall(r"(?m)^#\S+ (?:assistant|result of \S+): (.{1,90})", record)
            lines = dict.fromkeys([*said, *re.findall(r"called (\w+ .{5,70})", record)])
        told = [f"- {line}" for line in lines][-16:]
        head, most = "Goal:\n- go on with the work\nDecisions:\n", int(body.get("max_tokens") or 1024)
        while len(told) > 1 and self.tokenizer.count(head + "\n".join(told)) > most:
            del told[0]
        return head + "\n".join(told)

    def _chunks(self, step: Step, prompt_tokens: int) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"content": step.text}] if step.text else []
        for index, (name, arguments) in enumerate(step.calls):
            function = {"name": name, "arguments": json.dumps(arguments)}
            deltas.append(
                {"tool_calls": [{"index": index, "id": f"x{index}", "type": "function", "function": function}]}
            )
        chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        reason = "tool_calls" if step.calls else "stop"
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if self.reports:
            written = self.tokenizer.count(step.text) + 20 * len(step.calls)
            chunks.append({"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": written}})
        return chunks


def _note(message: dict[str, Any]) -> str:
    """A message as a note of the record that other requests for a summary carry."""
    who = "result of a-tool" if message["role"] == "tool" else message["role"]
    asked = [call["function"] for call in message.get("tool_calls") or ()]
    called = "".join(f"\n  called {call['name']} {call['arguments']}" for call in asked)
    return f"#1 {who}: {message.get('content') or ''}{called}"


def _handler(server: CountingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            model: dict[str, Any] = {"id": "counting", "object": "model", "owned_by": "someone"}
            if server.said_window:
                model |= {"owned_by": "vllm", "max_model_len": server.said_window}
            if self.path == "/v1/models":
                self._send(200, json.dumps({"object": "list", "data": [model]}).encode())
            else:
                self._send(404, b"{}")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not self.path.endswith("/chat/completions"):
                self._send(404, b"{}")
                return
            status, answer = server.answer(json.loads(body))
            if isinstance(answer, dict):
                self._send(status, json.dumps(answer).encode())
                return
            lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in answer) + "data: [DONE]\n\n"
            self._send(200, lines.encode(), "text/event-stream")

        def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                time.sleep(0)  # whoever asked went away

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    return Handler
