"""Reads one answer of a model that writes blocks: its words as they come, its steps as calls, and one end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from msgspec.structs import replace

from ollm.domain.context import Usage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    ProgressPiece,
    Provider,
    TextPiece,
    ThinkingPiece,
    WrittenPiece,
)
from ollm.runtime.model.answer_parser import MAX_BLANK_CHARS, MAX_BLANK_LINES, MAX_CALL_REPEATS, SpeedMeter
from ollm.runtime.small_models.blocks import CUT_OFF, FILE_BLOCK, REPEATED, Block, BlockStreamParser
from ollm.runtime.small_models.rendering import (
    can_change,
    find_skill_reading,
    parse_parameters,
    render_block_messages,
    translate_command,
)
from ollm.services.loop_detection import StreamTracker

MAX_BLOCK_TOKENS = 2_000  # of one answer: a small model that writes more repeats itself


class BlockAnswer:
    """`facts` after the answer, and what the request was counted by, as `ToolCallFallback` gives them."""

    def __init__(self, provider: Provider, request: ChatRequest, facts: ModelFacts) -> None:
        self.facts = self.counted = facts
        self._provider = provider
        self._request = request
        self._tools = {tool.name: tool for tool in request.tools}
        self._parser = BlockStreamParser(tuple(self._tools))
        self._pace = SpeedMeter()
        self._loop = StreamTracker("text", MAX_CALL_REPEATS)
        self._blank = ""  # that the answer ends with so far
        self._finish = FinishPiece()
        self._prompt_tokens = 0
        self._repeats = False  # it was stopped because it wrote the same again and again

    async def stream_answer(self) -> AsyncGenerator[AnyPiece, None]:
        async with aclosing(self._provider.stream(self._render_request())) as pieces:
            async for piece in pieces:
                self._pace.observe_piece(piece)
                match piece:
                    case TextPiece(text=text):
                        yield WrittenPiece(text)
                        for shown in self._show(self._parser.feed(text)):
                            yield shown
                        if self._should_stop(text):
                            break
                    case FinishPiece():
                        self._finish = piece
                    case _:
                        if isinstance(piece, ProgressPiece):
                            self._prompt_tokens = max(self._prompt_tokens, piece.total)
                        yield piece
            else:
                self._prompt_tokens = 0
        for shown in self._show(self._parser.finish()):
            yield shown
        self.facts = self._pace.update_facts(self.facts)
        calls = [self._make_call(step) for step in self._parser.steps]
        for call in calls:
            yield call
        if self._finish.reason == "unknown" and self._prompt_tokens:
            self._finish = FinishPiece("stop", Usage(prompt_tokens=self._prompt_tokens))
        reason = "tool_calls" if calls else self._finish.reason
        yield FinishPiece(reason, self._finish.usage, cut=self._parser.cut, limit=self._find_limit())

    def _show(self, text: str) -> Iterator[AnyPiece]:
        """What a person is shown: first a thought that has ended."""
        if self._parser.thought:
            yield ThinkingPiece(self._parser.thought.strip("\n"))
            self._parser.thought = ""
        if text:
            yield TextPiece(text)

    def _render_request(self) -> ChatRequest:
        messages = render_block_messages(self._request.messages, self._request.tools)
        longest = min(self._request.max_tokens or MAX_BLOCK_TOKENS, MAX_BLOCK_TOKENS)
        heat = self._request.temperature or 0.0
        return replace(self._request, messages=messages, tools=(), max_tokens=longest, temperature=heat)

    def _find_limit(self) -> int:
        """Our own limit, if that ended the answer and not the window nor the server."""
        written = self._finish.usage.completion_tokens or MAX_BLOCK_TOKENS
        ours = (self._request.max_tokens or MAX_BLOCK_TOKENS) >= MAX_BLOCK_TOKENS <= written
        return MAX_BLOCK_TOKENS if ours and self._finish.reason == "length" else 0

    def _should_stop(self, text: str) -> bool:
        """Whether nothing good can follow."""
        if self._parser.is_over:
            return True
        self._blank = self._blank + text if not text.strip() else text[len(text.rstrip()) :]
        endless = len(self._blank) > MAX_BLANK_CHARS or self._blank.count("\n") > MAX_BLANK_LINES
        self._repeats = self._repeats or (self._parser.is_held and self._loop.add(text) is not None)
        return endless or self._repeats

    def _make_call(self, step: Block) -> CallPiece:
        """The call that a block stands for; one that is not whole says why under `brokenOff`, and is not to be run."""
        call = self._read_call(step)
        cut = "" if step.closed else REPEATED if self._repeats else CUT_OFF if self._finish.reason == "length" else ""
        whole = call.arguments if isinstance(call.arguments, dict) else {}
        return CallPiece(call.name, {**whole, "brokenOff": cut}) if cut else call

    def _read_call(self, step: Block) -> CallPiece:
        if step.kind == "file":
            return CallPiece(FILE_BLOCK, {"path": step.path, "content": step.body})
        if step.kind == "tool":
            return CallPiece(step.language, parse_parameters(step.body, self._tools[step.language]))
        if not can_change(self._request.tools):
            return translate_command(step.body)
        return find_skill_reading(step.body) or CallPiece("shell", {"command": step.body})
