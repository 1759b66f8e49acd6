"""The files of ours that one turn of `ollm -p` goes through, so that a reader knows how many there are to open."""

import asyncio
import json
import sys
from pathlib import Path

from tests.cli.running import running
from tests.servers.answers import Answer

MAX_FILES, MAX_TEXT_TO_WIRE, MAX_CALL_TO_DISK = 166, 36, 46  # only ever lowered
TRACER = """
import inspect, json, os, sys, threading

sys.argv = ["ollm", *sys.argv[2:]]
stretches = {"all": set(), "text to wire": set(), "call to disk": set()}
open_stretches, ended = {"all"}, set()


def begin(name):
    if name not in ended:
        open_stretches.add(name)


def end(name):
    if name in open_stretches:
        open_stretches.discard(name)
        ended.add(name)


def follow(frame, event, called):
    code = frame.f_code
    if event == "c_call" and code.co_name == "write" and getattr(called, "__name__", "") == "send":
        end("text to wire")
    if event != "call" or "/ollm/" not in code.co_filename:
        return
    place = code.co_filename.rpartition("/ollm/")[2]
    if place == "runtime/conversation.py" and code.co_name == "turn":
        begin("text to wire")
    if place.startswith("runtime/calls/") and code.co_name == "run":
        begin("call to disk")
    for name in open_stretches:
        if name == "all" or code.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a module or class
            stretches[name].add(place)


def hear(event, arguments):
    if event in ("os.rename", "os.link") and str(arguments[1]).endswith("made.txt"):
        end("call to disk")


sys.addaudithook(hear)
threading.setprofile(follow)
sys.setprofile(follow)
try:
    from ollm.cli.main import run

    run()
finally:
    sys.setprofile(None)
    with open(os.environ["TRACE"], "w") as file:
        json.dump({name: sorted(found) for name, found in stretches.items()} | {"ended": sorted(ended)}, file)
"""


async def test_a_turn_with_one_written_file_goes_through_few_files(tmp_path: Path) -> None:
    traced = tmp_path / "trace.json"
    call = Answer(calls=[("write_file", {"path": "made.txt", "content": "x\n"})])
    async with running(tmp_path, [call, "Made.", call, "Made."]) as runner:
        for _ in range(2):  # the first turn of a home also works out what later ones read
            (runner.workspace / "made.txt").unlink(missing_ok=True)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", TRACER, "ollm", "-p", "make it", "--yes"),
                cwd=runner.workspace,
                env={**runner.environment(), "TRACE": str(traced)},
                stdin=asyncio.subprocess.DEVNULL,
            )
            assert await process.wait() == 0
    assert (runner.workspace / "made.txt").read_text() == "x\n"
    found = json.loads(traced.read_text())

    assert found["ended"] == ["call to disk", "text to wire"]
    assert len(found["all"]) <= MAX_FILES, found["all"]
    assert 5 < len(found["text to wire"]) <= MAX_TEXT_TO_WIRE, found["text to wire"]
    assert 5 < len(found["call to disk"]) <= MAX_CALL_TO_DISK, found["call to disk"]
