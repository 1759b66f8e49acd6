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
BOUND = {"OLLM_CALL_FORM": "native"}


@dataclass(frozen=True)
class ModelCase:
    """A kind of server. `serves_any`: it has one model and takes every name."""

    name: str
    model: str
    window: int
    serves_any: bool = False


CASES = {
    case.name: case
    for case in (
        ModelCase(name="llama.cpp", model="smollm2", window=4096, serves_any=True),
        ModelCase(name="litellm", model="small-model", window=4096),
    )
}


async def try_doctor(case: ModelCase, run: Run, _home: Path) -> None:
    done = await run("doctor", "--json")
    server = json.loads(done.out)["server"]
    assert server["window"] == case.window, server
    assert not server["guessed"]


async def try_greeting(case: ModelCase, run: Run, _home: Path) -> None:
    done = await run("-p", "Say hello in one word.", "-o", "json", **BOUND)
    said = json.loads(done.out)
    assert (done.code, said["reason"]) == (0, "answered"), done.err
    assert said["text"].strip()
    assert said["usage"]["promptTokens"] > 0
    assert said["usage"]["completionTokens"] > 0


async def try_unknown_model(case: ModelCase, run: Run, _home: Path) -> None:
    done = await run("-p", "Say hello in one word.", "-m", f"{case.model}x", **BOUND)
    if case.serves_any:
        assert done.code == 0, done.err
    else:
        assert done.code == 4, done.err
        assert case.model in re.sub(rf"{case.model}x", "", done.err), done.err


async def try_overflow(case: ModelCase, run: Run, _home: Path) -> None:
    """The window is set above what is served: the refusal is read, said, and the turn goes on in what there is."""
    done = await run("-p", f"{LONG_TEXT}\nSay hello in one word.", "-o", "json", OLLM_CONTEXT_WINDOW="32768", **BOUND)
    said: dict[str, Any] = json.loads(done.out)
    assert said["reason"] in ("answered", "context-full"), (said, done.err)
    assert f"{case.window:,}" in done.err or str(case.window) in done.err, done.err


SCENARIOS: dict[str, Callable[[ModelCase, Run, Path], Awaitable[None]]] = {
    "doctor": try_doctor,
    "greeting": try_greeting,
    "unknown-model": try_unknown_model,
    "overflow": try_overflow,
}
