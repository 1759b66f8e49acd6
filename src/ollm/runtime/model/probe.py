"""A minute of tiny trials of a model's abilities: how it makes calls, how it reads results, how much it can handle.

Every trial is one short request at temperature 0. The results are saved as facts and shown as a card.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.model_facts import CallForm, ModelFacts
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, FinishPiece, Provider, TextPiece
from ollm.runtime.model.block_answer import BlockAnswer
from ollm.runtime.model.tool_call_fallback import AnswerParser, StreamWatch, ToolCallFallback
from ollm.runtime.small_models.blocks import FILE_BLOCK
from ollm.runtime.small_models.edits import read_change

SYSTEM_MESSAGE = PromptMessage(
    role="system", content="You are a coding agent. Use a tool to look and to act. Never guess."
)
EXPECTED_CODE = "4711"
VERBATIM_TEXT = 'if a != "b":\n\tprint(\'it\\n\', {1: "é"})'
TOOL_COUNTS = (3, 5, 8)
MAX_ANSWER_TOKENS = 96
MAX_WINDOW_READ_SECONDS = 20.0  # what reading a long prompt may take
FILLER_LINE = "Line {} of a long and dull file that nobody reads to its end.\n"

PickTools = Callable[[int], tuple[ToolSchema, ...]]
MAX_TRIAL_TOKENS = 160
SPEED_SENTENCE = "The quick brown fox jumps over the lazy dog while seven wizards brew strong coffee. "
MAX_SPEED_ANSWER_TOKENS = 24
CONF = 'DEBUG = False\nNAME = "x"\nLIMIT = 12\n'


class Trial(Data, frozen=True):
    """One line of the card."""

    name: str
    ok: bool
    told: str
    seconds: float


class ModelCard(Data, frozen=True):
    """The results of the trials."""

    model: str
    facts: ModelFacts
    trials: tuple[Trial, ...]


class Probe:
    """Runs the trials. `tools` returns the given number of tools, the most needed first. `report` gets each trial."""

    def __init__(
        self, provider: Provider, request: ChatRequest, tools: PickTools, report: Callable[[Trial], None]
    ) -> None:
        self._provider = provider
        self._request = request  # model and window of every request
        self._tools = tools
        self._report = report
        self._trials: list[Trial] = []

    async def run(self, facts: ModelFacts) -> ModelCard:
        facts = replace(ModelFacts(key=facts.key), token_factor=facts.token_factor, token_samples=facts.token_samples)
        for trial in (
            self._try_speed,
            self._try_call_form,
            self._try_result_form,
            self._try_tool_count,
            self._try_verbatim,
            self._try_window,
            self._try_forms,
        ):
            begin = monotonic()
            facts, name, ok, told = await trial(facts)
            self._trials.append(Trial(name=name, ok=ok, told=told, seconds=round(monotonic() - begin, 1)))
            self._report(self._trials[-1])
        return ModelCard(model=self._request.model, facts=facts, trials=tuple(self._trials))

    async def _try_speed(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        read, write = await measure_speed(self._provider, self._request.model, self._request.window)
        facts = replace(facts, prefill_per_second=read, decode_per_second=write)
        known = read is not None and write is not None
        return facts, "speed", known, f"prompt: {read or '?'} tok/s, output: {write or '?'} tok/s"

    async def _try_call_form(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """Find the simplest form that works for one plain call."""
        fallback, parser = self._prepare_request(facts, self._tools(TOOL_COUNTS[0]), "Read the file alpha.txt.")
        await collect_text(fallback.request_answer(parser))
        facts = fallback.facts
        if parser.native:
            return replace(facts, call_form="native"), "calls", True, "native"
        if parser.calls:
            form = parser.form or facts.written_form
            return replace(facts, call_form="text", written_form=form), "calls", True, f"written as text ({form})"
        if await fallback.request_constrained_calls(parser):
            return replace(facts, call_form="constrained"), "calls", True, "only when constrained to the tools' schema"
        return replace(facts, call_form="none"), "calls", False, "none"

    async def _try_forms(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """Try three tiny tasks in the found form and in blocks. Use the form that completes more."""
        request = replace(self._request, messages=(SYSTEM_MESSAGE,), tools=self._tools(TOOL_COUNTS[2]))
        found = facts.call_form
        held = 0 if found == "none" else await count_right_steps(self._provider, request, facts, found)
        blocks = await count_right_steps(self._provider, replace(request, messages=()), facts, "blocks")
        told = f"{found} {held} of {len(TASKS)}, blocks {blocks} of {len(TASKS)}"
        better = blocks > held or (blocks == held and blocks > 0 and found != "native")
        chosen = replace(facts, call_form="blocks") if better else facts
        return chosen, "forms", max(held, blocks) > 0, f"{told}: {chosen.call_form} is used"

    async def _try_result_form(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """Find the form in which the model recognizes a result."""
        if facts.call_form == "none":
            return facts, "results", False, "not tested"
        call = ToolCall(id="call_1", name="read_file", arguments={"path": "alpha.txt"})
        history = (
            PromptMessage(role="user", content="Which code does alpha.txt hold?"),
            PromptMessage(role="assistant", content="", calls=(call,)),
            PromptMessage(role="tool", content=f"The code is {EXPECTED_CODE}.", call_id=call.id, tool_name=call.name),
        )
        as_tool, as_user = replace(facts, result_form="tool"), replace(facts, result_form="user")
        for tried in (as_tool, as_user) if facts.call_form == "native" else (as_user, as_tool):
            fallback, parser = self._prepare_request(tried, self._tools(TOOL_COUNTS[0]), *history)
            text = await collect_text(fallback.request_answer(parser))
            if EXPECTED_CODE in text and not parser.calls:
                told = "as tool results" if tried.result_form == "tool" else "as user messages"
                return tried, "results", True, told
        form = replace(facts, result_form="tool" if facts.call_form == "native" else "user")
        return form, "results", False, "not understood in any form"

    async def _try_tool_count(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """Find how many tools the model handles before it calls a wrong one."""
        if facts.call_form == "none":
            return facts, "tools", False, "not tested"
        held, erred = 0, False
        for tools in map(self._tools, TOOL_COUNTS):
            if len(tools) <= held:
                break  # a small window shows no more
            calls = await self._request_calls(facts, tools, "Read the file beta/gamma.txt.")
            erred = not any(_reads_path(call, "beta/gamma.txt") for call in calls[:1])
            if erred:
                break
            held = len(tools)
        most = max(TOOL_COUNTS[0], held) if erred else None
        told = f"right with {held}" if held else f"wrong even with {TOOL_COUNTS[0]}"
        return replace(facts, max_tools=most), "tools", held > 0, told

    async def _try_verbatim(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        if facts.call_form == "none":
            return facts, "copying", False, "not tested"
        asked = f"Write exactly these two lines into delta.py:\n{VERBATIM_TEXT}"
        calls = await self._request_calls(facts, self._tools(TOOL_COUNTS[1]), asked)
        contents = [c.arguments.get("content") for c in calls if isinstance(c.arguments, dict)]
        same = any(isinstance(text, str) and text.strip() == VERBATIM_TEXT for text in contents)
        told = "text arrives unchanged" if same else "text is altered on the way: edits may fail"
        return replace(facts, verbatim_edits=same), "copying", same, told

    async def _try_window(self, facts: ModelFacts) -> tuple[ModelFacts, str, bool, str]:
        """Test whether a long prompt is read in full, limited to what can be read in some seconds."""
        window = self._request.window
        pace = facts.prefill_per_second or 0.0
        lines = int(min(0.8 * window, pace * MAX_WINDOW_READ_SECONDS) / 16)
        if lines < 20:
            return facts, "window", False, f"{window:,}, not tested: prompt processing is too slow"
        text = "".join(FILLER_LINE.format(number) for number in range(lines))
        request = replace(self._request, messages=(PromptMessage(role="user", content=text),), max_tokens=1)
        exact = await self._provider.count_prompt(request)
        read = 0
        async with aclosing(self._provider.stream(request)) as pieces:
            async for piece in pieces:
                read = piece.usage.prompt_tokens if isinstance(piece, FinishPiece) else read
        sent = exact or lines * 12
        if read and read < 0.8 * sent:
            return replace(facts, window=read), "window", False, f"only {read:,} of {sent:,} tokens were read"
        return replace(facts, window=window), "window", bool(read), f"{window:,}; {read:,} tokens read in full"

    async def _request_calls(self, facts: ModelFacts, tools: tuple[ToolSchema, ...], asked: str) -> list[CallPiece]:
        fallback, _ = self._prepare_request(facts, tools, asked)
        async with aclosing(fallback.stream_answer()) as pieces:
            return [piece async for piece in pieces if isinstance(piece, CallPiece)]

    def _prepare_request(
        self, facts: ModelFacts, tools: tuple[ToolSchema, ...], *said: str | PromptMessage
    ) -> tuple[ToolCallFallback, AnswerParser]:
        messages = (PromptMessage(role="user", content=each) if isinstance(each, str) else each for each in said)
        request = replace(
            self._request,
            messages=(SYSTEM_MESSAGE, *messages),
            tools=tools,
            max_tokens=MAX_ANSWER_TOKENS,
            temperature=0,
        )
        fallback = ToolCallFallback(self._provider, request, facts)
        return fallback, fallback.create_parser()


async def measure_speed(provider: Provider, model: str, window: int) -> tuple[float | None, float | None]:
    """Time a new prompt after a first request has loaded the model. Return the tokens read and written per second."""
    for text, most in (("hi", 1), (f"{monotonic()} {SPEED_SENTENCE * 8}", MAX_SPEED_ANSWER_TOKENS)):
        messages = (PromptMessage(role="user", content=text),)
        request = ChatRequest(model=model, messages=messages, window=window, max_tokens=most, temperature=0)
        watch = StreamWatch()
        async with aclosing(provider.stream(request)) as pieces:
            async for piece in pieces:
                watch.observe_piece(piece)
    return watch.compute_speeds()


def _reads_path(call: CallPiece, path: str) -> bool:
    arguments = call.arguments
    return call.name == "read_file" and isinstance(arguments, dict) and arguments.get("path") == path


async def collect_text(pieces: AsyncGenerator[AnyPiece, None]) -> str:
    async with aclosing(pieces):
        return "".join([piece.text async for piece in pieces if isinstance(piece, TextPiece)])


def _is_search(call: CallPiece) -> bool:
    return call.name in ("grep", "shell") and "PORT" in str(call.arguments)


def _is_change(call: CallPiece) -> bool:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    if arguments.get("path") != "conf.py":
        return False
    if call.name != FILE_BLOCK:
        return call.name in ("edit_file", "write_file") and "LIMIT = 20" in str(arguments).replace(
            "LIMIT=20", "LIMIT = 20"
        )
    change = read_change("conf.py", str(arguments["content"]), CONF)
    after = change.content if change.content is not None else " ".join(new for _, new in change.edits)
    return "LIMIT = 20" in after


def _deletes(call: CallPiece) -> bool:
    return call.name == "shell" and "rm" in str(call.arguments) and "old.txt" in str(call.arguments)


TASKS: tuple[tuple[str, Callable[[CallPiece], bool]], ...] = (
    ("Which file contains PORT?\n\nFiles here: app.py, conf.py", _is_search),
    (f"Change LIMIT in conf.py to 20.\n\nFiles here: app.py, conf.py\n\nconf.py:\n```\n{CONF}```", _is_change),
    ("Delete the file old.txt.\n\nFiles here: app.py, conf.py, old.txt", _deletes),
)  # each with the check of its first step


async def count_right_steps(provider: Provider, request: ChatRequest, facts: ModelFacts, form: CallForm) -> int:
    """Count the tiny tasks that the model starts correctly in this form."""
    right = 0
    for task, is_right in TASKS:
        asked = (*request.messages, PromptMessage(role="user", content=task))
        sent = replace(request, messages=asked, max_tokens=MAX_TRIAL_TOKENS, temperature=0)
        known = replace(facts, call_form=form)
        blocks = form == "blocks"
        answer = BlockAnswer(provider, sent, known) if blocks else ToolCallFallback(provider, sent, known)
        async with aclosing(answer.stream_answer()) as pieces:
            calls = [piece async for piece in pieces if isinstance(piece, CallPiece)]
        right += bool(calls) and is_right(calls[0])
    return right
