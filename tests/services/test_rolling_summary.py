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
