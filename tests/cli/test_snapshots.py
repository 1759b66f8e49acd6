"""`ollm snapshots`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.recorded_place import RecordedPlace
from tests.cli.running import running
from tests.covers import covers


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RecordedPlace:
    place = RecordedPlace(tmp_path, capsys)
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.chdir(place.workspace)
    return place


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
    said = place.run("snapshots", "show", first[:3], code=1)
    assert f"No snapshot {first[:3]!r}." in said
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
