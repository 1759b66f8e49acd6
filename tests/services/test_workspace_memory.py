"""What a workspace remembers of a session: recent messages within four caps, and a rolling summary."""

from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import ResumeSettings
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.session import CommandOutcome, Episode, PlanState, PlanStep
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.services.workspace_memory import (
    INTERRUPTED_TEXT,
    RecentWindow,
    count_json_chars,
    from_records,
    make_episode,
    render_rolling_summary,
    to_record,
)
from tests.covers import covers

texts = st.text(max_size=120)


@st.composite
def conversations(draw: st.DrawFn) -> list[PromptMessage]:
    messages: list[PromptMessage] = []
    for turn in range(draw(st.integers(1, 6))):
        messages.append(PromptMessage(role="user", content=draw(texts)))
        for step in range(draw(st.integers(0, 4))):
            calls = tuple(
                ToolCall(id=f"c{turn}-{step}-{n}", name="grep", arguments={"pattern": draw(texts)})
                for n in range(draw(st.integers(0, 3)))
            )
            messages.append(PromptMessage(role="assistant", content=draw(texts), calls=calls))
            answered = draw(st.integers(0, len(calls)))
            messages += [
                PromptMessage(role="tool", content=draw(texts), call_id=call.id, tool_name="grep")
                for call in calls[:answered]
            ]
    return messages


@st.composite
def caps(draw: st.DrawFn) -> ResumeSettings:
    return ResumeSettings(
        messages=draw(st.integers(1, 30)),
        message_chars=draw(st.integers(1, 200)),
        tool_output_chars=draw(st.integers(1, 100)),
        total_chars=draw(st.integers(600, 6000)),
    )


@covers("W56", "W61", "W63", "W66", "W67", "W127", "W151", "W152", "W153")
@given(messages=conversations(), limits=caps())
def test_every_cap_holds_and_calls_keep_their_results(messages: list[PromptMessage], limits: ResumeSettings) -> None:
    kept = RecentWindow(limits, messages).collect_messages()

    assert len(kept) <= limits.messages
    assert count_json_chars(kept) <= max(limits.total_chars, count_json_chars(kept[:1]))
    for message in kept:
        cap = limits.tool_output_chars if message.role == "tool" else limits.message_chars
        assert len(message.content) <= max(cap, len(INTERRUPTED_TEXT) if message.role == "tool" else 0)
    if kept:
        assert kept[0].role == "user"
    asked = [call.id for message in kept for call in message.calls]
    answered = [message.call_id for message in kept if message.role == "tool"]
    assert sorted(asked) == sorted(str(name) for name in answered)


@covers("W63")
def test_an_interrupted_call_gets_a_placeholder() -> None:
    call = ToolCall(id="c1", name="shell", arguments={"command": "make"})
    window = RecentWindow(
        ResumeSettings(),
        [PromptMessage(role="user", content="build"), PromptMessage(role="assistant", content="", calls=(call,))],
    )

    assert [message.content for message in window.collect_messages()] == ["build", "", INTERRUPTED_TEXT]


@covers("W59", "W60", "W61", "W62", "W63")
def test_messages_come_back_as_they_were_kept() -> None:
    call = ToolCall(id="c1", name="grep", arguments={"pattern": "x", "maxResults": 3})
    messages = [
        PromptMessage(role="user", content="find x", sources=(1,)),
        PromptMessage(role="assistant", content="", calls=(call,), sources=(2,)),
        PromptMessage(role="tool", content="a.py:1:x", call_id="c1", sources=(3,)),
        PromptMessage(role="assistant", content="in a.py", sources=(4,)),
    ]

    records = [to_record(message) for message in messages]

    assert records[1]["tool_calls"][0]["function"] == {"name": "grep", "arguments": '{"pattern":"x","maxResults":3}'}
    assert from_records(records) == messages


def test_records_of_another_shape_are_left_out() -> None:
    odd = [{"role": "wizard", "content": "x"}, {"role": "user", "content": 7}, {"role": "user", "content": "kept"}]

    assert [message.content for message in from_records(odd)] == ["kept"]


def test_a_call_that_cannot_be_read_does_not_lose_its_message() -> None:
    broken = {"role": "assistant", "content": "hm", "tool_calls": [7, {"id": "c", "function": {"arguments": "{"}}]}

    (message,) = from_records([broken])

    assert message.calls == (ToolCall(id="c", name="", arguments={}),)


def episode(number: int, request: str = "fix the parser", **more: object) -> Episode:
    return Episode(session_id="s", number=number, timestamp=number, request=request, **more)  # type: ignore[arg-type]


episodes = st.lists(
    st.builds(
        Episode,
        session_id=st.just("s"),
        number=st.integers(1, 10_000),
        timestamp=st.integers(0, 2**40),
        request=st.text(max_size=90),
        answer=st.text(max_size=20),
        files=st.lists(st.text(max_size=20), max_size=5).map(tuple),
        errors=st.lists(st.text(max_size=20), max_size=4).map(tuple),
        decisions=st.lists(st.text(max_size=20), max_size=4).map(tuple),
        commands=st.lists(
            st.builds(CommandOutcome, command=st.text(max_size=20), outcome=st.sampled_from(["ok", "exit 1"])),
            max_size=3,
        ).map(tuple),
    ),
    max_size=5,
)


@covers("W130", "W150")
@given(done=episodes, limit=st.integers(1, 1000))
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


def failed(command: str, outcome: str = "exit 1") -> CommandOutcome:
    return CommandOutcome(command=command, outcome=outcome)


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
