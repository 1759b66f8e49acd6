"""`ollm sessions view`, and sessions as text."""

import asyncio
import json
import os
import subprocess

import pytest

from ollm.domain.messages import TextPart
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside
from tests.cli.sessions.samples import full_session, json_of
from tests.covers import covers
from tests.store.sessions.support import Home, said


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


@covers("H467", "H478", "H479", "H480", "H481", "S1.5", "H109")
def test_view_shows_roles_times_thinking_and_calls(home):
    session_id = asyncio.run(full_session(home))
    folded = ollm("sessions", "view", session_id[:6], home=home.root)
    assert folded.returncode == 0
    assert "## 1. User\n\n*2026-01-27 10:00 UTC*\n" in folded.stdout
    assert "## 2. Assistant\n\n*2026-01-27 10:00 UTC*\n" in folded.stdout
    assert "> *Thinking*\n>\n> let me look\n" in folded.stdout
    assert "\n▸ ls . → ok\n" in folded.stdout
    assert "file.txt" not in folded.stdout
    assert "\x1b" not in folded.stdout
    unfolded = ollm("sessions", "view", session_id, "--unfold", home=home.root)
    assert "file.txt" in unfolded.stdout
    document = json_of("sessions", "view", session_id, "--json", home=home)
    assert document == json.loads(home.document(session_id).read_bytes())


