"""What is in a snapshot, and the context read back from one."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from ollm.domain.context import ActiveContext, Checkpoint, Goal, GoalStack
from ollm.domain.errors import DamagedError
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.session import ContextSnapshot
from ollm.services.snapshots import ContextState, make_snapshot, read_context
from tests.covers import covers
from tests.services import contexts as make
from tests.services.snapshots.support import CONTEXT, SESSION, Shelf, state


def old_form(messages: list[dict[str, Any]], users: list[dict[str, Any]] | None = None) -> str:
    document = {
        "id": "old",
        "sessionId": SESSION,
        "timestamp": "2025-01-01T00:00:00Z",
        "tokenCount": 5,
        "messages": messages,
    }
    return json.dumps(document | ({} if users is None else {"userMessages": users, "goalStack": {"activeGoal": None}}))


@covers("H334")
async def test_older_forms_are_read(shelf: Shelf) -> None:
    shelf.file("old").parent.mkdir(parents=True)
    spoken = [
        {"id": "m1", "role": "user", "content": "Hello", "timestamp": "2025-01-01T00:00:01Z"},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [{"type": "text", "text": "Hi."}],
            "timestamp": "2025-01-01T00:00:02Z",
        },
        {"id": "m3", "role": "user", "content": "Go", "timestamp": "2025-01-01T00:00:03Z"},
    ]
    for text in (
        old_form(spoken),
        old_form(spoken, [spoken[0], spoken[2]]),
        old_form([spoken[1]], [spoken[0], spoken[2]]),
    ):
        shelf.file("old").write_text(text, "utf-8")
        context = await shelf.manager.restore_snapshot("old")
        assert [(m.role, m.content) for m in context.messages] == [
            ("user", "Hello"),
            ("assistant", "Hi."),
            ("user", "Go"),
        ]
        assert context.mode == "code"


@covers("H48")
async def test_user_messages_are_kept_in_full_even_when_the_context_holds_them_shortened(shelf: Shelf) -> None:
    context = ActiveContext(messages=(make.user(5, "Start [... left out] end"), make.assistant(6, "Yes.")))
    words = {1: "The very first", 5: "Start " + "and so on " * 200 + "end"}

    taken = await shelf.manager.create_snapshot(state(context, words=words))

    assert taken is not None
    assert [entry["content"] for entry in taken.user_messages] == [words[1], words[5]]
    assert taken.metadata.total_user_messages == 2
    assert await shelf.manager.restore_snapshot(taken.id) == context


@covers("H325", "H332")
@settings(max_examples=100, deadline=None)
@given(make.contexts())
def test_what_was_taken_comes_back_message_for_message(
    tmp_path_factory: pytest.TempPathFactory, messages: list[PromptMessage]
) -> None:
    shelf = Shelf(tmp_path_factory.mktemp("snapshots"))
    before = ActiveContext(
        messages=tuple(messages[1:]), checkpoints=CONTEXT.checkpoints, goals=CONTEXT.goals, mode="plan"
    )

    async def there_and_back() -> ActiveContext:
        taken = await shelf.manager.create_snapshot(state(before))
        assert taken is not None
        return await shelf.manager.restore_snapshot(taken.id)

    assert asyncio.run(there_and_back()) == before


def snapshot(messages: list[dict[str, Any]], users: list[dict[str, Any]] | None = None, **more: Any) -> ContextSnapshot:
    plain = msgspec.to_builtins(make_snapshot(state(ActiveContext()), "manual", ("s1", "2026-01-01T00:00:00Z")))
    return msgspec.convert({**plain, "messages": messages, "userMessages": users or [], **more}, ContextSnapshot)


def test_a_failed_result_is_still_a_failed_one_when_it_comes_back() -> None:
    call = ToolCall(id="c1", name="shell", arguments={"command": "make"})
    context = ActiveContext(
        messages=(make.assistant(1, "", call), make.result(2, "c1", "exit 2", "shell", failed=True))
    )

    taken = make_snapshot(state(context), "threshold", ("s1", "then"))

    assert read_context(taken) == context
    assert (taken.id, taken.timestamp, taken.trigger) == ("s1", "then", "threshold")


def test_the_summary_counts_and_names_the_last_request() -> None:
    assert make_snapshot(state(ActiveContext()), "manual", ("s", "t")).summary == "0 messages, 0 checkpoints"
    asked = ActiveContext(messages=(make.user(1, "cut"), make.user(2, "a\n b " + "x" * 100), make.assistant(3, "ok")))
    assert make_snapshot(state(asked), "manual", ("s", "t")).summary == (
        "3 messages, 0 checkpoints; last asked: a b " + "x" * 75 + "…"
    )
    whole = state(ActiveContext(messages=(make.user(1, "cut"),)), words={1: "the whole of it"})
    assert make_snapshot(whole, "manual", ("s", "t")).summary.endswith("last asked: the whole of it")


def test_the_metadata_says_how_much_of_the_archive_is_in_it() -> None:
    goals = GoalStack(goals=(Goal(id="a", text="x", status="completed"), Goal(id="b", text="y")))
    context = ActiveContext(
        goals=goals, checkpoints=(Checkpoint(id="k", text="", message_ids=(), timestamp="", tokens=1),)
    )
    made = ContextState(
        session_id=SESSION,
        model="m",
        window=100,
        token_count=30,
        context=context,
        archive_tokens=90,
        reasoning_model=True,
    )

    metadata = make_snapshot(made, "manual", ("s", "t")).metadata

    assert (metadata.compression_ratio, metadata.total_checkpoints, metadata.total_goals_completed) == (0.3333, 1, 1)
    assert (metadata.active_goal_id, metadata.is_reasoning_model, metadata.context_size) == ("b", True, 100)


@pytest.mark.parametrize(
    ("entry", "content", "sources"),
    [
        ({"role": "user", "content": "whole", "shown": "short", "id": 3}, "short", (3,)),
        ({"role": "user", "content": "x", "id": "m1"}, "x", ()),
        ({"role": "user", "content": "first", "id": 1}, "first", (1,)),
        ({"role": "user", "content": "none", "id": 0}, "none", ()),
        ({"role": "user", "content": "x", "id": 0}, "x", ()),
        ({"role": "user", "content": "x", "id": 3, "sources": [1, 2]}, "x", (1, 2)),
        ({"role": "user", "content": [{"text": "a"}, {"other": 1}, {"text": "b"}, "c"]}, "ab", ()),
        ({"role": "user", "parts": [{"text": "a"}]}, "a", ()),
        ({"role": "user"}, "", ()),
    ],
)
def test_a_message_is_read_in_every_form(entry: dict[str, Any], content: str, sources: tuple[int, ...]) -> None:
    (message,) = read_context(snapshot([entry])).messages

    assert (message.content, message.sources) == (content, sources)


def test_a_message_nobody_can_read_is_damage() -> None:
    with pytest.raises(DamagedError, match="A message of the snapshot cannot be read: "):
        read_context(snapshot([{"role": "king", "content": "x"}]))


def test_what_an_old_snapshot_does_not_hold_is_empty() -> None:
    read = read_context(snapshot([], goalStack=None, reasoningStorage=None, mode=None))

    assert read == ActiveContext(mode="code")
