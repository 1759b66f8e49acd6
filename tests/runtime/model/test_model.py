"""The model of a conversation: messages in, pieces out, and what is learnt on the way."""

from collections.abc import AsyncGenerator

import pytest

from ollm.config.settings import ProviderTimeouts, TokenPrice
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, RequestRefusedError, ToolsUnsupportedError
from ollm.domain.messages import ImagePart, PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import AnyPiece, ChatRequest, FinishPiece, ModelInfo, ProgressPiece, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import WRITTEN_CALL_TEMPERATURE, Model
from tests.runtime.model.test_block_answer import Speaking
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


class Telling(Speaking):
    """Says what a script says, one entry for each request; an error ends the answer where it stands."""

    def __init__(self, *script: list[AnyPiece | ModelError]) -> None:
        super().__init__()
        self.script = iter(script)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        self.asked.append(request)
        for said in next(self.script):
            if isinstance(said, ModelError):
                raise said
            yield said


SEEN = (PromptMessage(role="user", content="See.", images=(ImagePart(media_type="image/png", data="AAAA"),)),)
REFUSAL = RequestRefusedError("No image here.")
END = FinishPiece("stop")


async def test_a_picture_refused_while_the_prompt_is_read_is_left_out_and_the_rest_sent_again() -> None:
    provider = Telling([ProgressPiece(1, 9), REFUSAL], [TextPiece("Fine."), END])
    model = Model(provider, "m", 4096, ModelFacts(key="k"))

    pieces = [piece async for piece in model.stream(SEEN, (), 50)]

    assert pieces == [ProgressPiece(1, 9), TextPiece("Fine."), END]
    assert [len(asked.messages[0].images) for asked in provider.asked] == [1, 0]


@pytest.mark.parametrize(
    ("said", "messages"),
    [([TextPiece("I see"), REFUSAL], SEEN), ([REFUSAL], ASKED), ([ModelError("It fell over.")], SEEN)],
)
async def test_what_broke_off_or_has_no_picture_to_blame_is_not_sent_again(
    said: list[AnyPiece | ModelError], messages: tuple[PromptMessage, ...]
) -> None:
    provider = Telling(said, [TextPiece("Fine."), END])
    model = Model(provider, "m", 4096, ModelFacts(key="k"))

    with pytest.raises(ModelError):
        _ = [piece async for piece in model.stream(messages, (), 50)]

    assert len(provider.asked) == 1


async def test_without_tools_a_block_is_text_like_any_other() -> None:
    provider = Telling([TextPiece("```bash\nls\n```\n"), END])
    model = Model(provider, "m", 4096, ModelFacts(key="k", call_form="blocks"))

    assert [piece async for piece in model.stream(ASKED, (), 50)] == [TextPiece("```bash\nls\n```\n"), END]
    assert provider.asked[0].messages == ASKED
    assert provider.asked[0].temperature is None


async def test_how_a_server_would_take_tools_is_remembered() -> None:
    refusal = ToolsUnsupportedError("No tools here.", action="Start it with --jinja.")
    model = Model(
        Telling([refusal], [TextPiece("Well."), END], [TextPiece("Hi."), END]), "m", 4096, ModelFacts(key="k")
    )

    _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]
    assert model.advice == "Start it with --jinja."
    _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]

    assert model.advice == "Start it with --jinja."
    assert (model.facts.takes_tools, model.facts.result_form) == (False, "user")


async def test_a_model_takes_pictures_as_its_server_says() -> None:
    class Seeing(Speaking):
        async def describe(self, model: str) -> ModelInfo:
            return ModelInfo(name=model, vision=True)

    assert await Model(Seeing(), "m", 4096, ModelFacts(key="k")).supports_images() is True
    assert await offline().supports_images() is False


def test_the_time_left_is_told_to_a_tenth() -> None:
    left = offline(prefill_per_second=30.0)._add_time_left(ProgressPiece(processed=10, total=110)).seconds_left

    assert left == 3.3
    assert offline(prefill_per_second=2.0)._add_time_left(ProgressPiece(processed=9, total=10)).seconds_left == 0.5


async def test_a_server_s_progress_is_timed_in_blocks_too() -> None:
    provider = Telling([ProgressPiece(10, 110), TextPiece("Done."), END])
    model = Model(provider, "m", 4096, ModelFacts(key="k", call_form="blocks", prefill_per_second=10.0))

    pieces = [piece async for piece in model.stream(ASKED, TOOLS, 50)]

    assert ProgressPiece(10, 110, seconds_left=10.0) in pieces