def test_a_missing_id_means_the_newest_session_of_the_workspace(home, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    home.recorded("old", workspace=str(place))
    home.recorded("new", workspace=str(place))
    home.recorded("elsewhere", workspace="/")
    assert "new" in ollm("sessions", "view", home=home.root, cwd=place).stdout
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    assert ollm("sessions", "view", home=home.root, cwd=nowhere).returncode == 1


@covers("H470", "H482")
def test_export_writes_json_markdown_and_html_safely(home, tmp_path):
    session_id = asyncio.run(full_session(home))
    target = tmp_path / "chat.json"
    assert ollm("sessions", "export", session_id, "--output", str(target), home=home.root).returncode == 0
    assert target.read_bytes() == home.document(session_id).read_bytes()
    again = ollm("sessions", "export", session_id, "--output", str(target), home=home.root)
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert ollm("sessions", "export", session_id, "--output", str(target), "--force", home=home.root).returncode == 0
    missing = ollm("sessions", "export", session_id, "--output", str(tmp_path / "no" / "x.json"), home=home.root)
    assert (missing.returncode, "No such directory" in missing.stderr) == (2, True)
    markdown = ollm("sessions", "export", session_id, "--output", "-", "--format", "markdown", home=home.root).stdout
    assert "x = 1\n```\n" in markdown
    assert "`````\n````\nfile.txt" in markdown
    assert "\x1b" not in markdown
    page = ollm("sessions", "export", session_id, "--output", "-", "--format", "html", home=home.root).stdout
    assert "<script" not in page
    assert "&lt;b&gt;here&lt;/b&gt;" in page
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.parametrize("form", ["json", "markdown", "html"])
def test_export_redacts_when_asked(home, form):
    session_id = asyncio.run(full_session(home))
    plain = ollm("sessions", "export", session_id, "--output", "-", "--format", form, home=home.root)
    clean = ollm("sessions", "export", session_id, "--output", "-", "--format", form, "--redact", home=home.root)
    assert "sk-proj-" + "a1B2" * 12 in plain.stdout
    assert "a1B2a1B2" not in clean.stdout
    assert "file.txt" in clean.stdout


def test_an_id_that_fits_several_or_none_is_told(home):
    home.sessions.mkdir(parents=True)
    first = home.recorded("x")
    data = home.document(first).read_bytes()
    for tail in ("0001", "0002"):
        (home.sessions / f"550e8400-e29b-41d4-a716-44665544{tail}.json").write_bytes(data)
    several = ollm("sessions", "view", "550e", home=home.root)
    assert (several.returncode, several.stderr.count("550e8400-e29b")) == (2, 2)
    assert ollm("sessions", "view", "ffff0000ffff", home=home.root).returncode == 1
    assert ollm("sessions", "view", "../../etc/passwd", home=home.root).returncode == 2
    assert "Traceback" not in several.stderr


def test_output_into_a_closed_pipe_is_quiet(home):
    home.recorded(*(f"message {number} " + "x" * 500 for number in range(400)))
    for arguments in ("sessions list", "sessions view --workspace /", "sessions search message --limit 900"):
        done = subprocess.run(
            f"{SCRIPT} {arguments} | true",
            shell=True,
            env={**os.environ, "OLLM_HOME": str(home.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "Broken" not in done.stderr


@pytest.mark.parametrize("command", [("list",), ("search", "x"), ("check",), ("cleanup", "--keep", "1")])
def test_a_data_directory_that_is_a_file_or_missing_ends_in_a_sentence(home, command):
    for place in ("missing", "file"):
        home.root.mkdir(exist_ok=True)
        (home.root / "file").write_text("x")
        (home.root / "config.yaml").write_text(f"sessions:\n  dataDir: {home.root / place}\n")
        done = ollm("sessions", *command, home=home.root)
        assert "Traceback" not in done.stderr
        assert not done.stderr.startswith("ollm: internal error")
        if place == "file":
            assert done.returncode == 1
            assert f"Cannot read {home.root / place}: Not a directory." in done.stderr
            assert "sessions.dataDir" in done.stderr
        else:
            assert done.returncode == 0


@pytest.mark.parametrize("document", [b"", b"{", b'{"sessionId": 5, "messages": [{"role": "user", "parts": [{"ty'])
def test_a_damaged_session_is_still_one_json_document_and_said_to_be_damaged(home: Home, document: bytes):
    session_id = asyncio.run(full_session(home))
    home.document(session_id).write_bytes(document)

    for arguments, told in (
        (("view", session_id, "--json"), "cannot be viewed"),
        (("export", session_id, "--output", "-"), "no message in it can be read"),
    ):
        done = ollm("sessions", *arguments, home=home.root)
        assert json.loads(done.stdout)["sessionId"] == session_id
        assert told in done.stderr
        assert done.returncode == 1


@pytest.mark.parametrize("ending", ["json", "md", "html"])
def test_an_export_of_what_cannot_be_read_leaves_its_target_alone(home: Home, tmp_path, ending: str):
    session_id, target = asyncio.run(full_session(home)), tmp_path / f"kept.{ending}"
    home.document(session_id).write_bytes(b"\0" * 700)
    target.write_text("an earlier export")
    done = ollm("sessions", "export", session_id, "-o", str(target), "--force", home=home.root)
    new = ollm("sessions", "export", session_id, "-o", str(tmp_path / f"new.{ending}"), home=home.root)

    assert (done.returncode, new.returncode) == (1, 1)
    assert "no message in it can be read" in done.stderr
    assert str(target) in done.stderr
    assert "Wrote" not in done.stderr + new.stderr
    assert target.read_text() == "an earlier export"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [target.name]


def test_the_document_of_a_crashed_session_holds_the_answer_as_far_as_it_got(home: Home):
    async def crash() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("a question"))
        await service.record_text(session_id, TextPart, "half an ans")
        home.crash(session_id)
        return session_id

    session_id = asyncio.run(crash())
    before = {path.name: path.read_bytes() for path in home.sessions.iterdir()}
    for arguments in (("view", session_id, "--json"), ("export", session_id, "--output", "-")):
        last = json.loads(ollm("sessions", *arguments, home=home.root).stdout)["messages"][-1]
        assert (last["id"], last["role"], last["interrupted"]) == (2, "assistant", True)
        assert last["parts"] == [{"type": "text", "text": "half an ans"}]
    assert "half an ans" in ollm("sessions", "view", session_id, home=home.root).stdout
    assert {path.name: path.read_bytes() for path in home.sessions.iterdir()} == before


def test_calls_that_no_message_names_and_what_a_tool_said_itself_are_shown(home: Home):
    """As documents of other programs have them: calls beside the messages, results as messages."""
    document = {
        "sessionId": "550e8400-e29b-41d4-a716-446655440000",
        "startTime": "2026-01-27T10:00:00Z",
        "lastActivity": "2026-01-27T10:00:00Z",
        "model": "m",
        "provider": "p",
        "messages": [
            {"role": "user", "parts": [{"type": "text", "text": "look"}], "timestamp": "2026-01-27T10:00:00Z"},
            {"role": "tool", "parts": [{"type": "text", "text": "seen"}], "timestamp": "2026-01-27T10:00:01Z"},
        ],
        "toolCalls": [
            {"id": "x", "name": "peek", "args": {"at": "it"}, "result": {"llmContent": "found"}, "timestamp": ""}
        ],
        "metadata": {"tokenCount": 1, "compressionCount": 0},
    }
    home.sessions.mkdir(parents=True)
    (home.sessions / f"{document['sessionId']}.json").write_text(json.dumps(document))
    for arguments in (("view", "550e", "--unfold"), *(("export", "550e", "-o", "-", "--format", f) for f in FORMS)):
        shown = ollm("sessions", *arguments, home=home.root).stdout
        assert all(word in shown for word in ("look", "seen", "peek", "found")), arguments


FORMS = ("json", "markdown", "html")


def test_a_session_is_written_to_a_new_file(inside: Inside) -> None:
    session = Home(inside.home).recorded("hello <b>", workspace=str(inside.workspace))
    done = inside.run("sessions", "export", "-o", "a.md")
    assert done.err == f"Wrote session {session} to a.md.\n"
    assert "hello" in (inside.workspace / "a.md").read_text()
    said = inside.fail("sessions", "export", "-o", "a.md", code=2)
    assert "a.md already exists." in said
    assert "Add --force to overwrite it." in said
    assert inside.run("sessions", "export", "-o", "a.md", "--force", "--format", "html").code == 0
    assert "hello &lt;b&gt;" in (inside.workspace / "a.md").read_text()
    assert "is a directory." in inside.fail("sessions", "export", "-o", ".", "--format", "json", code=2)
    assert "No such directory: gone." in inside.fail("sessions", "export", "-o", "gone/a.md", code=2)
    assert "Cannot tell the format" in inside.fail("sessions", "export", "-o", "a.txt", code=2)


@pytest.mark.parametrize("place", ["sessions", "trash"])
def test_an_export_takes_the_place_of_no_session(home, place):
    session_id = home.recorded("x")
    before = home.document(session_id).read_bytes()
    (home.root / "trash").mkdir()
    target = home.root / place / f"{session_id}.json"
    done = ollm("sessions", "export", session_id, "--output", str(target), "--force", home=home.root)
    assert (done.returncode, "where sessions are kept" in done.stderr) == (2, True)
    assert home.document(session_id).read_bytes() == before
