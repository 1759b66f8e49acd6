"""Events and calls as an editor shows them."""

from pathlib import Path

import pytest
from acp import schema as wire

from ollm.acp.updates import ToolCallViews, UpdateRenderer, split_diff
from ollm.domain import events
from ollm.domain.tools import ConfirmationDetails, ErrorInfo, FileChange, Risk, Todo, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.edit_file import EditFile
from ollm.tools.files.file_change import make_diff
from ollm.tools.framework.base import ToolRegistry, ToolSpec, make_spec
from ollm.tools.read_file import ReadFile

DETAILS = ConfirmationDetails(call_id="c1", tool="shell", description="ls", risk=Risk.LOW, reason="r")
STARTED = events.ToolStarted(call_id="c1", name="shell", summary="make", args={"command": "make"})
FINISHED = events.ToolFinished(
    call_id="c1", name="shell", status="ok", result=ToolResult(llm_content="out", exit_code=0)
)
SAMPLES: list[tuple[events.AnyEvent, str]] = [
    (events.TextDelta(text="a"), "agent_message_chunk"),
    (events.ThinkingDelta(text="a"), "agent_thought_chunk"),
    (STARTED, "tool_call"),
    (events.ToolOutput(call_id="c1", text="out"), "tool_call_update"),
    (FINISHED, "tool_call_update"),
    (events.TodosChanged(todos=(Todo(id="1", text="t"),)), "plan"),
    (events.ContextUsage(used=5, limit=9, window=10, trigger=8), "usage_update"),
    (events.Notice(level="error", text="bad"), "agent_message_chunk"),
    (events.Notice(level="info", text="well"), "agent_thought_chunk"),
    (events.Compressed(strategy="s", original_token_count=9, compressed_token_count=3), "agent_thought_chunk"),
    (events.CompressionError(message="m"), "agent_thought_chunk"),
    (events.SnapshotError(message="m"), "agent_thought_chunk"),
    (events.LoopWarning(pattern="p", details="d", count=3), "agent_thought_chunk"),
    (events.LoopDetected(pattern="p", details="d", count=3), "agent_message_chunk"),
    (events.PromptTruncated(sent_tokens=9, read_tokens=3), "agent_thought_chunk"),
]
UNTOLD: list[events.AnyEvent] = [
    events.SessionCreated(model="m", provider="p"),
    events.MessageRecorded(message_id=1, role="user"),
    events.ToolCallRecorded(call_id="c1", name="n", status="ok"),
    events.SessionSaved(),
    events.SnapshotCreated(snapshot_id="s", trigger="t"),
    events.AutoSnapshotCreated(snapshot_id="s", trigger="t"),
    events.SnapshotRestored(snapshot_id="s"),
    events.SnapshotDeleted(snapshot_id="s"),
    events.CompressionSkipped(reason="r"),
    events.CheckpointCreated(checkpoint_id="c", message_ids=(1,), tokens=1),
    events.CheckpointAged(checkpoint_id="c", age="a", tokens=1),
    events.TurnStarted(message_id=1, text="t"),
    events.PrefillProgress(),
    events.ConfirmationRequested(correlation_id="q", details=DETAILS),
    events.ConfirmationResolved(correlation_id="q", outcome="refused"),
    events.ModeChanged(from_="code", to="plan", trigger="manual"),
    events.TurnFinished(reason="answered"),
]


def renderer(*, terminals: bool = False, now: list[float] | None = None) -> UpdateRenderer:
    registry = ToolRegistry()
    registry.register(
        ToolSpec(name="shell", description="", parameters={}, category="run", parse=lambda _: None)  # type: ignore[arg-type,return-value]
    )

    class Views(ToolCallViews):
        def _find_locations(self, spec, arguments):
            return []

    clock = now if now is not None else [0.0]
    return UpdateRenderer(Views(registry, Path("/w")), terminals=terminals, now=lambda: clock[0])


@pytest.mark.parametrize(("event", "kind"), SAMPLES)
def test_an_event_is_told_as_the_protocol_has_it(event: events.AnyEvent, kind: str) -> None:
    (update,) = renderer().render(event)

    assert update["sessionUpdate"] == kind
    wire.SessionNotification.model_validate({"sessionId": "s", "update": update})


def test_every_kind_of_event_is_told_or_has_no_place_in_an_editor() -> None:
    known = {type(event) for event, _ in SAMPLES} | {type(event) for event in UNTOLD}

    assert set(events.AnyEvent.__args__) - known == set()
    assert all(renderer().render(event) == [] for event in UNTOLD)


def test_output_is_told_from_time_to_time_and_always_whole() -> None:
    now = [0.0]
    found = renderer(now=now)
    found.render(STARTED)
    assert found.render(events.ToolOutput(call_id="c1", text="a\n")) != []
    assert found.render(events.ToolOutput(call_id="c1", text="b\n")) == []
    now[0] = 1.0
    (update,) = found.render(events.ToolOutput(call_id="c1", text="c\n"))

    assert update["content"][0]["content"]["text"] == "a\nb\nc\n"


@pytest.fixture
def views(tmp_path: Path) -> ToolCallViews:
    registry = ToolRegistry()
    registry.register(make_spec(ReadFile, EditLedger()))
    registry.register(make_spec(EditFile, EditLedger()))
    return ToolCallViews(registry, tmp_path)


def test_a_diff_becomes_old_and_new_text_hunk_by_hunk() -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    after = before.replace("line 3\n", "line three\n").replace("line 30\n", "")
    first, second = split_diff(make_diff("src/a.py", before, after))

    assert (first.path, second.path) == ("src/a.py", "src/a.py")
    assert "line 3\n" in (first.before or "")
    assert "line three\n" in first.after
    assert "line 30\n" in (second.before or "")
    assert "line 30\n" not in second.after


def test_a_new_file_has_no_old_text_and_a_change_too_long_to_show_is_none() -> None:
    assert split_diff(make_diff("new", "", "one\n")) == [FileChange(path="new", before=None, after="one\n")]
    assert split_diff("--- a\n+++ a\n(9,000 lines become 1)\n") == []
    assert split_diff("") == []


def test_a_failed_edit_shows_its_reason_and_no_change(views: ToolCallViews) -> None:
    failed = ToolResult(llm_content="no", error=ErrorInfo(type="FileChanged", message="It changed."))

    assert views.render_result(failed, (FileChange(path="a", before="x", after="y"),)) == [
        {"type": "content", "content": {"type": "text", "text": "It changed."}}
    ]
