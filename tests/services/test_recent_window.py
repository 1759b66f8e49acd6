"""The recent window: four caps, and an order any server accepts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.config.settings import ResumeSettings
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.services.workspace_memory import INTERRUPTED_TEXT, RecentWindow, count_json_chars, from_records, to_record
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
@settings(max_examples=100)
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


def test_long_arguments_of_a_call_keep_an_equal_share_and_short_ones_stay() -> None:
    for arguments, kept in (
        ({"path": "a.py", "content": "x" * 5000}, {"path": 4, "content": 50}),
        ({"content": "x" * 5000}, {"content": 100}),
        ({"lines": ["x" * 5000]}, {"cut": 100}),
    ):
        call = ToolCall(id="c1", name="write_file", arguments=arguments)
        said = PromptMessage(role="assistant", content="", calls=(call,))
        window = RecentWindow(ResumeSettings(message_chars=200), [PromptMessage(role="user", content="write"), said])
        (short,) = window.collect_messages()[1].calls
        assert {name: len(value) for name, value in short.arguments.items()} == kept


def test_a_turn_longer_than_the_window_still_starts_with_its_request() -> None:
    window = RecentWindow(ResumeSettings(messages=5), [PromptMessage(role="user", content="do it all")])
    for n in range(50):
        call = ToolCall(id=f"c{n}", name="read_file", arguments={"path": str(n)})
        window.add(PromptMessage(role="assistant", content="", calls=(call,)))
        window.add(PromptMessage(role="tool", content=str(n), call_id=call.id))

    kept = window.collect_messages()

    assert kept[0].content == "do it all"
    assert [message.content for message in kept if message.role == "tool"] == ["48", "49"]


@pytest.mark.parametrize(("spare", "kept"), [(0, ["a", "b"]), (-1, ["b"])])
def test_the_window_may_be_filled_to_the_last_character(spare: int, kept: list[str]) -> None:
    said = [PromptMessage(role="user", content=text) for text in "ab"]
    room = count_json_chars([*said, said[1]]) + spare

    window = RecentWindow(ResumeSettings(total_chars=room), said)

    assert [message.content for message in window.collect_messages()] == kept


@pytest.mark.parametrize(("messages", "kept"), [(1, 1), (2, 1), (3, 2), (4, 3), (20, 9)])
def test_as_many_messages_stay_as_are_asked_for_beside_the_newest_request(messages: int, kept: int) -> None:
    said = [PromptMessage(role="user", content=str(number)) for number in range(9)]

    found = RecentWindow(ResumeSettings(messages=messages), said).collect_messages()

    assert [message.content for message in found] == [str(number) for number in range(9 - kept, 9)]


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
