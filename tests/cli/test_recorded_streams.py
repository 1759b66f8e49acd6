"""What a real server streamed, replayed byte for byte to the command: a call in every form is found and made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running
from tests.covers import covers
from tests.servers.answers import Answer

ANSWERS = Path(__file__).parents[1] / "providers" / "answers"
STREAMS = json.loads((ANSWERS / "streams.json").read_text(encoding="utf-8"))
FILES = {"notes.txt": "milk\n", "app.py": "foo = 1\n"}
LEARNT = {"native": "native"}  # everything else is a call written as text


def replay(entry: dict[str, Any]) -> Answer:
    """◇ and ◆ stand for what every chunk of a stream begins and ends with."""
    body = entry["stream"].replace("◇", entry["begins"]).replace("◆", entry["ends"]).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    return Answer(raw=head.encode() + body, close=True)


def test_there_is_a_recording_of_every_form() -> None:
    forms = {
        "native",
        "fence",
        "tool_call",
        "function",
        "function with JSON",
        "bare JSON",
        "invoke",
        "elements",
        "mistral",
    }

    assert {entry["form"] for entry in STREAMS} == forms


@covers("T10.1")
@pytest.mark.parametrize("entry", STREAMS, ids=[f"{entry['form']}: {entry['asked']}" for entry in STREAMS])
async def test_a_recorded_call_is_made(tmp_path: Path, entry: dict[str, Any]) -> None:
    async with running(tmp_path, [replay(entry), "Done."]) as runner:
        for name, text in FILES.items():
            (runner.workspace / name).write_text(text, encoding="utf-8")
        ended = await runner.run("-p", entry["asked"], "--mode", "code", "-o", "json", "--yes")

    said = json.loads(ended.out)
    name, arguments = entry["call"]
    assert [(call["name"], call["args"]) for call in said["toolCalls"]] == [(name, arguments)]
    assert (ended.code, said["text"]) == (0, "Done.")
    (facts,) = json.loads((runner.home / "model-facts.json").read_text(encoding="utf-8")).values()
    assert facts["callForm"] == LEARNT.get(entry["form"], "text")
    if name == "write_file":
        assert (runner.workspace / arguments["path"]).read_text(encoding="utf-8").strip() == "hi there"
