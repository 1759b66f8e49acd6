"""`ollm context show` says before a turn what that turn will send: fresh, long, resumed and compacted sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.context_simulation.scenario import Scenario, ScriptedTurn
from bench.context_simulation.server import CountingServer
from bench.context_simulation.tokenizer import ByteTokenizer, Tokenizer, find_tokenizer

from tests.cli.command import ollm
from tests.sizes import SOAK

MAX_ERROR_SHARE = 0.02
MESSAGE_TOKENS = 4  # what a template writes around a message
WINDOW = 8192


@pytest.fixture
def tokenizer() -> Tokenizer:
    """A real vocabulary: what is measured is how well ours follows it."""
    found = find_tokenizer()
    if isinstance(found, ByteTokenizer):
        pytest.skip("no GGUF file whose vocabulary could count")
    return found


class Talk:
    """A session that goes on by the command, one process a turn, and looks at its context before each."""

    def __init__(self, directory: Path, tokenizer: Tokenizer, turns: int) -> None:
        self.home, self.project = directory / "home", directory / "project"
        self.project.mkdir()
        scenario = Scenario(5, turns)
        scenario.write_files(self.project)
        self.turns = list(scenario.played())
        self.tokenizer = tokenizer
        self.server = CountingServer(tokenizer, WINDOW)

    def run(self, *arguments: str) -> str:
        ended = ollm(
            *arguments,
            home=self.home,
            cwd=self.project,
            OLLM_PROVIDER="openai",
            OLLM_BASE_URL=self.server.base_url,
            OLLM_MODEL="counting",
            OLLM_CONTEXT_WINDOW=str(WINDOW),
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def show(self) -> int:
        return sum(int(part["tokens"]) for part in json.loads(self.run("context", "show", "--json"))["parts"])

    def say(self, turn: ScriptedTurn) -> int:
        """What its first request was, without the message that nobody could know before."""
        before = len(self.server.heard)
        self.server.play(turn)
        self.run("-p", turn.text, *(["--continue"] if turn.number > 1 else []))
        first = next(heard for heard in self.server.heard[before:] if not heard.summary)
        return first.prompt_tokens - self.tokenizer.count(turn.text) - MESSAGE_TOKENS

    def compacts(self, count: int) -> bool:
        """Whether a summary was asked for since so many requests."""
        return any(heard.summary for heard in self.server.heard[count:])


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_it_says_what_the_next_turn_sends(tmp_path: Path, tokenizer: Tokenizer) -> None:
    talk = Talk(tmp_path, tokenizer, 7)
    errors: dict[int, float] = {}
    with talk.server:
        for turn in talk.turns:
            count = len(talk.server.heard)
            said, sent = talk.show(), talk.say(turn)
            first_is_summary = talk.server.heard[count].summary
            if not first_is_summary:  # the message itself made a compaction due
                errors[turn.number] = abs(said - sent) / sent
        compacted = talk.compacts(0)
    assert compacted
    assert len(errors) >= 5
    assert max(errors.values()) <= MAX_ERROR_SHARE, errors


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_after_going_back_to_a_snapshot_it_says_what_is_sent_from_there(tmp_path: Path, tokenizer: Tokenizer) -> None:
    talk = Talk(tmp_path, tokenizer, 6)
    with talk.server:
        for turn in talk.turns[:3]:
            talk.say(turn)
        kept = talk.show()
        made = json.loads(talk.run("snapshots", "create", "--json"))
        for turn in talk.turns[3:5]:
            talk.say(turn)
        talk.run("snapshots", "restore", str(made["id"]))
        said, sent = talk.show(), talk.say(talk.turns[5])
    assert abs(said - kept) / kept <= MAX_ERROR_SHARE
    assert abs(said - sent) / sent <= MAX_ERROR_SHARE
