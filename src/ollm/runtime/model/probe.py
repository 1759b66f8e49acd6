"""A minute of tiny trials that show what a model can do: how it calls, how it takes results, what it can bear.

Every trial is one short request at temperature 0. What comes out is kept as facts and shown as a card.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.messages import Call, PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, FinishPiece, Provider, TextPiece
from ollm.providers.measure import measure
from ollm.runtime.model.answer_parser import Hearing
from ollm.runtime.model.tool_call_fallback import Ladder

TOLD = PromptMessage(role="system", content="You are a coding agent. Use a tool to look and to act. Never guess.")
CODE = "4711"
VERBATIM = 'if a != "b":\n\tprint(\'it\\n\', {1: "é"})'
COUNTS = (3, 5, 8)
ANSWER = 96
SECONDS_FOR_WINDOW = 20.0  # what reading a long prompt may take
FILLER = "Line {} of a long and dull file that nobody reads to its end.\n"

Tools = Callable[[int], tuple[ToolSchema, ...]]


class Trial(Data, frozen=True):
    """One line of the card."""

    name: str
    ok: bool
    told: str
    seconds: float


class Card(Data, frozen=True):
    """What the trials showed."""

    model: str
    facts: ModelFacts
    trials: tuple[Trial, ...]


class Probe:
    """`tools` gives that many tools, the most needed first. `report` hears each trial as it is done."""

    def __init__(self, provider: Provider, request: ChatRequest, tools: Tools, report: Callable[[Trial], None]) -> None:
        self._provider = provider
        self._request = request  # model and window of every request
        self._tools = tools
        self._report = report
        self._trials: list[Trial] = []

    async def run(self, facts: ModelFacts) -> Card:
        facts = replace(ModelFacts(key=facts.key), token_factor=facts.token_factor, token_samples=facts.token_samples)
        for trial in (self._speed, self._call_form, self._result_form, self._tool_count, self._verbatim, self._window):
            begin = monotonic()
            facts, name, ok, told = await trial(facts)
            self._trials.append(Trial(name=name, ok=ok, told=told, seconds=round(monotonic() - begin, 1)))
            self._report(self._trials[-1])
        return Card(model=self._request.model, facts=facts, trials=tuple(self._trials))

    async def _speed(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        speed = await measure(self._provider, self._request.model, self._request.window)
        read, write = speed.prefill_per_second, speed.decode_per_second
        facts = replace(facts, prefill_per_second=read, decode_per_second=write)
        known = read is not None and write is not None
        return facts, "speed", known, f"reads {read or '?'}, writes {write or '?'} tokens a second"

    async def _call_form(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """The lowest rung that holds for one plain call."""
        ladder, hearing = self._asked(facts, self._tools(COUNTS[0]), "Read the file alpha.txt.")
        await spoken_text(ladder.ask(hearing))
        facts = ladder.facts
        if hearing.native:
            return replace(facts, call_form="native"), "calls", True, "native"
        if hearing.calls:
            form = hearing.form or facts.written_form
            return replace(facts, call_form="text", written_form=form), "calls", True, f"written as text ({form})"
        if await ladder.bound(hearing):
            return replace(facts, call_form="constrained"), "calls", True, "only when bound to the tools' schema"
        return replace(facts, call_form="none"), "calls", False, "none came"

    async def _result_form(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """In which form a result is taken for what it is."""
        if facts.call_form == "none":
            return facts, "results", False, "not tried"
        call = Call(id="call_1", name="read_file", arguments={"path": "alpha.txt"})
        history = (
            PromptMessage(role="user", content="Which code does alpha.txt hold?"),
            PromptMessage(role="assistant", content="", calls=(call,)),
            PromptMessage(role="tool", content=f"The code is {CODE}.", call_id=call.id, tool_name=call.name),
        )
        as_tool, as_user = replace(facts, result_form="tool"), replace(facts, result_form="user")
        for tried in (as_tool, as_user) if facts.call_form == "native" else (as_user, as_tool):
            ladder, hearing = self._asked(tried, self._tools(COUNTS[0]), *history)
            text = await spoken_text(ladder.ask(hearing))
            if CODE in text and not hearing.calls:
                told = "as tool results" if tried.result_form == "tool" else "as user messages"
                return tried, "results", True, told
        form = replace(facts, result_form="tool" if facts.call_form == "native" else "user")
        return form, "results", False, "not taken for what they are in any form"

    async def _tool_count(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """How many tools it can be shown before it calls a wrong one."""
        if facts.call_form == "none":
            return facts, "tools", False, "not tried"
        held, erred = 0, False
        for tools in map(self._tools, COUNTS):
            if len(tools) <= held:
                break  # a small window shows no more
            calls = await self._called(facts, tools, "Read the file beta/gamma.txt.")
            erred = not any(_reads(call, "beta/gamma.txt") for call in calls[:1])
            if erred:
                break
            held = len(tools)
        most = max(COUNTS[0], held) if erred else None
        told = f"right with {held}" if held else f"wrong even with {COUNTS[0]}"
        return replace(facts, max_tools=most), "tools", held > 0, told

    async def _verbatim(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        if facts.call_form == "none":
            return facts, "copying", False, "not tried"
        asked = f"Write exactly these two lines into delta.py:\n{VERBATIM}"
        calls = await self._called(facts, self._tools(COUNTS[1]), asked)
        contents = [c.arguments.get("content") for c in calls if isinstance(c.arguments, dict)]
        same = any(isinstance(text, str) and text.strip() == VERBATIM for text in contents)
        told = "texts arrive as they are" if same else "texts are changed on the way: edits may miss"
        return replace(facts, verbatim_edits=same), "copying", same, told

    async def _window(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """Whether a long prompt is read whole: as long as can be read in some seconds."""
        window = self._request.window
        pace = facts.prefill_per_second or 0.0
        lines = int(min(0.8 * window, pace * SECONDS_FOR_WINDOW) / 16)
        if lines < 20:
            return facts, "window", False, f"{window}, not tried: reading is too slow here"
        text = "".join(FILLER.format(number) for number in range(lines))
        request = replace(self._request, messages=(PromptMessage(role="user", content=text),), max_tokens=1)
        exact = await self._provider.count_prompt(request)
        read = 0
        async with aclosing(self._provider.stream(request)) as pieces:
            async for piece in pieces:
                read = piece.usage.prompt_tokens if isinstance(piece, FinishPiece) else read
        sent = exact or lines * 12
        if read and read < 0.8 * sent:
            return replace(facts, window=read), "window", False, f"only {read} tokens of {sent} were read"
        return replace(facts, window=window), "window", bool(read), f"{window}; {read} tokens were read whole"

    async def _called(self, facts: ModelFacts, tools: tuple[ToolSchema, ...], asked: str) -> list[CallPiece]:
        ladder, _ = self._asked(facts, tools, asked)
        async with aclosing(ladder.climb()) as pieces:
            return [piece async for piece in pieces if isinstance(piece, CallPiece)]

    def _asked(
        self, facts: ModelFacts, tools: tuple[ToolSchema, ...], *said: str | PromptMessage
    ) -> tuple[Ladder, Hearing]:
        messages = (PromptMessage(role="user", content=each) if isinstance(each, str) else each for each in said)
        request = replace(self._request, messages=(TOLD, *messages), tools=tools, max_tokens=ANSWER, temperature=0)
        ladder = Ladder(self._provider, request, facts)
        return ladder, ladder.hearing()


def _reads(call: CallPiece, path: str) -> bool:
    arguments = call.arguments
    return call.name == "read_file" and isinstance(arguments, dict) and arguments.get("path") == path


async def spoken_text(pieces: AsyncGenerator[AnyPiece, None]) -> str:
    async with aclosing(pieces):
        return "".join([piece.text async for piece in pieces if isinstance(piece, TextPiece)])
