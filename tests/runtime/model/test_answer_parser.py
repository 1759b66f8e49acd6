"""Answers of models, parsed as they stream, with blocks and without."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import (
    AnyPiece,
    BaseProvider,
    CallPiece,
    ChatRequest,
    FinishPiece,
    FinishReason,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
)
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model import tool_call_fallback
from ollm.runtime.model.block_answer import BlockAnswer
from ollm.runtime.model.tool_call_fallback import (
    MAX_BLANK_CHARS,
    MAX_BLANK_LINES,
    AnswerParser,
    StreamWatch,
)
from ollm.runtime.small_models.blocks import CUT_OFF, FILE_BLOCK, REPEATED
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

TOOLS = (ToolSchema(name="read_file", description="Read a file.", parameters=PATH),)


async def parse(parser: AnswerParser, *pieces: AnyPiece) -> tuple[str, list[AnyPiece], int]:
    """The text shown, the other pieces, and how many were taken from the server."""
    taken = 0

    async def stream() -> AsyncGenerator[AnyPiece, None]:
        nonlocal taken
        for piece in pieces:
            taken += 1
            yield piece

    shown = [piece async for piece in parser.parse_stream(stream())]
    text = "".join(piece.text for piece in shown if isinstance(piece, TextPiece))
    return text, [piece for piece in shown if not isinstance(piece, TextPiece)], taken


@pytest.mark.parametrize(("blank", "count"), [(" ", MAX_BLANK_CHARS), ("\n", MAX_BLANK_LINES)])
async def test_endless_blank_space_is_cut_and_a_little_is_not(blank: str, count: int) -> None:
    enough = [TextPiece("a"), *[TextPiece(blank)] * count, TextPiece("b"), FinishPiece("stop")]
    _, _, taken = await parse(AnswerParser(TOOLS), *enough)
    assert taken == len(enough)

    too_much = [TextPiece("a"), *[TextPiece(blank)] * (count + 1), TextPiece("b"), FinishPiece("stop")]
    parser = AnswerParser(TOOLS)
    _, _, taken = await parse(parser, *too_much)

    assert taken == count + 2
    assert parser.finish == FinishPiece()


async def test_of_an_answer_that_was_cut_short_the_prompt_is_known_from_its_progress() -> None:
    parser = AnswerParser(TOOLS)

    _, others, _ = await parse(parser, ProgressPiece(total=70), ProgressPiece(total=50), *[TextPiece("\n")] * 100)

    assert [type(piece) for piece in others] == [ProgressPiece, ProgressPiece]
    assert parser.finish == FinishPiece("stop", Usage(prompt_tokens=70))
    whole = AnswerParser(TOOLS)
    await parse(whole, ProgressPiece(total=70), TextPiece("x"))
    assert whole.finish == FinishPiece()


FACTS = ModelFacts(key="k")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be moved by the test."""
    now = [100.0]
    monkeypatch.setattr(tool_call_fallback, "monotonic", lambda: now[0])
    return now


def measure(
    clock: list[float],
    *timed: tuple[float, AnyPiece],
    prompt: int = 200,
    reused: int = 0,
    written: int = 21,
    **finish: bool,
) -> ModelFacts:
    clock[0] = 100.0
    meter = StreamWatch()
    for at, piece in timed:
        clock[0] = 100.0 + at
        meter.observe_piece(piece)
    usage = Usage(prompt_tokens=prompt, reused_tokens=reused, completion_tokens=written)
    meter.observe_piece(FinishPiece("stop", usage, **finish))  # type: ignore[arg-type]
    return meter.update_facts(FACTS)


TEXT = ((2.0, TextPiece("a")), (4.0, TextPiece("b")))


def test_reading_lasts_until_the_first_word_and_writing_from_there_to_the_last(clock: list[float]) -> None:
    facts = measure(clock, *TEXT, counts_reuse=True)

    assert (facts.prefill_per_second, facts.decode_per_second) == (100.0, 10.0)
    assert measure(clock, (2.0, ThinkingPiece("a")), (4.0, TextPiece("b")), counts_reuse=True) == facts


