"""`ollm context` and `ollm snapshots`, as a person runs them."""

import json
from pathlib import Path

import pytest
from bench.context_simulation.scenario import Scenario, ScriptedTurn
from bench.context_simulation.server import CountingServer
from bench.context_simulation.tokenizer import ByteTokenizer, Tokenizer, find_tokenizer

from tests.cli.command import ollm
from tests.cli.recorded_place import RecordedPlace
from tests.cli.running import running
from tests.covers import covers
from tests.sizes import SOAK


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RecordedPlace:
    place = RecordedPlace(tmp_path, capsys)
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.chdir(place.workspace)
    return place


def test_the_context_is_shown_part_by_part(place: RecordedPlace) -> None:
    shown = json.loads(place.run("context", "show", "--json"))

    assert set(shown) == {"window", "limit", "available", "trigger", "parts"}
    assert (shown["window"], shown["limit"]) == (8192, 6963)
    parts = {part["name"]: part["tokens"] for part in shown["parts"]}
    before = sum(parts[name] for name in ("instructions", "context entries", "tool schemas"))
    assert abs(shown["available"] - (6963 - before)) <= 1, "each part is rounded"
    assert parts["user messages"] > 0 < parts["assistant messages"]
    text = place.run("context", "show", place.session[:8])
    assert "tool schemas" in text
    assert "of 6,963 tokens (context window 8,192)" in text


def test_a_workspace_without_a_session_shows_what_a_new_one_starts_with(tmp_path: Path) -> None:
    ended = ollm("context", "show", "--json", home=tmp_path / "home", cwd=tmp_path)

    assert ended.returncode == 0
    assert "a new session starts with" in ended.stderr
    assert json.loads(ended.stdout)["parts"][0]["tokens"] > 0


@covers("S5.7")
@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_the_instructions_of_a_trusted_project_are_shown_with_their_tokens(place: RecordedPlace, name: str) -> None:
    (place.workspace / name).write_text("Write short sentences, always. " * 20, "utf-8")
    before = entries_tokens(place)
    place.run("trust", str(place.workspace))

    assert (before, entries_tokens(place) > 50) == (0, True)
    assert f"Context entries: {name}." in place.run("context", "show")


def entries_tokens(place: RecordedPlace) -> int:
    shown = json.loads(place.run("context", "show", "--json"))
    return next(int(part["tokens"]) for part in shown["parts"] if part["name"] == "context entries")


def test_looking_makes_no_database(place: RecordedPlace) -> None:
    place.run("context", "show")

    assert not (place.workspace / ".ollm").exists()


def test_people_get_bars_and_the_start_of_compaction(place: RecordedPlace) -> None:
    shown = place.run("context", "show")
    lines = shown.splitlines()

    assert lines[0].split() == ["part", "tokens"]
    assert max(line.count("█") for line in lines[1:] if not line.startswith("[")) == 30
    (bar,) = [line for line in lines if line.startswith("[")]
    assert bar.index("]") == 31
    assert "(context window 8,192)" in bar
    assert any(line.startswith("Compaction starts when messages exceed ") for line in lines)
    named = json.loads(place.run("context", "show", place.session[:8], "--json"))
    assert named["window"] == 8192
    assert named["trigger"] < named["available"] <= named["limit"] <= named["window"]


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


@covers("H256")
def test_snapshots_are_taken_listed_shown_restored_and_deleted(place: RecordedPlace) -> None:
    assert json.loads(place.run("snapshots", "list", "--json")) == []
    made = json.loads(place.run("snapshots", "create", "--json"))
    assert set(made) == {"id", "sessionId", "timestamp", "tokenCount", "summary", "trigger"}
    listed = json.loads(place.run("snapshots", "list", place.session, "--json"))
    assert listed == [made]
    assert (place.home / "context-snapshots" / place.session / "snapshots" / f"snapshot-{made['id']}.json").is_file()
    assert "Build it" in place.run("snapshots", "show", made["id"][:8])
    assert json.loads(place.run("snapshots", "show", made["id"], "--json"))["metadata"]["totalUserMessages"] == 3

    assert "restored from snapshot" in place.run("snapshots", "restore", made["id"])
    assert [entry["trigger"] for entry in json.loads(place.run("snapshots", "list", "--json"))] == ["restore", "manual"]
    document = json.loads(place.run("sessions", "view", place.session, "--json"))
    assert document["metadata"]["contextHistory"][-1]["snapshotId"] == made["id"]
    assert len(document["messages"]) == 6
    assert "user messages" in place.run("context", "show")

    assert "no terminal" in place.run("snapshots", "delete", made["id"], code=2)
    assert "Deleted" in place.run("snapshots", "delete", made["id"], "--yes")
    assert "No snapshot" in place.run("snapshots", "show", made["id"], code=1)


