"""Hooks hear of sessions, turns and what a person should know."""

import json
from pathlib import Path
from typing import Any

from tests.runtime.talking import Talking


def write_hooks(home: Path, directory: Path, *events: str) -> Path:
    """Hooks that write down what they were told, one line each."""
    heard = directory / "project" / "heard.jsonl"  # a hook may write into the workspace
    heard.parent.mkdir(exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    hooks = dict.fromkeys(events, f"(cat; echo) >> {heard}")
    (home / "config.yaml").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    return heard


def read(heard: Path) -> list[dict[str, Any]]:
    lines = heard.read_text(encoding="utf-8").splitlines() if heard.exists() else []
    told = [json.loads(line) for line in lines if line.strip()]
    return [{**one, **one["data"]} for one in told]


async def test_sessions_and_turns_are_told_with_what_they_came_to(talking: Talking, tmp_path: Path) -> None:
    heard = write_hooks(tmp_path / "home", tmp_path, "session-start", "before-turn", "after-turn", "session-end")
    async with talking(["the answer"]) as talk:
        await talk.say("the question")

    told = read(heard)
    assert [one["event"] for one in told] == ["session-start", "before-turn", "after-turn", "session-end"]
    assert told[0]["resumed"] is False
    assert told[1]["text"] == "the question"
    assert (told[2]["reason"], told[2]["answer"], told[2]["calls"]) == ("answered", "the answer", [])
    assert told[2]["usage"]["promptTokens"] == 20


async def test_the_end_of_a_turn_is_a_notification(talking: Talking, tmp_path: Path) -> None:
    heard = write_hooks(tmp_path / "home", tmp_path, "notification")
    async with talking(["the answer"]) as talk:
        await talk.say("the question")

    assert [one["notification"]["type"] for one in read(heard)] == ["turn-finished"]
