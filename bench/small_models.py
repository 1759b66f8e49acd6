"""Small models: how often a call is valid and of the right tool, on each rung of the ladder, over forty prompts.

Against the server at OLLM_BASE_URL (model OLLM_MODEL); without it there is nothing to measure. Each prompt is asked
once at temperature 0. `OLLM_BENCH_SET` names the prompts (usual, held), `OLLM_BENCH_PROMPTS` how many of them are
asked, `OLLM_BENCH_LOG` a file that gets every answer as a line of JSON and is gone on with.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

from bench.row import Row
from bench.small_model_log import keep, kept
from bench.small_model_prompts import SETS
from ollm.app import create_tool_registry
from ollm.config.settings import ProviderTimeouts
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.struct import Data
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.text_calls.stream_parser import CallStreamParser
from ollm.runtime.model.answer_parser import AnswerParser
from ollm.runtime.model.tool_call_fallback import ToolCallFallback
from ollm.runtime.prompt.instructions import build_instructions
from ollm.tools.framework.tool_selection import select_tools

WINDOW = 4096
LONGEST = 80


class Trial(Data, frozen=True):
    """What one prompt brought on each rung: the tools called, in order."""

    model: str
    asked: str
    right: tuple[str, ...]
    answer: str
    native: tuple[str, ...]
    text: tuple[str, ...]
    ladder: tuple[str, ...]
    worked: tuple[str, ...]
    schema: tuple[str, ...]


RUNGS = {
    "native": "native calls only",
    "text": "and calls written as text",
    "ladder": "and one word of what was wrong, then the schema",
    "worked": "the ladder behind a worked exchange, as once the form is known",
    "schema": "bound to the schema from the start",
}


class Bench:
    def __init__(self, url: str, model: str) -> None:
        self._provider = OpenAICompatible(Exchange(url, ProviderTimeouts(first_token=1800, stall=600)))
        self._model = model
        with tempfile.TemporaryDirectory() as workspace:
            self._tools = select_tools("code", create_tool_registry(Path(workspace)).list(), WINDOW)

    async def trials(self, prompts: Sequence[tuple[str, tuple[str, ...]]]) -> list[Trial]:
        await self._provider.models()
        found = {trial.asked: trial for trial in kept(Trial) if trial.model == self._model}
        for asked, right in prompts:
            if asked not in found:
                found[asked] = keep(await self._trial(asked, right))
        await self._provider.close()
        return [found[asked] for asked, _ in prompts]

    async def _trial(self, asked: str, right: tuple[str, ...]) -> Trial:
        request = self._request(asked)
        pieces = await collected(self._provider.stream(request))
        answer = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
        native = called(pieces)
        written = CallStreamParser(self._tools)
        written.feed(answer)
        written.finish()
        text = native or tuple(call.name for call in written.calls)
        unknown = ModelFacts(key="")
        known = replace(unknown, call_form="text", result_form="user", written_form=written.form or "fence")
        return Trial(
            model=self._model,
            asked=asked,
            right=right,
            answer=answer,
            native=native,
            text=text,
            ladder=text or (await self._climbed(request, unknown) if written.attempts else ()),
            worked=native or await self._climbed(request, known),
            schema=called(
                await ToolCallFallback(self._provider, request, unknown).request_constrained_calls(
                    AnswerParser(self._tools)
                )
            ),
        )

    async def _climbed(self, request: ChatRequest, facts: ModelFacts) -> tuple[str, ...]:
        return called(await collected(ToolCallFallback(self._provider, request, facts).stream_answer()))

    def _request(self, asked: str) -> ChatRequest:
        messages = (
            PromptMessage(role="system", content=build_instructions(WINDOW, "code")),
            PromptMessage(role="user", content=asked),
        )
        return ChatRequest(
            model=self._model, messages=messages, window=WINDOW, tools=self._tools, max_tokens=LONGEST, temperature=0
        )


async def collected(pieces: AsyncGenerator[AnyPiece, None]) -> list[AnyPiece]:
    async with aclosing(pieces):
        return [piece async for piece in pieces]


def called(pieces: Sequence[AnyPiece]) -> tuple[str, ...]:
    return tuple(piece.name for piece in pieces if isinstance(piece, CallPiece))


def rows() -> Iterator[Row]:
    url = os.environ.get("OLLM_BASE_URL")
    if not url:
        return
    model = os.environ.get("OLLM_MODEL", "default")
    chosen = SETS[os.environ.get("OLLM_BENCH_SET", "usual")]
    wanted = int(os.environ.get("OLLM_BENCH_PROMPTS", len(chosen)))
    prompts = chosen[:: max(1, len(chosen) // wanted)]  # of every kind
    yield from table(asyncio.run(Bench(url, model).trials(prompts)), model)


def table(trials: Sequence[Trial], model: str) -> Iterator[Row]:
    """Prompts that went wrong, in percent; the baseline is the lowest rung."""
    no_call, no_right = missed(trials, "native", right=False), missed(trials, "native", right=True)
    for rung, told in RUNGS.items():
        note = f"{told}, {len(trials)} prompts"
        yield Row(f"{model}: no valid call", missed(trials, rung, right=False), no_call, unit="%", note=note)
        yield Row(f"{model}: no right tool", missed(trials, rung, right=True), no_right, unit="%", note=note)


def missed(trials: Sequence[Trial], rung: str, *, right: bool) -> float:
    called: list[tuple[tuple[str, ...], tuple[str, ...]]] = [(getattr(trial, rung), trial.right) for trial in trials]
    good = sum(1 for tools, wanted in called if tools and (not right or tools[0] in wanted))
    return 100 - 100 * good / max(1, len(trials))
