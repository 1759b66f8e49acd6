"""The rolling summary: engine-written, deterministic, capped, the unfinished and the newest kept best."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.context import ReasoningStorage
from ollm.domain.session import CommandOutcome, Episode, PlanState, PlanStep
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.runtime.prompt.prompt import add_trace
from ollm.services.token_counting import TokenCounter
from ollm.services.workspace_memory import make_episode, render_rolling_summary
from tests.covers import covers


def episode(number: int, request: str = "fix the parser", **more: object) -> Episode:
    return Episode(session_id="s", number=number, timestamp=number, request=request, **more)  # type: ignore[arg-type]


episodes = st.lists(
    st.builds(
        Episode,
        session_id=st.just("s"),
        number=st.integers(1, 10_000),
        timestamp=st.integers(0, 2**40),
        request=st.text(max_size=90),
        answer=st.text(max_size=90),
        files=st.lists(st.text(max_size=60), max_size=12).map(tuple),
        errors=st.lists(st.text(max_size=200), max_size=4).map(tuple),
        decisions=st.lists(st.text(max_size=200), max_size=4).map(tuple),
        commands=st.lists(
            st.builds(CommandOutcome, command=st.text(max_size=80), outcome=st.sampled_from(["ok", "exit 1"])),
            max_size=5,
        ).map(tuple),
    ),
    max_size=15,
)


@covers("W130", "W150")
@settings(max_examples=100)
@given(done=episodes, limit=st.integers(1, 5000))
def test_it_never_grows_over_its_cap_and_is_the_same_each_time(done: list[Episode], limit: int) -> None:
    text = render_rolling_summary(done, PlanState(), limit)

    assert len(text) <= limit
    assert text == render_rolling_summary(done, PlanState(), limit)


@covers("W54")
def test_a_person_reading_it_knows_what_to_do_next() -> None:
    plan = PlanState(
        steps=(PlanStep(text="write tests", done=True), PlanStep(text="mend parser")), current_step_index=1
    )
    done = [
        episode(1, "look at the parser"),
        episode(
            7,
            "make the tests pass",
            files=("src/parser.py",),
            commands=(CommandOutcome(command="pytest -q", outcome="exit 1"),),
            errors=("AssertionError: 3 != 4",),
        ),
    ]

    text = render_rolling_summary(done, plan, 4000)

    assert "more" not in text
    for part in (
        "1 of 2 steps done",
        "Now: mend parser",
        "`pytest -q` ended with exit 1",
        "#7",
        "src/parser.py",
        "3 != 4",
    ):
        assert part in text


def test_a_command_that_was_put_right_is_not_unfinished() -> None:
    failed, passed = (CommandOutcome(command="make", outcome=outcome) for outcome in ("exit 2", "ok"))

    text = render_rolling_summary([episode(1, commands=(failed,)), episode(3, commands=(passed,))], PlanState(), 4000)

    assert "Unfinished" not in text


def test_old_requests_are_counted_when_they_no_longer_fit() -> None:
    text = render_rolling_summary([episode(n, f"request number {n}") for n in range(1, 201)], PlanState(), 1500)

    assert "#200" in text
    assert "#199" in text
    assert "requests before that" in text
    assert "request number 3;" not in text


def failed(command: str, outcome: str = "exit 1") -> CommandOutcome:
    return CommandOutcome(command=command, outcome=outcome)


def test_a_plan_says_how_it_stands() -> None:
    steps = tuple(PlanStep(text=f"s{n}", done=n < 2) for n in range(8))
    rest = "Now: s2\nThen: s3; s4; s5; s6; s7"

    assert render_rolling_summary([], PlanState(), 9000) == ""
    for plan, text in (
        (PlanState(steps=steps, current_step_index=2), f"Plan: 2 of 8 steps done, in progress.\n{rest}"),
        (PlanState(steps=steps[:3], current_step_index=2, paused=True), "Plan: 2 of 3 steps done, paused.\nNow: s2"),
        (
            PlanState(steps=steps[:2], current_step_index=1, awaiting_continuation=True),
            "Plan: 2 of 2 steps done, waiting for you.",
        ),
    ):
        assert render_rolling_summary([], plan, 9000) == text


def call(name: str, args: dict[str, object], status: str = "ok", **more: object) -> ToolCallRecord:
    return ToolCallRecord(id="c", name=name, args=args, timestamp="", status=status, **more)  # type: ignore[arg-type]


@covers("W54")
def test_files_commands_decisions_and_errors_are_drawn_from_the_calls() -> None:
    calls = [
        call("read_file", {"path": "a.py"}),
        call("edit_file", {"path": "a.py"}),
        call("edit_file", {"path": "a.py"}),
        call("write_file", {"path": "b.py"}, "failed", error=ErrorInfo(type="FileExists", message="b.py is there")),
        call("shell", {"command": "pytest"}, result=RecordedResult(llm_content="", exit_code=1)),
        call("shell", {"command": "ls"}, result=RecordedResult(llm_content="", exit_code=0)),
        call("shell", {"command": "sleep 9"}, "failed", error=ErrorInfo(type="Timeout", message="after 1 s")),
        call("goal", {"action": "decision", "text": "use sqlite"}),
    ]

    episode = make_episode("s", 3, 0, "mend it", "done", "answered", calls, {"write_file", "edit_file"})

    assert episode.files == ("a.py",)
    assert [(c.command, c.outcome) for c in episode.commands] == [
        ("pytest", "exit 1"),
        ("ls", "ok"),
        ("sleep 9", "Timeout"),
    ]
    assert episode.decisions == ("use sqlite",)
    assert episode.errors == ("write_file: b.py is there", "shell: after 1 s")


def test_the_five_newest_traces_stand_in_full_and_older_ones_short() -> None:
    storage = ReasoningStorage()
    for number in range(1, 9):
        storage = add_trace(storage, number, f"{number} " + "thinking " * 100, TokenCounter())

    lengths = [len(trace.text) for trace in storage.traces]
    assert all(length <= 200 for length in lengths[:3])
    assert all(length > 800 for length in lengths[3:])
    assert storage.total_tokens > 800


def test_no_thinking_leaves_no_trace() -> None:
    assert add_trace(ReasoningStorage(), 1, " \n", TokenCounter()) == ReasoningStorage()


def test_traces_do_not_pile_up_for_ever() -> None:
    storage = ReasoningStorage()
    for number in range(300):
        storage = add_trace(storage, number, "so", TokenCounter())

    assert [trace.message_id for trace in storage.traces] == list(range(200, 300))
    assert storage.total_tokens == 300 * TokenCounter().count_text("so")
