"""The loop from the user's message to the answer: prompts that are too long or cut, errors, cancellation."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.config.settings import LoopSettings
from ollm.domain.events import AnyEvent, Notice, TurnFinished
from ollm.runtime.prompt.prompt import Prompt
from ollm.runtime.turn import PROMPT_CUT
from ollm.services.chat_compression.summary import IDLE_ORDER
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


async def test_an_empty_answer_and_one_that_hit_the_end_are_told(talking: Talking) -> None:
    cut = Answer(text="cut", reason="length", completion_tokens=0), Answer(text="cut", reason="length")
    async with talking(["", *cut, Answer(thinking="Hm.", text=""), "fine"]) as talk:
        first, second, early, thought, last = [await talk.say("hello") for _ in range(5)]

    def told(events: list[AnyEvent]) -> list[str]:
        return [event.text for event in events if isinstance(event, Notice)]

    assert told(first) == ["The model gave an empty answer. Rephrase, or switch with /model."]
    assert told(second) == ["The answer hit the end of the context window; /compact frees space."]
    assert told(early) == ["The server cut the answer off after 5 tokens; /continue resumes it."]
    assert told(thought) == ["The model only thought and gave no answer. Ask again, or switch with /model."]
    assert told(last) == []


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
        loops.configure(LoopSettings(max_turns=3))
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


UNSAID = {"error": {"message": "Please shorten your input.", "code": "context_length_exceeded"}}
UNKNOWN = {"error": {"message": "Bad request: too big for us, sorry."}}
LONG = "Please look at the parser again and tell me what you find there. " * 20


def tell_notices(events: list[AnyEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def get_end(events: list[AnyEvent]) -> TurnFinished:
    assert isinstance(events[-1], TurnFinished)
    return events[-1]


def measure(chats: list[dict[str, Any]]) -> list[int]:
    """How long the requests were; those for a summary are left out."""
    return [len(json.dumps(chat["messages"])) for chat in chats if chat.get("tools")]


class Refusing:
    """Answers at length; refuses everything but summaries as long as there is something to refuse with."""

    def __init__(self) -> None:
        self.refusals: list[Answer] = []
        self.answers: list[Answer] = []

    def __call__(self, request: Request) -> Answer:
        summary = request.body["messages"][-1]["content"].startswith(IDLE_ORDER[:40])
        if self.refusals and request.body.get("tools") and not summary:
            return self.refusals.pop(0)
        return self.answers.pop(0) if self.answers else Answer(text="I looked, and found nothing of interest. " * 12)


async def test_one_that_never_says_what_it_takes_is_asked_three_times(talking: Talking) -> None:
    async with talking(lambda _request: Answer(status=400, body=UNSAID)) as talk:  # type: ignore[arg-type]
        events = await talk.say("hello")

    assert get_end(events).reason == "context-full"
    assert len(talk.server.chats) == 3
    assert [text.endswith("Compacting to fit.") for text in tell_notices(events)] == [True, True]


async def test_a_server_that_was_restarted_with_less_teaches_nothing_about_the_next_one(talking: Talking) -> None:
    async with talking(served={"kind": "llama.cpp", "window": 8192}) as talk:
        talk.server.script = [Answer(status=400, body={"error": {**REFUSED["error"], "n_ctx": 1024}}), "Hello."]
        talk.server.window = 1024
        await talk.say(LONG * 8)
        status = await talk.run("/status")
        talk.server.window, talk.server.script = 8192, ["Hello."]

    (facts,) = json.loads((talk.home / "model-facts.json").read_text()).values()
    assert facts.get("servedWindow") is None
    assert "(window 1,024)" in status.text


async def test_a_short_prompt_that_is_refused_for_no_known_reason_is_not_sent_again(talking: Talking) -> None:
    async with talking([Answer(status=400, body=UNKNOWN)]) as talk:
        events = await talk.say("hello")

    assert (get_end(events).reason, len(talk.server.chats), tell_notices(events)) == ("model-error", 1, [])


async def test_a_long_prompt_that_is_refused_for_no_known_reason_is_sent_again_shorter_once(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLM_CONTEXT_WINDOW", "16384")
    monkeypatch.setattr(Prompt, "is_suspiciously_long", True)
    server = Refusing()
    async with talking(server) as talk:  # type: ignore[arg-type]
        for number in range(12):
            await talk.say(f"{number} {LONG}")
        before, prompt = len(talk.server.chats), talk.conversation.parts.prompt
        server.refusals = [Answer(status=400, body=UNKNOWN)]
        await talk.say("a passing fault")
        repeated, unchanged = measure(talk.server.chats[before:])
        full, before = prompt.model.window, len(talk.server.chats)
        server.refusals = [Answer(status=400, body=UNKNOWN)] * 2
        events = await talk.say("and now?")
        refused, _, taken = measure(talk.server.chats[before:])
        window = prompt.model.window
        server.refusals = [
            *[Answer(status=400, body=UNKNOWN)] * 2,
            Answer(calls=[("ls", {"path": "."})]),
            Answer(status=400, body=UNKNOWN),
        ]
        again = await talk.say("once more?")

    assert (repeated, full) == (unchanged, 16384)
    assert taken < refused
    assert get_end(events).reason == "answered"
    assert sum(text.endswith("The prompt was long; trying a shorter one.") for text in tell_notices(events)) == 1
    assert prompt.used_tokens < window < 16384
    assert get_end(again).reason in ("model-error", "context-full"), "it is not repeated twice in a turn"
    assert sum(text.endswith("The prompt was long; trying a shorter one.") for text in tell_notices(again)) == 1


async def test_an_answer_to_a_part_of_the_prompt_is_kept_as_interrupted_and_asked_for_once_more(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [Answer(text=text, prompt_tokens=tokens) for text, tokens in (("in part", 1100), ("less", 700))]
    async with talking(script, served={"kind": "llama.cpp", "window": 4096}) as talk:
        events = await talk.say("word " * 1100)
        history = await talk.conversation.history()

    assert tell_notices(events).count(PROMPT_CUT) == 1
    assert [(one["role"], one.get("interrupted", False)) for one in history] == [
        ("user", False),
        ("assistant", True),
        ("assistant", False),
    ]
    assert len(talk.server.chats) == 2
    used = get_end(events).usage
    assert (used.prompt_tokens, used.completion_tokens) == (1800, 10)


async def test_what_an_answer_that_broke_off_took_is_our_own_estimate(talking: Talking) -> None:
    async with talking(["fine", Answer(text="one two three four", reset_after=3)]) as talk:
        await talk.say("hello")
        prompt = talk.conversation.parts.prompt
        before = prompt.used_tokens
        broken = get_end(await talk.say("again"))

        used = broken.usage
        assert before < used.prompt_tokens < prompt.used_tokens
        assert used.completion_tokens == prompt.used_tokens - used.prompt_tokens
        assert 0 < used.completion_tokens < 20


async def test_requests_are_counted_anew_for_each_message(talking: Talking) -> None:
    def say(request: Request) -> Answer:
        asked = request.body["messages"][-1]["role"] == "user"
        return Answer(calls=[("ls", {"path": "."})]) if asked else Answer(text="done")

    async with talking(say) as talk:  # type: ignore[arg-type]
        talk.conversation.parts.loops.configure(LoopSettings(max_turns=3))
        ends = [get_end(await talk.say(f"look {number}")).reason for number in range(3)]

    assert ends == ["answered"] * 3