def test_turned_off_snapshots_say_so(place: RecordedPlace) -> None:
    (place.home / "config.yaml").write_text("snapshots:\n  enabled: false\n", "utf-8")

    assert "turned off" in place.run("snapshots", "create", code=1)


@covers("H710")
def test_a_snapshot_can_be_restored_when_the_session_is_broken(place: RecordedPlace) -> None:
    made = json.loads(place.run("snapshots", "create", "--json"))
    file = place.home / "sessions" / f"{place.session}.json"
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])

    assert "restored from snapshot" in place.run("snapshots", "restore", made["id"])
    parts = {part["name"]: part["tokens"] for part in json.loads(place.run("context", "show", "--json"))["parts"]}
    assert parts["user messages"] > 10


@covers("H561")
def test_a_snapshot_leaves_the_session_file_as_it_was(place: RecordedPlace) -> None:
    document = place.home / "sessions" / f"{place.session}.json"
    before = document.read_bytes()

    place.run("snapshots", "create")

    assert document.read_bytes() == before
    assert len(json.loads(place.run("snapshots", "list", "--json"))) == 1


@covers("H413", "H415", "H53", "H558")
async def test_a_context_that_passes_85_percent_leaves_a_snapshot_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path, ["Noted."] * 40) as runner:
        runner.home.mkdir()
        config = "compression: {enabled: false}\nprovider: {contextWindow: 4096}\n"
        (runner.home / "config.yaml").write_text(config, encoding="utf-8")
        triggers: list[str] = []
        shares: list[float] = []
        while not triggers and len(shares) < 30:
            await runner.run("-p", "note this. " * 60, "--continue" if shares else "--new")
            shown = json.loads((await runner.run("context", "show", "--json")).out)
            shares.append(sum(part["tokens"] for part in shown["parts"]) / shown["limit"])
            listed = json.loads((await runner.run("snapshots", "list", "--json")).out)
            triggers = [snapshot["trigger"] for snapshot in listed]
        files = [path.name for path in (runner.home / "context-snapshots").rglob(f"*{listed[0]['id']}*")]

    assert len(files) == 1
    assert triggers == ["threshold"]
    assert shares[-1] >= 0.85
    assert all(share < 0.9 for share in shares[:-1])


def test_a_snapshot_is_meant_by_four_letters_or_more(place: RecordedPlace) -> None:
    first = json.loads(place.run("snapshots", "create", "--json"))["id"]
    assert place.run("snapshots", "show", first[:8]).startswith(f"Snapshot {first} of session {place.session}")
    said = place.run("snapshots", "show", first[:3], code=2)
    assert f"{first[:3]!r} is not a snapshot id." in said
    said = place.run("snapshots", "show", "0" * 36, code=1)
    assert "List them with `ollm snapshots list`." in said
    assert json.loads(place.run("snapshots", "show", first, "--json"))["id"] == first


def test_a_session_without_snapshots_says_so(place: RecordedPlace) -> None:
    assert place.run("snapshots", "list") == "No snapshots of this session.\n"
    assert json.loads(place.run("snapshots", "list", "--json")) == []
    made = place.run("snapshots", "create")
    assert made.startswith("Took snapshot ")
    head, row = place.run("snapshots", "list").splitlines()
    assert head.split() == ["snapshot", "taken", "tokens", "why", "what"]
    assert "manual" in row
    assert "Delete snapshot" in place.run("snapshots", "delete", made.split()[2].rstrip(":"), code=2)
