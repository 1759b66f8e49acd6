"""The speed of a model, measured with one short request."""

import asyncio

from ollm.domain.context import Usage
from ollm.providers.base import ChatRequest, FinishPiece, PieceStream, ProgressPiece, TextPiece
from ollm.providers.window import MAX_ANSWER_TOKENS, MeasuredSpeed, measure_speed


class Model:
    """Answers so slowly, and counts so many tokens."""

    def __init__(self, usage: Usage, pieces: int = 2) -> None:
        self.usage = usage
        self.pieces = pieces
        self.requests: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> PieceStream:
        self.requests.append(request)
        yield ProgressPiece(1, 2)
        await asyncio.sleep(0.02)
        for _ in range(self.pieces):
            yield TextPiece("x")
            await asyncio.sleep(0.02)
        yield FinishPiece("stop", self.usage)


async def measure(model: Model) -> MeasuredSpeed:
    return await measure_speed(model, "m", 4096)  # type: ignore[arg-type]


async def test_a_prompt_nobody_has_sent_is_timed_after_the_model_was_loaded() -> None:
    model = Model(Usage(prompt_tokens=100, completion_tokens=11, reused_tokens=20))

    found = await measure(model)

    assert found.prefill_per_second is not None
    assert 0 < found.prefill_per_second <= 80 / 0.02
    assert found.decode_per_second is not None
    assert 0 < found.decode_per_second <= 10 / 0.02
    first, second = model.requests
    assert (first.max_tokens, second.max_tokens) == (1, MAX_ANSWER_TOKENS)
    assert (first.model, first.window, first.temperature) == ("m", 4096, 0)
    assert second.messages[0].content.count("quick brown fox") == 8
    assert (await measure(model)) is not None
    assert model.requests[3].messages != second.messages