def test_what_came_from_the_cache_was_not_read(clock: list[float]) -> None:
    assert measure(clock, *TEXT, prompt=300, reused=100, counts_reuse=True).prefill_per_second == 100.0
    assert measure(clock, *TEXT, counts_reuse=False).prefill_per_second is None


def test_a_server_that_does_not_count_its_cache_is_believed_by_its_own_clock_and_only_if_slower() -> None:
    def read(speed: float, known: float | None) -> float | None:
        watch = StreamWatch()
        usage = Usage(prompt_tokens=int(2 * speed))
        watch.observe_piece(FinishPiece("stop", usage, counts_reuse=False, read_seconds=2.0))
        return watch.update_facts(ModelFacts(key="k", prefill_per_second=known)).prefill_per_second

    assert [read(100, None), read(90, 100.0), read(50, 100.0), read(9000, 100.0)] == [100.0, 100.0, 75.0, 100.0]


def test_a_model_that_was_loaded_meanwhile_tells_nothing_of_reading(clock: list[float]) -> None:
    facts = measure(clock, (0.0, ProgressPiece(stage="loading")), *TEXT, counts_reuse=True)

    assert (facts.prefill_per_second, facts.decode_per_second) == (None, 10.0)


def tool(name: str) -> ToolSchema:
    return ToolSchema(name=name, description=name, parameters={"type": "object", "properties": {}})


ALL = tuple(map(tool, ("shell", "write_file", "edit_file", "read_file", "grep")))

READING = tuple(map(tool, ("read_file", "grep", "ls")))


def user(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=text, sources=(1,))


@asynccontextmanager
async def answering(
    said: Answer | str, asked: str = "Do it.", **request: Any
) -> AsyncIterator[tuple[list[AnyPiece], Any]]:
    async with ScriptedServer([said]) as server:
        provider = OpenAICompatible(Exchange(server.base_url, ProviderTimeouts()))
        await provider.models()
        made = ChatRequest(**{"model": "scripted", "messages": (user(asked),), "window": 4096, "tools": ALL} | request)
        answer = BlockAnswer(provider, made, ModelFacts(key="k", call_form="blocks"))
        yield [piece async for piece in answer.stream_answer()], server.chats
        await provider.close()


def calls(pieces: list[AnyPiece]) -> list[CallPiece]:
    return [piece for piece in pieces if isinstance(piece, CallPiece)]


async def test_a_command_is_a_call_and_the_request_carries_no_schemas() -> None:
    async with answering("I look.\n\n```run\nls -l\n```\n", max_tokens=99) as (pieces, chats):
        assert calls(pieces) == [CallPiece("shell", {"command": "ls -l"})]
        assert isinstance(pieces[-1], FinishPiece)
        assert pieces[-1].reason == "tool_calls"
        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).startswith("I look.")
        assert "tools" not in chats[0]
        assert (chats[0]["max_tokens"], chats[0]["temperature"]) == (99, 0)


async def test_a_file_is_a_block_and_one_that_broke_off_says_so() -> None:
    async with answering("```write hello.py\nprint(1)\n```\n") as (pieces, _):
        (made,) = calls(pieces)
        assert made.name == FILE_BLOCK
        assert made.arguments == {"path": "hello.py", "content": "print(1)\n"}
    async with answering(Answer(text="```run\nrm -rf bui", reason="length")) as (pieces, _):
        assert [call.arguments for call in calls(pieces)] == [{"command": "rm -rf bui", "brokenOff": CUT_OFF}]


async def test_where_nothing_may_be_changed_a_command_becomes_a_reading_call() -> None:
    async with answering("```run\ncat a.txt\n```\n", tools=READING) as (pieces, _):
        (made,) = calls(pieces)
        assert made.name != "shell"


