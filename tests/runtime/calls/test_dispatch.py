"""Steps 7 to 10 of a turn: every call gets exactly one result (T10, T12)."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.config.settings import OutputSettings, ToolSettings
from ollm.domain.errors import StorageError, ToolFailure
from ollm.domain.events import Event, Notice, ToolFinished, ToolOutput, ToolStarted
from ollm.domain.messages import ToolCall
from ollm.domain.tools import (
    ConfirmationAnswer,
    ConfirmationDetails,
    Location,
    PolicyRequest,
    ToolCallRecord,
    ToolResult,
    Verdict,
)
from ollm.extensions.base import HookDecision, NoHooks
from ollm.policy.message_bus import MessageBus
from ollm.runtime.calls.confirmation import BusAsker, UnattendedAsker
from ollm.runtime.calls.dispatch import Dispatch
from ollm.runtime.calls.results import UNPARSED_KEY
from ollm.runtime.calls.tool_call import CallServices
from ollm.system.paths import Boundary
from ollm.tools.framework.base import Tool, ToolContext
from ollm.tools.framework.registry import ToolRegistry
from tests.covers import covers


class Say(Tool[None], frozen=True):
    """Say a text."""

    name: ClassVar[str] = "say"
    reads_only: ClassVar[bool] = True
    text: str
    path: str | None = None

    def summary(self) -> str:
        return f"Say {self.text}"

    def locations(self) -> list[Location]:
        return [Location(target=self.path)] if self.path is not None else []

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        context.emit(self.text)
        return ToolResult(llm_content=self.text, return_display=self.text)


class Log(Tool[list[str]], frozen=True):
    """Write down when it begins and ends."""

    name: ClassVar[str] = "log"
    text: str

    def summary(self) -> str:
        return f"Log {self.text}"

    async def preview(self, context: ToolContext, needs: list[str]) -> str:
        return f"+{self.text}"

    async def run(self, context: ToolContext, needs: list[str]) -> ToolResult:
        needs.append(f"begin {self.text}")
        await asyncio.sleep(0.01)
        needs.append(f"end {self.text}")
        return ToolResult(llm_content="done")


class Wait(Tool[list[str]], frozen=True):
    """Wait for ever."""

    name: ClassVar[str] = "wait"
    reads_only: ClassVar[bool] = True
    stubborn: bool = False

    def summary(self) -> str:
        return "Wait"

    async def run(self, context: ToolContext, needs: list[str]) -> ToolResult:
        needs.append("waiting")
        try:
            await asyncio.sleep(60)
        finally:
            if self.stubborn:
                await asyncio.sleep(1)
            needs.append("cleaned up")
        return ToolResult(llm_content="never")


class Break(Tool[Exception], frozen=True):
    """Break off."""

    name: ClassVar[str] = "break"

    def summary(self) -> str:
        return "Break"

    async def run(self, context: ToolContext, needs: Exception) -> ToolResult:
        raise needs


class Fixed:
    """Policy that says the same of everything."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.requests: list[PolicyRequest] = []

    def evaluate(self, request: PolicyRequest) -> Verdict:
        self.requests.append(request)
        return self.verdict


ALLOW = Verdict(decision="allow", reason="")
ASK = Verdict(decision="ask", reason="it changes files", grant="log:x")
DENY = Verdict(decision="deny", reason="the rule says no")


class Table:
    """A dispatch with everything it was told and everything it told."""

    def __init__(self, workspace: Path, verdict: Verdict = ALLOW, fault: Exception | None = None, **parts: Any) -> None:
        self.events: list[Event] = []
        self.records: list[ToolCallRecord] = []
        self.order: list[str] = []
        self.registry = ToolRegistry()
        self.registry.register(Say)
        self.registry.register(Log, self.order)
        self.registry.register(Wait, self.order)
        self.registry.register(Break, fault or ValueError("a bug"))
        self.policy = Fixed(verdict)
        output = parts.pop("output", OutputSettings())
        room: Callable[[], int | None] = parts.pop("room", lambda: None)
        context = ToolContext(boundary=Boundary.around(workspace), settings=ToolSettings(output=output))
        parts.setdefault("record", self.record)
        services = CallServices(
            registry=self.registry, policy=self.policy, context=context, emit=self.events.append, **parts
        )
        self.dispatch = Dispatch(services, room)

    async def record(self, record: ToolCallRecord) -> None:
        self.records.append(record)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def run(self, *calls: tuple[str, Any]) -> list[ToolCallRecord]:
        return await self.dispatch.run(asked(*calls), 7)

    async def one(self, name: str, arguments: Any = None) -> ToolCallRecord:
        (record,) = await self.run((name, {} if arguments is None else arguments))
        return record


