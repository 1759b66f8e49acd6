"""Messages: their text, their thinking and their calls, told apart."""

import msgspec

from ollm.domain.messages import (
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    replace_surrogates,
)

PARTS = (
    ThinkingPart("hm "),
    TextPart("I look "),
    ToolCallPart("c1"),
    TextPart("twice."),
    ToolCallPart("c2"),
    ThinkingPart("yes"),
)


def test_text_thinking_and_calls_are_gathered_each_in_order() -> None:
    message = Message(role="assistant", parts=PARTS, timestamp="")

    assert message.text == "I look twice."
    assert message.thinking == "hm yes"
    assert message.call_ids == ("c1", "c2")
    assert Message(role="tool", parts=(ToolResultPart("c9"),), timestamp="").call_ids == ("c9",)


def test_a_message_is_written_with_the_documented_names_and_without_defaults() -> None:
    message = Message(id=3, role="user", parts=(TextPart("x"), ImagePart("image/png", "AA==")), timestamp="t")

    assert msgspec.json.decode(msgspec.json.encode(message)) == {
        "id": 3,
        "role": "user",
        "parts": [{"type": "text", "text": "x"}, {"type": "image", "mediaType": "image/png", "data": "AA=="}],
        "timestamp": "t",
    }


def test_every_kind_of_part_reads_back() -> None:
    message = Message(role="assistant", parts=PARTS, timestamp="t", interrupted=True)

    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_bytes_that_are_not_utf_8_are_marked_and_all_else_stays() -> None:
    assert replace_surrogates("caf\udce9 日本 😀 é") == "caf? 日本 😀 é"
    assert replace_surrogates("plain") == "plain"
