"""Checks that a server's chat template passes every part of a conversation on to the model.

A part is sent twice, once with a long made-up fact in it. The prompt as the server renders it must contain the fact, or
the server's token count must grow by it. If neither holds, the model is asked for the fact: one that knows it has seen
it. One that does not proves nothing, so without counts the outcome is unknown.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

from msgspec.structs import replace

from ollm.domain.errors import ModelError, ToolsUnsupportedError
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.model_facts import ModelFacts, ShownThinking
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, ChatRequest, FinishPiece, Provider, TextPiece, ThinkingPiece
from ollm.runtime.model.tool_call_fallback import format_request

Part = Literal["user", "system", "users", "tools", "calls", "results"]
Outcome = Literal["shown", "lost", "refused", "unknown"]

PADDING = "velmor tasik brundle opfen quarz limtor hesk davrin polute migras enkor fultep " * 3
MIN_SHOWN_TOKENS = 20  # The fact has three times as many tokens in any tokenizer.
MAX_LOST_TOKENS = 4
MAX_ANSWER_TOKENS = 32
REFUSAL_STATUSES = (400, 422, 500, 501)  # Servers answer with these if a template raises an error.
QUESTION = "Which code word was mentioned? Answer with that word only."


def make_word() -> str:
    """Make up a word that no model knows."""
    return "".join(secrets.choice("bdfgklmnprstvz") + secrets.choice("aeiou") for _ in range(4))


def build_call(call_id: str, path: str, result: str, **more: Any) -> tuple[PromptMessage, PromptMessage]:
    """Build an answer that calls `read_file`, and its result. `more` are further fields of the answer."""
    call = ToolCall(id=call_id, name="read_file", arguments={"path": path})
    return (
        PromptMessage(role="assistant", content="", calls=(call,), **more),
        PromptMessage(role="tool", content=result, call_id=call_id, tool_name=call.name),
    )


def build_tool(description: str) -> ToolSchema:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return ToolSchema(name="read_file", description=description, parameters=parameters)


class PromptReading(Data, frozen=True):
    """The server's reading of a request: its prompt, or the number of its tokens, or the reason for a refusal."""

    prompt: str | None = None
    tokens: int = 0
    refusal: str = ""
    advice: str = ""  # Explains how the server would take tools.


class TemplateChecks:
    """Checks of one model. `request` holds its name, window and settings."""

    def __init__(self, provider: Provider, request: ChatRequest) -> None:
        self._provider = provider
        self._request = request
        self._counts: bool | None = None  # Tells whether the server's token counts can be trusted.
        self._left_out: set[Part] = set()  # Later requests leave out these refused parts.
        self.refused = PromptReading()  # Holds the last refusal.

    async def check(self, part: Part) -> Outcome:
        """Find out whether this part reaches the model. Raises if the server refuses even a plain message."""
        word = make_word()
        fact = f"The code word is {word}. {PADDING}"
        base = await self._read(self._build_request(part, "ok"))
        with_fact = self._build_request(part, fact)
        found = await self._read(with_fact)
        outcome = self._compare(base, found, word)
        if outcome == "unknown" and self._counts is None and part != "user":
            self._counts = await self.check("user") == "shown"
            outcome = self._compare(base, found, word)
        if part == "system" and outcome == "shown" and found.prompt is not None:
            outcome = await self._check_inside_turn(with_fact, word)
        if outcome in ("lost", "unknown") and found.prompt is None and part != "user":  # Some count only a part.
            outcome = "shown" if word in await self._ask(with_fact) else outcome
        self._left_out |= {part} if outcome == "refused" else set()
        return outcome

    async def _check_inside_turn(self, request: ChatRequest, word: str) -> Outcome:
        """Check that the word still reaches the model when the last message is a tool result."""
        found = await self._read(
            replace(request, messages=(*request.messages, *build_call("call00001", "a.txt", "ok")))
        )
        return "lost" if found.prompt is not None and word not in found.prompt else "shown"

    def _compare(self, base: PromptReading, found: PromptReading, word: str) -> Outcome:
        self.refused = found if found.refusal else base
        if self.refused.refusal:
            return "refused"
        if found.prompt is not None:
            return "shown" if word in found.prompt else "lost"
        grown = found.tokens - base.tokens
        if base.tokens and grown >= MIN_SHOWN_TOKENS:
            return "shown"
        return "lost" if self._counts and base.tokens and abs(grown) <= MAX_LOST_TOKENS else "unknown"

    def _build_request(self, part: Part, fact: str) -> ChatRequest:
        """Build a conversation with the fact in one part. It begins with a new word, which no prompt cache holds."""
        said = {each: fact if each == part else "ok" for each in ("user", "system", "users", "calls", "results")}
        system = PromptMessage(role="system", content=said["system"])
        user = PromptMessage(role="user", content=f"{make_word()}. {said['user']}")
        question = PromptMessage(role="user", content=QUESTION)
        tool = build_tool(fact if part == "tools" else "Read a file.")
        messages: tuple[PromptMessage, ...] = (replace(user, content=f"{user.content}\n{QUESTION}"),)
        if part == "users":
            messages = (replace(user, content=f"{user.content} {said['users']}"), question)
        if part in ("calls", "results"):
            called = build_call("call00001", said["calls"], said["results"])
            messages = (user, *called, PromptMessage(role="assistant", content="Done."), question)
        if part != "user" and "system" not in self._left_out:
            messages = (system, *messages)
        offers = part == "tools" or ("tools" not in self._left_out and part in ("calls", "results"))
        return replace(
            self._request, messages=messages, tools=(tool,) if offers else (), temperature=0, verbatim=part == "users"
        )

    async def _read(self, request: ChatRequest) -> PromptReading:
        """Let the server render the prompt, count it, or read it for one token."""
        try:
            if (prompt := await self._provider.render(request)) is not None:
                return PromptReading(prompt=prompt)
            if tokens := await self._provider.count_prompt(request):
                return PromptReading(tokens=tokens)
            return PromptReading(tokens=(await read_prompt(self._provider, request)).usage.prompt_tokens)
        except ModelError as error:
            plain = len(request.messages) == 1 and not request.tools  # Any server must take it.
            if plain or error.status not in REFUSAL_STATUSES:
                raise
            advice = error.action if isinstance(error, ToolsUnsupportedError) else ""
            return PromptReading(refusal=error.message, advice=advice)

    async def _ask(self, request: ChatRequest) -> str:
        try:
            pieces = self._provider.stream(replace(request, max_tokens=MAX_ANSWER_TOKENS))
            return join_text(await collect_pieces(pieces))
        except ModelError:
            return ""


