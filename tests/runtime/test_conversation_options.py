"""What a conversation is opened with where nothing is said."""

from pathlib import Path

import msgspec

from ollm.runtime.conversation_options import ConversationOptions


def test_nothing_is_resumed_forced_or_agreed_to_that_nobody_asked_for() -> None:
    plain = msgspec.structs.asdict(ConversationOptions(workspace=Path("w")))

    assert {name for name, value in plain.items() if value} == {"workspace", "record"}
