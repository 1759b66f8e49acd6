"""One answer of a model that writes blocks."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

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
)
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.block_answer import BlockAnswer
from ollm.runtime.small_models.blocks import CUT_OFF, FILE_BLOCK, REPEATED
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


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
    async with answering("I look.\n\n```bash\nls -l\n```\n", max_tokens=99) as (pieces, chats):
        assert calls(pieces) == [CallPiece("shell", {"command": "ls -l"})]
        assert isinstance(pieces[-1], FinishPiece)
        assert pieces[-1].reason == "tool_calls"
        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).startswith("I look.")
        assert "tools" not in chats[0]
        assert (chats[0]["max_tokens"], chats[0]["temperature"]) == (99, 0)


async def test_a_file_is_a_block_and_one_that_broke_off_says_so() -> None:
    async with answering("hello.py:\n```python\nprint(1)\n```\n") as (pieces, _):
        (made,) = calls(pieces)
        assert made.name == FILE_BLOCK
        assert made.arguments == {"path": "hello.py", "content": "print(1)\n"}
    async with answering(Answer(text="```bash\nrm -rf bui", reason="length")) as (pieces, _):
        assert [call.arguments for call in calls(pieces)] == [{"command": "rm -rf bui", "brokenOff": CUT_OFF}]


async def test_where_nothing_may_be_changed_a_command_becomes_a_reading_call() -> None:
    async with answering("```bash\ncat a.txt\n```\n", tools=READING) as (pieces, _):
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
    endless = await listen(Speaking(*reading, TextPiece("```bash\n"), *row, FinishPiece("stop")), user("Do it."))
    blank = await listen(Speaking(*reading, TextPiece("Yes."), *[TextPiece(" " * 100)] * 9), user("Do it."))
    lines = await listen(Speaking(*reading, TextPiece("Yes."), *[TextPiece("\n")] * 90), user("Do it."))
    short = await listen(
        Speaking(*reading, TextPiece("Yes."), *[TextPiece(" " * 100)] * 4, TextPiece("x" + "\n" * 60)), user("Do it.")
    )
    over = await listen(
        Speaking(*reading, TextPiece("```bash\nls\n```\n"), *[TextPiece("More words follow.\n\n")] * 9), user("Do it.")
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
    assert await take(f"```bash\n{skill}\n```\n") == [CallPiece("read_file", {"path": skill[4:]})]
    assert await take(f"```bash\n{skill} | head\n```\n") == [CallPiece("shell", {"command": f"{skill} | head"})]
    assert await take("```bash\nls\n") == [CallPiece("shell", {"command": "ls"})]
    assert await take("```bash\nls", "length") == [CallPiece("shell", {"command": "ls", "brokenOff": CUT_OFF})]
    assert await take("```bash\nls\n```\n", "length") == [CallPiece("shell", {"command": "ls"})]
    assert await take("a.py\n```\nx = 1\n", "length") == [
        CallPiece(FILE_BLOCK, {"path": "a.py", "content": "x = 1\n", "brokenOff": CUT_OFF})
    ]
    assert await take("```bash\nls src\n```\n", tools=READING) == [CallPiece("ls", {"path": "src"})]
