"""One answer of a model that writes blocks: its words as they come, its steps as calls, and one end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from msgspec.structs import replace

from ollm.domain.context import Usage
from ollm.domain.errors import RequestRefusedError
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, FinishPiece, ProgressPiece, Provider, TextPiece
from ollm.providers.text_calls.block_rendering import can_change, drop_idle_steps, parse_parameters
from ollm.providers.text_calls.block_stream import BlockStreamParser
from ollm.providers.text_calls.blocks import Block
from ollm.providers.text_calls.reading_commands import SKILLS_FOLDER, find_skill_reading, translate_command
from ollm.runtime.model.answer_parser import MAX_BLANK_CHARS, MAX_BLANK_LINES, MAX_CALL_REPEATS
from ollm.runtime.model.block_steering import (
    PRIMED,
    asks_for_words,
    choose_beginning,
    choose_temperature,
    find_words_instead,
    join_beginning,
    list_turn,
    names_step,
)
from ollm.runtime.model.mend_question import find_mend_question
from ollm.runtime.model.request_format import format_request
from ollm.runtime.model.speed import SpeedMeter
from ollm.services.loop_detection.streamed_text import StreamTracker

MAX_BLOCK_TOKENS = 2_000  # of one answer: a small model that writes more repeats itself
CLOSED = "\n```\n"  # ends a beginning that is all of a command
FENCE = "```"
FILE_BLOCK = "file_block"  # a call of write_file or edit_file whose file has not been looked at yet


def find_request(messages: Sequence[PromptMessage]) -> str:
    """The user's last words, without what was sent with them."""
    own = (said for said in reversed(messages) if said.role == "user" and said.sources and not names_step(said))
    asked = next((said.content for said in own), "")
    return asked.partition(PRIMED)[0]


def asks_how(messages: Sequence[PromptMessage]) -> bool:
    """Whether the user asks how something is done: commands in the answer are quoted then, not meant to be run."""
    from ollm.services.request_reading.explanations import asks_how as asks

    return asks(find_request(messages))


def is_step_meant(messages: Sequence[PromptMessage], step: Block) -> bool:
    """Whether this block is a step, and not quoted in an answer to a question."""
    from ollm.services.request_reading.explanations import is_looking, is_meant, names_nothing

    request, own = find_request(messages), [said.content for said in messages if said.role == "user"]
    if names_nothing(request) and sum(said.role == "assistant" and not said.calls for said in messages) == 0:
        return step.kind == "shell" and is_looking(step.body, runs=False)
    return is_meant(request, step.kind, step.body, step.path, "\n".join(own))


