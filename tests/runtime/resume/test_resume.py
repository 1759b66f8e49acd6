"""A session taken up again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ollm.domain.context import ActiveContext, Checkpoint, CompressionRecord, Usage
from ollm.domain.messages import Message, PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.session import ChatSession, PlanState, PlanStep, Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.resume.resume import (
    EXACTLY,
    NOTE_PERCENT,
    ResumeSource,
    check_saved_context,
    ends_with_step_back,
    fill_prompt_for_viewing,
    rebuild_context,
    resume_prompt,
    tell_where_it_stood,
)
from ollm.runtime.resume.workspace_record import RESUMED_ENTRY_KEY, SavedContext
from ollm.services.workspace_memory import to_record
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


CALL = ToolCallRecord(
    id="c1", name="ls", args={}, timestamp="t1", result=RecordedResult(llm_content="a.py"), message_id=2, status="ok"
)


def archive(**metadata: Any) -> Session:
    said = [
        Message(role="user", parts=(TextPart("Hello"),), timestamp="t1", id=1),
        Message(role="assistant", parts=(ToolCallPart("c1"),), timestamp="t2", id=2),
        Message(role="tool", parts=(ToolResultPart("c1"),), timestamp="t3", id=3),
        Message(role="assistant", parts=(TextPart("Done."),), timestamp="t4", id=4),
        Message(role="user", parts=(TextPart("Again"),), timestamp="t5", id=5),
        Message(role="assistant", parts=(TextPart("Yes."),), timestamp="t6", id=6),
    ]
    return Session(
        session_id="s",
        start_time="t0",
        last_activity="t6",
        model="m",
        provider="p",
        messages=tuple(said),
        tool_calls=(CALL,),
        metadata=SessionMetadata(**metadata),
    )


def record(ids: tuple[int, ...], checkpoint: Checkpoint | None, moment: str = "t4") -> dict[str, Any]:
    made = CompressionRecord(
        timestamp=moment,
        trigger="auto",
        strategy="hybrid",
        original_token_count=9,
        compressed_token_count=5,
        message_ids=ids,
        checkpoint=checkpoint,
    )
    return msgspec.to_builtins(made)


def checkpoint(name: str, *ids: int) -> Checkpoint:
    return Checkpoint(id=name, text="Earlier", message_ids=ids, timestamp="t4", tokens=20)


def contents_rebuild(context: ActiveContext) -> list[str]:
    return [message.content for message in context.messages]


def test_without_compressions_everything_stands() -> None:
    assert contents_rebuild(rebuild_context(archive())) == ["Hello", "", "a.py", "Done.", "Again", "Yes."]


def test_what_was_folded_is_a_checkpoint_and_not_a_message() -> None:
    context = rebuild_context(archive(compression_history=(record((2, 3, 4), checkpoint("k", 2, 3, 4)),)))

    assert contents_rebuild(context) == ["Hello", "Again", "Yes."]
    assert [found.id for found in context.checkpoints] == ["k"]


def test_a_checkpoint_that_took_in_an_earlier_one_stands_alone() -> None:
    history = (record((2, 3), checkpoint("k1", 2, 3)), record((4,), checkpoint("k2", 2, 3, 4)))

    assert [found.id for found in rebuild_context(archive(compression_history=history)).checkpoints] == ["k2"]


def test_what_was_folded_without_a_checkpoint_is_still_cited() -> None:
    context = rebuild_context(archive(compression_history=(record((1, 2, 3), None),)))

    cited = {n for m in context.messages for n in m.sources} | {n for k in context.checkpoints for n in k.message_ids}
    assert cited == {1, 2, 3, 4, 5, 6}
    assert "a.py" not in contents_rebuild(context)


def test_a_restored_snapshot_is_the_beginning_and_what_was_said_later_follows() -> None:
    before = ActiveContext(messages=(PromptMessage(role="user", content="Hello", sources=(1,)),), mode="plan")
    session = archive(context_history=({"step": "restore", "snapshotId": "x", "timestamp": "t4"},))

    assert contents_rebuild(rebuild_context(session, lambda name: before)) == ["Hello", "Again", "Yes."]
    assert not ends_with_step_back(session)


def test_a_rewind_takes_out_what_it_went_behind() -> None:
    session = archive(context_history=({"step": "rewind", "before": 3, "timestamp": "t4"},))

    assert contents_rebuild(rebuild_context(session)) == ["Hello", "", "Again", "Yes."]


def test_a_context_of_which_something_was_folded_says_so() -> None:
    restored = ({"step": "restore", "snapshotId": "x", "timestamp": "t6"},)
    folded = ActiveContext(messages=(PromptMessage(role="user", content="note"),), mode="plan", folded=True)

    assert not rebuild_context(archive()).folded
    assert rebuild_context(archive(compression_history=(record((2, 3, 4), checkpoint("k", 2, 3, 4)),))).folded
    found = rebuild_context(archive(context_history=restored), lambda name: folded)
    assert found == folded, "a message without a number stays, and the mode of the snapshot counts"
    assert contents_rebuild(rebuild_context(archive(context_history=restored))) == contents_rebuild(
        rebuild_context(archive())
    )


def test_what_was_folded_before_a_snapshot_was_restored_does_not_count() -> None:
    restored = ({"step": "restore", "snapshotId": "x", "timestamp": "t4"},)
    base = ActiveContext(
        messages=(PromptMessage(role="user", content="Hello", sources=(1,)),),
        checkpoints=(checkpoint("old", 2, 3), checkpoint("free")),
    )

    def tell(moment: str, *ids: int) -> tuple[list[str], list[str]]:
        history = (record(ids, checkpoint("new", *ids), moment),)
        found = rebuild_context(archive(context_history=restored, compression_history=history), lambda name: base)
        return contents_rebuild(found), [one.id for one in found.checkpoints]

    assert tell("t4", 2, 3, 5) == (["Hello", "Again", "Yes."], ["old", "free"])
    assert tell("t5", 2, 3, 5) == (["Hello", "Yes."], ["free", "new"])
    assert tell("t5", 3, 5) == (["Hello", "Yes."], ["old", "free", "new"])