def asked(*calls: tuple[str, Any]) -> list[ToolCall]:
    return [
        ToolCall(id=f"c{number}", name=name, arguments=arguments) for number, (name, arguments) in enumerate(calls, 1)
    ]


@covers("T10.7", "T10.2", "T10.6", "T9.4")
async def test_a_call_is_told_when_it_starts_and_ends_and_recorded_both_times(tmp_path: Path) -> None:
    table = Table(tmp_path)

    record = await table.one("say", {"text": "hello"})

    assert record.status == "ok"
    assert record.message_id == 7
    assert record.result is not None
    assert (record.result.llm_content, record.result.return_display) == ("hello", "hello")
    assert [kept.status for kept in table.records] == ["running", "ok"]
    assert [type(event) for event in table.events] == [ToolStarted, ToolOutput, ToolFinished]
    assert table.of(ToolStarted)[0].summary == "Say hello"


@covers("T10.7")
async def test_records_come_in_the_order_asked_one_per_call(tmp_path: Path) -> None:
    table = Table(tmp_path)

    records = await table.run(
        ("say", {"text": "a"}), ("log", {"text": "b"}), ("nothing", {}), ("say", {}), ("say", {"text": "c"})
    )

    assert [record.id for record in records] == ["c1", "c2", "c3", "c4", "c5"]
    assert [record.status for record in records] == ["ok", "ok", "failed", "failed", "ok"]
    assert sorted(event.call_id for event in table.of(ToolFinished)) == ["c1", "c2", "c3", "c4", "c5"]


async def test_readers_run_side_by_side_and_the_rest_in_order(tmp_path: Path) -> None:
    class Meet(Tool[asyncio.Barrier], frozen=True):
        """Wait for three."""

        name: ClassVar[str] = "meet"
        reads_only: ClassVar[bool] = True

        def summary(self) -> str:
            return "Meet"

        async def run(self, context: ToolContext, needs: asyncio.Barrier) -> ToolResult:
            async with asyncio.timeout(5):
                await needs.wait()
            return ToolResult(llm_content="met")

    table = Table(tmp_path)
    table.registry.register(Meet, asyncio.Barrier(3))

    records = await table.run(("meet", {}), ("meet", {}), ("meet", {}), ("log", {"text": "x"}), ("log", {"text": "y"}))

    assert {record.status for record in records} == {"ok"}
    assert table.order == ["begin x", "end x", "begin y", "end y"]


@covers("T12.1", "T12.6")
async def test_an_unknown_tool_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    record = await Table(tmp_path).one("lgo")

    assert record.error is not None
    assert record.error.type == "UnknownTool"
    assert "Did you mean log" in record.error.message


@covers("T12.1")
async def test_bad_arguments_are_explained_and_policy_is_not_asked(tmp_path: Path) -> None:
    table = Table(tmp_path)

    record = await table.one("say", {"txt": 1})

    assert record.error is not None
    assert record.error.type == "ValidationError"
    assert 'did you mean "text"' in record.error.message
    assert table.policy.requests == []


@covers("T12.1")
@pytest.mark.parametrize("arguments", [None, [], "text", 5, True, {UNPARSED_KEY: "{half"}])
async def test_arguments_that_are_no_object_get_a_result_that_says_so(tmp_path: Path, arguments: Any) -> None:
    (record,) = await Table(tmp_path).run(("say", arguments))

    assert record.error is not None
    assert record.error.type == "ValidationError"
    msgspec.json.encode(record)


async def test_arguments_that_are_json_in_a_string_are_understood(tmp_path: Path) -> None:
    (record,) = await Table(tmp_path).run(("say", {UNPARSED_KEY: '{"text": "hello"}'}))

    assert record.status == "ok"


async def test_a_megabyte_of_arguments_is_run_quickly(tmp_path: Path) -> None:
    table = Table(tmp_path)
    started = time.perf_counter()

    record = await table.one("log", {"text": "x" * 1_000_000})

    assert record.status == "ok"
    assert time.perf_counter() - started < 10


async def test_deeply_nested_arguments_are_refused_and_can_be_recorded(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]

    record = await Table(tmp_path).one("say", {"text": deep})

    assert record.status == "failed"
    assert len(msgspec.json.encode(record)) < 2_000


async def test_half_a_surrogate_pair_in_arguments_can_be_recorded(tmp_path: Path) -> None:
    record = await Table(tmp_path).one("say", {"text": "\ud800"})

    msgspec.json.encode(record)
    assert record.status == "ok"