class BlockAnswer:
    """`facts` after the answer, and what the request was counted by, as `ToolCallFallback` gives them."""

    def __init__(self, provider: Provider, request: ChatRequest, facts: ModelFacts, *, begins: bool = True) -> None:
        self.facts = self.counted = facts
        self._begins = begins  # False where the model is to show what it does by itself
        self._provider = provider
        self._request = request
        self._tools = {tool.name: tool for tool in request.tools}
        self._wants_words = asks_for_words(request.messages)
        quoting = self._wants_words or asks_how(request.messages)
        meant = partial(is_step_meant, request.messages)
        self._parser = BlockStreamParser(tuple(self._tools), quoting=quoting, is_meant=meant)
        self._pace = SpeedMeter()
        self._loop = StreamTracker("text", MAX_CALL_REPEATS)
        self._blank = ""  # that the answer ends with so far
        self._finish = FinishPiece()
        self._prompt_tokens = 0
        self._anew = False  # it was asked without what was said before
        self._repeats = False  # it was stopped because it wrote the same again and again

    async def stream_answer(self) -> AsyncGenerator[AnyPiece, None]:
        async with aclosing(self._stream_begun()) as pieces:
            async for piece in pieces:
                self._pace.observe_piece(piece)
                match piece:
                    case TextPiece(text=text):
                        if shown := self._parser.feed(text):
                            yield TextPiece(shown)
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
        if shown := self._parser.finish():
            yield TextPiece(shown)
        if self._wants_words and not self._parser.shown.strip():
            yield TextPiece(find_words_instead(self._request.messages))
        self.facts = self._pace.update_facts(self.facts)
        calls = [self._make_call(step) for step in self._parser.steps]
        for call in calls:
            yield call
        if self._finish.reason == "unknown" and self._prompt_tokens:
            self._finish = FinishPiece("stop", Usage(prompt_tokens=self._prompt_tokens))
        reason = "tool_calls" if calls else self._finish.reason
        yield FinishPiece(reason, self._count_usage(), cut=self._parser.cut)

    def _count_usage(self) -> Usage:
        """What the server counted; not of the prompt where steps were left out: it did not grow as what was said did,
        and would seem to be cut."""
        said = self._request.messages
        whole = not self._anew and len(drop_idle_steps(said)) == len(said)
        return self._finish.usage if whole else replace(self._finish.usage, prompt_tokens=0)

    async def _stream_begun(self) -> AsyncGenerator[AnyPiece, None]:
        """The answer from its beginning on, where one was chosen and the server goes on from there."""
        begun = self._choose_beginning()
        if begun.startswith(FENCE) and begun.endswith(CLOSED):  # the words said all of it: nothing is left to ask
            yield TextPiece(begun)
            return
        request = self._render_request()
        question = find_mend_question(list_turn(self._request.messages)) if can_change(self._request.tools) else None
        if question and await self._can_continue():
            self._anew, begun = True, question.begun
            asked = (PromptMessage(role="user", content=question.text),)
            request = replace(request, messages=asked, temperature=question.heat)
        if not begun or not await self._can_continue():
            async with aclosing(self._provider.stream(request)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        continued = replace(request, messages=(*request.messages, PromptMessage(role="assistant", content=begun)))
        try:
            async with aclosing(join_beginning(begun, self._provider.stream(continued))) as pieces:
                async for piece in pieces:
                    yield piece
        except RequestRefusedError:  # a template that thinks first takes no beginning
            async with aclosing(self._provider.stream(request)) as pieces:
                async for piece in pieces:
                    yield piece

    def _choose_beginning(self) -> str:
        if not self._begins or not can_change(self._request.tools) or asks_how(self._request.messages):
            return ""
        return choose_beginning(self._request.messages, whole=self.facts.is_tiny)

    async def _can_continue(self) -> bool:
        continues = getattr(self._provider, "continues_answers", None)
        return continues is not None and bool(await continues())

    def _render_request(self) -> ChatRequest:
        messages, _ = format_request(self._request.messages, self._request.tools, self.facts)
        heat = choose_temperature(self._request.messages)
        longest = min(self._request.max_tokens or MAX_BLOCK_TOKENS, MAX_BLOCK_TOKENS)
        stop = (FENCE,) if self._wants_words else ()
        return replace(self._request, messages=messages, tools=(), max_tokens=longest, temperature=heat, stop=stop)

    def _should_stop(self, text: str) -> bool:
        """Whether nothing good can follow."""
        if self._parser.is_over:
            return True
        self._blank = self._blank + text if not text.strip() else text[len(text.rstrip()) :]
        endless = len(self._blank) > MAX_BLANK_CHARS or self._blank.count("\n") > MAX_BLANK_LINES
        self._repeats = self._repeats or (self._parser.is_held and self._loop.add(text) is not None)
        return endless or self._repeats

    def _make_call(self, step: Block) -> CallPiece:
        whole = step.closed or (self._finish.reason != "length" and not self._repeats)
        if step.kind == "shell":
            return self._make_command(step.body, whole=whole)
        if step.kind == "tool":
            return CallPiece(step.language, parse_parameters(step.body, self._tools[step.language]))
        return CallPiece(FILE_BLOCK, {"path": step.path, "content": step.body, "whole": whole})

    def _make_command(self, command: str, *, whole: bool) -> CallPiece:
        if not can_change(self._request.tools):
            return translate_command(command)
        if SKILLS_FOLDER in command and whole and (reading := find_skill_reading(command)):
            return reading
        return CallPiece("shell", {"command": command} if whole else {"command": command, "brokenOff": True})
