"""One call on its way."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from ollm.config.settings import OutputSettings
from ollm.domain.errors import StorageError, ToolFailure
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved, Notice, ToolFinished, ToolOutput
from ollm.domain.tools import (
    ConfirmationAnswer,
    ConfirmationDetails,
    Location,
    Risk,
    ToolCallRecord,
    ToolResult,
    Verdict,
)
from ollm.extensions.base import HookDecision, NoHooks
from ollm.runtime.calls.change_watch import ChangeWatch
from ollm.runtime.calls.confirmation import AnswerLog
from ollm.runtime.calls.dispatch import Dispatch
from ollm.runtime.calls.results import UNPARSED_KEY
from ollm.runtime.calls.tool_call import CallServices, ToolCallRun
from ollm.system.paths import Boundary
from ollm.tools.framework.base import Tool, ToolContext
from ollm.tools.framework.registry import ToolRegistry
from tests.covers import covers
from tests.recorded_courses import compare_course
from tests.runtime.calls.support import ALLOW, DENY, Say, Table, asked


@covers("T12.1", "T12.6")
async def test_an_unknown_tool_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    record = await Table(tmp_path).one("lgo")

    assert record.error is not None
    assert record.error.type == "UnknownTool"
    assert "Did you mean log" in record.error.message


@covers("T12.1")
async def test_bad_arguments_are_explained_and_policy_is_not_asked(tmp_path: Path) -> None:
    table = Table(tmp_path)

    record = await table.one("say", {"txt": 1, "text": ["no text"]})

    assert record.error is not None
    assert record.error.type == "ValidationError"
    assert 'did you mean "text"' in record.error.message
    assert table.policy.requests == []


async def test_arguments_that_are_json_in_a_string_are_understood(tmp_path: Path) -> None:
    (record,) = await Table(tmp_path).run(("say", {UNPARSED_KEY: '{"text": "hello"}'}))

    assert record.status == "ok"


async def test_a_record_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    async def full(record: ToolCallRecord) -> None:
        raise StorageError("the disk is full")

    table = Table(tmp_path, record=full)

    assert (await table.one("say", {"text": "x"})).status == "ok"
    assert "the disk is full" in table.of(Notice)[0].text


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


class Put(Tool[None], frozen=True):
    """Write a file."""

    name: ClassVar[str] = "put"
    category: ClassVar[Any] = "write"
    path: str
    content: str = ""

    def summary(self) -> str:
        return f"Put {self.path}"

    def locations(self) -> list[Location]:
        return [Location(target=self.path, access="write")]

    async def preview(self, context: ToolContext, needs: None) -> str:
        return f"+{self.content}"

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        told = f"put {sorted(context.approved)} {context.unasked} {context.call_id}"
        return ToolResult(llm_content=told, return_display=self.content)


class Look(Say, frozen=True):
    """Look at something of which nobody says that it only reads."""

    name: ClassVar[str] = "look"
    reads_only: ClassVar[bool] = False
    category: ClassVar[Any] = "read"


class Watch(ChangeWatch):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def before_change(self, names: Sequence[str] | None) -> None:
        self.heard.append(f"before {names}")

    async def after_changes(self) -> None:
        self.heard.append("after")


class Hooks(NoHooks):
    """Decide by the first word of the text or path."""

    async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
        word = str(arguments.get("text") or arguments.get("path"))
        if word == "blocked":
            return HookDecision(blocked="not on Mondays")
        if word == "other":
            return HookDecision(arguments={**arguments, "text": "another"})
        if word == "broken":
            return HookDecision(arguments={"nothing": 1})
        return HookDecision(ask="a hook wants it" if word == "asked" else "")

    async def after_tool(self, record: ToolCallRecord) -> str:
        return "Mind the gap." if record.args.get("text") in ("another", "said") else ""


class Clock:
    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        self.passed += 0.1254
        return self.passed


class Approving:
    def __init__(self, answer: ConfirmationAnswer) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(f"asked {msgspec.to_builtins(details)}")
        return self.answer


CALLS: list[tuple[str, Any]] = [
    ("say", {"text": "said"}),
    ("say", {"text": "\x1b[31mred\n" * 9}),
    ("say", {"text": "here", "path": "a/b.txt"}),
    ("say", {"text": "there", "path": "../b.txt"}),
    ("say", {"text": "where", "path": "bad\0path"}),
    ("say", {"txt": "near"}),
    ("say", {"text": 7}),
    ("say", {}),
    ("say", "no object"),
    ("sai", {"text": "meant"}),
    ("Say", {"text": "meant"}),
    ("nowhere", {"text": "lost"}),
    ("log", {"text": "blocked"}),
    ("log", {"text": "other"}),
    ("log", {"text": "broken"}),
    ("log", {"text": "asked"}),
    ("log", {"text": "plain"}),
    ("look", {"text": "said"}),
    ("put", {"path": "made.txt", "content": "text"}),
    ("put", {"path": "/outside.txt", "content": "text"}),
    ("put", {"path": "asked", "content": "text"}),
    ("break", {}),
]
VERDICTS = {
    "allowed": ALLOW,
    "allowed for reading": Verdict(decision="allow", reason="", reads=True),
    "asked": Verdict(decision="ask", reason="it changes files", grant="log:x", prefix="log:*", approve=("/outside",)),
    "asked, always": Verdict(decision="ask", reason="it is protected", grant="log:x", locked=True),
    "denied": DENY,
}
ANSWERS = {
    "no": ConfirmationAnswer(approved=False),
    "no, with words": ConfirmationAnswer(approved=False, reason="Not now."),
    "yes": ConfirmationAnswer(approved=True),
    "yes, for the session": ConfirmationAnswer(approved=True, scope="session"),
    "yes, for all like it": ConfirmationAnswer(approved=True, scope="session", prefix=True),
}


@pytest.mark.parametrize("hooked", [True, False])
async def test_every_call_under_every_verdict(tmp_path: Path, hooked: bool) -> None:
    lines: list[str] = []
    for verdict, answer in [(name, one) for name in VERDICTS for one in (ANSWERS if "asked" in name else ["no"])]:
        watch, asker, granted = Watch(), Approving(ANSWERS[answer]), list[Any]()
        table = Table(
            tmp_path,
            VERDICTS[verdict],
            output=OutputSettings(max_lines=6),
            hooks=Hooks() if hooked else NoHooks(),
            changes=watch,
            asker=asker,
            remember=lambda grant, scope, granted=granted: granted.append((grant, scope)),
            clock=lambda: datetime(2026, 1, 2, tzinfo=UTC),
            monotonic=Clock(),
        )
        table.registry.register(Put)
        table.registry.register(Look)
        for call in CALLS if verdict == "allowed" else [CALLS[0], CALLS[3], *CALLS[-7:]]:
            lines.append(f"{verdict}, {answer}: {call!r}")
            record = await table.one(*call)
            told = [*watch.heard, *asker.asked, *(f"granted {one}" for one in granted), *map(tell, table.events)]
            told += [f"recorded {one.status}" for one in table.records]
            for heard in (watch.heard, asker.asked, granted, table.events, table.records):
                heard.clear()
            lines += [f"  {line.replace(str(tmp_path), 'PROJECT')}" for line in (*told, tell(record))]

    compare_course(Path(__file__).parents[1] / "recorded" / f"calls_{'hooked' if hooked else 'plain'}.txt", lines)


def tell(one: Any) -> str:
    left_out = {"sessionId", "seq", "timestamp"}
    return f"{type(one).__name__} { {key: value for key, value in msgspec.to_builtins(one).items() if key not in left_out} }"


async def test_of_very_many_tools_sixty_are_named(tmp_path: Path) -> None:
    for more, ending in ((60, "tool_59."), (61, "tool_59 and 1 more.")):
        table = Table(tmp_path)
        table.registry = ToolRegistry()
        names = [
            type(f"T{n}", (Say,), {"name": f"tool_{n:02}", "__doc__": "A tool."}, frozen=True) for n in range(more)
        ]
        for made in names:
            table.registry.register(made)
        services = CallServices(
            registry=table.registry,
            policy=table.policy,
            context=ToolContext(boundary=Boundary.around(tmp_path)),
            emit=table.events.append,
        )
        (record,) = await Dispatch(services, lambda: None).run(asked(("zzzzzzzzz", {})), 7)
        assert record.error is not None
        assert record.error.message.endswith(ending), record.error.message


class Recall(Say, frozen=True):
    """Read again."""

    name: ClassVar[str] = "recall"


async def test_a_result_that_was_cut_says_how_to_read_the_rest_where_that_can_be_done(tmp_path: Path) -> None:
    table = Table(tmp_path, output=OutputSettings(max_lines=6))
    before = await table.one("say", {"text": "line\n" * 40})
    table.registry.register(Recall)
    after = await table.one("say", {"text": "line\n" * 40})

    assert before.result is not None
    assert after.result is not None
    assert "recall" not in before.result.llm_content
    assert f'read it with recall {{"callId": "{after.id}", "startLine": ' in after.result.llm_content


class Print(Tool[None], frozen=True):
    """Print something, and fail where it is told to."""

    name: ClassVar[str] = "print"
    text: str
    failure: str = ""

    def summary(self) -> str:
        return "Print"

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        context.emit(self.text)
        if self.failure:
            raise ToolFailure(self.failure, "It was stopped.")
        return ToolResult(llm_content="done")


async def test_what_a_tool_printed_last_is_told_although_more_could_have_come(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.registry.register(Print)

    await table.one("print", {"text": "half\r"})

    assert "".join(event.text for event in table.of(ToolOutput)) == "half\n"


@pytest.mark.parametrize(
    ("failure", "said"),
    [("Cancelled", "so far\n[It was stopped.]"), ("Timeout", "Error Timeout: It was stopped.")],
)
async def test_a_call_that_is_cancelled_keeps_what_it_printed(tmp_path: Path, failure: str, said: str) -> None:
    table = Table(tmp_path)
    table.registry.register(Print)

    record = await table.one("print", {"text": "so far\n", "failure": failure})

    assert record.result is not None
    assert record.result.llm_content == said


async def test_a_call_ends_once_and_keeps_what_people_answered(tmp_path: Path) -> None:
    table, answers = Table(tmp_path), AnswerLog()
    services = CallServices(
        registry=table.registry,
        policy=table.policy,
        context=ToolContext(boundary=Boundary.around(tmp_path)),
        emit=table.events.append,
        record=table.record,
        answers=answers,
    )
    (call,) = asked(("say", {"text": "x"}))
    one = ToolCallRun(services, "c1", call, 7, OutputSettings())
    assert one.reads_only is True
    assert ToolCallRun(services, "c2", asked(("log", {}))[0], 7, OutputSettings()).reads_only is False
    assert ToolCallRun(services, "c3", asked(("nowhere", {}))[0], 7, OutputSettings()).reads_only is False
    assert await one.prepare()
    details = ConfirmationDetails(call_id="c1", tool="say", description="May I?", risk=Risk.LOW, reason="")
    answers.handle_event(ConfirmationRequested(correlation_id="q", details=details))
    answers.handle_event(
        ConfirmationResolved(correlation_id="q", outcome="approved", answer=ConfirmationAnswer(approved=True))
    )
    for text in ("first", "second"):
        await one.finish(ToolResult(llm_content=text))

    assert [event.result.llm_content for event in table.of(ToolFinished)] == ["first"]
    assert [record.result.llm_content for record in table.records if record.result] == ["first"]
    assert one.record.result is not None
    assert [asked.question for asked in one.record.result.questions] == ["May I?"]


async def test_a_call_reads_a_file_as_an_editor_has_it(tmp_path: Path) -> None:
    class Editor:
        writes = False

        def withholds(self, _path: Path) -> bool:
            return False

        async def read(self, _path: Path) -> str | None:
            return "typed"

        async def write(self, _path: Path, _text: str) -> bool:
            return False

    class Peek(Say, frozen=True):
        """Look at what an editor has."""

        name: ClassVar[str] = "peek"

        async def run(self, context: ToolContext, needs: None) -> ToolResult:
            return ToolResult(llm_content=str(list(context.buffers.values())))

    (tmp_path / "a.txt").write_text("saved", "utf-8")
    table = Table(tmp_path)
    table.registry.register(Peek)
    context = ToolContext(boundary=Boundary.around(tmp_path), editor=Editor())
    services = CallServices(registry=table.registry, policy=table.policy, context=context, emit=table.events.append)

    (record,) = await Dispatch(services).run(asked(("peek", {"text": "x", "path": "a.txt"})), 7)

    assert record.result is not None
    assert record.result.llm_content == "[b'typed']"
