"""What a conversation taught about its model is kept, once."""

from typing import Any

import msgspec
import pytest

from ollm.domain.events import Event, Notice
from ollm.domain.model_facts import ModelFacts
from ollm.runtime.observers.model_facts import ModelFactsObserver, describe_changes, find_changed_fields
from ollm.runtime.state import ConversationState
from ollm.runtime.turn_observer import TurnReport
from tests.runtime.model.test_model import offline
from tests.runtime.prompt.test_prompt import Talk

CONSTRAINED = (
    "its tool calls are constrained to the tools' schema; prompt 1 tok/s, output 2 tok/s."
    " Run `ollm models probe` for more."
)
REPORT = TurnReport(session_id="s", messages=(), calls=(), reason="answered")


class Scene:
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
    scene = Scene()
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
    scene = Scene()
    scene.learn(call_form="native")
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("k", {"call_form": "native"})]
    assert scene.events == []


@pytest.mark.parametrize(
    ("known", "factor", "samples", "kept"),
    [
        (0, 1.5, 3, True),
        (0, 1.01, 3, True),  # the first count says that there was one
        (0, 1.5, 0, False),
        (0, 0.9, 1, True),
        (1, 1.01, 2, False),
        (1, 1.01, 3, True),  # from here on it is doubted less
        (3, 1.01, 7, False),
        (3, 1.01, 8, True),
        (1, 1.5, 3, True),
        (3, 1.5, 3, False),
    ],
)
async def test_a_factor_is_kept_when_it_is_the_first_or_moved_and_rests_on_more_counts(
    known: int, factor: float, samples: int, kept: bool
) -> None:
    scene = Scene()
    scene.state.model.facts = ModelFacts(key="other", token_samples=known)
    await scene.observer.before_turn("x")
    scene.prompt.counter.calibrate(factor, samples)

    await scene.observer.after_turn(REPORT)

    changes = {"token_factor": factor, "token_samples": samples}
    assert scene.written == ([("other", changes)] if kept else [])


async def test_a_smaller_window_that_was_learnt_is_kept() -> None:
    scene = Scene()
    scene.prompt.learn_window(1024)
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("k", {"served_window": 1024, "said_window": 4096})]


async def test_another_model_begins_with_its_own_facts() -> None:
    scene = Scene()
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


def test_only_fields_that_changed_are_found() -> None:
    assert find_changed_fields(ModelFacts(key="a"), ModelFacts(key="a")) == {}
    assert find_changed_fields(ModelFacts(key="a"), ModelFacts(key="a", max_tools=3)) == {"max_tools": 3}


@pytest.mark.parametrize(
    ("changes", "advice", "line"),
    [
        ({}, "", ""),
        ({"call_form": "native"}, "", ""),
        ({"prefill_per_second": 99.6}, "", ""),
        (
            {"prefill_per_second": 99.6, "decode_per_second": 10.2},
            "",
            "prompt 100 tok/s, output 10 tok/s. Run `ollm models probe` for more.",
        ),
        (
            {"call_form": "constrained", "prefill_per_second": 1.0, "decode_per_second": 2.0},
            "",
            CONSTRAINED,
        ),
        (
            {"takes_tools": False},
            "Start it with --jinja.",
            "the server takes no tools, so they are listed in the prompt. Start it with --jinja.",
        ),
        ({"takes_tools": True}, "advice", ""),
        ({"binds_answers": True, "prefill_per_second": 5.0}, "", ""),
        (
            {"call_form": "blocks", "binds_answers": False},
            "",
            (
                "it writes fenced commands and files, which ollm runs as tool calls; the server ignores response_format,"
                " so tool calls cannot be bound to a schema. Run `ollm models probe` for more."
            ),
        ),
        (
            {"takes_tools": False, "call_form": "text"},
            "",
            (
                "the server takes no tools, so they are listed in the prompt. it writes tool calls as text, which ollm"
                " parses. Run `ollm models probe` for more."
            ),
        ),
    ],
)
def test_news_about_a_model_is_one_line(changes: dict[str, Any], advice: str, line: str) -> None:
    assert describe_changes(changes, advice) == line


async def test_that_pictures_are_left_out_is_told_once() -> None:
    scene = Scene()
    scene.state.model.pictures.take_news = iter(["it takes no pictures.", ""]).__next__  # type: ignore[method-assign]

    await scene.observer.after_turn(REPORT)
    await scene.observer.after_turn(REPORT)

    assert scene.events == [Notice(level="warning", text="m: it takes no pictures.")]


async def test_a_factor_is_written_with_four_digits() -> None:
    scene = Scene()
    scene.prompt.counter.calibrate(1.234567, 3)
    await scene.observer.after_turn(REPORT)

    assert scene.written == [("k", {"token_factor": 1.2346, "token_samples": 3})]


@pytest.mark.parametrize(("factor", "kept"), [(1.2342, False), (1.2343, True), (1.1858, False), (1.1857, True)])
async def test_a_factor_that_moved_by_a_fiftieth_stays_as_it_was(factor: float, kept: bool) -> None:
    scene = Scene()
    scene.state.model.facts = ModelFacts(key="other", token_factor=1.21, token_samples=3)
    await scene.observer.before_turn("x")
    scene.prompt.counter.calibrate(factor, 4)
    await scene.observer.after_turn(REPORT)

    assert bool(scene.written) is kept
