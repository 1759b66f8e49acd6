"""The model behind its ladder, against scripted servers: what is learnt, how long is waited, how history is rendered."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, ToolsUnsupportedError
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import (
    AnyPiece,
    BaseProvider,
    CallPiece,
    ChatRequest,
    CompletionRequest,
    FinishPiece,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
)
from ollm.providers.exchange import Exchange
from ollm.providers.ollama import Ollama
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.text_calls.rendering import (
    ANSWER_TOOL,
    add_tool_list,
    build_call_schema,
    build_name_schema,
    render_messages,
)
from ollm.runtime.model.model import Model
from ollm.runtime.model.tool_call_fallback import ToolCallFallback
from tests.covers import covers
from tests.recorded_courses import compare_course
from tests.servers import OllamaServer
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (ToolSchema(name="read_file", description="Read a file.", parameters=PATH),)
ASKED = (PromptMessage(role="system", content="Help."), PromptMessage(role="user", content="Read a.txt."))
READ = CallPiece("read_file", {"path": "a.txt"})
FENCE = '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'


@asynccontextmanager
async def talking(script: list[Answer | str], facts: ModelFacts | None = None, **options: Any) -> AsyncIterator[Any]:
    async with ScriptedServer(script, **options) as server:
        provider = OpenAICompatible(Exchange(server.base_url, ProviderTimeouts()))
        await provider.models()
        model = Model(provider, "scripted", 4096, facts or ModelFacts(key="k"))
        yield model, server
        await provider.close()


async def asked(model: Model, messages: tuple[PromptMessage, ...] = ASKED) -> list[Any]:
    return [piece async for piece in model.stream(messages, TOOLS, 100)]


async def test_a_native_call_stays_as_it_is_and_is_learnt() -> None:
    async with talking([Answer(calls=[("read_file", {"path": "a.txt"})])]) as (model, _):
        pieces = await asked(model)

    assert pieces[0] == READ
    assert pieces[-1].reason == "tool_calls"
    assert model.facts.call_form == "native"


async def test_native_arguments_that_are_not_quite_json_are_mended() -> None:
    async with talking([Answer(calls=[("read_file", "{'path': 'a.txt',}")])]) as (model, _):
        assert (await asked(model))[0] == READ


async def test_a_model_known_to_stumble_is_bound_as_soon_as_it_begins_to_call() -> None:
    script = [f"I look.\n{FENCE}", '{"name": "read_file", "arguments": {"path": "a.txt"}}']
    facts = ModelFacts(key="k", call_form="constrained")
    async with talking(script, facts, kind="llama.cpp") as (model, server):
        pieces = await asked(model)

    assert [piece for piece in pieces if isinstance(piece, TextPiece | CallPiece)] == [
        TextPiece("I"),
        TextPiece(" look.\n"),
        READ,
    ]
    (bound,) = (request.body for request in server.requests if request.path == "/completion")
    assert bound["json_schema"] == build_call_schema(TOOLS)


WRITER = ModelFacts(key="k", call_form="text", result_form="user")
SPEAK = '{"name": "answer"}'
NAMED = '{"name": "read_file"}'
GIVEN = '{"path": "a.txt"}}'


async def test_a_model_that_writes_its_calls_says_first_whether_it_acts() -> None:
    async with talking([NAMED, GIVEN], WRITER, kind="llama.cpp") as (model, server):
        pieces = await asked(model)

    assert [piece for piece in pieces if isinstance(piece, TextPiece | CallPiece)] == [READ]
    assert server.chats == []
    name, rest = (request.body for request in server.requests if request.path == "/completion")
    assert name["json_schema"] == build_name_schema((ANSWER_TOOL, *TOOLS))
    assert rest["prompt"] == name["prompt"] + '{"name": "read_file", "arguments": '
    assert "json_schema" not in rest  # under a schema it does not find the end of a text
    assert rest["stop"] == ["\n```"]
    assert model.facts == WRITER


@pytest.mark.parametrize(
    "script",
    [[NAMED, '{"path": "a.t'], [NAMED, '{"path": "'], [NAMED, ""], ['{"name": "read'], ['{"name": "other"}'], [""]],
)
async def test_a_call_that_breaks_off_where_it_decides_is_not_made(script: list[str]) -> None:
    async with talking([*script, "I stop."], WRITER, kind="llama.cpp") as (model, _):
        pieces = await asked(model)

    assert not any(isinstance(piece, CallPiece) for piece in pieces)
    assert TextPiece("I") in pieces


@pytest.mark.parametrize("written", ["{}}", '{"path": "a.txt", "required": ["path"]}}', '"a.txt"}'])
async def test_a_decided_call_with_a_parameter_missing_or_made_up_is_written_again_under_the_schema(
    written: str,
) -> None:
    whole = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
    async with talking([NAMED, written, whole], WRITER, kind="llama.cpp") as (model, server):
        pieces = await asked(model)

    assert [piece for piece in pieces if isinstance(piece, TextPiece | CallPiece)] == [READ]
    bound = [request.body for request in server.requests if request.path == "/completion"][2]
    assert bound["json_schema"] == build_call_schema(TOOLS)


async def test_a_value_that_never_ends_is_cut() -> None:
    endless = '{"path": "a' + "\\n" * 20_000
    async with talking([NAMED, endless, "I stop."], WRITER, kind="llama.cpp") as (model, _):
        pieces = await asked(model)

    assert not any(isinstance(piece, CallPiece) for piece in pieces)
    assert TextPiece("I") in pieces


async def test_under_a_schema_llama_cpp_is_told_to_end_a_value() -> None:
    facts = ModelFacts(key="k", call_form="constrained")
    async with talking([FENCE, '{"name": "read_file", "arguments": {"path": "a.txt"}}'], facts, kind="llama.cpp") as (
        model,
        server,
    ):
        await asked(model)

    (bound,) = (request.body for request in server.requests if request.path == "/completion")
    assert (bound["dry_multiplier"], bound["dry_penalty_last_n"]) == (0.8, 64)
    assert bound["dry_allowed_length"] == 24  # with 6 a copied text lost a space: "sugar issweet"


async def test_a_model_that_wants_to_speak_is_let_speak() -> None:
    async with talking([SPEAK, "Hello."], WRITER, kind="llama.cpp") as (model, server):
        pieces = await asked(model)

    assert [piece for piece in pieces if isinstance(piece, TextPiece | CallPiece)] == [TextPiece("Hello.")]
    assert server.chats[0]["temperature"] == 0.2


def done(result: str, *, failed: bool = False) -> tuple[PromptMessage, ...]:
    call = ToolCall(id="c", name="read_file", arguments={"path": "a.txt"})
    return (
        *ASKED,
        PromptMessage(role="assistant", content="", calls=(call,)),
        PromptMessage(role="tool", content=result, call_id="c", tool_name="read_file", failed=failed),
    )


@pytest.mark.parametrize("failure", ["Error FileNotFound: a.txt does not exist.", "AssertionError\n[exit code 1]"])
async def test_after_a_failure_it_is_asked_to_try_again(failure: str) -> None:
    async with talking([NAMED, '{"path": "b.txt"}}'], WRITER, kind="llama.cpp") as (model, server):
        again = await asked(model, done(failure, failed=True))

    assert CallPiece("read_file", {"path": "b.txt"}) in again
    prompt, _ = (request.body["prompt"] for request in server.requests if request.path == "/completion")
    assert "read_file failed:" in prompt
    assert "Write another call" in prompt


LEFT = "The user asked: Read a.txt.\nIf a part of that is not done yet, write the next call."


async def test_after_a_result_it_says_first_whether_something_is_left_and_is_reminded_of_what_was_asked() -> None:
    script: list[Answer | str] = [NAMED, '{"path": "b.txt"}}', SPEAK, "It says hi."]
    async with talking(script, WRITER, kind="llama.cpp") as (model, server):
        goes_on = await asked(model, done("hi"))
        answers = await asked(model, done("hi"))

    assert CallPiece("read_file", {"path": "b.txt"}) in goes_on
    assert TextPiece("It") in answers
    prompts = [request.body["prompt"] for request in server.requests if request.path == "/completion"]
    assert all(LEFT in prompt for prompt in prompts)
    assert LEFT in server.chats[0]["messages"][-1]["content"]


@pytest.mark.parametrize("facts", [ModelFacts(key="k"), ModelFacts(key="k", call_form="native")])
async def test_a_model_that_calls_natively_or_is_not_known_is_asked_once_and_reminded_of_nothing(
    facts: ModelFacts,
) -> None:
    async with talking(["It says hi."], facts, kind="llama.cpp") as (model, server):
        await asked(model, done("hi"))

    assert not [request for request in server.requests if request.path in ("/completion", "/apply-template")]
    assert server.chats[0]["messages"][-1]["content"] == "hi"


async def test_the_reminder_is_short_goes_when_the_user_speaks_and_is_not_counted() -> None:
    long = (ASKED[0], PromptMessage(role="user", content="Begin. " + "word " * 1000 + "End."), *done("hi")[2:])
    answer = Answer(text="It says hi.", prompt_tokens=900)
    async with talking([SPEAK, answer] * 2, WRITER, kind="llama.cpp") as (model, server):
        await asked(model, (*long, PromptMessage(role="assistant", content="Hi."), ASKED[1]))
        end = (await asked(model, long))[-1]

    spoke, reminded = (chat["messages"][-1]["content"] for chat in server.chats)
    assert "The user asked" not in spoke
    words = reminded.partition("The user asked: ")[2]
    assert words.startswith("Begin.")
    assert "End.\n" in words
    assert len(words) < 500
    assert end.usage.prompt_tokens < 900


async def test_a_model_that_asks_again_for_what_it_was_given_gets_it_in_the_other_form() -> None:
    facts = ModelFacts(key="k", call_form="text", result_form="tool")
    async with talking([FENCE, "It says hi."], facts) as (model, server):
        pieces = await asked(model, done("hi"))

    assert not any(isinstance(piece, CallPiece) for piece in pieces)
    assert [chat["messages"][-1]["role"] for chat in server.chats] == ["tool", "user"]
    assert "read_file returned:\nhi" in server.chats[1]["messages"][-1]["content"]
    assert model.facts.result_form == "user"


async def test_the_call_that_just_failed_is_not_taken_again() -> None:
    async with talking([NAMED, GIVEN, SPEAK, "There is no such file."], WRITER, kind="llama.cpp") as (model, server):
        pieces = await asked(model, done("Error FileNotFound: a.txt does not exist.", failed=True))

    assert not any(isinstance(piece, CallPiece) for piece in pieces)
    assert TextPiece("There") in pieces
    asked_for = [request.body.get("json_schema") for request in server.requests if request.path == "/completion"]
    assert asked_for == [
        build_name_schema((ANSWER_TOOL, *TOOLS)),
        None,
        build_name_schema((ANSWER_TOOL,)),
    ]  # among the other tools


async def test_what_was_got_already_is_not_asked_for_again() -> None:
    async with talking([NAMED, GIVEN, "It says hi."], WRITER, kind="llama.cpp") as (model, server):
        pieces = await asked(model, done("hi"))

    assert not any(isinstance(piece, CallPiece) for piece in pieces)
    assert TextPiece("It") in pieces
    assert server.chats[0]["messages"][-1]["content"] == "read_file returned:\nhi"  # and no reminder to go on


async def test_a_server_that_cannot_bind_is_asked_again_without() -> None:
    facts = ModelFacts(key="k", call_form="constrained")
    async with talking([FENCE, Answer(status=400, body={"error": "no"}), FENCE], facts) as (model, _):
        assert READ in await asked(model)

    assert model.facts.call_form == "text"


async def test_two_answers_that_needed_the_schema_are_remembered() -> None:
    wrong = "<tool_call>\n{what\n</tool_call>"
    right = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
    async with talking([wrong, wrong, right] * 2, kind="vllm") as (model, _):
        assert READ in await asked(model)
        assert model.facts.call_form == "unknown"
        assert READ in await asked(model)

    assert model.facts.call_form == "constrained"


async def test_ollama_is_bound_by_its_format() -> None:
    wrong = "<tool_call>\n{what\n</tool_call>"
    async with OllamaServer([wrong, wrong, '{"name": "read_file", "arguments": {"path": "a.txt"}}']) as server:
        provider = Ollama(Exchange(server.base_url, ProviderTimeouts()))
        model = Model(provider, server.model, 4096, ModelFacts(key="k"))
        pieces = await asked(model)
        await provider.close()

    assert READ in pieces
    assert server.chats[2]["format"] == build_call_schema(TOOLS)


async def test_the_speed_is_learnt_from_the_first_answer_alone() -> None:
    slow = Answer(text="word " * 30, delay=0.3, pace=0.02, prompt_tokens=600, completion_tokens=30)
    async with talking([slow, slow]) as (model, _):
        await asked(model)
        first = model.facts
        await asked(model)

    assert first.prefill_per_second is not None
    assert 200 < first.prefill_per_second < 2200
    assert first.decode_per_second is not None
    assert model.facts == first


async def test_a_known_speed_says_how_long_reading_will_take() -> None:
    facts = ModelFacts(key="k", prefill_per_second=100.0)
    async with talking([Answer(text="Hi.", progress=[(100, 600)])], facts) as (model, _):
        progress = [piece for piece in await asked(model) if isinstance(piece, ProgressPiece)]

    assert progress == [ProgressPiece(100, 600, seconds_left=5.0)]


async def test_a_server_that_says_nothing_while_it_reads_is_timed_by_the_speed_measured_before() -> None:
    facts = ModelFacts(key="k", prefill_per_second=50.0)
    long = PromptMessage(role="user", content="word " * 500)
    more = PromptMessage(role="user", content="word " * 200)
    async with talking(["Hi.", "Hi.", "Hi."], facts) as (model, _):
        first = (await asked(model, (*ASKED, long)))[0]
        second = (await asked(model, (*ASKED, long, more)))[0]
        third = (await asked(model, (*ASKED, long, more, ASKED[1])))[0]

    assert (first.stage, first.processed, round(first.seconds_left)) == ("reading", 0, 13)
    assert (second.total, second.seconds_left) == (204, 4.1)  # what was sent before is not read again
    assert third == TextPiece("Hi.")  # too short to speak of


@covers("S4.1")
async def test_the_end_comes_once_with_what_all_requests_took() -> None:
    wrong = Answer(text='{"name": "nothing", "arguments": {}}', prompt_tokens=50, completion_tokens=7)
    async with talking([wrong, Answer(text=FENCE, prompt_tokens=90, completion_tokens=9)]) as (model, _):
        pieces = await asked(model)

    (end,) = (piece for piece in pieces if isinstance(piece, FinishPiece))
    assert pieces[-1] == end
    assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (50, 16)


TEXT = st.text(max_size=20)
MESSAGES = st.lists(
    st.one_of(
        st.builds(PromptMessage, role=st.just("user"), content=TEXT),
        st.builds(
            PromptMessage,
            role=st.just("assistant"),
            content=TEXT,
            calls=st.lists(
                st.builds(ToolCall, id=TEXT, name=TEXT, arguments=st.dictionaries(TEXT, TEXT)), max_size=2
            ).map(tuple),
        ),
        st.builds(PromptMessage, role=st.just("tool"), content=TEXT, tool_name=TEXT),
    ),
    max_size=8,
)


@given(form=st.sampled_from(["fence", "tag", "json"]), messages=MESSAGES, more=MESSAGES)
def test_a_spoken_history_only_grows(form: Any, messages: list[PromptMessage], more: list[PromptMessage]) -> None:
    before, after = render_messages(messages, form), render_messages([*messages, *more], form)

    assert after[: max(0, len(before) - 1)] == before[:-1]
    if before:
        assert after[len(before) - 1].content.startswith(before[-1].content)
    assert all(message.role != "tool" and not message.calls for message in after)
    assert not any(one.role == other.role == "user" for one, other in pairwise(after))


def test_listed_tools_stand_in_the_system_prompt_with_one_worked_call() -> None:
    told = add_tool_list(ASKED, TOOLS, "fence")

    assert [message.role for message in told] == ["system", "user"]
    assert told[0].content.startswith("Help.\n\nTools:\n- read_file(path): Read a file.\n")
    assert told[0].content.endswith('```json\n{"name": "read_file", "arguments": {"path": "…"}}\n```')


RECORDED = Path(__file__).parents[1] / "recorded"
RUN = ToolSchema(
    name="shell",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
WHOLE = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
NO_CALL = "<tool_call>\n{what\n</tool_call>"
COMMAND = "I list them.\n```bash\nls -a\n```\n"
REFUSED = ToolsUnsupportedError("No tools here.", action="Start it with --jinja.")
SCRIPTS: dict[str, list[Any]] = {
    "words": ["Hello there."],
    "native call": [[ProgressPiece(3, 9), TextPiece("I look."), READ]],
    "native call cut": [[READ, FinishPiece("length", Usage(prompt_tokens=30, completion_tokens=4))]],
    "call in a fence": [f"I look.\n{FENCE}", WHOLE, "It says hi."],
    "call as it stands": [WHOLE, FENCE, "It says hi."],
    "call in a tag": [f"<tool_call>\n{WHOLE}\n</tool_call>", "It says hi."],
    "no call, then one": [f"I look. {NO_CALL}", f"Sorry. {FENCE}", "It says hi."],
    "no call, then words": [NO_CALL, "I would rather not.", "It says hi."],
    "no call, then nothing": [NO_CALL, "", "It says hi."],
    "no call three times": [NO_CALL, [ThinkingPiece("Hm."), TextPiece(NO_CALL)], "Well.", "It says hi."],
    "no call, then bound": [NO_CALL, NO_CALL, WHOLE],
    "no call, then half of one": [NO_CALL, NO_CALL, WHOLE[:-9], "It says hi."],
    "no call, then a failure": [NO_CALL, NO_CALL, ModelError("It fell over."), "It says hi."],
    "a command": [COMMAND],
    "a command and a word": [COMMAND + "So it is."],
    "two commands": [COMMAND + COMMAND],
    "an open command": ["```bash\nls -a\n"],
    "tools refused": [REFUSED, FENCE, "It says hi."],
    "refused for good": [REFUSED, REFUSED],
    "named, then given": [NAMED, GIVEN, "It says hi."],
    "named, then made up": [NAMED, '{"path": "a.txt", "mode": "r"}}', WHOLE, "It says hi."],
    "named, then nothing": [NAMED, "", "It says hi."],
    "spoken": [SPEAK, "Hello there."],
    "deciding fails": [ModelError("It fell over."), "Hello there."],
    "a shell command named": ['{"name": "shell"}', '{"command": "ls"}}', "It says hi."],
}
FORMS = [
    ModelFacts(key="k"),
    ModelFacts(key="k", result_form="user", binds_answers=False),
    ModelFacts(key="k", call_form="native"),
    ModelFacts(key="k", call_form="text", written_form="tag"),
    ModelFacts(key="k", call_form="text", result_form="user"),
    ModelFacts(key="k", call_form="text", result_form="user", written_form="json"),
    ModelFacts(key="k", call_form="constrained"),
    ModelFacts(key="k", call_form="constrained", result_form="user", takes_tools=False),
    ModelFacts(key="k", call_form="none", takes_tools=False),
]
HISTORIES = {"asked": ASKED, "result": done("hi"), "failure": done("Error NotFound: no.", failed=True)}
SAID_BY_THE_LADDER = {
    "no call": "That was no tool call: ",
    "now": "Call the tool now.",
    "left": "The user asked: ",
    "returned": "read_file returned:\n",
    "failed": "read_file failed:\n",
    "tools": "- read_file(path): ",
    "hi": "hi",
    "asked": "Read a.txt.",
}


class Noting(BaseProvider):
    """Says what the script says, whatever it is asked, and notes that."""

    def __init__(self, script: list[Any], *, renders: bool) -> None:
        super().__init__()
        self.script = iter(script)
        self.renders = renders
        self.asked: list[str] = []

    async def render(self, request: ChatRequest) -> str | None:
        return f"<{'|'.join(map(tell_message, request.messages))}>" if self.renders else None

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        told = [*map(tell_message, request.messages)]
        bound = request.response_schema and request.response_schema == build_call_schema((*TOOLS, RUN))
        tools = [tool.name for tool in request.tools]
        self.asked.append(f"chat {told} {tools} {request.max_tokens} {request.temperature} {bound}")
        return self._say()

    def complete(self, request: CompletionRequest) -> AsyncGenerator[AnyPiece, None]:
        names = SCHEMAS.get(json.dumps(request.schema, sort_keys=True), "other")
        told = [request.prompt, names, request.max_tokens, request.stop, request.temperature]
        self.asked.append(f"completion {told}")
        return self._say()

    async def _say(self) -> AsyncGenerator[AnyPiece, None]:
        said = next(self.script, "No more.")
        if isinstance(said, Exception):
            raise said
        for piece in said if isinstance(said, list) else [TextPiece(part) for part in re.findall(r"\s*\S+", said)]:
            yield piece
        yield FinishPiece("stop", Usage(prompt_tokens=500, completion_tokens=7, reused_tokens=3))


SCHEMAS = {
    json.dumps(schema, sort_keys=True): name
    for name, schema in {
        "nothing": None,
        "names": build_name_schema((ANSWER_TOOL, *TOOLS, RUN)),
        "other names": build_name_schema((ANSWER_TOOL, RUN)),
        "reading": build_call_schema(TOOLS),
        "calls": build_call_schema((*TOOLS, RUN)),
    }.items()
}


def tell_message(message: PromptMessage) -> str:
    """Who says it, and what of it is the ladder's: the wording itself is told elsewhere."""
    found = [name for name, words in SAID_BY_THE_LADDER.items() if words in message.content]
    return " ".join([message.role, *found, *(call.name for call in message.calls)])