LookedPart = Literal["system", "tools", "calls", "results"]


class TemplateLook:
    """One look at how the template renders a conversation with two turns of calls, by a made-up word in each part.
    The tools of `request` are offered beside one of its own: a template may refuse a schema."""

    def __init__(self, provider: Provider, request: ChatRequest) -> None:
        self._provider = provider
        self._request = request
        self._words = {part: make_word() for part in ("system", "tools", "calls", "results", "older", "newer")}

    async def choose_forms(self, facts: ModelFacts) -> ModelFacts:
        """Choose the first form in which the model sees every part: as known, with the system prompt in the user's
        message, with tools, calls and results as text, or both. Without such a form the facts stay. For a model that
        writes blocks, tools that the template does not show are a fault too."""
        folded = replace(facts, system_form="user")
        writes = {"call_form": "text", "takes_tools": False, "result_form": "user"}
        native = facts.takes_tools and facts.call_form != "blocks"
        forms = (facts, folded, replace(facts, **writes), replace(folded, **writes)) if native else (facts, folded)
        faults: tuple[LookedPart, ...] = ()
        if facts.call_form == "blocks":  # It may be so because the template shows no tools.
            offering = replace(facts, call_form="unknown")
            faults = ("tools",) if "tools" in self._find_missing(await self._render(offering), offering) else ()
        for form in forms:
            prompt = await self._render(form)
            missing = self._find_missing(prompt, form)
            if not missing:
                shown = self._read_shown_thinking(prompt) if form is facts else facts.shown_thinking
                return replace(form, faults=faults or facts.faults, shown_thinking=shown)
            faults = faults or missing
        return facts

    def _find_missing(self, prompt: str, form: ModelFacts) -> tuple[LookedPart, ...]:
        parts: tuple[LookedPart, ...] = ("system", "tools", "calls", "results")
        parts = ("system", "results") if form.call_form == "blocks" else parts
        return tuple(part for part in parts if self._words[part] not in prompt)

    def _read_shown_thinking(self, prompt: str) -> ShownThinking:
        if self._words["older"] in prompt:
            return "session"
        return "turn" if self._words["newer"] in prompt else "none"

    async def _render(self, form: ModelFacts) -> str:
        """Render the conversation in this form. A refused one shows nothing. Raises if the server does not answer."""
        messages, tools = format_request(*self._build_conversation(), form)
        try:
            return await self._provider.render(replace(self._request, messages=messages, tools=tools)) or ""
        except ModelError as error:
            if error.status in REFUSAL_STATUSES:
                return ""
            raise

    def _build_conversation(self) -> tuple[tuple[PromptMessage, ...], tuple[ToolSchema, ...]]:
        words = self._words
        tool = build_tool(f"Read {words['tools']}.")
        ask = PromptMessage(role="user", content="Read it.")
        return (
            PromptMessage(role="system", content=f"Mind {words['system']}."),
            *(ask, *self._call("c1", words["older"]), PromptMessage(role="assistant", content="Done.")),
            *(ask, *self._call("c2", words["newer"])),
        ), (tool, *(other for other in self._request.tools if other.name != tool.name))

    def _call(self, call_id: str, thought: str) -> tuple[PromptMessage, PromptMessage]:
        path, result = self._words["calls"], self._words["results"]
        return build_call(call_id, path, result, thinking=thought, thinking_field="reasoning_content")


async def collect_pieces(pieces: AsyncGenerator[AnyPiece, None]) -> list[AnyPiece]:
    async with aclosing(pieces):
        return [piece async for piece in pieces]


async def read_prompt(provider: Provider, request: ChatRequest) -> FinishPiece:
    """Let the server read a prompt for one token, and return what it counted."""
    pieces = await collect_pieces(provider.stream(replace(request, max_tokens=1)))
    return next((piece for piece in pieces if isinstance(piece, FinishPiece)), FinishPiece(counts_reuse=False))


def join_text(pieces: list[AnyPiece]) -> str:
    """Join the text and the thinking of an answer."""
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece | ThinkingPiece))