async def test_the_same_call_id_twice_makes_two_records(tmp_path: Path) -> None:
    table = Table(tmp_path)
    twice = [ToolCall(id="c1", name="say", arguments={"text": text}) for text in "ab"]

    records = await table.dispatch.run(twice, 1)
    (again,) = await table.dispatch.run(twice[:1], 2)

    assert [record.id for record in records] == ["c1", "c1-2"]
    assert [record.result.llm_content for record in records if record.result] == ["a", "b"]
    assert again.id == "c1-3"


@covers("T12.6", "T12.2")
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (ToolFailure("EditTargetNotFound", "edit 1 is nowhere"), "EditTargetNotFound", "edit 1 is nowhere"),
        (ValueError("a bug"), "Interrupted", "ValueError: a bug"),
        (PermissionError(13, "Permission denied", "/x/y"), "PermissionDenied", "/x/y"),
        (StorageError("the disk is full"), "Interrupted", "the disk is full"),
        (RecursionError("too deep"), "ValidationError", "nested too deeply"),
    ],
)
async def test_whatever_a_tool_raises_becomes_its_result(
    tmp_path: Path, fault: Exception, kind: str, said: str
) -> None:
    record = await Table(tmp_path, fault=fault).one("break")

    assert record.error is not None
    assert record.error.type == kind
    assert said in record.error.message
    assert record.result is not None
    assert record.result.llm_content == f"Error {kind}: {record.error.message}"


async def test_a_tool_that_cancels_itself_gets_a_result(tmp_path: Path) -> None:
    class Quit(Tool[None], frozen=True):
        """Quit."""

        name: ClassVar[str] = "quit"

        def summary(self) -> str:
            return "Quit"

        async def run(self, context: ToolContext, needs: None) -> ToolResult:
            raise asyncio.CancelledError

    table = Table(tmp_path)
    table.registry.register(Quit)

    assert (await table.one("quit")).status == "cancelled"


async def cancelled(table: Table, *calls: tuple[str, Any]) -> float:
    """Run the calls, cancel them once the first waits, and say how long that took."""
    task = asyncio.create_task(table.dispatch.run(asked(*calls), 1))
    while "waiting" not in table.order:
        await asyncio.sleep(0)
    started = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.perf_counter() - started


@covers("T12.4", "T10.5")
@pytest.mark.parametrize("name", ["wait", "log"])
async def test_cancelling_gives_every_call_its_result_within_a_tenth_of_a_second(tmp_path: Path, name: str) -> None:
    last = (name, {"text": "x"} if name == "log" else {})
    tables = [Table(tmp_path) for _ in range(5)]

    taken = [await cancelled(table, ("say", {"text": "done"}), ("wait", {}), last) for table in tables]

    assert min(taken) < 0.1  # the best of five: other programs share this machine
    for table in tables:
        final = {record.id: record for record in table.records}
        assert "cleaned up" in table.order
        assert [final[f"c{number}"].status for number in (1, 2, 3)] == ["ok", "cancelled", "cancelled"]
        assert len(table.of(ToolFinished)) == 3
        error = final["c2"].error
        assert error is not None
        assert error.type == "Cancelled"


async def test_a_tool_slow_to_clean_up_does_not_hold_up_the_cancellation(tmp_path: Path) -> None:
    table = Table(tmp_path)

    await cancelled(table, ("wait", {"stubborn": True}))

    assert "cleaned up" not in table.order
    assert table.records[-1].status == "cancelled"
    await table.dispatch.close()
    assert "cleaned up" in table.order


@covers("T7.2")
async def test_a_denied_call_does_not_run(tmp_path: Path) -> None:
    table = Table(tmp_path, DENY)

    record = await table.one("log", {"text": "x"})

    assert record.status == "denied"
    assert record.error is not None
    assert record.error.message == "Not run: the rule says no"
    assert table.order == []


@covers("T7.3", "T7.8")
async def test_asking_goes_over_the_bus_with_what_the_call_would_do(tmp_path: Path) -> None:
    bus = MessageBus()
    seen: list[ConfirmationDetails] = []

    def answer(event: Any) -> None:
        if hasattr(event, "details"):
            seen.append(event.details)
            bus.respond(event.correlation_id, ConfirmationAnswer(approved=True, scope="session"))

    bus.subscribe(answer)
    grants: list[tuple[str, str]] = []
    table = Table(tmp_path, ASK, asker=BusAsker(bus), remember=lambda grant, scope: grants.append((grant, scope)))

    record = await table.one("log", {"text": "x"})

    assert record.status == "ok"
    assert [(one.call_id, one.tool, one.description, one.diff) for one in seen] == [("c1", "log", "Log x", "+x")]
    assert grants == [("log:x", "session")]


