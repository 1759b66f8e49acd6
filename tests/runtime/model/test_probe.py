"""Trials that show what a model can do."""

from collections.abc import Callable

import pytest

from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import ChatRequest
from ollm.runtime.model.probe import (
    CONF,
    MAX_TRIAL_TOKENS,
    TASKS,
    TOOL_COUNTS,
    VERBATIM_TEXT,
    ModelCard,
    Probe,
    Trial,
    count_right_steps,
)
from tests.runtime.model.test_tool_call_fallback import talking
from tests.servers.answers import Answer, Request

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
NAMES = ("read_file", "write_file", "shell", "grep", "edit_file", "ls", "glob", "goal")


def tools(count: int) -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(name=name, description=name, parameters=PATH) for name in NAMES[:count])


def good(request: Request, *, bears: int = 99, copies: bool = True, takes: str = "tool") -> Answer:
    messages = request.body["messages"]
    last, shown = messages[-1]["content"], len(request.body.get("tools", ()))
    if "4711" in last:
        right = messages[-1]["role"] == takes
        return Answer(text="It is 4711.") if right else Answer(calls=[("read_file", {"path": "alpha.txt"})])
    for path in ("alpha.txt", "beta/gamma.txt"):
        if path in last:
            return Answer(calls=[("read_file" if shown <= bears else "shell", {"path": path})])
    if "delta.py" in last:
        return Answer(calls=[("write_file", {"path": "delta.py", "content": VERBATIM_TEXT if copies else "pass"})])
    return Answer(text="one two three", prompt_tokens=9000)


async def probe(say: Callable[[Request], Answer], window: int = 4096) -> tuple[ModelCard, list[Trial]]:
    told: list[Trial] = []
    async with talking(say) as (model, _):  # type: ignore[arg-type]
        request = ChatRequest(model="scripted", messages=(), window=window)
        known = ModelFacts(key="k", token_factor=1.5, token_samples=4, call_form="text")
        card = await Probe(model.provider, request, tools, told.append).run(known)
    return card, told


def outcome(card: ModelCard) -> dict[str, tuple[bool, str]]:
    return {trial.name: (trial.ok, trial.told) for trial in card.trials}


async def test_a_model_that_calls_natively_passes_every_trial_and_each_is_told() -> None:
    card, told = await probe(good)

    assert [trial.name for trial in told] == ["speed", "calls", "results", "tools", "copying", "window", "forms"]
    assert list(card.trials) == told
    found = outcome(card)
    assert found["calls"] == (True, "native")
    assert found["results"] == (True, "as tool results")
    assert found["tools"] == (True, f"right with {TOOL_COUNTS[-1]}")
    assert found["copying"] == (True, "text arrives unchanged")
    assert (card.facts.call_form, card.facts.result_form, card.facts.max_tools) == ("native", "tool", None)
    assert card.facts.verbatim_edits is True
    assert (card.facts.token_factor, card.facts.token_samples, card.model) == (1.5, 4, "scripted")
    assert all(trial.seconds >= 0 for trial in told)
    read, written = card.facts.prefill_per_second, card.facts.decode_per_second
    assert found["speed"] == (
        read is not None and written is not None,
        f"prompt: {read or '?'} tok/s, output: {written or '?'} tok/s",
    )


@pytest.mark.parametrize(
    ("bears", "most", "said"), [(2, 3, "wrong even with 3"), (3, 3, "right with 3"), (5, 5, "right with 5")]
)
async def test_as_many_tools_are_shown_as_it_can_bear(bears: int, most: int, said: str) -> None:
    card, _ = await probe(lambda request: good(request, bears=bears))

    assert card.facts.max_tools == most
    assert outcome(card)["tools"] == (bears > 2, said)


async def test_results_are_given_as_the_user_s_where_only_that_is_understood() -> None:
    card, _ = await probe(lambda request: good(request, takes="user"))

    assert outcome(card)["results"] == (True, "as user messages")
    assert card.facts.result_form == "user"


async def test_text_that_is_altered_on_the_way_is_told() -> None:
    card, _ = await probe(lambda request: good(request, copies=False))

    assert outcome(card)["copying"] == (False, "text is altered on the way: edits may fail")
    assert card.facts.verbatim_edits is False


async def test_a_model_that_never_calls_is_not_tested_further() -> None:
    card, _ = await probe(lambda _request: Answer(text="I cannot do that."))

    found = outcome(card)
    assert found["calls"] == (False, "none")
    assert (found["results"], found["tools"], found["copying"]) == ((False, "not tested"),) * 3
    assert found["forms"][0] is False
    assert card.facts.call_form == "none"


SEARCH, CHANGE, DELETE = TASKS


async def test_right_first_steps_are_counted_in_the_form_that_is_tried() -> None:
    tools = tuple(
        ToolSchema(name=name, description=name, parameters={"type": "object", "properties": {}})
        for name in ("grep", "edit_file", "write_file", "shell")
    )

    def say(request: Request) -> Answer:
        asked = request.body["messages"][-1]["content"]
        if "PORT" in asked:
            return Answer(calls=[("grep", {"pattern": "PORT"})])
        return Answer(calls=[("shell", {"command": "rm old.txt"})]) if "old.txt" in asked else Answer(text="I cannot.")

    request = ChatRequest(model="scripted", messages=(), window=4096, tools=tools)
    async with talking(say) as (model, server):  # type: ignore[arg-type]
        facts = ModelFacts(key="k")
        assert await count_right_steps(model.provider, request, facts, "native") == 2
        assert {chat["max_tokens"] for chat in server.chats} == {MAX_TRIAL_TOKENS}
        assert await count_right_steps(model.provider, request, facts, "blocks") == 2
        assert "tools" not in server.chats[-1]


async def test_blocks_that_a_model_writes_by_itself_are_counted() -> None:
    def say(request: Request) -> Answer:
        asked = request.body["messages"][-1]["content"]
        if "PORT" in asked:
            return Answer(text="```bash\ngrep -rn PORT .\n```")
        changed = CONF.replace("12", "20")
        return Answer(text="```bash\nrm old.txt\n```" if "old.txt" in asked else f"conf.py\n```\n{changed}```")

    tools = tuple(
        ToolSchema(name=name, description=name, parameters={"type": "object", "properties": {}})
        for name in ("shell", "write_file", "edit_file")
    )
    request = ChatRequest(model="scripted", messages=(), window=4096, tools=tools)
    async with talking(say) as (model, _):  # type: ignore[arg-type]
        assert await count_right_steps(model.provider, request, ModelFacts(key="k"), "blocks") == 3
