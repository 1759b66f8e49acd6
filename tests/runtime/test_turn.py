"""The loop from the user's message to the answer: prompts that are too long or cut, errors, cancellation."""

import json
from pathlib import Path

import pytest

from ollm.domain.errors import DeniedError, ModelError, ModelTimeoutError, NoServerError, OllmError, PromptTooLongError
from ollm.domain.events import AnyEvent, Notice, TurnFinished
from ollm.runtime.prompt.compaction import ContextFull
from ollm.runtime.turn import classify_error
from tests.cli.running import running
from tests.covers import covers
from tests.runtime.talking import Talking
from tests.servers.answers import Answer, Request

REFUSED = {
    "error": {
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 5200,
        "n_ctx": 3000,
    }
}


@covers("D612")
async def test_a_refused_prompt_is_folded_and_sent_again(tmp_path: Path) -> None:
    long = "word " * 900
    script: list[Answer | str] = [f"{long}one", Answer(status=400, body=REFUSED)]
    async with running(tmp_path, script, window=8192, kind="llama.cpp") as runner:
        await runner.run("-p", f"first {long}")
        done = await runner.run("-p", "second", "--continue", "-o", "json")

    answer = json.loads(done.out)
    assert answer["reason"] == "answered", done.err
    refused, *_, sent = (sum(len(m["content"] or "") for m in chat["messages"]) for chat in runner.server.chats[1:])
    assert sent < refused
    assert len(runner.sessions()[0]["messages"]) == 4


async def test_one_that_refuses_again_ends_the_turn_with_the_ways_out(tmp_path: Path) -> None:
    script = [Answer(status=400, body=REFUSED), Answer(status=400, body=REFUSED)]
    async with running(tmp_path, script, kind="llama.cpp") as runner:
        done = await runner.run("-p", "hello", "-o", "json")

    assert done.code == 1
    assert json.loads(done.out)["reason"] == "context-full"


async def test_a_cut_prompt_is_told_and_the_budget_corrected(tmp_path: Path) -> None:
    long = "word " * 1100
    async with running(tmp_path, [Answer(text="ok", prompt_tokens=1100)], kind="llama.cpp", window=4096) as runner:
        done = await runner.run("-p", long, "-o", "stream-json")

    events = [json.loads(line) for line in done.out.splitlines()]
    (cut,) = [event for event in events if event["type"] == "prompt-truncated"]
    assert cut["readTokens"] == 1100
    assert cut["sentTokens"] > 1122
    assert [event["window"] for event in events if event["type"] == "context-usage"][-1] == 1100


async def test_a_low_count_without_proof_changes_nothing(tmp_path: Path) -> None:
    long = "word " * 1100
    async with running(tmp_path, [Answer(text="ok", prompt_tokens=1100)], window=4096) as runner:
        done = await runner.run("-p", long, "-o", "stream-json")

    assert "prompt-truncated" not in done.out


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ContextFull("x"), "context-full"),
        (PromptTooLongError("x"), "context-full"),
        (NoServerError("x"), "no-server"),
        (ModelTimeoutError("x"), "timeout"),
        (DeniedError("x"), "denied"),
        (ModelError("x"), "model-error"),
        (OllmError("x"), "model-error"),
    ],
)
def test_the_reason_a_turn_ends_with(error: OllmError, reason: str) -> None:
    assert classify_error(error) == reason


async def test_an_empty_answer_and_one_that_hit_the_end_are_told(talking: Talking) -> None:
    async with talking(["", Answer(text="cut", reason="length"), "fine"]) as talk:
        first, second, third = [await talk.say("hello") for _ in range(3)]

    def told(events: list[AnyEvent]) -> list[str]:
        return [event.text for event in events if isinstance(event, Notice)]

    assert told(first) == ["The model gave an empty answer. Rephrase, or switch with /model."]
    assert told(second) == ["The answer hit the end of the context window; /compact frees space."]
    assert told(third) == []


async def test_the_usage_of_all_requests_of_a_turn_adds_up(talking: Talking) -> None:
    script = [
        Answer(calls=[("ls", {"path": "."})], prompt_tokens=100, completion_tokens=7, cached_tokens=3),
        Answer(text="done", prompt_tokens=160, completion_tokens=5, cached_tokens=90),
    ]
    async with talking(script) as talk:
        events = await talk.say("hello")

    finished = events[-1]
    assert isinstance(finished, TurnFinished)
    assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (260, 12)
    assert finished.usage.reused_tokens == 93
    assert finished.reason == "answered"
    assert "TurnStarted" in [type(event).__name__ for event in events]


async def test_what_was_said_before_a_break_is_recorded_as_interrupted(talking: Talking) -> None:
    async with talking([Answer(text="one two three four", reset_after=3)]) as talk:
        events = await talk.say("hello")
        history = await talk.conversation.history()

    assert isinstance(events[-1], TurnFinished)
    assert events[-1].reason != "answered"
    assert history[-1]["role"] == "assistant"
    assert history[-1]["interrupted"] is True


async def test_an_answer_that_repeats_itself_ends_the_turn_as_a_loop(talking: Talking) -> None:
    async with talking([Answer(text="I shall look at it again and again and again now. " * 60)]) as talk:
        events = await talk.say("hello")
        state = talk.conversation.parts.state.last_loop

    assert isinstance(events[-1], TurnFinished)
    assert events[-1].reason == "loop"
    assert events[-1].message == state
    assert "repeats the same text" in state


async def test_more_requests_than_the_limit_end_the_turn(talking: Talking) -> None:
    def say(request: Request) -> Answer:
        return Answer(calls=[("ls", {"path": f"{len(request.body['messages'])}"})])

    async with talking(say) as talk:  # type: ignore[arg-type]
        loops = talk.conversation.parts.loops
        loops.configure({"maxTurns": 3})
        events = await talk.say("hello")

        assert len(talk.server.chats) == 3
        assert isinstance(events[-1], TurnFinished)
        assert (events[-1].reason, events[-1].message) == ("loop", "3 model requests for one message")


async def test_the_same_words_step_after_step_end_the_turn_though_the_calls_differ(talking: Talking) -> None:
    script = [Answer(text="Let me look again.", calls=[("ls", {"path": f"no-{step % 3}"})]) for step in range(9)]
    async with talking(script) as talk:
        events = await talk.say("hello")

    assert isinstance(events[-1], TurnFinished)
    assert (events[-1].reason, events[-1].message) == (
        "loop",
        "the same text 3 times in a row: “Let me look again.”",
    )


async def test_a_refusal_is_counted_by_the_forms_that_the_request_went_out_in(talking: Talking) -> None:
    refused = {"error": {**REFUSED["error"], "n_ctx": 30_000}}
    no_tools = Answer(status=400, body={"error": {"message": "scripted does not support tools"}})
    too_long = [Answer(status=400, body=refused)]

    def say(request: Request) -> Answer:
        if "tools" in request.body:
            return no_tools
        return too_long.pop() if too_long else Answer(text="done")

    async with talking(say) as talk:  # type: ignore[arg-type]
        prompt, learnt = talk.conversation.parts.prompt, list[bool]()
        learn = prompt.learn_from_rejection

        def watch(error: PromptTooLongError) -> None:
            learnt.append(prompt.forms.takes_tools)
            learn(error)

        prompt.learn_from_rejection = watch  # type: ignore[method-assign]
        await talk.say("hello")

    assert learnt == [False]
