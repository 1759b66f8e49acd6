"""One answer of a model that writes blocks."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.errors import RequestRefusedError
from ollm.domain.messages import PromptMessage, ToolCall
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


class Speaking(BaseProvider):
    """Says these pieces; `goes_on` where it takes a beginning, and refuses one with `refuses`."""

    def __init__(self, *pieces: AnyPiece, goes_on: bool | None = None, refuses: bool = False) -> None:
        self.pieces, self.refuses, self.asked = pieces, refuses, list[ChatRequest]()
        if goes_on is not None:
            self.continues_answers = self.say_whether
        self._goes_on = goes_on

    async def say_whether(self) -> bool | None:
        return self._goes_on

    async def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        self.asked.append(request)
        if self.refuses and request.messages[-1].role == "assistant":
            raise RequestRefusedError("No beginning here.")
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


SORT = user("Sort the lines in old.txt.\n\nFiles here: old.txt")
BEGUN = "```bash\nsort -o old.txt"
REST = (TextPiece("\n```\n"), FinishPiece("stop", Usage(prompt_tokens=9, completion_tokens=3)))


@pytest.mark.parametrize(
    ("goes_on", "refuses", "beginnings"),
    [
        (True, False, [BEGUN]),
        (False, False, [""]),
        (None, False, [""]),
        (True, True, [BEGUN, ""]),
    ],
)
async def test_an_answer_goes_on_from_its_beginning_where_the_server_lets_it(
    goes_on: bool | None, refuses: bool, beginnings: list[str]
) -> None:
    provider = Speaking(*REST, goes_on=goes_on, refuses=refuses)

    pieces = await listen(provider, SORT)

    told = [asked.messages[-1] for asked in provider.asked]
    assert [said.content if said.role == "assistant" else "" for said in told] == beginnings
    assert calls(pieces) == ([CallPiece("shell", {"command": "sort -o old.txt"})] if beginnings == [BEGUN] else [])
    assert pieces[-1] == (FinishPiece("tool_calls") if calls(pieces) else REST[1])  # behind a step nothing is read


async def test_nothing_is_begun_where_nothing_may_change_or_it_is_asked_how() -> None:
    for asked, tools in ((SORT, READING), (user("How do I delete old.txt?\n\nFiles here: old.txt"), ALL)):
        provider = Speaking(*REST, goes_on=True)
        await listen(provider, asked, tools=tools)
        assert [request.messages[-1].role for request in provider.asked] == ["user"]


async def test_a_tiny_model_is_not_asked_for_a_command_that_the_words_say_in_full() -> None:
    tiny = ModelFacts(key="k", call_form="blocks", parameters=500_000_000)
    asked = user("Rename a.txt to b.txt.\n\nFiles here: a.txt")
    provider = Speaking(*REST, goes_on=True)

    pieces = await listen(provider, asked, facts=tiny)

    assert tiny.is_tiny
    assert provider.asked == []
    assert calls(pieces) == [CallPiece("shell", {"command": "mv a.txt b.txt"})]
    assert pieces[-1] == FinishPiece("tool_calls")


IDLE = (
    PromptMessage(role="assistant", content="", calls=(ToolCall(id="c", name="edit_file", arguments={"path": "a"}),)),
    PromptMessage(
        role="tool",
        content="Error NotDone: a holds exactly this already: nothing was changed.",
        tool_name="edit_file",
        call_id="c",
        failed=True,
    ),
)


async def test_the_server_s_count_is_left_out_where_steps_were_and_the_answer_is_freer() -> None:
    provider = Speaking(TextPiece("Done."), FinishPiece("stop", Usage(prompt_tokens=9, completion_tokens=3)))

    whole = await listen(provider, user("Do it."))
    fewer = await listen(provider, user("Do it."), *IDLE)

    assert whole[-1] == FinishPiece("stop", Usage(prompt_tokens=9, completion_tokens=3))
    assert fewer[-1] == FinishPiece("stop", Usage(prompt_tokens=0, completion_tokens=3))
    assert [request.temperature for request in provider.asked] == [0, 0.4]
    assert [request.stop for request in provider.asked] == [(), ()]


SAY = user("Now say in a sentence what was done or found.")


async def test_who_is_asked_for_words_takes_no_step_and_says_something() -> None:
    provider = Speaking(TextPiece("```bash\nls\n```\n"), FinishPiece("stop"))
    quoted = await listen(provider, user("Do it."), SAY)
    silent = await listen(Speaking(TextPiece(" \n"), FinishPiece("stop")), user("Do it."), SAY)
    words = await listen(Speaking(TextPiece("It is done."), FinishPiece("stop")), user("Do it."), SAY)
    unasked = await listen(Speaking(FinishPiece("stop")), user("Do it."))

    assert provider.asked[0].stop == ("```",)
    assert calls(quoted) == []
    assert read_text(silent).strip() == "Done."
    assert read_text(words) == "It is done."
    assert read_text(unasked) == ""


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
    assert cut.arguments["brokenOff"] is True
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
    assert await take("```bash\nls", "length") == [CallPiece("shell", {"command": "ls", "brokenOff": True})]
    assert await take("```bash\nls\n```\n", "length") == [CallPiece("shell", {"command": "ls"})]
    assert await take("a.py\n```\nx = 1\n", "length") == [
        CallPiece(FILE_BLOCK, {"path": "a.py", "content": "x = 1\n", "whole": False})
    ]
    assert await take("```bash\nls src\n```\n", tools=READING) == [CallPiece("ls", {"path": "src"})]
