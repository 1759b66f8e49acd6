"""`ollm context` and `ollm snapshots`, as a person runs them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ollm.app import ProcessScope
from ollm.cli.entry import main
from ollm.domain.messages import Message, TextPart
from tests.cli.command import ollm
from tests.cli.running import running
from tests.covers import covers


class Place:
    """A home with one session of a workspace in it."""

    def __init__(self, root: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.captured = captured
        self.home = root / "home"
        self.workspace = root / "project"
        self.workspace.mkdir()
        self.session = asyncio.run(self._talk())

    async def _talk(self) -> str:
        recording = ProcessScope({"OLLM_HOME": str(self.home)}).create_recording_service(lambda event: None)
        session = await recording.create_session("llama3", "ollama", workspace=str(self.workspace.resolve()))
        await recording.update_metadata(session, {"contextWindow": 8192})
        for text in ("Hello", "Build it", "Test it"):
            await recording.record_message(session, Message(role="user", parts=(TextPart(text),), timestamp=""))
            await recording.record_message(
                session, Message(role="assistant", parts=(TextPart("Yes. " * 9),), timestamp="")
            )
        await recording.close_session(session)
        return session

    def run(self, *arguments: str, code: int = 0) -> str:
        """Standard output, or standard error when the command is to fail."""
        self.captured.readouterr()
        assert main(list(arguments)) == code
        out, err = self.captured.readouterr()
        return out if code == 0 else err


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    place = Place(tmp_path, capsys)
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.chdir(place.workspace)
    return place


def test_the_context_is_shown_part_by_part(place: Place) -> None:
    shown = json.loads(place.run("context", "show", "--json"))

    assert set(shown) == {"window", "limit", "available", "trigger", "parts"}
    assert (shown["window"], shown["limit"]) == (8192, 6963)
    parts = {part["name"]: part["tokens"] for part in shown["parts"]}
    assert (
        shown["available"]
        == 6963 - sum(parts[name] for name in ("instructions", "context entries", "tool schemas")) - 4
    )
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
def test_the_instructions_of_a_trusted_project_are_shown_with_their_tokens(place: Place) -> None:
    (place.workspace / "AGENTS.md").write_text("Write short sentences, always. " * 20, "utf-8")
    before = entries_tokens(place)
    place.run("trust", str(place.workspace))

    assert (before, entries_tokens(place) > 50) == (0, True)


def entries_tokens(place: Place) -> int:
    shown = json.loads(place.run("context", "show", "--json"))
    return next(int(part["tokens"]) for part in shown["parts"] if part["name"] == "context entries")


def test_looking_makes_no_database(place: Place) -> None:
    place.run("context", "show")

    assert not (place.workspace / ".ollm").exists()


@covers("H256")
def test_snapshots_are_taken_listed_shown_restored_and_deleted(place: Place) -> None:
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


def test_turned_off_snapshots_say_so(place: Place) -> None:
    (place.home / "config.yaml").write_text("snapshots:\n  enabled: false\n", "utf-8")

    assert "turned off" in place.run("snapshots", "create", code=1)


@covers("H710")
def test_a_snapshot_can_be_restored_when_the_session_is_broken(place: Place) -> None:
    made = json.loads(place.run("snapshots", "create", "--json"))
    file = place.home / "sessions" / f"{place.session}.json"
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])

    assert "restored from snapshot" in place.run("snapshots", "restore", made["id"])
    parts = {part["name"]: part["tokens"] for part in json.loads(place.run("context", "show", "--json"))["parts"]}
    assert parts["user messages"] > 10


@covers("H561")
def test_a_snapshot_leaves_the_session_file_as_it_was(place: Place) -> None:
    document = place.home / "sessions" / f"{place.session}.json"
    before = document.read_bytes()

    place.run("snapshots", "create")

    assert document.read_bytes() == before
    assert len(json.loads(place.run("snapshots", "list", "--json"))) == 1


@covers("H413", "H415")
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

    assert triggers == ["threshold"]
    assert shares[-1] >= 0.85
    assert all(share < 0.9 for share in shares[:-1])