async def test_a_refusal_and_its_reason_reach_the_model(tmp_path: Path) -> None:
    bus = MessageBus()
    bus.subscribe(
        lambda event: (
            bus.respond(event.correlation_id, ConfirmationAnswer(approved=False, reason="use the other file")) and None
        )
    )
    record = await Table(tmp_path, ASK, asker=BusAsker(bus)).one("log", {"text": "x"})

    assert record.status == "denied"
    assert record.error is not None
    assert record.error.message == "Not run: use the other file"


async def test_nobody_answering_in_time_is_told_apart_from_a_refusal(tmp_path: Path) -> None:
    record = await Table(tmp_path, ASK, asker=BusAsker(MessageBus(), timeout=0.01)).one("log", {"text": "x"})

    assert record.error is not None
    assert record.error.type == "Denied"
    assert "No answer" in record.error.message


async def test_a_question_taken_back_cancels_the_call(tmp_path: Path) -> None:
    bus = MessageBus()
    task = asyncio.create_task(Table(tmp_path, ASK, asker=BusAsker(bus)).one("log", {"text": "x"}))
    while not bus.pending:
        await asyncio.sleep(0)
    bus.cancel_all()

    assert (await task).status == "cancelled"


@covers("T10.4")
async def test_with_nobody_to_ask_the_denial_names_what_would_allow_it(tmp_path: Path) -> None:
    record = await Table(tmp_path, ASK).one("log", {"text": "x"})

    assert record.status == "denied"
    assert record.error is not None
    assert record.error.message == (
        "Not run: it changes files, and ollm cannot ask in non-interactive mode. Use --yes, or grant it with --allow 'log:x'."
    )


async def test_yes_answers_every_question_but_locked_ones(tmp_path: Path) -> None:
    locked = msgspec.structs.replace(ASK, locked=True)

    assert (await Table(tmp_path, ASK, asker=UnattendedAsker(yes=True)).one("log", {"text": "x"})).status == "ok"
    assert (await Table(tmp_path, locked, asker=UnattendedAsker(yes=True)).one("log", {"text": "x"})).status == "denied"


async def test_a_path_that_is_none_is_a_mistake_and_not_a_question(tmp_path: Path) -> None:
    record = await Table(tmp_path, ASK).one("say", {"text": "x", "path": "a\0b"})

    assert record.error is not None
    assert record.error.type == "ValidationError"


async def test_what_a_person_approved_is_open_for_that_call_alone(tmp_path: Path) -> None:
    secret = tmp_path / "outside.txt"
    secret.write_text("secret", encoding="utf-8")
    (tmp_path / "workspace").mkdir()

    class Peek(Tool[None], frozen=True):
        """Peek."""

        name: ClassVar[str] = "peek"
        path: str

        def summary(self) -> str:
            return "Peek"

        async def run(self, context: ToolContext, needs: None) -> ToolResult:
            with context.boundary.open_file(self.path) as file:
                return ToolResult(llm_content=file.read().decode())

    verdict = msgspec.structs.replace(ASK, locked=True, approve=(str(secret.resolve()),))

    class Yes:
        async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
            return ConfirmationAnswer(approved=True)

    table = Table(tmp_path / "workspace", verdict, asker=Yes())
    table.registry.register(Peek)

    first = await table.one("peek", {"path": "../outside.txt"})
    table.policy.verdict = ALLOW
    second = await table.one("peek", {"path": "../outside.txt"})

    assert first.result is not None
    assert first.result.llm_content == "secret"
    assert second.error is not None
    assert second.error.type == "OutsideWorkspace"


async def test_a_hook_may_block_or_rewrite_a_call(tmp_path: Path) -> None:
    class Hooks(NoHooks):
        async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
            if arguments["text"] == "bad":
                return HookDecision(blocked="not this word")
            return HookDecision(arguments={"text": arguments["text"].upper()})

    blocked, rewritten = await Table(tmp_path, hooks=Hooks()).run(("say", {"text": "bad"}), ("say", {"text": "good"}))

    assert blocked.status == "denied"
    assert blocked.error is not None
    assert "not this word" in blocked.error.message
    assert rewritten.args == {"text": "GOOD"}
    assert rewritten.result is not None
    assert rewritten.result.llm_content == "GOOD"


