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

    def __init__(self, directory: Path, tokenizer: Tokenizer, turns: int, window: int = WINDOW) -> None:
        self.home, self.project = directory / "home", directory / "project"
        self.project.mkdir()
        scenario = Scenario(5, turns)
        scenario.write_files(self.project)
        self.turns = list(scenario.played())
        self.tokenizer = tokenizer
        self.window, self.model = window, "counting"
        self.server = CountingServer(tokenizer, window)

    def run(self, *arguments: str) -> str:
        ended = ollm(
            *arguments,
            home=self.home,
            cwd=self.project,
            OLLM_PROVIDER="openai",
            OLLM_BASE_URL=self.server.base_url,
            OLLM_MODEL=self.model,
            OLLM_CONTEXT_WINDOW=str(self.window),
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
        first = next(heard for heard in self.server.heard[before:] if not heard.summary or self.model != "counting")
        return first.prompt_tokens - self.tokenizer.count(turn.text) - MESSAGE_TOKENS

    def compacts(self, count: int) -> bool:
        """Whether a summary was asked for since so many requests."""
        return any(heard.summary for heard in self.server.heard[count:])


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_it_says_what_the_next_turn_sends(tmp_path: Path, tokenizer: Tokenizer) -> None:
    talk = Talk(tmp_path, tokenizer, 11)
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


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.parametrize("window", [4096, 8192])
@pytest.mark.parametrize("model", ["counting", "qwen2.5-coder-0.5b"])
def test_a_new_session_sends_what_was_said_whatever_the_form_of_calls(
    window: int, model: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    talk = Talk(tmp_path, tokenizer, 2, window)
    talk.model = model
    with talk.server:
        errors = []
        for number, text in enumerate(("What does this project do?", "And who uses it?"), 1):
            said, sent = talk.show(), talk.say(ScriptedTurn(number, text, ()))
            errors.append(abs(said - sent) / sent)
    assert max(errors) <= MAX_ERROR_SHARE, errors


class DenseTokenizer:
    """A vocabulary that knows little: two and a half bytes a token, and every byte of what is not ASCII."""

    def count(self, text: str) -> int:
        plain = sum(character.isascii() for character in text)
        return round(plain / 2.5) + len(text.encode()) - plain


def test_the_first_request_leaves_room_for_its_answer_by_any_vocabulary(tmp_path: Path) -> None:
    talk = Talk(tmp_path, DenseTokenizer(), 0, 4096)
    rare = "".join(chr(0x20000 + 7 * number) for number in range(300))
    with talk.server:
        for number, text in enumerate((f"What is this? {rare}", "请检查这个模块的配置文件" * 30), 1):
            talk.say(ScriptedTurn(number, text, ()))
    sums = [heard.prompt_tokens + heard.max_tokens for heard in talk.server.heard]
    assert len(sums) == 2
    assert max(sums) <= 4096
    first, second = (heard.max_tokens for heard in talk.server.heard)
    assert first > 1024
    assert second > 256  # of a prompt that fills three quarters of the window, a third of it new
