"""Sending one session again and again: what is gone here is gone there, what is the same is not sent."""

import json
import os
import subprocess
import sys

import pytest

from tests.servers.archive_machine import MakeMachine, make_call
from tests.sizes import size


def test_a_message_that_is_gone_here_is_gone_there(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One", "Two", "Three", calls=(make_call("c1", "x"),))
    laptop.run("push")
    path = laptop.home / "sessions" / f"{session}.json"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(
        b"\n".join(line for line in lines if b'"Three"' not in line).replace(b'},\n],"tool', b'}\n],"tool')
    )

    laptop.run("push")
    desktop.run("pull", session)

    assert desktop.document(session) == laptop.document(session)
    assert b"Three" not in desktop.document(session)
    assert desktop.json("search", "three") == []


def test_a_lost_state_file_sends_nothing_twice(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("One", "Two")
    laptop.run("push")
    state = laptop.process.home.archive_state
    machine_id = state.read_bytes()
    laptop.record("Three")
    laptop.run("push")
    state.write_bytes(machine_id)  # as a back-up had it

    assert laptop.json("push") == {"sessions": 0, "records": 0, "unchanged": 1, "deleted": 0, "skipped": {}}


def test_a_machine_that_forgot_what_it_sent_goes_on_with_its_own_and_never_over_others(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    mine, both = laptop.record("One", "Two"), laptop.record("Shared")
    laptop.run("push")
    desktop.run("pull", both)
    desktop.go_on(both, "From the desktop")
    desktop.run("push")
    for path in laptop.home.glob("archive.db*"):
        path.unlink()
    laptop.go_on(mine, "Three")

    report = json.loads(laptop.run("push", "--json", code=1))

    assert (report["sessions"], list(report["skipped"])) == (1, [both])
    assert "Three" in desktop.json("search", "three")[0]["snippet"]
    assert "desktop" in desktop.json("search", "desktop")[0]["snippet"]


def test_turning_redaction_off_sends_the_session_as_it_is(machine: MakeMachine, archive_url: str) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("password=hunter2hunter2")
    laptop.run("push")

    laptop.configure(url=archive_url, redact=False)
    laptop.run("push")
    desktop.run("pull", session)

    assert "secrets NOT redacted" in laptop.warned
    assert desktop.document(session) == laptop.document(session)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_large_session_is_sent_in_little_memory(machine: MakeMachine) -> None:
    laptop = machine("laptop", redact=False)
    session = laptop.record("Begin")
    path = laptop.home / "sessions" / f"{session}.json"
    lines = "".join(
        f',\n{{"role":"user","id":{number},"parts":[{{"type":"text","text":"{"x" * 100_000}"}}],"timestamp":""}}'
        for number in range(2, size(150, 400))
    )
    path.write_text(path.read_text().replace('\n],"toolCalls"', lines + '\n],"toolCalls"'))
    code = (
        "import sys; from ollm.cli.entry import main; main(['archive', 'push']);"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    environment = {**os.environ, **laptop.environment}

    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert int(done.stdout.split()[-1]) < 120_000  # kilobytes; the session has 15,000, or 40,000
    assert laptop.json("list")[0]["messageCount"] == size(149, 399)
