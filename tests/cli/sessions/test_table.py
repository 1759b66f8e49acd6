"""`sessions list`: the table, its JSON, and what it imports."""

import asyncio
import os
import subprocess
import sys

import pytest

from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.sessions.samples import full_session, json_of
from tests.covers import covers
from tests.store.sessions.support import Home


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


@covers("S1.4", "H464", "D129")
def test_list_shows_a_table_and_json(home):
    session_id = asyncio.run(full_session(home))
    done = ollm("sessions", "list", home=home.root)
    assert done.returncode == 0
    assert session_id[:8] in done.stdout
    assert "\x1b" not in done.stdout
    (line,) = json_of("sessions", "list", "--json", home=home)
    assert {
        "sessionId",
        "startTime",
        "lastActivity",
        "model",
        "messageCount",
        "tokenCount",
        "title",
        "workspace",
        "status",
        "damaged",
    } <= line.keys()
    assert (line["sessionId"], line["messageCount"], line["status"], line["damaged"]) == (session_id, 2, "closed", None)
    assert json_of("sessions", "list", "--json", "--workspace", "/tmp", home=home) == []


def test_list_imports_nothing_heavy(home):
    home.recorded("x")
    code = (
        "import sys; sys.argv = ['ollm', 'sessions', 'list']\n"
        "from ollm.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "heavy = {'asyncio', 'rich', 'prompt_toolkit', 'httpx2', 'ruamel', 'json_repair', 'msgspec'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    for _ in range(2):  # the second one finds an index that is up to date
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OLLM_HOME": str(home.root)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stderr.strip().endswith("[]")


def test_without_sessions_that_is_said(inside: Inside) -> None:
    assert inside.run("sessions", "list").err == "ollm: no sessions yet.\n"
    assert inside.run("sessions", "list", "--trash").err == "ollm: no sessions in the trash.\n"
    assert inside.read_json("sessions", "list") == []


def test_a_row_is_short_and_marked(inside: Inside) -> None:
    home = Home(inside.home)
    session = home.recorded("x" * 80, workspace="/a/very/long/path/that/does/not/fit/anywhere")
    inside.read("sessions", "archive", session)
    head, row = inside.read("sessions", "list").splitlines()

    assert head.split() == ["ID", "TITLE", "LAST", "ACTIVE", "MODEL", "MESSAGES", "TOKENS", "WORKSPACE"]
    assert row.startswith(f"{session[:4]}")
    assert "▫ " in row
    assert "x" * 43 + "…" in row
    assert row.endswith("…" + "/a/very/long/path/that/does/not/fit/anywhere"[-27:])
