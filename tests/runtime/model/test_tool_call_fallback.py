"""The model behind its ladder, against scripted servers: what is learnt, how long is waited, how history is rendered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import ProviderTimeouts
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import (
    CallPiece,
    FinishPiece,
    ProgressPiece,
    TextPiece,
)
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.text_calls.rendering import (
    render_messages,
)
from ollm.runtime.model.model import Model
from tests.covers import covers
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (ToolSchema(name="read_file", description="Read a file.", parameters=PATH),)
ASKED = (PromptMessage(role="system", content="Help."), PromptMessage(role="user", content="Read a.txt."))
READ = CallPiece("read_file", {"path": "a.txt"})
FENCE = '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'


@asynccontextmanager
async def talking(script: list[Answer | str], facts: ModelFacts | None = None, **options: Any) -> AsyncIterator[Any]:
    async with ScriptedServer(script, **options) as server:
        provider = OpenAICompatible(Exchange(server.base_url, ProviderTimeouts()))
        await provider.models()
        model = Model(provider, "scripted", 4096, facts or ModelFacts(key="k"))
        yield model, server
        await provider.close()


async def asked(model: Model, messages: tuple[PromptMessage, ...] = ASKED) -> list[Any]:
    return [piece async for piece in model.stream(messages, TOOLS, 100)]


async def test_a_second_malformed_call_is_shown_as_text() -> None:
    wrong = '```json\n{"name": "show_file", "arguments": {}}\n```'
    facts = ModelFacts(key="k", call_form="text", result_form="user")
    async with talking([f"I look.\n{wrong}", wrong], facts, kind="vllm") as (model, server):
        pieces = await asked(model)

    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == f"I look.\n{wrong}"
    assert "That was no tool call" in server.chats[1]["messages"][-1]["content"]
    assert (len(server.chats), model.facts.call_form) == (2, "text")


async def test_the_speed_is_learnt_from_the_first_answer_alone() -> None:
    slow = Answer(text="word " * 30, delay=0.3, pace=0.02, prompt_tokens=600, completion_tokens=30, cached_tokens=0)
    async with talking([slow, slow]) as (model, _):
        await asked(model)
        first = model.facts
        await asked(model)

    assert first.prefill_per_second is not None
    assert 200 < first.prefill_per_second < 2200
    assert first.decode_per_second is not None
    assert model.facts == first


async def test_a_known_speed_says_how_long_reading_will_take() -> None:
    facts = ModelFacts(key="k", prefill_per_second=100.0)
    async with talking([Answer(text="Hi.", progress=[(100, 600)])], facts) as (model, _):
        progress = [piece for piece in await asked(model) if isinstance(piece, ProgressPiece)]

    assert progress == [ProgressPiece(100, 600, seconds_left=5.0)]


async def test_a_server_that_says_nothing_while_it_reads_is_timed_by_the_speed_measured_before() -> None:
    facts = ModelFacts(key="k", prefill_per_second=50.0)
    long = PromptMessage(role="user", content="word " * 500)
    more = PromptMessage(role="user", content="word " * 200)
    async with talking(["Hi.", "Hi.", "Hi."], facts) as (model, _):
        first = (await asked(model, (*ASKED, long)))[0]
        second = (await asked(model, (*ASKED, long, more)))[0]
        third = (await asked(model, (*ASKED, long, more, ASKED[1])))[0]

    assert (first.stage, first.processed, round(first.seconds_left)) == ("reading", 0, 13)
    assert (second.total, second.seconds_left) == (204, 4.1)  # what was sent before is not read again
    assert third == TextPiece("Hi.")  # too short to speak of


@covers("S4.1")
async def test_the_end_comes_once_with_what_all_requests_took() -> None:
    wrong = Answer(text='```json\n{"name": "nothing", "arguments": {}}\n```', prompt_tokens=50, completion_tokens=7)
    right, facts = Answer(text=FENCE, prompt_tokens=90, completion_tokens=9), ModelFacts(key="k", call_form="text")
    async with talking([wrong, right], facts) as (model, _):
        pieces = await asked(model)

    (end,) = (piece for piece in pieces if isinstance(piece, FinishPiece))
    assert pieces[-1] == end
    assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (50, 16)


TEXT = st.text(max_size=20)
MESSAGES = st.lists(
    st.one_of(
        st.builds(PromptMessage, role=st.just("user"), content=TEXT),
        st.builds(
            PromptMessage,
            role=st.just("assistant"),
            content=TEXT,
            calls=st.lists(
                st.builds(ToolCall, id=TEXT, name=TEXT, arguments=st.dictionaries(TEXT, TEXT)), max_size=2
            ).map(tuple),
        ),
        st.builds(PromptMessage, role=st.just("tool"), content=TEXT, tool_name=TEXT),
    ),
    max_size=8,
)


@given(form=st.sampled_from(["fence", "tag", "json"]), messages=MESSAGES, more=MESSAGES)
def test_a_spoken_history_only_grows(form: Any, messages: list[PromptMessage], more: list[PromptMessage]) -> None:
    before, after = render_messages(messages, form), render_messages([*messages, *more], form)

    assert after[: max(0, len(before) - 1)] == before[:-1]
    if before:
        assert after[len(before) - 1].content.startswith(before[-1].content)
    assert all(message.role != "tool" and not message.calls for message in after)
    assert not any(one.role == other.role == "user" for one, other in pairwise(after))
