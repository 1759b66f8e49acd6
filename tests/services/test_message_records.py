"""Recent messages keep their meaning in the common chat-completion form."""

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.services.message_records import from_records, to_record
from tests.covers import covers


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
