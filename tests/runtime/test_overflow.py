"""Servers that take less than they said: what is sent fits by their own count, and what they refuse is learnt."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ollm import ConversationOptions, Notice, TurnFinished, open_conversation
from tests.covers import covers
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

SERVED = 2400
LONG = "Please look at the parser again and tell me what you find there. " * 14


def count(request: Request) -> int:
    """The server's own count: a token for every three and a half bytes."""
    sent = json.dumps(request.body["messages"], ensure_ascii=False) + json.dumps(request.body.get("tools", []))
    return math.ceil(len(sent.encode()) / 3.5)


def refuse_as(word: Callable[[int, int], Any], *, with_answer: bool, status: int = 400) -> Callable[[Request], Answer]:
    def reply(request: Request) -> Answer:
        prompt, most = count(request), request.body.get("max_tokens") or 0
        if prompt + (most if with_answer else 0) > SERVED:
            return Answer(status=status, body=word(prompt, most))
        return Answer(text="I looked, and found nothing of interest in it. " * 12, prompt_tokens=prompt)

    return reply


WORDINGS: dict[str, tuple[Callable[[int, int], Any], bool, int]] = {
    "vllm": (
        lambda p, m: {
            "object": "error",
            "message": f"This model's maximum context length is {SERVED} tokens. However, you requested {p + m} tokens "
            f"({p} in the messages, {m} in the completion). Please reduce the length.",
        },
        True,
        400,
    ),
    "vllm 0.31": (  # it reads no more of the prompt than it needs to refuse it
        lambda p, m: {
            "error": {
                "message": f"This model's maximum context length is {SERVED} tokens. However, you requested {m} output tokens"
                f" and your prompt contains at least {min(p, SERVED + 1 - m)} input tokens, for a total of at least"
                f" {min(p + m, SERVED + 1)} tokens. Please reduce the length of the input prompt or the number of"
                f" requested output tokens. (parameter=input_tokens, value={min(p, SERVED + 1 - m)})",
                "type": "BadRequestError",
            }
        },
        True,
        400,
    ),
    "tgi": (
        lambda p, m: {
            "error": f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {SERVED}. Given: {p} "
            f"`inputs` tokens and {m} `max_new_tokens`"
        },
        True,
        422,
    ),
    "studio": (
        lambda p, _: {
            "error": f"Trying to keep the first {p} tokens when context the overflows. However, the model is loaded with "
            f"context length of only {SERVED} tokens, which is not enough."
        },
        False,
        400,
    ),
    "code": (
        lambda p, _: {"error": {"message": "Please shorten your input.", "code": "context_length_exceeded"}},
        False,
        400,
    ),
    "nothing known": (lambda _p, _m: {"error": {"message": "Bad request: too big for us, sorry."}}, False, 400),
}


class Heard:
    """What came of a talk in two processes, as far as one can tell: it is closed and opened again in the middle."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.notices: list[str] = []
        self.requests: list[Request] = []


async def talk(root: Path, reply: Callable[[Request], Answer], texts: Sequence[str], window: int) -> Heard:
    heard = Heard()
    workspace = root / "project"
    workspace.mkdir()
    async with ScriptedServer(reply, kind="vllm", window=window) as server:
        provider = {"type": "openai", "baseUrl": server.base_url, "model": "scripted"}
        for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
            options = ConversationOptions(workspace=workspace, newest=bool(heard.reasons), flags={"provider": provider})
            async with open_conversation(options) as conversation:
                for text in part:
                    async with conversation.turn(text) as events:
                        async for event in events:
                            if isinstance(event, TurnFinished):
                                heard.reasons.append(event.reason)
                            elif isinstance(event, Notice):
                                heard.notices.append(event.text)
        heard.requests = [request for request in server.requests if request.path.endswith("/chat/completions")]
    return heard


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_HOME", str(tmp_path / "home"))


@covers("D612")
@pytest.mark.parametrize("wording", WORDINGS)
async def test_a_refusal_in_any_words_costs_no_turn_and_its_figure_is_known_to_the_next_process(
    tmp_path: Path, wording: str
) -> None:
    word, with_answer, status = WORDINGS[wording]
    reply = refuse_as(word, with_answer=with_answer, status=status)

    heard = await talk(tmp_path, reply, [f"Turn {number}: {LONG}" for number in range(20)], 4096)

    refused = [reply(request).status != 200 for request in heard.requests]
    assert set(heard.reasons) == {"answered"}
    has_figure = wording not in ("code", "nothing known")
    assert 1 <= sum(refused) <= (2 if has_figure else 6)
    assert not any(refused[len(refused) // 2 :]) or not has_figure, "a guess is not kept"


async def test_prompt_and_answer_together_stay_within_the_window_by_the_servers_own_count(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        return Answer(text="I looked, and found nothing. " * 20, prompt_tokens=count(request))

    chinese = "端口和路径请记住，不要修改配置文件。" * 12
    said = [f"Turn {number}: {LONG if number % 2 else chinese}" for number in range(16)]
    heard = await talk(tmp_path, reply, said, 4096)

    sums = [count(request) + request.body["max_tokens"] for request in heard.requests]
    assert len(sums) >= 16
    assert 2048 < max(sums) <= 4096


async def test_a_server_that_cuts_silently_at_a_plateau_is_found_out_and_asked_again(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        read = min(count(request), SERVED)
        return Answer(text=f"I looked at {read} lines of {count(request)}. " * 6, prompt_tokens=read)

    heard = await talk(tmp_path, reply, [f"Turn {number}: {LONG}" for number in range(18)], 8192)

    sizes = [count(request) for request in heard.requests]
    assert sum("read only a part" in text for text in heard.notices) == 2, "once a process: a guess is not kept"
    assert max(sizes) > SERVED
    assert max(sizes[-8:]) <= SERVED
    assert set(heard.reasons) == {"answered"}


async def test_a_server_that_counts_nothing_still_gets_room_for_its_answers(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        return Answer(text="I looked, and found nothing of interest in it. " * 12, prompt_tokens=0)

    heard = await talk(tmp_path, reply, [f"Turn {number}: {LONG}" for number in range(8)], 4096)

    chats = [request.body for request in heard.requests if "Write the minutes" not in str(request.body["messages"])]
    assert min(body["max_tokens"] for body in chats) >= 4096 // 12 - 16
    assert max(count(request) + request.body["max_tokens"] for request in heard.requests) <= 4096
    assert set(heard.reasons) == {"answered"}
