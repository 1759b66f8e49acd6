"""A chat with a real model in a small window: it goes on, the archive complete; with several compressions in `make soak`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.events import Compressed, PromptTruncated
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import FinishPiece, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import Model
from tests.covers import covers
from tests.runtime.prompt.test_compaction import House
from tests.sizes import size

pytestmark = pytest.mark.slow
WINDOW = 768  # small, for the sake of time; the server has more


class Chat:
    """Turns of a hundred tokens with the model behind a real llama.cpp server."""

    def __init__(self, house: House, url: str) -> None:
        provider = OpenAICompatible(Exchange(url, ProviderTimeouts()))
        self.house = house
        self.model = Model(provider, "smollm2", WINDOW, ModelFacts(key=""))
        self.counts: list[int] = []

    async def summarise(self, asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        async for piece in self.model.summarise(asked, min(tokens, 40)):
            yield piece

    async def turn(self, number: int) -> None:
        prompt = self.house.prompt
        await self.house.say("user", f"Note {number}: the file src/part_{number}.py has {number}00 lines. Say ok.")
        await self.house.compactor.compact_if_needed(prompt, self.house.events.append, self.summarise)
        text, usage = "", Usage()
        async for piece in self.model.stream(prompt.build_request_messages(), (), 4):
            text += piece.text if isinstance(piece, TextPiece) else ""
            usage = piece.usage if isinstance(piece, FinishPiece) else usage
        await self.house.say("assistant", f"{text} " + f"Part {number} was looked at line by line. " * 7)
        self.counts.append(usage.prompt_tokens)
        if cut := prompt.observe_usage(usage):
            self.house.events.append(cut)


@covers("D754")
async def test_a_chat_with_a_real_model_goes_on_whatever_is_compressed(tmp_path: Path, llama_server: str) -> None:
    house = House(tmp_path)
    prompt = await house.begin(WINDOW)
    chat = Chat(house, llama_server)
    turns = 0
    while len(house.of(Compressed)) < size(0, 4):
        turns += 1
        await chat.turn(turns)
    await chat.turn(turns + 1)

    assert all(0 < count <= prompt.compute_budget().limit for count in chat.counts)
    assert house.of(PromptTruncated) == []
    session = await house.recording.get_session(house.session)
    assert session is not None
    assert len(session.messages) == 2 * (turns + 1)
    cited = {number for message in prompt.build_request_messages() for number in message.sources}
    assert cited == set(range(1, len(session.messages) + 1))
    await chat.model.provider.close()
