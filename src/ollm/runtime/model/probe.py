"""A minute of tiny trials of a model's abilities: how it makes calls, how much it can handle.

Every trial is one short request at temperature 0. The results are saved as facts and shown as a card.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from ollm.config.settings import ModelSettings
from ollm.domain.clock import monotonic
from ollm.domain.errors import PromptTooLongError
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import CallForm, Fault, ModelFacts, ThinkingForm
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, Provider, TextPiece, ThinkingPiece
from ollm.providers.server_kind import find_remedy, identify_server
from ollm.runtime.model.block_answer import BlockAnswer
from ollm.runtime.model.template_checks import (
    PADDING,
    QUESTION,
    Part,
    TemplateChecks,
    collect_pieces,
    join_text,
    make_word,
    read_prompt,
)
from ollm.runtime.model.thinking import CLOSING, OPENING
from ollm.runtime.model.tool_call_fallback import StreamWatch, ToolCallFallback
from ollm.runtime.small_models.blocks import FILE_BLOCK
from ollm.runtime.small_models.edits import read_change

SYSTEM_MESSAGE = PromptMessage(
    role="system", content="You are a coding agent. Use a tool to look and to act. Never guess."
)
TOOL_COUNTS = (3, 5, 8)
MAX_ANSWER_TOKENS = 96
MAX_WINDOW_READ_SECONDS = 20.0
FILLER_LINE = "Line {} of a long and dull file that nobody reads to its end.\n"

PickTools = Callable[[int], tuple[ToolSchema, ...]]
MAX_TRIAL_TOKENS = 160
SPEED_SENTENCE = "The quick brown fox jumps over the lazy dog while seven wizards brew strong coffee. "
MAX_SPEED_ANSWER_TOKENS = 24
MAX_THINKING_TOKENS = 64
MAX_THOUGHT_TOKENS = 1024
MAX_REFUSAL_CHARACTERS = 200
MIN_REUSED_SHARE = 0.5
UNKNOWN = "could not be told"
CHANGING_TEMPLATE = "--chat-template-file FILE, with a template without the time of day or another changing text"
RESULT_FAULTS = frozenset({"results", "calls", "tools"})
CONF = 'DEBUG = False\nNAME = "x"\nLIMIT = 12\n'


class Trial(Data, frozen=True):
    """One line of the card. `ok` is None if the trial proved nothing."""

    name: str
    ok: bool | None
    told: str
    seconds: float = 0.0
    fault: Fault | None = None
    remedy: str = ""
    workaround: str = ""


class ModelCard(Data, frozen=True):
    """The results of the trials."""

    model: str
    facts: ModelFacts
    trials: tuple[Trial, ...]


Finding = tuple[ModelFacts, bool | None, str]
Trials = dict[str, Callable[[ModelFacts], Awaitable[Finding]]]
WORKAROUNDS: dict[Fault, str] = {
    "system": "ollm puts the system prompt in front of the first user message",
    "users": "ollm joins them",
    "results": "ollm sends calls and results as text",
    "calls": "ollm sends calls and results as text",
    "tools": "ollm lists the tools in the prompt",
    "parser": "ollm reads calls from the text",
    "window": "ollm uses the smaller window",
    "thinking": "ollm separates it",
}
PART_EFFECTS: dict[Part, dict[str, Any]] = {
    "system": {"system_form": "user"},
    "tools": {"takes_tools": False, "result_form": "user"},
    "calls": {"result_form": "user"},
    "results": {"result_form": "user"},
}
PART_NAMES: dict[str, str] = {
    "system": "system messages",
    "users": "two user messages",
    "tools": "tool list",
    "calls": "earlier calls",
    "results": "tool results",
}


class Probe:
    """Runs the trials. `tools` returns the given number of tools, the most needed first. `announce` gets the name of
    each trial before it runs, `report` its result."""

    def __init__(
        self,
        provider: Provider,
        request: ChatRequest,
        tools: PickTools,
        report: Callable[[Trial], None],
        announce: Callable[[str], None] = lambda _name: None,
    ) -> None:
        self._provider = provider
        self._request = request
        self._tools = tools
        self._report = report
        self._announce = announce
        self._checks = TemplateChecks(provider, replace(request, settings=None))
        self._advice = ""
        self._trials: list[Trial] = []

    async def run(self, facts: ModelFacts, *, faults_only: bool = False) -> ModelCard:
        """Run all trials and measure anew what is known. `faults_only` runs only those that find faults of the server
        and its template; what else is known stays."""
        known = ModelFacts(key=facts.key)
        measured = replace(known, token_factor=facts.token_factor, token_samples=facts.token_samples)
        facts = forget_faults(facts) if faults_only else measured
        abilities: Trials = {"calls": self._try_call_form, "tools": self._try_tool_count}
        trials: Trials = {
            "speed": self._try_speed,
            "thinking": self._try_thinking,
            **{name: partial(self._try_part, cast("Part", part)) for part, name in PART_NAMES.items()},
            "prompt cache": self._try_prefix,
            **({"tool parser": self._try_parser} if faults_only else abilities),
            "window": self._try_window,
            **({} if faults_only else {"forms": self._try_forms}),
        }
        facts = replace(facts, server=await identify_server(self._provider))
        for name, trial in trials.items():
            self._announce(name)
            begin, before = monotonic(), facts.faults
            facts, ok, told = await trial(facts)
            fault = next((each for each in facts.faults if each not in before), None)
            done = Trial(name=name, ok=ok, told=told, seconds=round(monotonic() - begin, 1), fault=fault)
            if fault:
                remedy = self._advice or find_remedy(facts.server or "other", fault)
                done = replace(done, remedy=remedy, workaround=WORKAROUNDS.get(fault, ""))
            self._trials.append(done)
            self._report(done)
            self._advice = ""
        return ModelCard(model=self._request.model, facts=facts, trials=tuple(self._trials))

    async def _try_speed(self, facts: ModelFacts) -> Finding:
        read, write = await measure_speed(self._provider, self._request.model, self._request.window)
        facts = replace(facts, prefill_per_second=read, decode_per_second=write)
        known = read is not None and write is not None
        return facts, known, f"prompt: {read or '?'} tok/s, output: {write or '?'} tok/s"

    async def _try_part(self, part: Part, facts: ModelFacts) -> Finding:
        """Check that the template passes a part of the conversation on."""
        outcome = await self._checks.check(part)
        if outcome in ("shown", "unknown"):
            return facts, outcome == "shown" or None, "seen by the model" if outcome == "shown" else UNKNOWN
        told = "not seen by the model"
        if outcome == "refused":
            refused = self._checks.refused
            told, self._advice = f"refused: {refused.refusal[:MAX_REFUSAL_CHARACTERS]}", refused.advice
        return add_fault(facts, cast("Fault", part), **PART_EFFECTS.get(part, {})), False, told

    async def _try_thinking(self, facts: ModelFacts) -> Finding:
        """Find how the model's thinking arrives, and whether it can be switched off."""
        asked = PromptMessage(role="user", content="What is 17 times 3?")
        request = replace(self._request, messages=(asked,), max_tokens=MAX_THINKING_TOKENS, temperature=0)
        prompt = await self._provider.render(request) or ""
        form = find_thinking_form(await collect_pieces(self._provider.stream(request)), prompt)
        if form == "none":
            return replace(facts, thinking=form, thinking_off=None), True, "none"
        quiet = replace(request, settings=replace(request.settings or ModelSettings(), thinking="off"))
        prompt = await self._provider.render(quiet) or ""
        off = find_thinking_form(await collect_pieces(self._provider.stream(quiet)), prompt) == "none"
        facts = replace(facts, thinking=form, thinking_off=off)
        told = "`thinking: off` stops it" if off else "`thinking: off` has no effect"
        if form == "separate":
            return facts, True, f"sent separately; {told}"
        return add_fault(facts, "thinking"), False, f"part of the answer; {told}"

    async def _try_prefix(self, facts: ModelFacts) -> Finding:
        """Check that the server does not read the beginning of a conversation again."""
        said = (PromptMessage(role="user", content=f"{make_word()}. {PADDING * 2}\nAnswer ok."),)
        later = (PromptMessage(role="assistant", content="ok"), PromptMessage(role="user", content="Again."))
        begin, whole = (replace(self._request, messages=each, temperature=0) for each in (said, (*said, *later)))
        rendered = await self._provider.render(begin) or ""
        first = await read_prompt(self._provider, begin)
        again = await self._provider.render(whole) or ""
        second = await read_prompt(self._provider, whole)
        if not second.counts_reuse or not second.usage.prompt_tokens:
            return facts, None, f"{UNKNOWN}: the server does not report it"
        reused, before = second.usage.reused_tokens, first.usage.prompt_tokens
        told = f"{reused:,} of {before:,} tokens reused"
        if reused >= MIN_REUSED_SHARE * before:
            return replace(facts, reuses_prefix=True), True, told
        if not again.startswith(rendered[: len(rendered) // 2]):
            self._advice, told = CHANGING_TEMPLATE, f"{told}; the chat template begins differently each time"
        return add_fault(facts, "prefix", reuses_prefix=False), False, told

    async def _try_parser(self, facts: ModelFacts) -> Finding:
        """Check that the server recognizes a call, without learning from a model that makes none."""
        if not facts.takes_tools:
            return facts, None, "not tested: the model is not shown the tools"
        found, _, told = await self._try_call_form(replace(facts, call_form="unknown"))
        if not found.takes_tools:
            return replace(found, call_form=facts.call_form), False, "the server refuses tools"
        if "parser" in found.faults:
            return found, False, told
        known = found.call_form == "native"
        told = "calls are recognized" if known else f"{UNKNOWN}: the model made no call in the form of its template"
        return facts, known or None, told

    async def _try_call_form(self, facts: ModelFacts) -> Finding:
        """Find the simplest form that works for one plain call."""
        fallback = ToolCallFallback(self._provider, replace(self._request, tools=self._tools(TOOL_COUNTS[0])), facts)
        offered, facts = facts.takes_tools, await fallback.probe_call_form()
        self._advice = fallback.advice
        if offered and not facts.takes_tools:
            facts = add_fault(facts, "parser")
        if facts.call_form == "native":
            return facts, True, "native"
        if facts.call_form == "text":
            missed = ", not recognized by the server" if facts.takes_tools else ""
            return facts, True, f"written as text ({facts.written_form}){missed}"
        return replace(facts, call_form="none"), False, "none"

    async def _try_forms(self, facts: ModelFacts) -> Finding:
        """Try three tiny tasks in the found form and in blocks. Use the form that completes more."""
        request = replace(self._request, messages=(SYSTEM_MESSAGE,), tools=self._tools(TOOL_COUNTS[2]))
        found = facts.call_form
        held = 0 if found == "none" else await count_right_steps(self._provider, request, facts, found)
        blocks = await count_right_steps(self._provider, replace(request, messages=()), facts, "blocks")
        told = f"{found} {held} of {len(TASKS)}, blocks {blocks} of {len(TASKS)}"
        better = blocks > held or (blocks == held and blocks > 0 and found != "native")
        chosen = replace(facts, call_form="blocks") if better else facts
        return chosen, max(held, blocks) > 0, f"{told}: {chosen.call_form} is used"

    async def _try_tool_count(self, facts: ModelFacts) -> Finding:
        """Find how many tools the model handles before it calls a wrong one."""
        if facts.call_form == "none":
            return facts, False, "not tested"
        held, erred = 0, False
        for tools in map(self._tools, TOOL_COUNTS):
            if len(tools) <= held:
                break  # A small window shows no more tools.
            request = replace(self._request, messages=(SYSTEM_MESSAGE,), tools=tools)
            task = "Read the file beta/gamma.txt."
            calls = await request_calls(self._provider, request, facts, task, MAX_ANSWER_TOKENS)
            erred = not any(_reads_path(call, "beta/gamma.txt") for call in calls[:1])
            if erred:
                break
            held = len(tools)
        most = max(TOOL_COUNTS[0], held) if erred else None
        told = f"right with {held}" if held else f"wrong even with {TOOL_COUNTS[0]}"
        return replace(facts, max_tools=most), held > 0, told

    async def _try_window(self, facts: ModelFacts) -> Finding:
        """Test whether a long prompt is read in full, limited to what can be read in some seconds."""
        window = self._request.window
        pace = facts.prefill_per_second or 0.0
        lines = int(min(0.8 * window, pace * MAX_WINDOW_READ_SECONDS) / 16)
        if lines < 20:
            return facts, None, f"{window:,}, not tested: prompt processing is too slow"
        word = make_word()
        request = self._make_long_request(word, lines)
        try:
            sent = await self._provider.count_prompt(request) or await self._estimate_long_request(word, lines)
            read = await self._count_read(request)
        except PromptTooLongError as error:
            if not error.window:
                return facts, None, f"{window:,}; {UNKNOWN}: {error.message}"
            read, sent = error.window, 10 * window
        if read and read < 0.95 * sent:
            effects = {"window": read, "served_window": read, "said_window": window}
            return add_fault(facts, "window", **effects), False, f"{read:,} tokens, not {window:,}"
        if read:
            return replace(facts, window=window), True, f"{window:,}; {read:,} tokens read in full"
        answer = await collect_pieces(self._provider.stream(replace(request, max_tokens=MAX_THINKING_TOKENS)))
        knows = word in join_text(answer)
        return facts, knows or None, f"{window:,}; " + ("its beginning is read" if knows else UNKNOWN)

    def _make_long_request(self, word: str, lines: int) -> ChatRequest:
        filler = "".join(FILLER_LINE.format(number) for number in range(lines))
        text = f"The code word is {word}.\n{filler}\n{QUESTION}"
        return replace(self._request, messages=(PromptMessage(role="user", content=text),))

    async def _estimate_long_request(self, word: str, lines: int) -> float:
        """Estimate the tokens of a long request by two short ones. If they are cut too, a low guess is left."""
        few, some = lines // 20, lines // 5
        first, second = [await self._count_read(self._make_long_request(word, count)) for count in (few, some)]
        return max(lines * 10.0, first + (second - first) / (some - few) * (lines - few))

    async def _count_read(self, request: ChatRequest) -> int:
        return (await read_prompt(self._provider, request)).usage.prompt_tokens


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


def find_thinking_form(pieces: list[AnyPiece], prompt: str) -> ThinkingForm:
    """Find how an answer carries thinking. A prompt may end with the opening tag."""
    if any(isinstance(piece, ThinkingPiece) for piece in pieces):
        return "separate"
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).lstrip()
    if text.startswith(OPENING):
        return "tagged"
    return "opened" if CLOSING in text or (text and prompt.rstrip().endswith(OPENING)) else "none"


def add_fault(facts: ModelFacts, fault: Fault, **effects: Any) -> ModelFacts:
    """Add a fault, with the fields that work around it."""
    return replace(facts, faults=(*facts.faults, fault), **effects)


def forget_faults(facts: ModelFacts) -> ModelFacts:
    """Forget faults and their workarounds, so that they are tested anew."""
    names = {"faults", "takes_tools", "system_form", "thinking"}
    names |= {"result_form"} if {*facts.faults} & {*RESULT_FAULTS, "parser"} else set()
    return facts.reset(names | ({"call_form"} if "parser" in facts.faults else set()))


def limit_answer(tokens: int, facts: ModelFacts) -> int:
    return tokens if facts.thinking in (None, "none") else tokens + MAX_THOUGHT_TOKENS


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


TASKS: tuple[tuple[str, Callable[[CallPiece], bool]], ...] = (
    (
        "Which file contains PORT?\n\nFiles here: app.py, conf.py",
        lambda call: call.name in ("grep", "shell") and "PORT" in str(call.arguments),
    ),
    (f"Change LIMIT in conf.py to 20.\n\nFiles here: app.py, conf.py\n\nconf.py:\n```\n{CONF}```", _is_change),
    (
        "Delete the file old.txt.\n\nFiles here: app.py, conf.py, old.txt",
        lambda call: call.name == "shell" and "rm" in str(call.arguments) and "old.txt" in str(call.arguments),
    ),
)


async def request_calls(
    provider: Provider, request: ChatRequest, facts: ModelFacts, task: str, max_tokens: int
) -> list[CallPiece]:
    """Return the calls with which the model answers a task, in its known form."""
    asked = (*request.messages, PromptMessage(role="user", content=task))
    sent = replace(request, messages=asked, max_tokens=limit_answer(max_tokens, facts), temperature=0)
    blocks = facts.call_form == "blocks"
    answer = BlockAnswer(provider, sent, facts) if blocks else ToolCallFallback(provider, sent, facts)
    async with aclosing(answer.stream_answer()) as pieces:
        return [piece async for piece in pieces if isinstance(piece, CallPiece)]


async def count_right_steps(provider: Provider, request: ChatRequest, facts: ModelFacts, form: CallForm) -> int:
    """Count the tiny tasks that the model starts correctly in this form."""
    right, known = 0, replace(facts, call_form=form)
    for task, is_right in TASKS:
        calls = await request_calls(provider, request, known, task, MAX_TRIAL_TOKENS)
        right += bool(calls) and is_right(calls[0])
    return right
