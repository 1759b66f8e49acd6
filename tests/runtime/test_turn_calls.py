"""The calls of a turn: named, run unless they go in circles, their results recorded."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ollm.config.settings import LoopSettings, ProviderTimeouts
from ollm.domain.lazy import Lazy
from ollm.domain.messages import AnyPart, ToolCall, ToolResultPart
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.providers.base import CallPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.runtime.model.model import Model
from ollm.runtime.small_models.blocks import FILE_BLOCK
from ollm.runtime.turn_calls import LoopStop, StreamedAnswer, TurnCalls
from ollm.services.loop_detection import LoopDetectionService
from tests.runtime.small_models.test_placement import Place

WHOLE = {"path": "other.py", "content": "z = 1\n"}


class Desk:
    """Runs every call with one answer, and remembers what it was given."""

    def __init__(self, output: str = "same") -> None:
        self.ran: list[ToolCall] = []
        self.refused: list[tuple[str, str, str]] = []
        self.output = output
        self.error: ErrorInfo | None = None  # of what is refused

    async def run(self, calls: Sequence[ToolCall], message_id: int) -> list[ToolCallRecord]:
        self.ran += calls
        return [self.record(call, message_id) for call in calls]

    async def refuse(self, calls: Sequence[ToolCall], message_id: int, kind: str, message: str) -> list[ToolCallRecord]:
        self.refused += [(call.id, kind, message) for call in calls]
        return [replace(self.record(call, message_id), error=self.error) for call in calls]

    def record(self, call: ToolCall, message_id: int) -> ToolCallRecord:
        result = RecordedResult(llm_content=self.output)
        return ToolCallRecord(
            id=call.id, name=call.name, args=call.arguments, timestamp="", message_id=message_id, result=result
        )


class Parts:
    def __init__(self, threshold: int = 3) -> None:
        provider = OpenAICompatible(Exchange("http://127.0.0.1:9", ProviderTimeouts()))
        self.model = Model(provider, "m", 4096, ModelFacts(key="k"))
        self.state = SimpleNamespace(model=self.model)
        self.loops = LoopDetectionService(LoopSettings(repeat_threshold=threshold))
        self.desk = Desk()
        self.dispatch = Lazy(lambda: self.desk)
        self.recorded: list[tuple[AnyPart, ...]] = []
        self.prompt = SimpleNamespace(tools=("shell",))
        self.session = SimpleNamespace(make_call_id=self.make_id)
        self.count = 0

    async def record(self, parts: tuple[AnyPart, ...]) -> None:
        self.recorded.append(parts)

    def make_id(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def calls(self) -> TurnCalls:
        return TurnCalls(self, self.record)


def answer(*calls: CallPiece) -> StreamedAnswer:
    made = StreamedAnswer(lambda _event: None, None)  # type: ignore[arg-type]
    made.calls += calls
    return made


async def test_results_are_recorded_also_when_running_breaks_off() -> None:
    parts = Parts()

    async def broken(calls: Any, message_id: int) -> list[ToolCallRecord]:
        raise KeyboardInterrupt

    parts.desk.run = broken  # type: ignore[method-assign]
    made = parts.calls()
    with pytest.raises(KeyboardInterrupt):
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)

    assert parts.recorded == [(ToolResultPart("c1"),)]


class GuidedParts(Parts):
    """With a guide, as a model has that writes blocks."""

    def __init__(self, place: Place) -> None:
        super().__init__(threshold=3)
        self.place = place
        self.project_files = Lazy(lambda: place.files)
        self.model.facts = replace(self.model.facts, call_form="blocks")


@pytest.fixture
def guided(tmp_path: Path) -> Iterator[GuidedParts]:
    place = Place(tmp_path / "w")
    yield GuidedParts(place)
    place.discovery.close()


async def test_a_form_found_out_in_the_middle_of_a_turn_gets_a_guide(guided: GuidedParts) -> None:
    guided.place.write("a.py", "x = 1\n")
    known, guided.model.facts = guided.model.facts, ModelFacts(key="k")
    made = guided.calls()
    assert await made.prime_request("What is x in a.py?") == ""
    block = CallPiece(FILE_BLOCK, {"path": "other.py", "content": "z = 1\n"})
    assert made.read_calls(answer(block))[0].name == FILE_BLOCK, "a model that calls natively has none"

    guided.model.facts = known

    assert made.read_calls(answer(block))[0].name == "write_file"


async def test_a_refused_block_is_no_call_and_a_command_behind_it_waits(guided: GuidedParts) -> None:
    made = guided.calls()
    await made.prime_request("Write new.py.")
    half = CallPiece(FILE_BLOCK, {"path": "new.py", "content": "z = ", "brokenOff": "Too long."})
    calls = made.read_calls(
        answer(half, CallPiece("shell", {"command": "ls"}), CallPiece("ls", {}), CallPiece(FILE_BLOCK, dict(WHOLE)))
    )
    guided.desk.error = ErrorInfo(type="NotDone", message="no")

    await made.run(calls, 7)

    assert guided.desk.refused[0] == ("c1", "NotDone", "Too long.")
    assert guided.desk.refused[1][2].startswith("Not run, because new.py before it was not done: ")
    assert [(call.id, call.name, call.arguments) for call in guided.desk.ran] == [
        ("c3", "ls", {}),
        ("c4", "write_file", {"path": "other.py", "content": "z = 1\n"}),
    ]
    assert guided.recorded[0] == tuple(ToolResultPart(call.id) for call in calls)


@pytest.mark.parametrize(
    ("worked_before", "worked_between", "most"), [(True, False, 6), (False, False, 6), (True, True, 12)]
)
async def test_so_many_blocks_that_come_to_nothing_end_the_turn(
    guided: GuidedParts, worked_before: bool, worked_between: bool, most: int
) -> None:
    made = guided.calls()
    await made.prime_request("Write new.py.")
    half = CallPiece(FILE_BLOCK, {"path": "new.py", "content": "z = ", "brokenOff": "Too long."})
    if worked_before:
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)
    for step in range(most - 1):
        await made.run(made.read_calls(answer(half)), 1)
        if worked_between:
            await made.run(made.read_calls(answer(CallPiece("ls", {"path": f"{step}"}))), 1)

    with pytest.raises(LoopStop) as told:
        await made.run(made.read_calls(answer(half)), 1)
    assert told.value.pattern.details.endswith("the last because: Too long.")
    assert told.value.pattern.count == most


async def test_what_calls_did_is_told_of_all_steps_of_a_turn() -> None:
    parts = Parts()
    made = parts.calls()
    record = parts.desk.record

    def fail(call: ToolCall, message_id: int) -> ToolCallRecord:
        return replace(record(call, message_id), result=RecordedResult(llm_content="", exit_code=1))

    parts.desk.record = fail  # type: ignore[method-assign]
    for command in ("make", "make test"):
        await made.run(made.read_calls(answer(CallPiece("shell", {"command": command}))), 1)

    assert made.describe_steps() == "Ran: make (exit code 1); make test (exit code 1)."
