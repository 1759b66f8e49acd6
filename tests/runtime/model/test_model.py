"""The model of a conversation: messages in, pieces out, and what is learnt on the way."""

import pytest

from ollm.config.settings import ProviderTimeouts, TokenPrice
from ollm.domain.context import Usage
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import FinishPiece, ProgressPiece, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import WRITTEN_CALL_TEMPERATURE, Model
from tests.runtime.model.test_tool_call_fallback import ASKED, TOOLS, talking
from tests.servers.answers import Answer


def offline(window: int = 4096, **facts: object) -> Model:
    provider = OpenAICompatible(Exchange("http://127.0.0.1:9", ProviderTimeouts()))
    return Model(provider, "m", window, ModelFacts(key="k", **facts))  # type: ignore[arg-type]


def test_what_the_server_serves_and_how_it_counts_become_facts() -> None:
    model = offline(8192)
    model.set_served_window(2048)
    model.set_token_factor(1.3, 9)

    assert (model.facts.served_window, model.facts.said_window, model.window) == (2048, 8192, 8192)
    assert (model.facts.token_factor, model.facts.token_samples) == (1.3, 9)


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (TokenPrice(), 0),
        (TokenPrice(prompt=2, completion=10), 0.0025),
        (TokenPrice(prompt=2, completion=10, reused=0), 0.0013),
        (TokenPrice(prompt=2, completion=10, reused=0.5), 0.0016),
    ],
)
def test_tokens_cost_what_the_settings_say(price: TokenPrice, cost: float) -> None:
    model = offline()
    model.price = price

    assert model.compute_cost(Usage(prompt_tokens=1000, reused_tokens=600, completion_tokens=50)) == pytest.approx(cost)


async def test_without_tools_the_answer_is_streamed_as_it_is() -> None:
    async with talking(["Hello there."]) as (model, server):
        pieces = [piece async for piece in model.stream(ASKED, (), 50)]

        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == "Hello there."
        assert isinstance(pieces[-1], FinishPiece)
        assert server.chats[0]["max_tokens"] == 50
        assert "tools" not in server.chats[0]
        assert "temperature" not in server.chats[0]


async def test_a_model_that_writes_its_calls_is_kept_cool() -> None:
    async with talking(["Hello."], ModelFacts(key="k", call_form="text")) as (model, server):
        _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]
        assert server.chats[-1]["temperature"] == WRITTEN_CALL_TEMPERATURE
    async with talking(["Hello."], ModelFacts(key="k", call_form="native")) as (model, server):
        _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]
        assert "temperature" not in server.chats[-1]


async def test_what_was_learnt_in_an_answer_stays_also_when_it_is_left_early() -> None:
    async with talking([Answer(calls=[("read_file", {"path": "a.txt"})]), "x"]) as (model, _):
        _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]
        assert model.facts.call_form == model.counted.call_form or model.facts.call_form == "native"
        assert model.facts.call_form == "native"


async def test_time_left_is_told_where_the_speed_is_known() -> None:
    slow = Answer(text="x", progress=[(10, 110), (110, 110)])
    async with talking([slow], ModelFacts(key="k", prefill_per_second=10.0), kind="llama.cpp") as (model, _):
        pieces = [piece async for piece in model.stream(ASKED, (), 50)]

    told = [piece.seconds_left for piece in pieces if isinstance(piece, ProgressPiece) and piece.processed]
    assert told in ([10.0, None], [10.0], [])
    assert offline(prefill_per_second=10.0)._add_time_left(ProgressPiece(processed=10, total=110)).seconds_left == 10.0
    assert offline()._add_time_left(ProgressPiece(processed=10, total=110)).seconds_left is None
    done = ProgressPiece(processed=110, total=110)
    assert offline(prefill_per_second=10.0)._add_time_left(done) is done


async def test_a_summary_is_the_text_alone() -> None:
    async with talking([Answer(text="The minutes.", thinking="hm")]) as (model, server):
        assert "".join([text async for text in model.summarise(ASKED, 30)]) == "The minutes."
        assert server.chats[0]["max_tokens"] == 30


async def test_tokens_are_counted_by_the_server_where_it_can_and_a_failure_is_none() -> None:
    said = (PromptMessage(role="user", content="one two three"),)
    async with talking([], kind="llama.cpp") as (model, _):
        assert await model.count_tokens(said, ()) == len(["<user>one", "two", "three"])
    async with talking([]) as (model, _):
        assert await model.count_tokens(said, ()) is None
    assert await offline().count_tokens(said, ()) is None
