"""A session taken up again."""

import msgspec
import pytest

from ollm.domain.workspace import ChatSession, PlanState, PlanStep
from ollm.runtime.resume.resume import (
    NOTE_PERCENT,
    RESUME_INTRO,
    RESUME_OUTRO,
    build_resume_message,
    check_saved_context,
    clip_lines,
    restore_entries,
    restore_goals,
    seed_context,
    tell_where_it_stood,
)
from ollm.runtime.resume.saved_context import RESUMED_ENTRY_KEY, SavedContext
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
