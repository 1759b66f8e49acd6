"""Whether a call may run, and who answers a question about it."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved, ToolStarted
from ollm.domain.tools import (
    ConfirmationAnswer,
    ConfirmationDetails,
    FileChange,
    Location,
    ToolResult,
    Verdict,
)
from ollm.extensions.hooks import HookDecision
from ollm.policy.message_bus import MessageBus
from ollm.runtime.calls.dispatch import CallServices, Dispatch
from ollm.runtime.calls.permission import (
    AnswerLog,
    UserAsker,
    explain_refusal,
)
from ollm.system.paths import Boundary
from ollm.tools.framework.base import Tool, ToolContext, ToolRegistry
from tests.covers import covers
from tests.runtime.calls.support import ALLOW, ASK, DENY, Editor, Fixed, QuietHooks, Table, asked


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
    table = Table(tmp_path, ASK, asker=UserAsker(bus), remember=lambda grant, scope: grants.append((grant, scope)))

    record = await table.one("log", {"text": "x"})

    assert record.status == "ok"
    assert [(one.call_id, one.tool, one.description, one.diff.splitlines()[-2]) for one in seen] == [
        ("c1", "log", "Log x", "+x")
    ]
    assert grants == [("log:x", "session")]


async def test_a_refusal_and_its_reason_reach_the_model(tmp_path: Path) -> None:
    bus = MessageBus()
    bus.subscribe(
        lambda event: (
            bus.respond(event.correlation_id, ConfirmationAnswer(approved=False, reason="use the other file")) and None
        )
    )
    record = await Table(tmp_path, ASK, asker=UserAsker(bus)).one("log", {"text": "x"})

    assert record.status == "denied"
    assert record.error is not None
    assert record.error.message == "Not run: use the other file"


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


class Asking(QuietHooks):
    async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
        return HookDecision(ask="a hook wants it")


class Noting:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None, bool]] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.seen.append((details.reason, details.grant, details.locked))
        return ConfirmationAnswer(approved=True, scope="session")


@pytest.mark.parametrize(
    ("verdict", "hooked", "seen", "granted"),
    [
        (ALLOW, True, [("a hook wants it", None, True)], []),
        (ALLOW, False, [], []),
        (ASK, True, [("it changes files", "log:x", False)], [("log:x", "session")]),
        (ASK, False, [("it changes files", "log:x", False)], [("log:x", "session")]),
        (DENY, True, [], []),
    ],
)
async def test_a_hook_makes_a_question_of_what_is_allowed_and_of_nothing_else(
    tmp_path: Path, verdict: Verdict, hooked: bool, seen: list[Any], granted: list[Any]
) -> None:
    asker, kept = Noting(), list[Any]()
    hooks = Asking() if hooked else None
    table = Table(tmp_path, verdict, asker=asker, hooks=hooks, remember=lambda *grant: kept.append(grant))

    record = await table.one("log", {"text": "x"})

    assert (asker.seen, kept) == (seen, granted)
    assert record.status == ("denied" if verdict is DENY else "ok")


class Rewrite(Tool[None], frozen=True):
    """Put one text in place of another."""

    name: ClassVar[str] = "rewrite"
    before: int | None = None
    after: int = 0
    fails: bool = False
    target: str = "a.txt"

    def summary(self) -> str:
        return "Rewrite"

    def locations(self) -> list[Location]:
        return [Location(target=self.target, access="write")]

    async def list_changes(self, context: ToolContext, needs: None) -> tuple[FileChange, ...]:
        if self.fails:
            raise ToolFailure("NotFound", "no a.txt")
        before = None if self.before is None else "b" * self.before
        return (FileChange(path="a.txt", before=before, after="a" * self.after),)

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        return ToolResult(llm_content="done")


class Person:
    def __init__(self) -> None:
        self.asked: list[ConfirmationDetails] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(details)
        return ConfirmationAnswer(approved=False)


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [(None, 400_000, 1), (200_000, 200_000, 1), (200_000, 200_001, 0), (None, 400_001, 0)],
)
async def test_texts_go_along_with_a_question_unless_they_are_very_long(
    tmp_path: Path, before: int | None, after: int, shown: int
) -> None:
    person = Person()
    table = Table(tmp_path, ASK, asker=person)
    table.registry.register(Rewrite)

    await table.one("rewrite", {"after": after, **({} if before is None else {"before": before})})

    (asked,) = person.asked
    assert len(asked.changes) == shown
    assert asked.diff.startswith("--- a/a.txt\n+++ b/a.txt\n@@")
    assert (asked.tool, asked.description, asked.reason) == ("rewrite", "Rewrite", "it changes files")


@pytest.mark.parametrize(("locked", "kind"), [(True, "Denied"), (False, "NotFound")])
async def test_what_is_going_to_fail_is_not_asked_about_unless_that_would_reveal_a_file(
    tmp_path: Path, locked: bool, kind: str
) -> None:
    person = Person()
    table = Table(tmp_path, msgspec.structs.replace(ASK, locked=locked), asker=person)
    table.registry.register(Rewrite)

    record = await table.one("rewrite", {"fails": True})

    assert record.error is not None
    assert (record.error.type, [asked.diff for asked in person.asked]) == (kind, [""] if locked else [])


async def test_an_address_is_no_path(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.registry.register(Rewrite)

    assert (await table.one("rewrite", {"target": "http://a.b/\0"})).status == "ok"
    assert (await table.one("rewrite", {"target": "a\0b"})).status == "failed"


class Glance(Rewrite, frozen=True):
    """Show what an editor has."""

    name: ClassVar[str] = "glance"

    async def list_changes(self, context: ToolContext, needs: None) -> tuple[FileChange, ...]:
        return (FileChange(path="a.txt", before="", after=str(list(context.buffers.values()))),)


async def test_a_person_is_shown_the_change_of_what_the_editor_has(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved", "utf-8")
    registry, person = ToolRegistry(), Person()
    registry.register(Glance)
    context = ToolContext(boundary=Boundary.around(tmp_path), editor=Editor())
    services = CallServices(
        registry=registry, policy=Fixed(ASK), context=context, emit=list[Any]().append, asker=person
    )

    await Dispatch(services).run(asked(("glance", {})), 7)

    assert [shown.diff.splitlines()[-2] for shown in person.asked] == ["+[b'typed']"]


async def test_nobody_answering_in_time_is_told_apart_from_a_refusal(tmp_path: Path) -> None:
    record = await Table(tmp_path, ASK, asker=UserAsker(MessageBus(), timeout=0.01)).one("log", {"text": "x"})

    assert record.error is not None
    assert record.error.type == "Denied"
    assert "No answer" in record.error.message


async def test_a_question_taken_back_cancels_the_call(tmp_path: Path) -> None:
    bus = MessageBus()
    task = asyncio.create_task(Table(tmp_path, ASK, asker=UserAsker(bus)).one("log", {"text": "x"}))
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

    assert (await Table(tmp_path, ASK, asker=UserAsker(yes=True)).one("log", {"text": "x"})).status == "ok"
    assert (await Table(tmp_path, locked, asker=UserAsker(yes=True)).one("log", {"text": "x"})).status == "denied"


def question(**more: Any) -> ConfirmationDetails:
    return ConfirmationDetails(
        **{"call_id": "c", "tool": "t", "description": "", "risk": "medium", "reason": "it writes."} | more
    )


@pytest.mark.parametrize(
    ("details", "yes", "text"),
    [
        ({}, False, "it writes, and ollm cannot ask in non-interactive mode. Use --yes."),
        ({"reason": ""}, False, "policy asks before it runs, and ollm cannot ask in non-interactive mode. Use --yes."),
        (
            {"grant": "shell:make"},
            False,
            "it writes, and ollm cannot ask in non-interactive mode. Use --yes, or grant it with --allow 'shell:make'.",
        ),
        ({"grant": "shell:make"}, True, "it writes, and ollm cannot ask in non-interactive mode."),
        (
            {"locked": True},
            False,
            "it writes. This always needs your confirmation, and ollm cannot ask in non-interactive mode.",
        ),
    ],
)
async def test_a_refusal_says_why_and_what_would_allow_it(details: dict[str, Any], yes: bool, text: str) -> None:
    asked_about = question(**details)

    assert explain_refusal(asked_about, yes=yes) == text
    answer = await UserAsker(yes=False).ask(asked_about)
    assert (answer.approved, answer.reason) == (False, explain_refusal(asked_about, yes=False))


def answer_to(log: AnswerLog, call_id: str, text: str, outcome: Any = "approved") -> None:
    asked = ConfirmationRequested(correlation_id=text, details=question(call_id=call_id, description=text))
    answer = ConfirmationAnswer(approved=True)
    log.handle_event(asked)
    log.handle_event(ConfirmationResolved(correlation_id=text, outcome=outcome, answer=answer))


def test_answers_are_kept_with_the_call_they_were_for_or_the_one_that_runs() -> None:
    log = AnswerLog()
    answer_to(log, "c1", "before any call")
    log.begin_call("c1")
    log.begin_call("c2")
    answer_to(log, "c1", "first")
    answer_to(log, "elsewhere", "of a server")
    answer_to(log, "c2", "taken back", "cancelled")
    log.handle_event(ConfirmationResolved(correlation_id="unknown", outcome="approved"))

    assert [found.question for found in log.end_call("c1")] == ["first"]
    assert [found.question for found in log.end_call("c2")] == ["of a server"]
    assert log.end_call("c1") == ()
