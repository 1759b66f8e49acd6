"""The model of a conversation: what it is sent, refused pictures, how long it reads."""

import base64
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from ollm.config.settings import ProviderTimeouts, TokenPrice
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, RequestRefusedError, ToolsUnsupportedError
from ollm.domain.messages import ImagePart, PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import AnyPiece, ChatRequest, FinishPiece, ProgressPiece, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import SMALL_MODEL_TEMPERATURE, Model
from tests.cli.running import Runner
from tests.extensions.raw_servers import configure, raw_entry
from tests.runtime.model.test_answer_parser import Speaking
from tests.runtime.model.test_tool_call_fallback import ASKED, TOOLS, talking
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer


def offline(window: int = 4096, **facts: object) -> Model:
    provider = OpenAICompatible(Exchange("http://127.0.0.1:9", ProviderTimeouts()))
    return Model(provider, "m", window, ModelFacts(key="k", **facts))  # type: ignore[arg-type]


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


async def test_a_model_that_writes_its_calls_is_kept_cool() -> None:
    async with talking(["Hello."], ModelFacts(key="k", call_form="text")) as (model, server):
        _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]
        assert server.chats[-1]["temperature"] == SMALL_MODEL_TEMPERATURE
    async with talking(["Hello."], ModelFacts(key="k", call_form="native")) as (model, server):
        _ = [piece async for piece in model.stream(ASKED, TOOLS, 50)]
        assert "temperature" not in server.chats[-1]


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


PICTURE = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()}
SERVER_TOOLS = [{"name": "shot", "description": "A picture.", "inputSchema": {"type": "object"}}]
REFUSALS = {
    "vllm": (400, "At most 0 image(s) may be provided in one prompt."),
    "llama.cpp": (500, "image input is not supported - hint: you may need to provide the mmproj"),
    "a broken picture": (400, "Error in preprocessing prompt inputs: cannot identify the file"),
}


class BlindServer(ScriptedServer):
    """Refuses every request with a picture in it."""

    refusal = (400, "")

    def answer(self, request: Request) -> Answer:
        if "image_url" in json.dumps(request.body["messages"]):
            status, message = self.refusal
            return Answer(status=status, body={"error": {"message": message, "code": status}})
        return super().answer(request)


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refused_picture_ends_neither_the_turn_nor_the_session(tmp_path: Path, name: str) -> None:
    script = [Answer(calls=[("eye__shot", {})]), "Done.", "More."]
    async with BlindServer(script, kind="vllm", window=32_768) as server:
        server.refusal = REFUSALS[name]
        runner = Runner(tmp_path, server)
        answers = {"shot": {"content": [PICTURE, {"type": "text", "text": "taken"}]}}
        configure(runner, mcpServers={"eye": raw_entry(tmp_path, "eye", tools=SERVER_TOOLS, answers=answers)})
        first = await runner.run("-p", "look", "--yes")
        second = await runner.run("-p", "again", "--continue")

    assert (first.code, first.out.strip()) == (0, "Done."), first.err
    assert (second.code, second.out.strip()) == (0, "More."), second.err
    assert first.err.count("refused a picture") == 1
    told = next(message for message in server.chats[-1]["messages"] if message["role"] == "tool")
    assert "taken" in told["content"]
    assert "[1 picture left out" in told["content"]
