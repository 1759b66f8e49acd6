"""What turns and commands change in a conversation."""

from types import SimpleNamespace
from typing import Any

import pytest

from ollm.runtime.state import ConversationState


@pytest.mark.parametrize(("form", "unguided"), [("blocks", False), ("native", True), ("text", True)])
def test_a_model_that_writes_blocks_is_guided(form: str, unguided: bool) -> None:
    model: Any = SimpleNamespace(facts=SimpleNamespace(call_form=form))

    assert ConversationState(model=model, has_rules=False).is_unguided() is unguided


@pytest.mark.parametrize("sees", [True, False])
async def test_whether_pictures_are_seen_is_asked_of_the_model_of_the_moment(sees: bool) -> None:
    async def supports_images() -> bool:
        return sees

    state = ConversationState(model=SimpleNamespace(), has_rules=False)  # type: ignore[arg-type]
    state.model = SimpleNamespace(supports_images=supports_images)  # type: ignore[assignment]

    assert await state.sees() is sees
