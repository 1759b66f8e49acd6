"""What is tried with every model server, through the command, real or replayed."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.running import Ended

Run = Callable[..., Awaitable[Ended]]
LONG_TEXT = "The quick brown fox jumps over the lazy dog. " * 700  # some 7,000 tokens, more than the window of 4,096
NATIVE_CALLS = {"OLLM_CALL_FORM": "native"}


@dataclass(frozen=True)
class ModelCase:
    """A kind of server. `serves_any`: it has one model and takes every name. `takes_tools`: false for one that refuses
    them as it is started by default. `says_window`: false for one that does not."""

    name: str
    model: str
    window: int
    serves_any: bool = False
    takes_tools: bool = True
    says_window: bool = True


CASES = {
    case.name: case
    for case in (
        ModelCase(name="llama.cpp", model="smollm2", window=4096, serves_any=True),
        ModelCase(name="litellm", model="small-model", window=4096),
        ModelCase(name="vllm", model="qwen-coder", window=8192, takes_tools=False),
        ModelCase(name="vllm-0.31", model="qwen-coder", window=8192, takes_tools=False),
        ModelCase(name="transformers", model="qwen-coder", window=4096, says_window=False),
    )
}


async def try_doctor(case: ModelCase, run: Run, _home: Path) -> None:
    done = await run("doctor", "--json")
    server = json.loads(done.out)["server"]
    assert server["window"] == case.window, server
    assert server["guessed"] != case.says_window


async def try_greeting(case: ModelCase, run: Run, _home: Path) -> None:
    """With nothing set but the address: a server that takes no tools as it is has them in the prompt, and says how."""
    done = await run("-p", "Say hello in one word.", "-o", "json", **(NATIVE_CALLS if case.takes_tools else {}))
    said = json.loads(done.out)
    assert (done.code, said["reason"]) == (0, "answered"), done.err
    assert said["text"].strip()
    assert said["usage"]["promptTokens"] > 0
    assert said["usage"]["completionTokens"] > 0
    assert ("takes no tools" in done.err) != case.takes_tools


async def try_unknown_model(case: ModelCase, run: Run, _home: Path) -> None:
    done = await run("-p", "Say hello in one word.", "-m", f"{case.model}x", **NATIVE_CALLS)
    if case.serves_any:
        assert done.code == 0, done.err
    else:
        assert done.code == 4, done.err
        assert case.model in re.sub(rf"{case.model}x", "", done.err), done.err


async def try_overflow(case: ModelCase, run: Run, _home: Path) -> None:
    """The window is set above what is served: the refusal is read, said, and the turn goes on in what there is."""
    if not case.says_window:
        return  # it reads a prompt of any length, for as long as that takes
    text = LONG_TEXT * (case.window // 4096)
    done = await run("-p", f"{text}\nSay hello in one word.", "-o", "json", OLLM_CONTEXT_WINDOW="32768", **NATIVE_CALLS)
    said: dict[str, Any] = json.loads(done.out)
    assert said["reason"] in ("answered", "context-full"), (said, done.err)
    assert f"{case.window:,}" in done.err or str(case.window) in done.err, done.err


SCENARIOS: dict[str, Callable[[ModelCase, Run, Path], Awaitable[None]]] = {
    "doctor": try_doctor,
    "greeting": try_greeting,
    "unknown-model": try_unknown_model,
    "overflow": try_overflow,
}
