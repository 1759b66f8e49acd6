"""What is found out about a model, and the form of requests to it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.context_simulation.tokenizer import TOOLS_AFTER, TOOLS_BEFORE

from ollm.app.closed_session import ClosedSession
from ollm.app.conversation import open_conversation
from ollm.app.process import ProcessScope
from ollm.domain.events import AnyEvent, ContextUsage, PromptTruncated
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import ChatRequest
from ollm.runtime.base import ConversationOptions
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.model.probe import (
    TOOL_COUNTS,
    ModelCard,
    Probe,
    Trial,
)
from ollm.runtime.prompt.breakdown import list_context_parts
from ollm.services.token_counting import estimate_units
from tests.runtime.model.test_tool_call_fallback import talking
from tests.servers.answers import PROBE, Answer, Request, write_probed_call
from tests.servers.openai import ScriptedServer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}

NAMES = ("read_file", "write_file", "shell", "grep", "edit_file", "ls", "glob", "goal")


def tools(count: int) -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(name=name, description=name, parameters=PATH) for name in NAMES[:count])


def good(request: Request, *, bears: int = 99) -> Answer:
    messages = request.body["messages"]
    last, shown = messages[-1]["content"], len(request.body.get("tools", ()))
    if probed := PROBE.search(last):
        return Answer(calls=[(probed[1], {probed[2]: probed[3]})])
    for path in ("alpha.txt", "beta/gamma.txt"):
        if path in last:
            return Answer(calls=[("read_file" if shown <= bears else "shell", {"path": path})])
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

    names = ["speed", "thinking", "calls", "tools", "window", "forms"]
    assert [trial.name for trial in told if trial.name in names] == names
    assert list(card.trials) == told
    found = outcome(card)
    assert found["calls"] == (True, "native")
    assert found["tools"] == (True, f"right with {TOOL_COUNTS[-1]}")
    assert (card.facts.call_form, card.facts.result_form, card.facts.max_tools) == ("native", "tool", None)
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


async def test_a_model_that_never_calls_is_not_tested_further() -> None:
    card, _ = await probe(lambda _request: Answer(text="I cannot do that."))

    found = outcome(card)
    assert found["calls"] == (False, "none")
    assert found["tools"] == (False, "not tested")
    assert found["forms"][0] is False
    assert card.facts.call_form == "none"


WINDOW = 4096

READ = {"path": "notes.txt"}

CALL = json.dumps({"name": "read_file", "arguments": READ})

FENCE = f"```json\n{CALL}\n```"

SCHEMA_MARKS = {  # tokens of Qwen's vocabulary
    '"type":"': 2,
    '"description":"': 2,
    '"required":["': 3,
    '"properties":{': 4,
    '"parameters":{': 4,
}

REFUSED = {"error": {"message": "This model does not support tools", "code": 400}}


def template(body: dict[str, Any]) -> str:
    """A chat template whose marks are one token each, with tools in the system prompt and calls in the answers."""
    tools = "".join("\n" + json.dumps(tool, separators=(",", ":")) for tool in body.get("tools", []))
    for mark, tokens in SCHEMA_MARKS.items():
        tools = tools.replace(mark, "\x05" * tokens)
    listed = f"{TOOLS_BEFORE}{tools}{TOOLS_AFTER}" if tools else ""
    said = []
    for message in body["messages"]:
        calls = "".join(f"\x04{json.dumps(call['function'])}" for call in message.get("tool_calls", []))
        shown = listed if message["role"] == "system" else ""
        said.append(f"\x01{message['role']}\x02{message['content'] or ''}{shown}{calls}\x03")
    return "".join(said)


class CountingServer(ScriptedServer):
    """llama.cpp, as far as a prompt goes: it reports the tokens of every prompt as it read it. `form` is how its model
    calls; it reads notes.txt in every second turn."""

    def __init__(self, form: str, window: int) -> None:
        super().__init__(self.reply, kind="llama.cpp", window=window)
        self.form = form
        self.read: list[int] = []

    def page(self, request: Request) -> tuple[int, Any]:
        if request.path == "/apply-template":
            return 200, {"prompt": template(request.body)}
        if request.path == "/tokenize":
            return 200, {"tokens": list(range(round(estimate_units(request.body["content"]))))}
        return super().page(request)

    def reply(self, request: Request) -> Answer:
        body = request.body
        if body.get("tools") and self.form == "refused":
            return Answer(status=400, body=REFUSED)
        if leaked := write_probed_call(request, "fence") if self.form != "native" else "":
            return Answer(text=leaked)
        prompt = body.get("prompt") or template(body)
        self.read.append(round(estimate_units(prompt)))
        return Answer(**self.said(prompt, decides="prompt" in body), prompt_tokens=self.read[-1])

    def said(self, prompt: str, *, decides: bool) -> dict[str, Any]:
        last = prompt[prompt.rindex("\x01") :] if not decides else prompt[prompt.rindex("\x01user") :]
        acts = "Look at" in last and "note 1" not in last
        if decides and prompt.endswith('"arguments": '):
            return {"text": json.dumps(READ) + "}"}
        if decides:
            return {"text": json.dumps({"name": "read_file" if acts else "answer"})}
        if not acts:
            return {"text": "It says nothing of interest, as it did before, and I have no more to say about that."}
        return {"calls": [("read_file", READ)]} if self.form == "native" else {"text": FENCE}


async def talked(
    root: Path, form: str, turns: int = 6, window: int = WINDOW
) -> tuple[LocalConversation, list[AnyEvent], CountingServer]:
    workspace = root / "project"
    workspace.mkdir(exist_ok=True)
    (workspace / "notes.txt").write_text("".join(f"note {n}: nothing of interest\n" for n in range(12)), "utf-8")
    events: list[AnyEvent] = []
    async with CountingServer(form, window) as server:
        provider = {"type": "openai", "baseUrl": server.base_url, "model": "scripted", "contextWindow": window}
        async with open_conversation(
            ConversationOptions(workspace=workspace, flags={"provider": provider})
        ) as conversation:
            for turn in range(turns):
                words = "Look at notes.txt." if turn % 2 == 0 else "What do you think of that? Say it in a line."
                async with conversation.turn(words) as heard:
                    events += [event async for event in heard]
    return conversation, events, server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OLLM_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("form", ["text", "refused"])
async def test_the_factor_is_that_of_a_model_that_calls_natively(home: Path, form: str) -> None:
    native, _, _ = await talked(home, "native")
    writer, events, server = await talked(home, form)

    assert native.parts.state.model.facts.call_form == "native"
    assert writer.parts.state.model.facts.call_form == "text"
    assert writer.parts.state.model.facts.takes_tools is (form == "text")
    factors = [each.parts.prompt.counter.factor for each in (native, writer)]
    assert factors[1] == pytest.approx(factors[0], rel=0.04)
    assert factors[1] == pytest.approx(1, abs=0.06)
    assert not any(isinstance(event, PromptTruncated) for event in events)
    used = [event.used for event in events if isinstance(event, ContextUsage)]
    assert used[-1] == pytest.approx(server.read[-1], rel=0.04)


@pytest.mark.parametrize("form", ["text", "refused"])
async def test_what_is_shown_before_the_conversation_is_a_part_of_it(home: Path, form: str) -> None:
    native, _, _ = await talked(home, "native", turns=1)
    writer, events, server = await talked(home, form, turns=2)

    before, after = (each.parts.prompt.compute_budget() for each in (native, writer))
    parts = {part.name: part.tokens for part in list_context_parts(writer.parts.prompt)}
    assert parts["tool schemas"] > 50
    assert after.available == before.available - (after.fixed - before.fixed)
    assert sum(parts.values()) == pytest.approx(server.read[-1], rel=0.1)
    broken = [event.broken_by for event in events if isinstance(event, ContextUsage)]
    assert [cause for cause in broken if cause] == (["call form"] if form == "refused" else [])


async def test_a_stored_context_is_shown_in_the_form_it_is_sent(home: Path) -> None:
    writer, _, _ = await talked(home, "text", turns=1)
    assert writer.parts.session.id is None
    process = ProcessScope(workspace=home / "project")
    (summary,) = process.library.list_summaries()
    session = process.session_files.read(summary.session_id).session

    stored = ClosedSession(process, home / "project").build_prompt(session)

    assert stored.compute_budget().fixed == pytest.approx(writer.parts.prompt.compute_budget().fixed, rel=0.02)
