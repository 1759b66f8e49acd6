"""One answer of a model that writes blocks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, FinishPiece, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.block_answer import FILE_BLOCK, MAX_BLOCK_TOKENS, BlockAnswer, asks_how
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


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("How do I list files?", True),
        ("  how can you do it", True),
        ("Which command shows it?", True),
        ("show me how to sort", True),
        ("what does 'ls -l' mean", True),
        ("List the files.", False),
        ("Do it. How do I start?", False),
        ("", False),
    ],
)
def test_a_question_how_something_is_done_is_told(asked: str, how: bool) -> None:
    assert asks_how((user(asked),)) is how


def test_only_words_of_the_user_s_own_count() -> None:
    engine = PromptMessage(role="user", content="How do I do this?")

    assert not asks_how((user("List the files"), engine))
    assert asks_how((user("How do I list files"), engine, PromptMessage(role="assistant", content="x")))
    assert not asks_how(())


async def test_a_command_is_a_call_and_the_request_carries_no_schemas() -> None:
    async with answering("I look.\n\n```bash\nls -l\n```\n", max_tokens=99) as (pieces, chats):
        assert calls(pieces) == [CallPiece("shell", {"command": "ls -l"})]
        assert isinstance(pieces[-1], FinishPiece)
        assert pieces[-1].reason == "tool_calls"
        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).startswith("I look.")
        assert "tools" not in chats[0]
        assert (chats[0]["max_tokens"], chats[0]["temperature"]) == (99, 0)


async def test_an_answer_has_a_longest_length() -> None:
    async with answering("Done.") as (pieces, chats):
        assert chats[0]["max_tokens"] == MAX_BLOCK_TOKENS
        assert calls(pieces) == []
        assert isinstance(pieces[-1], FinishPiece)
        assert pieces[-1].reason == "stop"
    async with answering("Done.", max_tokens=10**6) as (_, chats):
        assert chats[0]["max_tokens"] == MAX_BLOCK_TOKENS


async def test_a_file_is_a_block_and_one_that_broke_off_says_so() -> None:
    async with answering("hello.py:\n```python\nprint(1)\n```\n") as (pieces, _):
        (made,) = calls(pieces)
        assert made.name == FILE_BLOCK
        assert made.arguments == {"path": "hello.py", "content": "print(1)\n", "whole": True} or (
            isinstance(made.arguments, dict) and made.arguments["path"] == "hello.py" and made.arguments["whole"]
        )
    async with answering(Answer(text="```bash\nrm -rf bui", reason="length")) as (pieces, _):
        broken = [call.arguments for call in calls(pieces)]
        assert broken in ([], [{"command": "rm -rf bui", "brokenOff": True}])


async def test_where_nothing_may_be_changed_a_command_becomes_a_reading_call() -> None:
    async with answering("```bash\ncat a.txt\n```\n", tools=READING) as (pieces, _):
        (made,) = calls(pieces)
        assert made.name != "shell"


async def test_where_it_is_asked_how_commands_are_only_quoted() -> None:
    async with answering("Like this:\n\n```bash\nls\n```\n", asked="How do I list files?") as (pieces, _):
        assert calls(pieces) == []
