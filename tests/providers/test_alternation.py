"""No server is sent two messages of the user in a row."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.messages import PromptMessage
from ollm.providers.base import ChatRequest, merge_user_messages
from ollm.providers.openai_compatible import build_chat_body

messages = st.lists(
    st.builds(PromptMessage, role=st.sampled_from(["system", "user", "assistant"]), content=st.text(max_size=20))
)


@given(given_messages=messages)
def test_neighbours_of_the_user_are_joined_and_nothing_is_lost(given_messages: list[PromptMessage]) -> None:
    found = merge_user_messages(given_messages)

    pairs = pairwise(found)
    assert not [1 for one, other in pairs if one.role == other.role == "user"]
    everything = "\n\n".join(message.content for message in given_messages)
    assert "\n\n".join(message.content for message in found) == everything


def test_a_server_gets_them_joined() -> None:
    said = [PromptMessage(role="user", content="first"), PromptMessage(role="user", content="second")]

    body = build_chat_body(ChatRequest(model="m", messages=tuple(said), window=4096))

    assert [message["content"] for message in body["messages"]] == ["first\n\nsecond"]
