"""A context put together from the archive: nothing twice, nothing lost, steps back kept."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.context import ActiveContext, Checkpoint, CompressionRecord
from ollm.domain.errors import NotFoundError
from ollm.domain.messages import Message, PromptMessage, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.resume.rebuild import (
    collect_user_messages,
    ends_with_step_back,
    rebuild_before_rewind,
    rebuild_context,
)
from ollm.services.chat_compression.users import USER_LINE_ID

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


def contents(context: ActiveContext) -> list[str]:
    return [message.content for message in context.messages]


def test_without_compressions_everything_stands() -> None:
    assert contents(rebuild_context(archive())) == ["Hello", "", "a.py", "Done.", "Again", "Yes."]


def test_what_was_folded_is_a_checkpoint_and_not_a_message() -> None:
    context = rebuild_context(archive(compression_history=(record((2, 3, 4), checkpoint("k", 2, 3, 4)),)))

    assert contents(context) == ["Hello", "Again", "Yes."]
    assert [found.id for found in context.checkpoints] == ["k"]


def test_a_checkpoint_that_took_in_an_earlier_one_stands_alone() -> None:
    history = (record((2, 3), checkpoint("k1", 2, 3)), record((4,), checkpoint("k2", 2, 3, 4)))

    assert [found.id for found in rebuild_context(archive(compression_history=history)).checkpoints] == ["k2"]


def test_what_was_folded_without_a_checkpoint_is_still_cited() -> None:
    context = rebuild_context(archive(compression_history=(record((1, 2, 3), None),)))

    cited = {n for m in context.messages for n in m.sources} | {n for k in context.checkpoints for n in k.message_ids}
    assert cited == {1, 2, 3, 4, 5, 6}
    assert "a.py" not in contents(context)


def test_unreadable_history_is_passed_over() -> None:
    assert len(contents(rebuild_context(archive(compression_history=({"strange": True},))))) == 6


def test_a_restored_snapshot_is_the_beginning_and_what_was_said_later_follows() -> None:
    before = ActiveContext(messages=(PromptMessage(role="user", content="Hello", sources=(1,)),), mode="plan")
    session = archive(context_history=({"step": "restore", "snapshotId": "x", "timestamp": "t4"},))

    assert contents(rebuild_context(session, lambda name: before)) == ["Hello", "Again", "Yes."]
    assert not ends_with_step_back(session)


def test_a_snapshot_that_is_gone_leaves_the_archive() -> None:
    def gone(name: str) -> ActiveContext:
        raise NotFoundError("gone")

    session = archive(context_history=({"step": "restore", "snapshotId": "x", "timestamp": "t7"},))

    assert len(contents(rebuild_context(session, gone))) == 6
    assert ends_with_step_back(session)


def test_a_rewind_takes_out_what_it_went_behind() -> None:
    session = archive(context_history=({"step": "rewind", "before": 3, "timestamp": "t4"},))

    assert contents(rebuild_context(session)) == ["Hello", "", "Again", "Yes."]


def test_the_mode_is_the_last_one_that_was_chosen() -> None:
    assert rebuild_context(archive(mode_history=({"from": "code", "to": "debug"},))).mode == "debug"
    assert rebuild_context(archive(mode_history=({"to": "party"},))).mode == "code"


def test_the_words_of_the_user_are_kept_by_number() -> None:
    assert collect_user_messages(archive()) == {1: "Hello", 5: "Again"}


def test_a_context_of_which_something_was_folded_says_so() -> None:
    restored = ({"step": "restore", "snapshotId": "x", "timestamp": "t6"},)
    folded = ActiveContext(messages=(PromptMessage(role="user", content="note"),), mode="plan", folded=True)

    assert not rebuild_context(archive()).folded
    assert rebuild_context(archive(compression_history=(record((2, 3, 4), checkpoint("k", 2, 3, 4)),))).folded
    found = rebuild_context(archive(context_history=restored), lambda name: folded)
    assert found == folded, "a message without a number stays, and the mode of the snapshot counts"
    assert contents(rebuild_context(archive(context_history=restored))) == contents(rebuild_context(archive()))


def test_the_line_of_messages_that_nothing_cites() -> None:
    context = rebuild_context(archive(compression_history=(record((1, 2, 3), None),)))

    assert context.checkpoints == (
        Checkpoint(
            id=USER_LINE_ID,
            text="User messages 1 are kept in the archive in full.",
            message_ids=(1,),
            timestamp="",
            tokens=40,
            age="compact",
            engine_written=True,
        ),
    )
    assert [message.sources for message in context.messages] == [(2, 3), (4,), (5,), (6,)]


def test_what_was_folded_before_a_snapshot_was_restored_does_not_count() -> None:
    restored = ({"step": "restore", "snapshotId": "x", "timestamp": "t4"},)
    base = ActiveContext(
        messages=(PromptMessage(role="user", content="Hello", sources=(1,)),),
        checkpoints=(checkpoint("old", 2, 3), checkpoint("free")),
    )

    def tell(moment: str, *ids: int) -> tuple[list[str], list[str]]:
        history = (record(ids, checkpoint("new", *ids), moment),)
        found = rebuild_context(archive(context_history=restored, compression_history=history), lambda name: base)
        return contents(found), [one.id for one in found.checkpoints]

    assert tell("t4", 2, 3, 5) == (["Hello", "Again", "Yes."], ["old", "free"])
    assert tell("t5", 2, 3, 5) == (["Hello", "Yes."], ["free", "new"])
    assert tell("t5", 3, 5) == (["Hello", "Yes."], ["old", "free", "new"])


def test_rewinds_that_count_and_those_that_do_not() -> None:
    for step, left in (
        ({"step": "rewind", "before": 3, "timestamp": "t5"}, ["Hello", "", "Yes."]),
        ({"step": "rewind", "before": "3", "timestamp": "t5"}, 6),
        ({"step": "rewind-files", "before": 3, "timestamp": "t5"}, 6),
        ({"step": "rewind", "before": 1, "timestamp": "t6"}, 0),
    ):
        found = contents(rebuild_context(archive(context_history=(step,))))
        assert found == left or len(found) == left
    both = archive(context_history=({"step": "rewind", "before": 3, "timestamp": "t6"},))
    assert contents(rebuild_before_rewind(both)) == contents(rebuild_context(archive()))


def test_a_step_back_is_the_last_when_nothing_was_said_since() -> None:
    for history, last in (
        ((), False),
        (({"step": "model", "timestamp": "t9"},), False),
        (({"step": "rewind", "timestamp": "t6"},), False),
        (({"step": "rewind", "timestamp": "t7"},), True),
        (({"step": "redo", "timestamp": "t7"}, {"step": "window", "timestamp": "t8"}), True),
        (({"step": "restore"},), False),
    ):
        assert ends_with_step_back(archive(context_history=history)) is last


def test_one_message_alone_that_was_folded_is_a_line() -> None:
    context = rebuild_context(archive(compression_history=(record((4,), None),)))

    assert "Done." not in contents(context)
    assert [message.sources for message in context.messages] == [(4,), (1,), (2,), (3,), (5,), (6,)]
