"""A request in the words of the OpenAI chat API."""

import msgspec

from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers.base import ChatRequest
from ollm.providers.openai_messages import MessageEncoder, build_chat_body, build_message, build_messages

USER = PromptMessage(role="user", content="hi")


def test_a_plain_request_holds_only_what_was_asked() -> None:
    assert build_chat_body(ChatRequest(model="m", messages=(USER,), window=9)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_request_with_everything() -> None:
    body = build_chat_body(
        ChatRequest(
            model="m",
            messages=(USER,),
            window=9,
            tools=(ToolSchema(name="t", description="d", parameters={}),),
            max_tokens=0,
            temperature=0.0,
            response_schema={"type": "object"},
            stop=("x", "y"),
        )
    )

    assert body["tools"] == [{"type": "function", "function": {"name": "t", "description": "d", "parameters": {}}}]
    assert (body["max_tokens"], body["temperature"], body["stop"]) == (0, 0.0, ["x", "y"])
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
    }


def test_messages_of_the_user_that_follow_each_other_are_one() -> None:
    body = build_chat_body(ChatRequest(model="m", messages=(USER, USER), window=9))

    assert len(body["messages"]) == 1


def test_calls_and_results_name_each_other() -> None:
    asked = PromptMessage(role="assistant", content="", calls=(ToolCall(id="c1", name="ls", arguments={"path": "ä"}),))
    answered = PromptMessage(role="tool", content="done", call_id="c1")

    assert build_messages([asked, answered]) == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"ä"}'}},
            ],
        },
        {"role": "tool", "content": "done", "tool_call_id": "c1"},
    ]
    assert "tool_call_id" not in build_message(PromptMessage(role="user", content="x", call_id="c1"))
    assert "tool_call_id" not in build_message(PromptMessage(role="tool", content="x"))


def test_pictures_stand_beside_the_words() -> None:
    picture = ImagePart(media_type="image/png", data="AAAA")
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    assert build_message(PromptMessage(role="user", content="see", images=(picture,)))["content"] == [
        {"type": "text", "text": "see"},
        shown,
    ]
    assert build_message(PromptMessage(role="user", content="", images=(picture,)))["content"] == [shown]


def test_a_message_that_was_sent_before_is_not_encoded_again() -> None:
    encode = MessageEncoder()
    [first] = encode([USER])
    same, other = encode([USER, PromptMessage(role="user", content="hi")])

    assert same is first
    assert other is not first
    assert bytes(other) == bytes(first) == msgspec.json.encode({"role": "user", "content": "hi"})
    encode([])
    assert encode([USER])[0] is not first, "only the messages of the last request are kept"
