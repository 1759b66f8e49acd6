"""Tiny trials that show what a model can do."""

import itertools
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ollm.domain.context import Usage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, ChatRequest, FinishPiece, TextPiece
from ollm.providers.measure import MeasuredSpeed
from ollm.runtime.model import form_trials
from ollm.runtime.model import probe as probes
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
        ("text", 1, 1, True, "blocks"),
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

    assert (facts.call_form, facts.written_form, name, ok) == ("text", "tag", "calls", True)
    assert told == "written as text (tag)"
    assert [tool.name for tool in written.asked[0].tools] == ["read_file", "write_file", "shell"]


async def test_a_model_that_calls_only_under_a_schema_is_told_to_be_bound() -> None:
    class Bound(Speaking):
        def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
            whole = '{"name": "read_file", "arguments": {"path": "alpha.txt"}}'
            self.pieces = (TextPiece(whole if request.response_schema else "I cannot."), FinishPiece("stop"))
            return super().stream(request)

    made = Probe(Bound(), ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, *told = await made._try_call_form(ModelFacts(key="k"))

    assert (facts.call_form, told) == ("constrained", ["calls", True, "only when constrained to the tools' schema"])


@pytest.mark.parametrize(
    ("read", "written", "told"),
    [
        (120.5, 30.0, (True, "prompt: 120.5 tok/s, output: 30.0 tok/s")),
        (120.5, None, (False, "prompt: 120.5 tok/s, output: ? tok/s")),
        (None, 30.0, (False, "prompt: ? tok/s, output: 30.0 tok/s")),
        (None, None, (False, "prompt: ? tok/s, output: ? tok/s")),
    ],
)
async def test_a_speed_is_known_where_reading_and_writing_were_measured(
    monkeypatch: pytest.MonkeyPatch, read: float | None, written: float | None, told: tuple[bool, str]
) -> None:
    async def measure(_provider: object, model: str, window: int) -> MeasuredSpeed:
        assert (model, window) == ("m", 4096)
        return MeasuredSpeed(prefill_per_second=read, decode_per_second=written)

    monkeypatch.setattr(probes, "measure_speed", measure)
    made = Probe(Speaking(), ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, name, *found = await made._try_speed(ModelFacts(key="k"))

    assert (name, tuple(found)) == ("speed", told)
    assert (facts.prefill_per_second, facts.decode_per_second) == (read, written)


async def test_each_trial_is_told_with_the_time_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks at the clock a trial, a quarter of a second and a bit between any two."""
    looks = itertools.count(100.0, 1.27)
    monkeypatch.setattr(probes, "monotonic", lambda: next(looks))

    card, _ = await probe(good)

    assert [trial.seconds for trial in card.trials] == [1.3] * 7


READ_GAMMA = CallPiece("read_file", {"path": "beta/gamma.txt"})


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([READ_GAMMA], (True, "right with 3")),
        ([READ_GAMMA, CallPiece("shell", {})], (True, "right with 3")),
        ([CallPiece("shell", {}), READ_GAMMA], (False, "wrong even with 3")),
        ([CallPiece("read_file", {"path": "gamma.txt"})], (False, "wrong even with 3")),
        ([CallPiece("shell", {"path": "beta/gamma.txt"})], (False, "wrong even with 3")),
        ([], (False, "wrong even with 3")),
    ],
)
async def test_the_first_call_must_read_the_file_and_no_count_of_tools_is_tried_twice(
    calls: list[CallPiece], told: tuple[bool, str]
) -> None:
    provider = Speaking(*calls, FinishPiece("stop"))
    made = Probe(
        provider, ChatRequest(model="m", messages=(), window=4096), lambda count: tools(min(count, 3)), lambda _: None
    )

    facts, name, *found = await made._try_tool_count(ModelFacts(key="k", call_form="native"))

    assert (name, tuple(found), facts.max_tools) == ("tools", told, None if told[0] else 3)
    assert [len(asked.tools) for asked in provider.asked] == [3]


@pytest.mark.parametrize(("shown", "told"), [(0, [False, "wrong even with 3"]), (1, [True, "right with 1"])])
async def test_where_a_window_shows_next_to_no_tools_their_number_is_not_bounded(shown: int, told: list[Any]) -> None:
    provider = Speaking(READ_GAMMA, FinishPiece("stop"))
    made = Probe(provider, ChatRequest(model="m", messages=(), window=512), lambda _: tools(shown), lambda _: None)

    facts, _, *found = await made._try_tool_count(ModelFacts(key="k", call_form="native"))

    assert (found, facts.max_tools, len(provider.asked)) == (told, None, shown)


async def test_a_server_that_ends_without_a_word_of_the_prompt_proves_nothing() -> None:
    made = Probe(Speaking(TextPiece("x")), ChatRequest(model="m", messages=(), window=4096), tools, lambda _: None)

    facts, *told = await made._try_window(ModelFacts(key="k", prefill_per_second=1000.0))

    assert (facts.window, told) == (4096, ["window", False, "4,096; 0 tokens read in full"])


async def test_a_text_is_copied_with_five_tools_shown() -> None:
    provider = Speaking(CallPiece("write_file", {"content": f"\n{VERBATIM_TEXT}\n"}), FinishPiece("stop"))
    made = Probe(provider, ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, *told = await made._try_verbatim(ModelFacts(key="k", call_form="native"))

    assert (facts.verbatim_edits, told) == (True, ["copying", True, "text arrives unchanged"])
    assert [len(asked.tools) for asked in provider.asked] == [5]


@pytest.mark.parametrize(("form", "role", "shown"), [("native", "tool", 3), ("text", "user", 4)])
async def test_a_result_that_is_understood_at_once_is_not_tried_in_the_other_form(
    form: str, role: str, shown: int
) -> None:
    """One that writes its calls may also choose to answer."""
    provider = Speaking(TextPiece("It is 4711."), FinishPiece("stop"))
    made = Probe(provider, ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    facts, name, ok, _ = await made._try_result_form(ModelFacts(key="k", call_form=form))  # type: ignore[arg-type]

    assert (name, ok, facts.result_form) == ("results", True, role)
    assert [(asked.messages[-1].role, len(asked.tools)) for asked in provider.asked] == [(role, shown)]


async def test_a_code_beside_another_call_is_no_answer() -> None:
    again = CallPiece("read_file", {"path": "alpha.txt"})
    provider = Speaking(TextPiece("It is 4711."), again, FinishPiece("stop"))
    made = Probe(provider, ChatRequest(model="m", messages=(), window=4096), tools, lambda _trial: None)

    _, *told = await made._try_result_form(ModelFacts(key="k", call_form="native"))

    assert told == ["results", False, "not understood in any form"]
