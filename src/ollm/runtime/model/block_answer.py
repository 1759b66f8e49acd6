"""Reads one answer of a model that writes blocks: streams its text, turns its steps into calls, and ends once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from msgspec.structs import replace

from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    Provider,
    TextPiece,
    ThinkingPiece,
    WrittenPiece,
)
from ollm.runtime.model.tool_call_fallback import StreamWatch, format_request, stream_pieces
from ollm.runtime.small_models.blocks import CUT_OFF, FILE_BLOCK, REPEATED, Block, BlockStreamParser
from ollm.runtime.small_models.rendering import (
    can_change,
    find_skill_reading,
    parse_parameters,
    translate_command,
)

MAX_BLOCK_TOKENS = 2_000  # A small model that writes more repeats itself.


class BlockAnswer:
    """One answer in blocks. `facts` (after the answer) and `counted` (for the request) are as in `ToolCallFallback`."""

    advice, may_probe = "", False

    def __init__(self, provider: Provider, request: ChatRequest, facts: ModelFacts) -> None:
        self.facts = self.counted = facts
        self._provider = provider
        self._request = request
        self._tools = {tool.name: tool for tool in request.tools}
        self._parser = BlockStreamParser()
        self._watch = StreamWatch()

    async def stream_answer(self) -> AsyncGenerator[AnyPiece, None]:
        """Stream the answer up to its command. The first of a model is read whole: its text may prove to be a thought
        by the end tag alone."""
        known, whole = self.facts.thinking is not None, False
        async with aclosing(stream_pieces(self._provider, self._render_request(), self.facts)) as pieces:
            async for piece in pieces:
                self._watch.observe_piece(piece)
                known = known or isinstance(piece, ThinkingPiece)
                match piece:
                    case TextPiece(text=text):
                        yield WrittenPiece(text)
                        for shown in self._show(self._parser.feed(text)):
                            yield shown
                        if (known and self._parser.is_over) or self._watch.is_endless(text, held=self._parser.is_held):
                            self._watch.end_early()
                            break
                    case FinishPiece():
                        whole = piece.reason == "stop"
                    case _:
                        yield piece
        for shown in self._show(self._parser.finish()):
            yield shown
        self.facts = self._watch.update_facts(self.facts)
        if whole and not known:
            self.facts = replace(self.facts, thinking="opened" if self._parser.begins_in_thought else "none")
        calls = [self._make_call(step) for step in self._parser.steps]
        for call in calls:
            yield call
        finish = self._watch.finish
        reason = "tool_calls" if calls else finish.reason
        yield replace(finish, reason=reason, cut=self._parser.cut, limit=self._find_limit())

    def _show(self, text: str) -> Iterator[AnyPiece]:
        """Yield the pieces to show to the user: first any finished thought."""
        if self._parser.thought:
            yield ThinkingPiece(self._parser.thought.strip("\n"))
            self._parser.thought = ""
        if text:
            yield TextPiece(text)

    def _render_request(self) -> ChatRequest:
        messages, tools = format_request(self._request.messages, self._request.tools, self.facts)
        longest = min(self._request.max_tokens or MAX_BLOCK_TOKENS, MAX_BLOCK_TOKENS)
        heat = self._request.temperature or 0.0
        return replace(self._request, messages=messages, tools=tools, max_tokens=longest, temperature=heat)

    def _find_limit(self) -> int:
        """Return our own token limit if it ended the answer, or 0 if the window or the server did."""
        written = self._watch.finish.usage.completion_tokens or MAX_BLOCK_TOKENS
        ours = (self._request.max_tokens or MAX_BLOCK_TOKENS) >= MAX_BLOCK_TOKENS <= written
        return MAX_BLOCK_TOKENS if ours and self._watch.finish.reason == "length" else 0

    def _make_call(self, step: Block) -> CallPiece:
        """Make the call for a block. An incomplete one has its reason under `brokenOff` and must not be run."""
        call = self._read_call(step)
        why = REPEATED if self._watch.repeats else "" if self._watch.finish.reason == "stop" else CUT_OFF
        cut = "" if step.closed else why
        whole = call.arguments if isinstance(call.arguments, dict) else {}
        return CallPiece(call.name, {**whole, "brokenOff": cut}) if cut else call

    def _read_call(self, step: Block) -> CallPiece:
        if step.kind == "write":
            return CallPiece(FILE_BLOCK, {"path": step.name, "content": step.body})
        if step.kind == "call":
            tool = self._tools.get(step.name)
            return CallPiece(step.name, parse_parameters(step.body, tool) if tool else {})
        if not can_change(self._request.tools):
            return translate_command(step.body)
        return find_skill_reading(step.body) or CallPiece("shell", {"command": step.body})