def tell_piece(piece: AnyPiece) -> str:
    if isinstance(piece, FinishPiece):
        counted = (piece.usage.prompt_tokens, piece.usage.completion_tokens, piece.usage.reused_tokens)
        return f"{piece.reason} {counted}"
    return repr(piece.text) if isinstance(piece, TextPiece) else str(piece)


async def climb(script: list[Any], facts: ModelFacts, messages: tuple[PromptMessage, ...], **options: Any) -> list[str]:
    """What is asked, what comes, and what is learnt of one answer."""
    provider = Noting(script, renders=options.pop("renders"))
    stumbles, tools = options.pop("stumbles", None), options.pop("tools", (*TOOLS, RUN))
    request = ChatRequest(model="m", messages=messages, window=4096, tools=tools, **options)
    fallback = ToolCallFallback(provider, request, facts, *([] if stumbles is None else [stumbles]))
    said: list[AnyPiece | str] = []
    try:
        async for piece in fallback.stream_answer():
            text = said and isinstance(said[-1], TextPiece) and isinstance(piece, TextPiece)
            said = [*said[:-1], TextPiece(said[-1].text + piece.text)] if text else [*said, piece]  # type: ignore[union-attr]
    except ModelError as error:
        said.append(f"{type(error).__name__} {error.message}")
    learnt, before = msgspec.to_builtins(fallback.facts), msgspec.to_builtins(facts)
    changed = {name: value for name, value in learnt.items() if before.get(name) != value}
    changed = {name: value for name, value in changed.items() if "per_second" not in name}  # by the clock
    counted = fallback.counted.forms == facts.forms, fallback.counted.forms == fallback.facts.forms
    shown = [piece if isinstance(piece, str) else tell_piece(piece) for piece in said]
    end = f"learnt {changed} {fallback.stumbles} {counted} {fallback.advice}"
    return [*(f"  {line}" for line in (*provider.asked, *shown, end))]


