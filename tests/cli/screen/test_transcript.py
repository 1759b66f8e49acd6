"""Events become lines above the input."""

import pytest

from ollm.cli.screen.transcript import ContextFill, Transcript, choose_output, choose_preview, describe_picture
from ollm.domain.events import (
    AnyEvent,
    CheckpointCreated,
    Compressed,
    CompressionError,
    ConfirmationRequested,
    ConfirmationResolved,
    ContextUsage,
    LoopDetected,
    LoopWarning,
    ModeChanged,
    Notice,
    PromptTruncated,
    SnapshotError,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.messages import ImagePart
from ollm.domain.tools import ConfirmationAnswer, ErrorInfo, Todo, ToolResult
from tests.cli.screen.samples import PLAIN, Clock, details, status


def test_events_become_lines_and_nothing_stays_alive_after_the_turn() -> None:
    out: list[str] = []
    clock = Clock()
    shown = Transcript(PLAIN, out.append, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    assert "waiting for the model" in shown.live.render_lines(80, 5)[0]
    shown.show(ThinkingDelta(text="a\nb"))
    assert "thinking" in shown.live.render_lines(80, 5)[0]
    shown.show(TextDelta(text="One.\n\nTw"))
    assert out == ["  thought for 2 lines (Ctrl-O to show)\n", "● One.\n\n"]
    assert shown.live.render_lines(80, 5)[0] == "  Tw"
    assert "writing (0 s · ↓ 2 tokens) · Esc stops" in shown.live.render_lines(80, 5)[1]
    shown.show(ToolStarted(call_id="c", name="shell", summary="Run \x1b[31m"))
    shown.show(ToolOutput(call_id="c", text="".join(f"row {n}\n" for n in range(50))))
    assert shown.live.render_lines(80, 9)[1:] == [f"  │ row {n}" for n in range(45, 50)]
    image = ImagePart(media_type="image/png", data="A" * 4000)
    result = ToolResult(llm_content="all of it", exit_code=2, images=(image,))
    shown.show(ToolFinished(call_id="c", name="shell", status="ok", result=result, seconds=1.5))
    assert out[-3:] == ["  ✗ Run \\x1b[31m · exit 2 · 1.5 s\n", "  ▣ image/png, 3 kB\n", "  │ all of it\n"]
    shown.unfold()
    assert out[-2:] == ["  Run \\x1b[31m\n", "    all of it\n"]
    shown.show(TurnFinished(reason="cancelled"))
    assert out[-1] == "  stopped\n\n"
    assert shown.live.render_lines(80, 5) == []


class Shown:
    """A transcript and what it printed."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.clock = Clock()
        self.transcript = Transcript(PLAIN, self.out.append, self.clock)

    def show(self, *events: AnyEvent) -> list[str]:
        self.out.clear()
        for event in events:
            self.transcript.show(event)
        return self.out


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Notice(level="info", text="note"), "  note\n"),
        (ModeChanged(from_="code", to="plan", trigger="manual"), "  mode code → plan (manual)\n"),
        (
            Compressed(strategy="x", original_token_count=9000, compressed_token_count=1000),
            "  compacted 9,000 → 1,000 tokens\n",
        ),
        (
            CheckpointCreated(checkpoint_id="c", message_ids=(1, 2), tokens=5),
            "  replaced 2 messages with a summary\n",
        ),
        (CompressionError(message="could not"), "  could not\n"),
        (SnapshotError(message="no disk"), "  no disk\n"),
        (LoopWarning(pattern="p", details="same call", count=2), "  the model may be looping: same call\n"),
        (PromptTruncated(sent_tokens=900, read_tokens=500), "  the server read only 500 of 900 tokens\n"),
    ],
)
def test_an_event_is_one_line(event: AnyEvent, line: str) -> None:
    assert Shown().show(event) == [line]


def test_a_loop_is_said_with_the_way_on_and_not_a_second_time_at_the_end() -> None:
    shown = Shown()
    said = shown.show(
        LoopDetected(pattern="repeat", details="ls again", count=5),
        TurnFinished(reason="loop", message="the model is looping"),
    )

    assert said == [
        "  stopped: the model is looping: ls again (repeat)\n",
        "  /continue resumes and warns the model\n",
        "\n",
    ]


@pytest.mark.parametrize(
    ("finished", "lines"),
    [
        (TurnFinished(reason="answered"), []),
        (TurnFinished(reason="cancelled"), ["  stopped\n\n"]),
        (TurnFinished(reason="cancelled", message="time is up"), ["  time is up\n\n"]),
        (TurnFinished(reason="model-error", message="it fell over"), ["  it fell over\n\n"]),
    ],
)
def test_a_turn_ends_in_silence_or_with_why(finished: TurnFinished, lines: list[str]) -> None:
    assert Shown().show(TurnStarted(message_id=1, text="x"), finished) == lines


def finish(result: ToolResult, summary: str = "Run it", seconds: float = 0.25) -> list[str]:
    shown = Shown()
    return shown.show(
        ToolStarted(call_id="c", name="shell", summary=summary),
        ToolFinished(call_id="c", name="shell", status="ok", result=result, seconds=seconds),
    )


def test_a_call_ends_with_its_outcome() -> None:
    assert finish(ToolResult(llm_content="x")) == ["  ✓ Run it · 0.2 s\n"]
    assert finish(ToolResult(llm_content="x", exit_code=0))[0] == "  ✓ Run it · 0.2 s\n"
    assert finish(ToolResult(llm_content="x", exit_code=3))[0] == "  ✗ Run it · exit 3 · 0.2 s\n"
    failed = ToolResult(llm_content="x", error=ErrorInfo(type="NotFound", message="no such file"))
    assert finish(failed) == ["  ✗ Run it · no such file\n"]
    assert finish(ToolResult(llm_content="x"), "two\n  lines") == ["  ✓ two lines · 0.2 s\n"]
    assert finish(ToolResult(llm_content="x"), "y" * 200)[0] == f"  ✓ {'y' * 54}… · 0.2 s\n"


def test_a_call_nobody_saw_begin_goes_by_its_name() -> None:
    result = ToolResult(llm_content="x")

    assert Shown().show(ToolFinished(call_id="c", name="grep", status="ok", result=result, seconds=1)) == [
        "  ✓ grep · 1.0 s\n"
    ]


def test_a_change_is_shown_once_also_when_it_was_asked_about() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    result = ToolResult(llm_content="x", diff=diff)
    shown = Shown()
    assert "+ new" in "".join(
        shown.show(ToolFinished(call_id="c", name="edit_file", status="ok", result=result, seconds=1))
    )
    said = shown.show(
        ConfirmationRequested(correlation_id="q", details=details(call_id="d", diff=diff)),
        ToolFinished(call_id="d", name="edit_file", status="ok", result=result, seconds=1),
    )
    assert said == ["\n", "  ✓ edit_file · 1.0 s\n"]


def test_what_was_answered_stands_below_its_question_wherever_it_was_answered() -> None:
    shown = Shown()
    asks = ConfirmationRequested(correlation_id="q", details=details(grant="shell:ls"))
    yes = ConfirmationAnswer(approved=True, scope="always")
    no = ConfirmationAnswer(approved=False, reason="not now")

    allowed = ConfirmationResolved(correlation_id="q", outcome="approved", answer=yes)
    assert shown.show(asks, allowed) == ["  › yes, always in this workspace (shell:ls)\n"]
    assert shown.show(asks, ConfirmationResolved(correlation_id="q", outcome="refused", answer=no)) == [
        "  › no: not now\n"
    ]
    assert shown.show(asks, ConfirmationResolved(correlation_id="q", outcome="timeout")) == ["  › no answer in time\n"]
    assert shown.show(asks, ConfirmationResolved(correlation_id="q", outcome="cancelled")) == []


def test_text_after_a_call_stands_apart_and_a_second_block_has_no_mark() -> None:
    shown = Shown()
    shown.show(TurnStarted(message_id=1, text="x"), ToolStarted(call_id="c", name="ls", summary="List"))
    shown.show(ToolFinished(call_id="c", name="ls", status="ok", result=ToolResult(llm_content="x"), seconds=0))

    assert shown.show(TextDelta(text="One.\n\nTwo.\n\n")) == ["\n● One.\n\n", "  Two.\n\n"]
    assert shown.show(TurnFinished(reason="answered")) == []


def test_tools_that_were_still_running_are_said_to_be_stopped() -> None:
    shown = Shown()
    said = shown.show(
        TurnStarted(message_id=1, text="x"),
        ToolStarted(call_id="c", name="shell", summary="Run slow"),
        TurnFinished(reason="cancelled"),
    )

    assert said == ["  ✗ Run slow · stopped\n", "  stopped\n\n"]


def test_todos_are_listed_and_kept() -> None:
    shown = Shown()
    todos = (Todo(id="1", text="write", status="done"), Todo(id="2", text="test", status="open"))

    assert shown.show(TodosChanged(todos=todos)) == ["  ☑ write\n", "  ☐ test\n"]
    assert shown.transcript.todos == todos


def test_how_full_it_is_comes_from_events_and_from_the_status() -> None:
    shown = Shown()
    shown.show(ContextUsage(used=10, limit=100, window=120, trigger=80, fixed=5, reused_share=0.5))
    assert shown.transcript.fill == ContextFill(10, 100, 85, 0.5)
    shown.transcript.apply_status(status(used=20, limit=200, trigger=100, fixed=7))
    assert shown.transcript.fill == ContextFill(20, 200, 107, 0.5)


def test_thinking_is_folded_and_unfolded() -> None:
    shown = Shown()
    shown.show(TurnStarted(message_id=1, text="x"), ThinkingDelta(text="hm"))
    assert shown.show(TextDelta(text="So.\n\n")) == ["  thought for 1 line (Ctrl-O to show)\n", "● So.\n\n"]
    shown.out.clear()
    shown.transcript.unfold()
    assert shown.out == ["    hm\n"]
    shown.out.clear()
    assert shown.show(ThinkingDelta(text="more"), TurnFinished(reason="answered")) == ["  more\n"]
    shown.out.clear()
    shown.transcript.unfold()
    assert shown.out == ["  collapsed again\n", "\n"]


def test_unfolding_with_nothing_to_show_says_what_it_does() -> None:
    shown = Shown()
    shown.transcript.unfold()

    assert shown.out == ["  showing tool output and thinking in full; Ctrl-O collapses them\n", "\n"]
    result = ToolResult(llm_content="all of it\nand more")
    assert shown.show(ToolFinished(call_id="c", name="ls", status="ok", result=result, seconds=0))[-1] == (
        "    all of it\n    and more\n"
    )


def test_a_running_turn_does_not_go_back_to_what_the_last_one_folded() -> None:
    shown = Shown()
    shown.show(ToolFinished(call_id="c", name="ls", status="ok", result=ToolResult(llm_content="old"), seconds=0))
    shown.show(TurnStarted(message_id=2, text="x"))
    shown.transcript.unfold()

    assert "old" not in "".join(shown.out)


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (ToolResult(llm_content="x"), []),
        (ToolResult(llm_content="", exit_code=0), []),
        (ToolResult(llm_content="a\n\nb  \n[exit code 3]", exit_code=3), ["a", "b"]),
        (ToolResult(llm_content="[no output; exit code 1]", exit_code=1), []),
        (ToolResult(llm_content="1\n2\n3\n4\n5", exit_code=0), ["1", "2", "3", "4", "5"]),
        (ToolResult(llm_content="1\n2\n3\n4\n5\n6", exit_code=0), ["1", "… 2 more lines (Ctrl-O)", "4", "5", "6"]),
        (ToolResult(llm_content="model", return_display="person", exit_code=0), ["person"]),
        (ToolResult(llm_content="model", full_output="whole", exit_code=0), ["whole"]),
        (ToolResult(llm_content="x", exit_code=1, error=ErrorInfo(type="T", message="m")), []),
    ],
)
def test_a_preview_is_the_beginning_and_end_of_what_a_command_printed(result: ToolResult, lines: list[str]) -> None:
    assert choose_preview(result) == lines


def test_a_picture_is_named_with_its_size() -> None:
    assert describe_picture(ImagePart(media_type="image/png", data="A" * 1364)) == "▣ image/png, 1 kB"
    assert describe_picture(ImagePart(media_type="image/png", data="A" * 1368)) == "▣ image/png, 2 kB"


def test_a_refusal_is_shown_in_the_words_it_was_given() -> None:
    denied = ErrorInfo(type="Denied", message="Not run: use another name")
    late = ErrorInfo(type="Timeout", message="too late")

    assert choose_output(ToolResult(llm_content="Error Denied: Not run", error=denied)) == "Not run: use another name"
    assert choose_output(ToolResult(llm_content="half of it", error=late)) == "half of it"
