"""The rolling summary: engine-written, deterministic, capped, the unfinished and the newest kept best."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.workspace import CommandOutcome, Episode, PlanState, PlanStep
from ollm.services.rolling_summary import render_rolling_summary
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


LONG = "long word " * 40


def cut(text: str, length: int) -> str:
    return f"{text[: length - 1]}…"


def failed(command: str, outcome: str = "exit 1") -> CommandOutcome:
    return CommandOutcome(command=command, outcome=outcome)


def test_every_line_of_it() -> None:
    done = [
        episode(
            1,
            f"first {LONG}",
            files=("a", "b", "c", "d"),
            decisions=("x", f"use {LONG}"),
            commands=(failed("ls", "exit 3"), failed(f"make {'y' * 60}", "exit 2")),
        ),
        episode(2, "second\nline", files=("a", "b", "c"), commands=(failed("ls", "ok"),)),
        episode(
            3,
            f"third {LONG}",
            answer=f"did {LONG}",
            reason="stopped",
            files=tuple(f"f{n}" for n in range(10)),
            commands=tuple(failed(f"c{n} {'z' * 80}") for n in range(6)),
            decisions=tuple(f"d{n} {LONG}" for n in range(5)),
            errors=tuple(f"e{n}\n{LONG}" for n in range(4)),
        ),
    ]
    plan = PlanState(steps=tuple(PlanStep(text=f"s{n} {LONG}", done=n < 2) for n in range(10)), current_step_index=2)
    commands = [cut(f"c{n} {'z' * 80}", 70) for n in range(2, 6)]

    assert render_rolling_summary(done, plan, 9000).split("\n") == [
        "Plan: 2 of 10 steps done, in progress.",
        f"Now: {cut(f's2 {LONG}', 160)}",
        f"Then: {'; '.join(cut(f's{n} {LONG}', 70) for n in range(3, 8))} and 2 more",
        (
            f"Unfinished: {'; '.join(f'`{name}` ended with exit 1' for name in commands)}; "
            "the last turn ended early (stopped)."
        ),
        f"Last request (#3): {cut(f'third {LONG}', 300)}",
        f"Answer: {cut(f'did {LONG}', 300)}",
        "Files changed: f0, f1, f2, f3, f4, f5, f6, f7 and 2 more",
        f"Commands: {'; '.join(f'`{name}` → exit 1' for name in commands)}",
        f"Decided: {'; '.join(cut(f'd{n} {LONG}', 160) for n in range(1, 5))}",
        f"Errors: {'; '.join(cut(f'e{n} {LONG}', 160) for n in range(1, 4))}",
        "Earlier:",
        (
            f"- #1 {cut(f'first {LONG}', 70)}; changed a, b, c and 1 more; decided: {cut(f'use {LONG}', 70)}; "
            f"`{cut('make ' + 'y' * 60, 40)}` → exit 2"
        ),
        "- #2 second line; changed a, b, c",
    ]


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


def test_how_many_earlier_requests_fit() -> None:
    done = [episode(number, f"request {number}") for number in range(1, 8)]
    last = "Last request (#7): request 7"

    for limit, first in ((400, 1), (150, 2), (140, 3), (120, 4), (90, 6)):
        counted = [f"- (and {first - 1} requests before that)"] if first > 1 else []
        earlier = [f"- #{number} request {number}" for number in range(first, 7)]
        shown = render_rolling_summary(done, PlanState(), limit)
        assert shown.split("\n") == [last, "Earlier:", *counted, *earlier]
    for limit, shown in (
        (60, f"{last}\nEarlier:\n- (and 6 requests bef…"),
        (20, "Last request (#7): …"),
        (1, "…"),
        (0, ""),
    ):
        assert render_rolling_summary(done, PlanState(), limit) == shown