class Speaking(BaseProvider):
    """Says these pieces."""

    def __init__(self, *pieces: AnyPiece) -> None:
        self.pieces, self.asked = pieces, list[ChatRequest]()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        self.asked.append(request)
        for piece in self.pieces:
            yield piece


async def listen(
    provider: Speaking, *said: PromptMessage, facts: ModelFacts | None = None, **more: Any
) -> list[AnyPiece]:
    request = ChatRequest(**{"model": "m", "messages": said, "window": 4096, "tools": ALL} | more)
    answer = BlockAnswer(provider, request, facts or ModelFacts(key="k", call_form="blocks"))
    return [piece async for piece in answer.stream_answer()]


def read_text(pieces: list[AnyPiece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


async def test_what_repeats_itself_or_is_blank_is_cut_short_and_counted_by_what_was_read() -> None:
    reading = [ProgressPiece(processed=5, total=70), ProgressPiece(processed=70, total=60)]
    row = [TextPiece("echo the same thing again\n")] * 400
    endless = await listen(Speaking(*reading, TextPiece("```run\n"), *row, FinishPiece("stop")), user("Do it."))
    blank = await listen(Speaking(*reading, TextPiece("Yes."), *[TextPiece(" " * 100)] * 9), user("Do it."))
    lines = await listen(Speaking(*reading, TextPiece("Yes."), *[TextPiece("\n")] * 90), user("Do it."))
    short = await listen(
        Speaking(*reading, TextPiece("Yes."), *[TextPiece(" " * 100)] * 4, TextPiece("x" + "\n" * 60)), user("Do it.")
    )
    over = await listen(
        Speaking(*reading, TextPiece("```run\nls\n```\n"), *[TextPiece("More words follow.\n\n")] * 9),
        user("Do it."),
        facts=ModelFacts(key="k", call_form="blocks", thinking="none"),
    )

    (cut,) = calls(endless)
    assert isinstance(cut.arguments, dict)
    assert cut.arguments["brokenOff"] == REPEATED
    assert 30 < cut.arguments["command"].count("same") < 100
    assert endless[-1] == FinishPiece("tool_calls", Usage(prompt_tokens=70))
    assert [piece for piece in blank if isinstance(piece, ProgressPiece)] == reading
    assert (len(read_text(blank)), len(read_text(lines)), len(read_text(short))) == (4 + 500, 4 + 61, 4 + 400 + 1 + 60)
    assert lines[-1] == FinishPiece("stop", Usage(prompt_tokens=70))
    assert blank[-1] == FinishPiece("stop", Usage(prompt_tokens=70))
    assert short[-1] == FinishPiece()
    assert calls(over) == [CallPiece("shell", {"command": "ls"})]
    assert isinstance(over[-1], FinishPiece)
    assert over[-1].usage == Usage(prompt_tokens=70)


async def test_steps_become_calls_whole_or_broken_off() -> None:
    async def take(text: str, reason: FinishReason = "stop", **more: Any) -> list[CallPiece]:
        return calls(await listen(Speaking(TextPiece(text), FinishPiece(reason)), user("Do it."), **more))

    skill = "cat /home/me/.ollm/skills/x/SKILL.md"
    assert await take(f"```run\n{skill}\n```\n") == [CallPiece("read_file", {"path": skill[4:]})]
    assert await take(f"```run\n{skill} | head\n```\n") == [CallPiece("shell", {"command": f"{skill} | head"})]
    assert await take("```run\nls\n") == [CallPiece("shell", {"command": "ls"})]
    assert await take("```run\nls", "length") == [CallPiece("shell", {"command": "ls", "brokenOff": CUT_OFF})]
    assert await take("```run\nls\n```\n", "length") == [CallPiece("shell", {"command": "ls"})]
    assert await take("```write a.py\nx = 1\n", "length") == [
        CallPiece(FILE_BLOCK, {"path": "a.py", "content": "x = 1\n", "brokenOff": CUT_OFF})
    ]
    assert await take("```run\nls src\n```\n", tools=READING) == [CallPiece("ls", {"path": "src"})]
