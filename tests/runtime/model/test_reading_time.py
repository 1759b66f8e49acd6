"""How long a model will read before it answers."""

import pytest

from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import ChatRequest
from ollm.runtime.model.reading_time import ReadingTime
from ollm.services.token_counting import TokenCounter

counter = TokenCounter()
FACTS = ModelFacts(key="k", prefill_per_second=10.0)
TOOLS = (ToolSchema(name="ls", description="List files. " * 30, parameters={"type": "object"}),)


def said(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=text)


def request(*messages: PromptMessage, tools: tuple[ToolSchema, ...] = ()) -> ChatRequest:
    return ChatRequest(model="m", messages=messages, window=4096, tools=tools)


LONG = said("word " * 200)


def test_without_a_known_speed_nothing_is_said() -> None:
    assert ReadingTime().estimate(request(LONG), ModelFacts(key="k")) is None


def test_the_first_request_is_read_whole_with_its_tools() -> None:
    tokens = counter.count_messages([LONG]) + counter.count_schemas(TOOLS)

    found = ReadingTime().estimate(request(LONG, tools=TOOLS), FACTS)

    assert found is not None
    assert (found.total, found.processed) == (tokens, 0)
    assert found.seconds_left == pytest.approx(tokens / 10, abs=0.06)


def test_what_was_sent_before_is_not_read_again() -> None:
    reading = ReadingTime()
    reading.estimate(request(LONG, tools=TOOLS), FACTS)

    found = reading.estimate(request(LONG, said("more " * 100), tools=TOOLS), FACTS)

    assert found is not None
    assert found.total == counter.count_messages([said("more " * 100)])
    changed = reading.estimate(request(said("other"), LONG, tools=TOOLS), FACTS)
    assert changed is not None
    assert changed.total == counter.count_messages([said("other"), LONG]) + counter.count_schemas(TOOLS)


def test_what_takes_less_than_two_seconds_is_not_worth_saying() -> None:
    assert ReadingTime().estimate(request(said("short")), FACTS) is None
    tokens = counter.count_messages([LONG])
    assert ReadingTime().estimate(request(LONG), ModelFacts(key="k", prefill_per_second=tokens / 2)) is not None
    assert ReadingTime().estimate(request(LONG), ModelFacts(key="k", prefill_per_second=tokens / 1.9)) is None
