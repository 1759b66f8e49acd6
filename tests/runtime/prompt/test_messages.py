"""What was said, as the model is sent it."""

from __future__ import annotations

from ollm.domain.events import Notice
from tests.runtime.prompt.test_prompt import Talk, filler


async def test_a_message_longer_than_half_the_window_stands_as_head_tail_and_number() -> None:
    talk = Talk()
    talk.user("FIRST " + filler(3000) + " LAST")
    await talk.make_room()

    content = talk.prompt.build_request_messages()[-1].content
    assert content.startswith("FIRST")
    assert content.endswith("LAST")
    assert 'recall {"messageId": 1, "startLine": ' in content
    assert talk.prompt.used_tokens <= talk.prompt.compute_budget().limit
    assert talk.of(Notice)
    assert talk.prompt.capture_state().user_messages[1].endswith(" LAST")