@pytest.mark.parametrize("renders", [True, False])
async def test_every_answer_in_every_form(renders: bool) -> None:
    lines: list[str] = []
    for facts in FORMS:
        forms = [facts.call_form, facts.written_form, facts.result_form, facts.takes_tools, facts.binds_answers]
        for place, (name, script) in enumerate(SCRIPTS.items()):
            for said in HISTORIES if place % 4 == 3 or (renders and "named" in name) else ["asked"]:
                course = await climb(script, facts, HISTORIES[said], renders=renders, max_tokens=(None, 20)[place % 2])
                lines += [f"{forms} {name}, {said}", *course]

    compare_course(RECORDED / f"ladder_{'rendered' if renders else 'plain'}.txt", lines)


async def test_an_answer_that_is_no_use_at_a_call_s_length_and_one_that_is() -> None:
    """A call that is bound is never longer than a call may be, however much the request allows."""
    for allowed, told in ((None, 1024), (5000, 1024), (1024, 1024), (1000, 1000)):
        script = [NAMED, "{}}", WHOLE]
        course = "\n".join(await climb(script, WRITER, ASKED, renders=True, max_tokens=allowed))
        assert [int(found) for found in re.findall(r"', (\d+), \(", course)] == [32, told, told]
        bound = "\n".join(await climb([NO_CALL, NO_CALL, WHOLE], FORMS[0], ASKED, renders=False, max_tokens=allowed))
        assert f"] [] {told} 0 True" in bound


