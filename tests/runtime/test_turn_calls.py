"""The calls of a turn: named, run unless they go in circles, their results recorded."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ollm.config.settings import LoopSettings, ProviderTimeouts
from ollm.domain.lazy import Lazy
from ollm.domain.messages import UNPARSED_KEY, AnyPart, TextPart, ToolCall, ToolResultPart
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.providers.base import CallPiece
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.text_calls.block_edits import BROKEN_OFF
from ollm.runtime.answer import StreamedAnswer
from ollm.runtime.calls.turn_guide import TurnGuide
from ollm.runtime.model.block_answer import FILE_BLOCK
from ollm.runtime.model.model import Model
from ollm.runtime.turn_calls import STEP_FAILED, LoopStop, TurnCalls, unwrap_deferred_call, wrap_arguments
from ollm.services.loop_detection import LoopDetectionService
from tests.runtime.calls.test_project_files import Place

WHOLE = {"path": "other.py", "content": "z = 1\n", "whole": True}


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
        self.loops = LoopDetectionService(LoopSettings(repeat_threshold=threshold))
        self.desk = Desk()
        self.dispatch = Lazy(lambda: self.desk)
        self.recorded: list[tuple[AnyPart, ...]] = []
        self.count = 0

    async def record(self, parts: tuple[AnyPart, ...]) -> None:
        self.recorded.append(parts)

    def make_id(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def calls(self) -> TurnCalls:
        return TurnCalls(self, self.record, self.make_id)


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


class GuidedParts(Parts):
    """With a guide, as a model has that writes blocks."""

    def __init__(self, place: Place) -> None:
        super().__init__(threshold=3)
        self.guides: list[TurnGuide] = []
        self.place = place

    def calls(self) -> TurnCalls:
        return TurnCalls(self, self.record, self.make_id, self.create)

    def create(self) -> TurnGuide:
        self.guides.append(TurnGuide(self.place.files, 4096))
        return self.guides[-1]


@pytest.fixture
def guided(tmp_path: Path) -> Iterator[GuidedParts]:
    place = Place(tmp_path / "w")
    yield GuidedParts(place)
    place.discovery.close()


async def test_a_form_found_out_in_the_middle_of_a_turn_has_a_guide_that_knows_the_request(guided: GuidedParts) -> None:
    guided.place.write("a.py", "x = 1\n")
    made = guided.calls()
    await made.prime_request("What is x?")
    assert len(guided.guides) == 1
    made = TurnCalls(guided, guided.record, guided.make_id, guided.create)
    made._request = "Change x in a.py to 2."
    assert made.read_calls(answer(CallPiece("shell", {"command": "ls"})))[0].name == "shell"
    assert len(guided.guides) == 1, "a model that calls natively has none"
    guided.model.facts = replace(guided.model.facts, call_form="blocks")

    calls = made.read_calls(answer(CallPiece("shell", {"command": "ls"})))
    made.read_calls(answer())
    await made.run(calls, 1)

    assert len(guided.guides) == 2
    assert made.find_missing("Done.").endswith("Now change a.py.")
    assert made.describe_deeds() == "No file was changed and no command was run."


async def test_a_refused_block_is_no_call_and_a_command_behind_it_waits(guided: GuidedParts) -> None:
    made = guided.calls()
    await made.prime_request("Write new.py.")
    half = CallPiece(FILE_BLOCK, {"path": "new.py", "content": "z = ", "whole": False})
    calls = made.read_calls(
        answer(half, CallPiece("shell", {"command": "ls"}), CallPiece("ls", {}), CallPiece(FILE_BLOCK, dict(WHOLE)))
    )
    guided.desk.error = ErrorInfo(type="NotDone", message="no")

    await made.run(calls, 7)

    assert guided.desk.refused == [("c1", "NotDone", BROKEN_OFF), ("c2", "NotDone", STEP_FAILED)]
    assert [(call.id, call.name, call.arguments) for call in guided.desk.ran] == [
        ("c3", "ls", {}),
        ("c4", "write_file", {"path": "other.py", "content": "z = 1\n"}),
    ]
    assert guided.recorded[0][:4] == tuple(ToolResultPart(call.id) for call in calls)
    (told,) = guided.recorded[0][4:]
    assert isinstance(told, TextPart)
    assert told.text == "new.py does not exist. Now write new.py."


async def test_a_command_without_its_fence_is_a_call_where_something_is_to_be_done(guided: GuidedParts) -> None:
    made = guided.calls()
    await made.prime_request("Delete old.txt.")
    said = answer()
    said._append_text(TextPart, "rm old.txt")

    assert [(call.name, call.arguments) for call in made.read_calls(said)] == [("shell", {"command": "rm old.txt"})]


async def test_steps_with_another_result_each_time_are_work_and_no_advice_is_given_to_a_small_model(
    guided: GuidedParts,
) -> None:
    made = guided.calls()
    await made.prime_request("What is here?")
    for number in range(4):
        guided.desk.output = f"result {number}"
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)
    assert len(guided.desk.ran) == 4
    for _ in range(2):
        await made.run(made.read_calls(answer(CallPiece("ls", {"same": 1}))), 1)

    assert guided.recorded == [(ToolResultPart(f"c{number}"),) for number in range(1, 7)]


@pytest.mark.parametrize(
    ("worked_before", "worked_between", "most"), [(True, False, 6), (False, False, 6), (True, True, 12)]
)
async def test_so_many_blocks_that_come_to_nothing_end_the_turn(
    guided: GuidedParts, worked_before: bool, worked_between: bool, most: int
) -> None:
    made = guided.calls()
    await made.prime_request("Write new.py.")
    half = CallPiece(FILE_BLOCK, {"path": "new.py", "content": "z = ", "whole": False})
    if worked_before:
        await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)
    for step in range(most - 1):
        await made.run(made.read_calls(answer(half)), 1)
        if worked_between:
            await made.run(made.read_calls(answer(CallPiece("ls", {"path": f"{step}"}))), 1)

    with pytest.raises(LoopStop) as told:
        await made.run(made.read_calls(answer(half)), 1)
    assert (told.value.pattern.details, told.value.pattern.count) == ("blocks came to nothing", most)


async def test_files_that_are_changed_there_and_back_end_the_turn_when_the_step_is_recorded(
    guided: GuidedParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = guided.calls()
    await made.prime_request("What is here?")
    await made.run(made.read_calls(answer(CallPiece("ls", {}))), 1)
    monkeypatch.setattr(TurnGuide, "find_circle", lambda _self: "files were changed there and back")

    with pytest.raises(LoopStop) as told:
        await made.run(made.read_calls(answer(CallPiece("ls", {"path": "a"}))), 1)

    pattern = told.value.pattern
    assert (pattern.type, pattern.details, pattern.count) == ("repeated-cycle", "files were changed there and back", 3)
    assert len(guided.recorded) == 2
    native = Parts().calls()
    await native.run(native.read_calls(answer(CallPiece("ls", {}))), 1)


async def test_what_calls_did_is_told_of_all_steps_of_a_turn() -> None:
    parts = Parts()
    made = parts.calls()
    record = parts.desk.record

    def fail(call: ToolCall, message_id: int) -> ToolCallRecord:
        return replace(record(call, message_id), result=RecordedResult(llm_content="", exit_code=1))

    parts.desk.record = fail  # type: ignore[method-assign]
    for command in ("make", "make test"):
        await made.run(made.read_calls(answer(CallPiece("shell", {"command": command}))), 1)

    assert made.describe_deeds() == "Ran: make (exit code 1); make test (exit code 1)."
