"""What happens when a message fits another mode."""

import pytest

from ollm.domain.events import ModeChanged, Notice
from tests.runtime.talking import Talking

DEBUG = "debug the crash with this traceback"


@pytest.mark.parametrize("setting", ["off", "propose", "on"])
async def test_a_message_that_fits_another_mode_does_what_the_setting_says(talking: Talking, setting: str) -> None:
    async with talking(["one", "two"]) as talk:
        state = talk.conversation.parts.state
        state.auto_switch = setting  # type: ignore[assignment]
        first, second = await talk.say(DEBUG), await talk.say(DEBUG)
        mode = talk.conversation.parts.prompt.mode

    proposed = [event.text for event in (*first, *second) if isinstance(event, Notice)]
    changed = [event for event in first if isinstance(event, ModeChanged)]
    assert mode == ("debug" if setting == "on" else "code")
    assert proposed == (["This looks like work for mode debug: /mode debug"] if setting == "propose" else [])
    assert [(event.to, event.trigger, event.confidence) for event in changed] == (
        [("debug", "auto", 0.95)] if setting == "on" else []
    )


async def test_a_message_that_fits_this_mode_changes_nothing(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        talk.conversation.parts.state.auto_switch = "on"
        events = await talk.say("Implement the cache and add a test")

        assert talk.conversation.parts.prompt.mode == "code"
        assert not any(isinstance(event, ModeChanged) for event in events)
