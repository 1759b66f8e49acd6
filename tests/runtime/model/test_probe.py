"""Tiny trials that show what a model can do."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ollm.domain.context import Usage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import ChatRequest, FinishPiece, TextPiece
from ollm.runtime.model import form_trials
from ollm.runtime.model.probe import TOOL_COUNTS, VERBATIM_TEXT, ModelCard, Probe, Trial
from tests.runtime.model.test_block_answer import Speaking
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


async def test_a_long_prompt_that_is_read_in_part_gives_the_real_window() -> None:
    async with talking([Answer(text="x", prompt_tokens=300)]) as (model, _):
        request = ChatRequest(model="scripted", messages=(), window=4096)
        made = Probe(model.provider, request, tools, lambda _trial: None)
        fast = replace(ModelFacts(key="k"), prefill_per_second=1000.0)
        facts, name, ok, told = await made._try_window(fast)
        slow: Any = await made._try_window(ModelFacts(key="k", prefill_per_second=1.0))

    assert (name, ok, facts.window) == ("window", False, 300)
    assert told.startswith("only 300 of ")
    assert slow[2:] == (False, "4,096, not tested: prompt processing is too slow")


async def test_a_long_prompt_that_is_read_whole_keeps_the_window() -> None:
    async with talking([Answer(text="x", prompt_tokens=2500)]) as (model, _):
        made = Probe(
            model.provider, ChatRequest(model="scripted", messages=(), window=4096), tools, lambda _trial: None
        )
        facts, _, ok, told = await made._try_window(ModelFacts(key="k", prefill_per_second=1000.0))

    assert (facts.window, ok, told) == (4096, True, "4,096; 2,500 tokens read in full")


@pytest.mark.parametrize(
    ("pace", "read", "told", "window"),
    [
        (15.9, 0, (False, "4,096, not tested: prompt processing is too slow"), None),
        (16.0, 240, (True, "4,096; 240 tokens read in full"), 4096),
        (16.0, 191, (False, "only 191 of 240 tokens were read"), 191),
        (16.0, 192, (True, "4,096; 192 tokens read in full"), 4096),
        (16.0, 0, (False, "4,096; 0 tokens read in full"), 4096),
        (9999.0, 1958, (False, "only 1,958 of 2,448 tokens were read"), 1958),
        (9999.0, 1959, (True, "4,096; 1,959 tokens read in full"), 4096),
    ],
)
async def test_how_long_a_prompt_is_tried_and_when_it_was_cut(
    pace: float, read: int, told: tuple[bool, str], window: int | None
) -> None:
    provider = Speaking(TextPiece("x"), FinishPiece("stop", Usage(prompt_tokens=read)))
    made = Probe(provider, ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, _, ok, said = await made._try_window(ModelFacts(key="k", prefill_per_second=pace))

    assert ((ok, said), facts.window) == (told, window)
    assert [request.max_tokens for request in provider.asked] == ([1] if window else [])
    if pace == 16.0:
        lines = provider.asked[0].messages[0].content.splitlines()
        assert (len(lines), lines[19]) == (20, "Line 19 of a long and dull file that nobody reads to its end.")


@pytest.mark.parametrize(
    ("form", "held", "blocks", "ok", "chosen"),
    [
        ("native", 1, 1, True, "native"),
        ("native", 1, 2, True, "blocks"),
        ("text", 2, 2, True, "blocks"),
        ("text", 2, 1, True, "text"),
        ("text", 0, 0, False, "text"),
        ("none", 3, 0, False, "none"),
        ("none", 3, 1, True, "blocks"),
    ],
)
async def test_the_form_that_does_more_is_used(
    monkeypatch: pytest.MonkeyPatch, form: str, held: int, blocks: int, ok: bool, chosen: str
) -> None:
    asked: list[tuple[str, int, int]] = []

    async def count(_provider: object, request: ChatRequest, _facts: ModelFacts, tried: str) -> int:
        asked.append((tried, len(request.messages), len(request.tools)))
        return blocks if tried == "blocks" else held

    monkeypatch.setattr(form_trials, "count_right_steps", count)
    made = Probe(Speaking(), ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, name, found, told = await made._try_forms(ModelFacts(key="k", call_form=form))  # type: ignore[arg-type]

    shown = 0 if form == "none" else held
    assert (name, found, facts.call_form) == ("forms", ok, chosen)
    assert told == f"{form} {shown} of 3, blocks {blocks} of 3: {chosen} is used"
    assert asked == [*([] if form == "none" else [(form, 1, 8)]), ("blocks", 0, 8)]


@pytest.mark.parametrize(("form", "left"), [("native", "tool"), ("text", "user")])
async def test_results_that_are_not_understood_keep_the_form_of_the_calls(form: str, left: str) -> None:
    provider = Speaking(TextPiece("I do not know."), FinishPiece("stop"))
    made = Probe(provider, ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, *told = await made._try_result_form(ModelFacts(key="k", call_form=form))  # type: ignore[arg-type]

    assert (facts.result_form, told) == (left, ["results", False, "not understood in any form"])
    assert [(asked.max_tokens, asked.temperature) for asked in provider.asked] == [(96, 0)] * 2


async def test_calls_that_are_written_or_bound_are_told() -> None:
    written = Speaking(
        TextPiece('<tool_call>\n{"name": "read_file", "arguments": {"path": "alpha.txt"}}\n</tool_call>'),
        FinishPiece("stop"),
    )
    made = Probe(written, ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, name, ok, told = await made._try_call_form(ModelFacts(key="k"))

    assert (facts.call_form, name, ok) == ("text", "calls", True)
    assert told == f"written as text ({facts.written_form})"
    assert [tool.name for tool in written.asked[0].tools] in ([], ["read_file", "write_file", "shell"])
