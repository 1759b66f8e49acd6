"""The calls of a turn: named, run unless they go in circles, their results recorded."""

from collections.abc import Sequence
from typing import Any

import pytest

from ollm.config.settings import LoopSettings, ProviderTimeouts
from ollm.domain.lazy import Lazy
from ollm.domain.messages import UNPARSED_KEY, AnyPart, TextPart, ToolCall, ToolResultPart
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.providers.base import CallPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.answer import StreamedAnswer
from ollm.runtime.model.model import Model
from ollm.runtime.turn_calls import LoopStop, TurnCalls, unwrap_deferred_call, wrap_arguments
from ollm.services.loop_detection import LoopDetectionService


class Desk:
    """Runs every call with one answer, and remembers what it was given."""

    def __init__(self, output: str = "same") -> None:
        self.ran: list[ToolCall] = []
        self.refused: list[tuple[str, str, str]] = []
        self.output = output

    async def run(self, calls: Sequence[ToolCall], message_id: int) -> list[ToolCallRecord]:
        self.ran += calls
        return [self.record(call, message_id) for call in calls]

    async def refuse(self, calls: Sequence[ToolCall], message_id: int, kind: str, message: str) -> list[ToolCallRecord]:
        self.refused += [(call.id, kind, message) for call in calls]
        return [self.record(call, message_id) for call in calls]

    def record(self, call: ToolCall, message_id: int) -> ToolCallRecord:
        result = RecordedResult(llm_content=self.output)
        return ToolCallRecord(
            id=call.id, name=call.name, args=call.arguments, timestamp="", message_id=message_id, result=result
        )


class Parts:
    def __init__(self, threshold: int = 3) -> None:
        provider = OpenAICompatible(Exchange("http://127.0.0.1:9", ProviderTimeouts()))
        self.model = Model(provider, "m", 4096, ModelFacts(key="k"))
        self.loops = LoopDetectionService(LoopSettings(repeat_threshold=threshold))
        self.desk = Desk()
        self.dispatch = Lazy(lambda: self.desk)
        self.recorded: list[tuple[AnyPart, ...]] = []
        self.count = 0

    async def record(self, parts: tuple[AnyPart, ...]) -> None:
        self.recorded.append(parts)

    def new_id(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def calls(self) -> TurnCalls:
        return TurnCalls(self, self.record, self.new_id)


def answer(*calls: CallPiece) -> StreamedAnswer:
    made = StreamedAnswer(lambda _event: None, None, lambda: 0.0)  # type: ignore[arg-type]
    made.calls += calls
    return made


def test_each_call_gets_an_id_of_ours_and_arguments_that_are_an_object() -> None:
    parts = Parts()

    calls = parts.calls().read_calls(answer(CallPiece("ls", {"path": "."}), CallPiece("rg", "{broken")))

    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("c1", "ls", {"path": "."}),
        ("c2", "rg", {UNPARSED_KEY: "{broken"}),
    ]


def test_a_deferred_tool_is_called_by_its_own_name() -> None:
    assert unwrap_deferred_call("ls", {"name": "x"}) == ("ls", {"name": "x"})
    name, arguments = unwrap_deferred_call("use_tool", {"name": "far_away", "arguments": {"a": 1}})
    assert (name, arguments) == ("far_away", {"a": 1})
    assert wrap_arguments({"a": 1}) == {"a": 1}
    assert wrap_arguments("text") == {UNPARSED_KEY: "text"}


async def test_results_are_recorded_in_the_order_of_the_calls() -> None:
    parts = Parts()
    made = parts.calls()
    calls = made.read_calls(answer(CallPiece("ls", {"n": 1}), CallPiece("ls", {"n": 2})))

    await made.run(calls, 4)

    assert [call.id for call in parts.desk.ran] == ["c1", "c2"]
    assert parts.recorded == [(ToolResultPart("c1"), ToolResultPart("c2"))]


async def test_the_model_is_warned_before_a_loop_and_the_loop_itself_is_not_run() -> None:
    parts = Parts(threshold=3)
    made = parts.calls()
    for _ in range(2):
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)
    assert isinstance(parts.recorded[1][-1], TextPart)
    assert parts.recorded[1][-1].text.startswith("You are repeating yourself: ls {} was called 2 times in a row")

    with pytest.raises(LoopStop) as stopped:
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)

    assert stopped.value.pattern.type == "repeated-tool"
    assert str(stopped.value) == stopped.value.pattern.details
    assert len(parts.desk.ran) == 2
    ((refused, kind, message),) = parts.desk.refused
    assert (refused, kind) == ("c3", "LoopStopped")
    assert message == f"Not run: {stopped.value.pattern.details}"
    assert parts.recorded[2] == (ToolResultPart("c3"),)


async def test_the_same_call_with_another_result_is_work() -> None:
    parts = Parts(threshold=3)
    made = parts.calls()
    for number in range(4):
        parts.desk.output = f"result {number}"
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)

    assert len(parts.desk.ran) == 4


async def test_results_are_recorded_also_when_running_breaks_off() -> None:
    parts = Parts()

    async def broken(calls: Any, message_id: int) -> list[ToolCallRecord]:
        raise KeyboardInterrupt

    parts.desk.run = broken  # type: ignore[method-assign]
    made = parts.calls()
    with pytest.raises(KeyboardInterrupt):
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)

    assert parts.recorded == [(ToolResultPart("c1"),)]


async def test_without_a_guide_nothing_is_added_and_nothing_missing() -> None:
    made = Parts().calls()

    assert await made.prime_request("do it") == ""
    assert (made.find_missing("done"), made.describe_deeds()) == ("", "")