async def test_a_hook_that_breaks_afterwards_is_said_and_stops_nothing(tmp_path: Path) -> None:
    class Hooks(NoHooks):
        async def after_tool(self, record: ToolCallRecord) -> None:
            raise ValueError("a broken hook")

    table = Table(tmp_path, hooks=Hooks())

    assert (await table.one("say", {"text": "x"})).status == "ok"
    assert "a broken hook" in table.of(Notice)[0].text


async def test_a_hook_that_breaks_before_keeps_the_call_from_running(tmp_path: Path) -> None:
    class Hooks(NoHooks):
        async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
            raise ValueError("a broken hook")

    table = Table(tmp_path, hooks=Hooks())

    assert (await table.one("log", {"text": "x"})).status == "failed"
    assert table.order == []


@covers("T9.1", "T9.3")
async def test_long_output_is_cut_and_the_whole_kept(tmp_path: Path) -> None:
    record = await Table(tmp_path, output=OutputSettings(max_chars=100, max_lines=10)).one("say", {"text": "x" * 500})

    assert record.result is not None
    assert len(record.result.llm_content) < 200
    assert "400 characters omitted" in record.result.llm_content
    assert record.result.full_output == "x" * 500


async def test_results_of_a_step_share_the_room_there_is(tmp_path: Path) -> None:
    records = await Table(tmp_path, room=lambda: 1000).run(*[("say", {"text": "x" * 5000})] * 4)

    assert sum(len(record.result.llm_content) for record in records if record.result) < 1000 + 4 * 100


@covers("T9.5")
async def test_escape_sequences_reach_neither_the_model_nor_the_screen(tmp_path: Path) -> None:
    table = Table(tmp_path)

    record = await table.one("say", {"text": "\x1b[31mred\x1b[0m\x07"})

    assert record.result is not None
    assert record.result.llm_content == "red␇"
    assert table.of(ToolOutput)[0].text == "red␇"


async def test_a_record_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    async def full(record: ToolCallRecord) -> None:
        raise StorageError("the disk is full")

    table = Table(tmp_path, record=full)

    assert (await table.one("say", {"text": "x"})).status == "ok"
    assert "the disk is full" in table.of(Notice)[0].text


async def test_refused_calls_each_get_the_same_failure(tmp_path: Path) -> None:
    table = Table(tmp_path)

    records = await table.dispatch.refuse(
        asked(("say", {"text": "a"}), ("log", {"text": "b"})), 3, "LoopStopped", "a loop"
    )

    assert [record.error.type for record in records if record.error] == ["LoopStopped", "LoopStopped"]
    assert len(table.of(ToolFinished)) == 2
    assert table.order == []


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["say", "log", "break", "wat", ""]),
        st.one_of(
            st.fixed_dictionaries({"text": st.text(max_size=20)}),
            st.dictionaries(st.text(max_size=5), st.integers() | st.floats() | st.text(max_size=5), max_size=3),
            st.none() | st.text(max_size=10) | st.lists(st.integers(), max_size=3),
        ),
    ),
    max_size=6,
)


@covers("T12.6", "T10.7")
@settings(max_examples=100, deadline=None)
@given(calls=CALLS, verdict=st.sampled_from([ALLOW, ASK, DENY]))
def test_any_calls_get_exactly_one_finished_record_each(calls: list[tuple[str, Any]], verdict: Verdict) -> None:
    table = Table(Path("/tmp"), verdict)

    records = asyncio.run(table.run(*calls))

    assert [record.id for record in records] == [f"c{number}" for number in range(1, len(calls) + 1)]
    assert all(record.status != "running" and record.result is not None for record in records)
    assert sorted(event.call_id for event in table.of(ToolFinished)) == sorted(record.id for record in records)
    assert [(record.error is None) for record in records] == [record.status == "ok" for record in records]
    msgspec.json.encode(records)


@covers("T7.8")
async def test_nothing_is_hidden_in_what_a_person_is_asked(tmp_path: Path) -> None:
    class Person:
        def __init__(self) -> None:
            self.asked: list[ConfirmationDetails] = []

        async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
            self.asked.append(details)
            return ConfirmationAnswer(approved=False)

    person = Person()
    table = Table(tmp_path, ASK, asker=person)

    await table.one("say", {"text": "safe\x1b[2K\u202egnp.exe", "path": "a\u200bb"})

    assert person.asked[0].description == "Say safe⟨U+001B⟩[2K⟨U+202E⟩gnp.exe"
    assert person.asked[0].locations == ("a⟨U+200B⟩b",)
    assert table.of(ToolStarted)[0].summary == person.asked[0].description
