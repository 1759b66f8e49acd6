"""A session taken up again."""

import msgspec
import pytest

from ollm.domain.context import ActiveContext, Usage
from ollm.domain.messages import Message, Role, TextPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.workspace import ChatSession, PlanState, PlanStep
from ollm.runtime.resume.resume import (
    EXACTLY,
    NOTE_PERCENT,
    RESUME_INTRO,
    RESUME_OUTRO,
    ResumeSource,
    build_resume_message,
    check_saved_context,
    clip_lines,
    fill_prompt_for_viewing,
    restore_entries,
    restore_goals,
    resume_prompt,
    seed_context,
    tell_where_it_stood,
)
from ollm.runtime.resume.saved_context import RESUMED_ENTRY_KEY, SavedContext
from ollm.services.message_records import to_record
from tests.runtime.prompt.test_prompt import Talk
from tests.runtime.talking import Talking


async def test_a_resumed_session_is_in_the_mode_it_was_left_in(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.say("first")
        await talk.run("/mode plan")
        await talk.say("second")
    async with talking(["two"], newest=True) as talk:
        again = await talk.conversation.status()
    async with talking(["three"], newest=True, mode="debug") as talk:
        chosen = await talk.conversation.status()

    assert (again.mode, again.approval) == ("plan", "read-only")
    assert (chosen.mode, chosen.approval) == ("debug", "ask")


async def test_goals_outlive_a_resume_with_another_window_and_are_told_again(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talking(["one"]) as talk:
        await talk.run("/goal set ship it")
        await talk.say("first")
    monkeypatch.setenv("OLLM_CONTEXT_WINDOW", "16384")
    async with talking(["two"], newest=True) as talk:
        await talk.say("second")
        goal = (await talk.run("/goal")).text

    assert "ship it" in goal
    assert "ship it" in talk.server.chats[-1]["messages"][-1]["content"]


async def test_an_entry_of_the_users_outlives_a_resume_and_the_front_stands(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.run("/context add style Write short sentences.")
        await talk.say("first")
        before = talk.server.chats[0]["messages"]
    async with talking(["two"], newest=True) as talk:
        await talk.say("second")
        listed = [entry["key"] for entry in (await talk.run("/context entries")).data]

    assert listed == ["style"]
    assert talk.server.chats[0]["messages"][: len(before)] == before


@pytest.mark.parametrize("line", ["/context add style Write short sentences.", "/goal set ship it", "/compact"])
async def test_what_a_command_alone_changed_in_a_resumed_session_stands(talking: Talking, line: str) -> None:
    async with talking(["A long answer. " * 60, "and another " * 60, "short"]) as talk:
        for text in ("first", "second", "third"):
            await talk.say(text)
        whole = talk.conversation.parts.prompt.used_tokens
    async with talking(newest=True) as talk:
        await talk.run(line)
    async with talking(newest=True) as talk:
        entries = (await talk.run("/context entries")).data
        goal, used = (await talk.run("/goal")).text, talk.conversation.parts.prompt.used_tokens

    assert ("style" in [entry["key"] for entry in entries]) is ("style" in line)
    assert ("ship it" in goal) is ("goal" in line)
    assert (used < whole - 100) is (line == "/compact")


def plan(*done: bool, paused: bool = False) -> PlanState:
    steps = tuple(PlanStep(text=f"step {n}", done=one) for n, one in enumerate(done))
    current = next((n for n, one in enumerate(done) if not one), len(done))
    return PlanState(steps=steps, current_step_index=current, paused=paused)


@pytest.mark.parametrize(
    ("summary", "state", "lines"),
    [
        ("", plan(), ["No notes."]),
        ("It was built.", plan(), ["It was built."]),
        ("x", plan(True, False), ["x", "Current step: step 1"]),
        ("x", plan(True, True), ["x"]),
        (
            "x",
            plan(False, paused=True),
            ["x", "Current step: step 0", "The plan is paused: do not continue it unless asked."],
        ),
    ],
)
def test_the_note_of_a_resume_tells_where_it_stood(summary: str, state: PlanState, lines: list[str]) -> None:
    assert build_resume_message(summary, state).split("\n") == [RESUME_INTRO, *lines, RESUME_OUTRO]


@pytest.mark.parametrize(
    ("text", "characters", "clipped"),
    [
        ("a\nbb\nccc", 100, "a\nbb\nccc"),
        ("a\nbb\nccc", 6, "a\nbb"),
        ("a\nbb\nccc", 5, "a\nbb"),
        ("abcdef", 3, "abc"),
        ("abc", -5, ""),
        ("a\nb", 3, "a\nb"),
    ],
)
def test_whole_lines_are_kept_from_the_beginning(text: str, characters: int, clipped: str) -> None:
    assert clip_lines(text, characters) == clipped


def test_a_saved_context_is_used_only_for_the_same_model_window_and_mode() -> None:
    prompt = Talk().prompt
    kept = SavedContext.from_prompt(prompt, 1)

    assert check_saved_context(prompt, kept) == (kept.context, "")
    assert check_saved_context(prompt, None) == (None, "no saved context")
    for changes, why in (
        ({"model": "x"}, "the model was x"),
        ({"window": 8192}, "the context window was 8,192"),
        ({"mode": "plan"}, "the mode was plan"),
    ):
        assert check_saved_context(prompt, msgspec.structs.replace(kept, **changes)) == (None, why)


def test_a_context_made_of_the_newest_messages_counts_as_folded() -> None:
    record = ChatSession(session_id="s", title="", model="m", status="closed", created_at=0, updated_at=0)

    seeded = seed_context(record, "plan")

    assert (seeded.messages, seeded.mode, seeded.folded) == ((), "plan", True)


def test_the_note_takes_a_small_share_of_the_window() -> None:
    talk = Talk(window=2048)
    record = ChatSession(
        session_id="s",
        title="",
        model="m",
        status="closed",
        created_at=0,
        updated_at=0,
        summary="\n".join(f"line {n} of a long summary" for n in range(200)),
    )

    tell_where_it_stood(talk.prompt, record)

    (entry,) = [found for found in talk.entries.get_context() if found.key == RESUMED_ENTRY_KEY]
    assert entry.volatile
    assert talk.counter.count_text(entry.content) <= 2048 * NOTE_PERCENT // 100
    assert "line 0 of a long summary" in entry.content


def test_goals_that_stand_are_not_replaced_and_entries_come_back() -> None:
    before, talk = Talk(), Talk()
    before.prompt.goals.set("Old goal")
    before.entries.add_context("mine", "x", source="user")
    kept = SavedContext.from_prompt(before.prompt, 1)

    restore_entries(talk.prompt, kept)
    restore_goals(talk.prompt, kept)
    assert talk.entries.has_context("mine")
    assert talk.prompt.goals.stack.goals[0].text == "Old goal"
    other = Talk()
    other.prompt.goals.set("New goal")
    restore_goals(other.prompt, kept)
    assert [goal.text for goal in other.prompt.goals.stack.goals] == ["New goal"]
    restore_entries(other.prompt, None)
    restore_goals(other.prompt, None)


def make_message(number: int, role: Role, text: str) -> Message:
    return Message(id=number, role=role, parts=(TextPart(text),), timestamp=f"t{number}")


def make_source(before: Talk, count: int, kept: SavedContext | None, **metadata: object) -> ResumeSource:
    """A session of `count` messages, of which the newest two are read at once."""
    said = tuple(make_message(n, "user" if n % 2 else "assistant", f"text {n}") for n in range(1, count + 1))
    whole = Session(
        session_id="s",
        start_time="t0",
        last_activity="t9",
        model="m",
        provider="p",
        messages=said,
        tool_calls=(),
        metadata=msgspec.convert(metadata, SessionMetadata),
    )
    recent = tuple(to_record(entry) for entry in before.prompt.get_active_context().messages[-1:])
    return ResumeSource(
        session=msgspec.structs.replace(whole, messages=said[-2:]),
        load=lambda: whole,
        words=lambda: {1: "text 1"},
        record=ChatSession(
            session_id="s",
            title="",
            model="m",
            status="closed",
            created_at=0,
            updated_at=0,
            summary="It was built.",
            recent_messages=recent,
        ),
        kept=kept,
        snapshot=lambda name: ActiveContext(),
    )


def talk_before() -> Talk:
    before = Talk()
    before.user("text 1")
    before.assistant("text 2")
    before.entries.add_context("mine", "Use tabs.", source="user")
    return before


def contents(talk: Talk) -> list[str]:
    return [message.content for message in talk.prompt.get_active_context().messages]


def test_where_nothing_was_said_there_is_nothing_to_tell() -> None:
    talk = Talk()
    source = make_source(talk, 0, None)

    assert resume_prompt(talk.prompt, source, full=True) == ""
    assert (contents(talk), talk.entries.get_context()) == ([], [])


def test_messages_that_were_not_read_yet_are_taken_up_too() -> None:
    talk = Talk()
    source = make_source(talk_before(), 4, None)
    source = msgspec.structs.replace(source, session=msgspec.structs.replace(source.session, messages=()))

    how = resume_prompt(talk.prompt, source, full=False)

    assert how == "Resumed from a summary and recent messages: no saved context."
    assert contents(talk) == ["text 2"]


def test_the_context_of_before_comes_back_exactly_with_what_was_said_since() -> None:
    before, talk = talk_before(), Talk()
    before.prompt.goals.set("Ship it")
    before.prompt.snapshot_armed = False
    kept = SavedContext.from_prompt(before.prompt, 2)

    how = resume_prompt(talk.prompt, make_source(before, 4, kept), full=False)

    assert how == EXACTLY
    assert contents(talk) == ["text 1", "text 2", "text 3\n\n<now>\nGoal: Ship it\n</now>", "text 4"]
    assert talk.prompt.goals.stack.goals[0].text == "Ship it"
    assert not talk.prompt.snapshot_armed
    assert [entry.key for entry in talk.entries.get_context()] == ["mine"]


def test_goals_that_were_told_are_not_told_again_and_the_count_of_before_stands() -> None:
    before, talk = talk_before(), Talk()
    before.entries.remove_context("mine")
    for one in (before, talk):
        one.counter.calibrate(1.0, 5)
    before.prompt.build_request_messages()
    before.prompt.observe_usage(Usage(prompt_tokens=before.prompt.used_tokens + 40))
    kept = SavedContext.from_prompt(before.prompt, 2)
    assert kept.counted is not None
    uncounted = Talk()
    uncounted.counter.calibrate(1.0, 5)
    source = make_source(before, 2, msgspec.structs.replace(kept, counted=None))
    resume_prompt(uncounted.prompt, source, full=False)

    how = resume_prompt(talk.prompt, make_source(before, 2, kept), full=False)

    assert how == EXACTLY
    assert contents(talk) == ["text 1", "text 2"]
    assert talk.prompt.goals_told
    assert talk.prompt.used_tokens == before.prompt.used_tokens > uncounted.prompt.used_tokens


@pytest.mark.parametrize("full", [True, False])
def test_another_way_than_exactly_says_where_it_stood(full: bool) -> None:
    before, talk = talk_before(), Talk(window=8192)
    before.prompt.goals.set("Ship it")
    kept = SavedContext.from_prompt(before.prompt, 2)

    how = resume_prompt(talk.prompt, make_source(before, 4, kept), full=full)

    whole = ["text 1", "text 2", "text 3", "text 4"]
    assert contents(talk) == (whole if full else ["text 2"])
    assert how == (
        "Session resumed." if full else "Resumed from a summary and recent messages: the context window was 4,096."
    )
    assert talk.prompt.goals.stack.goals[0].text == "Ship it"
    told = {entry.key: entry.content for entry in talk.entries.get_context()}
    assert set(told) == {"mine", RESUMED_ENTRY_KEY}
    assert "It was built." in told[RESUMED_ENTRY_KEY]


def test_behind_a_step_back_the_archive_alone_counts() -> None:
    before, talk = talk_before(), Talk()
    before.prompt.goals.set("Ship it")
    kept = SavedContext.from_prompt(before.prompt, 4)
    rewound = {"step": "rewind", "before": 3, "timestamp": "t5"}

    how = resume_prompt(talk.prompt, make_source(before, 4, kept, contextHistory=[rewound]), full=False)

    assert how == "Session resumed."
    assert contents(talk) == ["text 1", "text 2"]
    assert talk.prompt.goals.stack.goals == ()
    assert [entry.key for entry in talk.entries.get_context()] == ["mine"]


@pytest.mark.parametrize(
    ("window", "history", "shown"),
    [
        (4096, [], ["kept", "text 3", "text 4"]),
        (8192, [], ["text 1", "text 2", "text 3", "text 4"]),
        (4096, [{"step": "rewind", "before": 3, "timestamp": "t5"}], ["text 1", "text 2"]),
    ],
)
def test_who_only_looks_sees_what_was_kept_or_else_the_archive(
    window: int, history: list[dict[str, object]], shown: list[str]
) -> None:
    before, talk = Talk(), Talk(window=window)
    before.user("kept")
    before.entries.add_context("mine", "Use tabs.", source="user")
    before.prompt.build_request_messages()
    kept = SavedContext.from_prompt(before.prompt, 2)
    source = make_source(before, 4, kept, contextHistory=history)

    fill_prompt_for_viewing(talk.prompt, source.load(), kept, source.snapshot)

    assert contents(talk) == shown
    assert talk.prompt.ledger.entries == [kept.ledger]
    assert talk.entries.has_context("mine")
    nothing = Talk()
    fill_prompt_for_viewing(nothing.prompt, source.load(), None, source.snapshot)
    assert contents(nothing) == contents(talk) if history else ["text 1", "text 2", "text 3", "text 4"]
    assert nothing.prompt.ledger.entries == []


def test_a_note_that_fits_is_told_whole_and_a_short_one_is_not_cut() -> None:
    record = ChatSession(session_id="s", title="", model="m", status="closed", created_at=0, updated_at=0)
    for window, summary in ((4096, "All of it. " * 10), (512, "")):
        talk = Talk(window=window)
        tell_where_it_stood(talk.prompt, msgspec.structs.replace(record, summary=summary))
        (entry,) = talk.entries.get_context()
        assert entry.content == build_resume_message(summary, PlanState())
        assert entry.source == "system"


def test_a_note_is_cut_to_eight_percent_of_the_window_but_never_under_two_hundred_characters() -> None:
    record = ChatSession(session_id="s", title="", model="m", status="closed", created_at=0, updated_at=0)

    def tell(window: int, summary: str) -> str:
        talk = Talk(window=window)
        tell_where_it_stood(talk.prompt, msgspec.structs.replace(record, summary=summary))
        (entry,) = talk.entries.get_context()
        return entry.content

    summary = "\n".join(f"line {number} of it" for number in range(60))
    whole = build_resume_message(summary, PlanState())
    tokens = Talk().counter.count_text(whole)
    assert tell(int(tokens / 0.075), summary) == whole
    assert len(tell(int(tokens / 0.085), summary)) < len(whole)
    assert 150 < len(tell(512, summary)) <= 200
    just = "y" * (200 - len(build_resume_message("", PlanState())) + len("No notes."))
    assert tell(512, just) == build_resume_message(just, PlanState())