@pytest.mark.parametrize(
    ("facts", "stumbles", "learnt"),
    [
        (ModelFacts(key="k"), 1, "constrained"),
        (ModelFacts(key="k"), 0, None),
        (ModelFacts(key="k", call_form="text"), 1, "constrained"),
        (ModelFacts(key="k", binds_answers=False), 1, None),
        (ModelFacts(key="k", call_form="native"), 1, None),
        (ModelFacts(key="k", call_form="none"), 1, None),
    ],
)
async def test_only_what_can_be_bound_is_bound_after_a_second_stumble(
    facts: ModelFacts, stumbles: int, learnt: str | None
) -> None:
    course = await climb([NO_CALL, NO_CALL, WHOLE], facts, ASKED, renders=True, stumbles=stumbles)

    assert (f"'callForm': '{learnt}'" in course[-1]) if learnt else "callForm" not in course[-1]


@pytest.mark.parametrize(
    ("words", "tools", "runs"),
    [
        ("List the files.", (*TOOLS, RUN), True),
        ("List the files.", TOOLS, False),
        ("How do I list the files?", (*TOOLS, RUN), False),
    ],
)
async def test_a_command_is_run_where_it_may_be_and_is_meant(words: str, tools: Any, runs: bool) -> None:
    said = (ASKED[0], PromptMessage(role="user", content=words, sources=(1,)))

    course = await climb([COMMAND], FORMS[0], said, renders=False, tools=tools)

    assert any("CallPiece" in line for line in course) is runs
    assert ("'callForm': 'blocks'" in course[-1]) is runs
