"""What is done beside the conversation."""

from typing import Any

import msgspec

from ollm.domain.events import Event, Notice
from ollm.domain.model_facts import ModelFacts
from ollm.runtime.base import TurnReport
from ollm.runtime.observers.housekeeping import ModelFactsObserver
from ollm.runtime.parts import ConversationState
from tests.runtime.model.test_model import offline
from tests.runtime.prompt.test_prompt import Talk

REPORT = TurnReport(session_id="s", messages=(), calls=(), reason="answered")


class SceneModelFacts:
    def __init__(self) -> None:
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.events: list[Event] = []
        self.state = ConversationState(model=offline(), has_rules=False)
        self.prompt = Talk().prompt
        self.observer = ModelFactsObserver(
            self.state, self.prompt, self.events.append, lambda key, changes: self.written.append((key, changes))
        )

    def learn(self, **facts: Any) -> None:
        self.state.model.facts = msgspec.structs.replace(self.state.model.facts, **facts)


async def test_what_is_new_is_told_and_written_once() -> None:
    scene = SceneModelFacts()
    await scene.observer.after_turn(REPORT)
    assert (scene.written, scene.events) == ([], [])
    scene.learn(call_form="text")

    await scene.observer.after_turn(REPORT)
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("k", {"call_form": "text"})]
    assert [event.text for event in scene.events if isinstance(event, Notice)] == [
        "m: it writes tool calls as text, which ollm parses. Run `ollm models probe` for more."
    ]


async def test_a_native_call_is_written_and_no_news() -> None:
    scene = SceneModelFacts()
    scene.learn(call_form="native")
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("k", {"call_form": "native"})]
    assert scene.events == []


async def test_a_smaller_window_that_was_learnt_is_kept() -> None:
    scene = SceneModelFacts()
    scene.prompt.learn_window(1024)
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("k", {"served_window": 1024, "said_window": 4096})]


async def test_another_model_begins_with_its_own_facts() -> None:
    scene = SceneModelFacts()
    scene.state.model = offline()
    scene.state.model.facts = ModelFacts(key="other", call_form="text")
    await scene.observer.after_turn(REPORT)
    assert scene.written == []
    await scene.observer.before_turn("x")
    await scene.observer.after_turn(REPORT)
    assert scene.written == []
    scene.learn(result_form="user")
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("other", {"result_form": "user"})]
