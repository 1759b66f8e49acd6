"""`ollm sessions` as people use it: in a process of its own, on files that may be damaged, into pipes that close."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.domain.messages import Message, TextPart, ThinkingPart, ToolCallPart
from tests.cli.command import SCRIPT, ollm
from tests.covers import covers
from tests.store.sessions.support import AT, Home, call, said


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


async def full_session(home: Home) -> str:
    service = home.service()
    session_id = await service.create_session("llama3.2:3b", "ollama", workspace="/some/where")
    await service.record_message(session_id, said("What is in <b>here</b>?\x1b[31m"))
    parts = (ThinkingPart(text="let me look"), TextPart(text="Code:\n```py\nx = 1"), ToolCallPart(id="c1"))
    await service.record_message(session_id, Message(role="assistant", parts=parts, timestamp=AT))
    key = "sk-proj-" + "a1B2" * 12
    await service.record_tool_call(
        session_id, call(result=f"````\nfile.txt\n<script>alert(1)</script> {key}", message_id=2)
    )
    await service.close_session(session_id)
    return session_id


def json_of(*arguments: str, home: Home):
    done = ollm(*arguments, home=home.root)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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


def test_list_imports_neither_click_nor_asyncio_nor_rich(home):
    home.recorded("x")
    code = (
        "import sys; sys.argv = ['ollm', 'sessions', 'list']\n"
        "from ollm.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "heavy = {'click', 'asyncio', 'rich', 'prompt_toolkit', 'httpx2', 'ruamel', 'json_repair'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OLLM_HOME": str(home.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip().endswith("[]")


@covers("H467", "H478", "S1.5", "H109")
def test_view_shows_roles_times_thinking_and_calls(home):
    session_id = asyncio.run(full_session(home))
    folded = ollm("sessions", "view", session_id[:6], home=home.root)
    assert folded.returncode == 0
    assert "#1 user" in folded.stdout
    assert "  ~ let me look" in folded.stdout
    assert "▸ ls(path=.) → ok, 3 lines" in folded.stdout
    assert "file.txt" not in folded.stdout
    assert "\x1b" not in folded.stdout
    unfolded = ollm("sessions", "view", session_id, "--unfold", home=home.root)
    assert "    │ file.txt" in unfolded.stdout
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


@covers("H473")
def test_search_finds_with_number_role_time_and_snippet(home):
    session_id = home.recorded("hello there", "the configuration of it")
    (hit,) = json_of("sessions", "search", "config", "--json", home=home)
    assert hit == {
        "sessionId": session_id,
        "messageId": 2,
        "number": 2,
        "role": "user",
        "timestamp": AT,
        "title": "hello there",
        "snippet": "the «config»uration of it",
    }
    assert json_of("sessions", "search", "config", "--role", "assistant", "--json", home=home) == []
    assert json_of("sessions", "search", "config", "--since", "2026-01-01", "--model", "m", "--json", home=home)
    for odd in ("", '"', "*", "AND", "NEAR("):
        assert json_of("sessions", "search", odd, "--json", home=home) == []
    assert ollm("sessions", "search", "x", "--since", "yesterday-ish", home=home.root).returncode == 2


@covers("H491", "S1.6", "H113")
def test_delete_asks_and_without_a_terminal_needs_yes(home):
    session_id = home.recorded("x")
    refused = ollm("sessions", "delete", session_id, home=home.root)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert home.document(session_id).exists()
    assert ollm("sessions", "delete", session_id, "--yes", home=home.root).returncode == 0
    assert list(home.sessions.iterdir()) == []
    assert ollm("sessions", "view", session_id, home=home.root).returncode == 1


def test_a_session_in_use_is_not_deleted_and_its_owner_named(home):
    async def work() -> None:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("x"))
        done = ollm("sessions", "delete", session_id, "--yes", home=home.root)
        assert done.returncode == 1
        assert f"process {os.getpid()}" in done.stderr
        (line,) = json_of("sessions", "list", "--json", home=home)
        assert line["status"] == "active"

    asyncio.run(work())


@covers("H496", "H501", "H508")
def test_clear_and_cleanup_say_what_they_take(home):
    ids = [home.recorded(str(number)) for number in range(4)]
    assert ollm("sessions", "clear", home=home.root).returncode == 2
    assert ollm("sessions", "clear", "--all", home=home.root).returncode == 2
    assert ollm("sessions", "cleanup", "--keep", "-1", home=home.root).returncode == 2
    assert ollm("sessions", "cleanup", "--keep", "2", "--yes", home=home.root).returncode == 0
    assert {line["sessionId"] for line in json_of("sessions", "list", "--json", home=home)} == set(ids[2:])
    assert ollm("sessions", "clear", "--all", "--yes", home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home) == []


@covers("S9.4", "H114", "H507")
def test_what_the_limit_removed_is_in_the_trash_and_can_be_restored(home):
    old, new = home.recorded("old"), home.recorded("new")
    home.settings = Home(home.root, max_sessions=1).settings
    assert home.library().enforce_limit() == [old]
    assert [line["sessionId"] for line in json_of("sessions", "list", "--json", home=home)] == [new]
    assert [line["sessionId"] for line in json_of("sessions", "list", "--trash", "--json", home=home)] == [old]
    assert ollm("sessions", "restore", old[:8], home=home.root).returncode == 0
    assert home.texts(old) == ["old"]
    assert ollm("sessions", "restore", old, home=home.root).returncode == 1


@covers("H533")
def test_a_deleted_session_is_gone_from_the_trash_too(home):
    old, _ = home.recorded("old"), home.recorded("new")
    home.settings = Home(home.root, max_sessions=1).settings
    home.library().enforce_limit()
    assert ollm("sessions", "delete", old, "--yes", home=home.root).returncode == 0
    assert list((home.root / "trash").iterdir()) == []


def test_rename_and_archive(home):
    session_id = home.recorded("x")
    assert ollm("sessions", "rename", session_id, "A new name", home=home.root).returncode == 0
    assert ollm("sessions", "archive", session_id, home=home.root).returncode == 0
    (line,) = json_of("sessions", "list", "--json", home=home)
    assert (line["title"], line["status"], line["messageCount"]) == ("A new name", "archived", 1)
    assert ollm("sessions", "unarchive", session_id, home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home)[0]["status"] == "closed"


@covers("S10.2", "S10.6", "H705", "D606", "H709")
def test_damage_is_named_with_the_way_out_and_mended_by_check(home):
    healthy, hurt = home.recorded("well"), home.recorded("one", "two")
    home.document(hurt).write_bytes(home.document(hurt).read_bytes()[:-12])
    done = ollm("sessions", "list", home=home.root)
    assert (done.returncode, healthy[:4] in done.stdout, hurt[:4] in done.stderr) == (0, True, True)
    viewed = ollm("sessions", "view", hurt, home=home.root)
    assert (viewed.returncode, "two" in viewed.stdout, "some data could not be read" in viewed.stderr) == (
        0,
        True,
        True,
    )
    checked = ollm("sessions", "check", home=home.root)
    assert (checked.returncode, hurt in checked.stdout) == (1, True)
    assert ollm("sessions", "check", "--repair", home=home.root).returncode == 0
    assert ollm("sessions", "check", home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home)[0]["damaged"] is None


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

    for arguments in (("view", session_id, "--json"), ("export", session_id, "--output", "-")):
        done = ollm("sessions", *arguments, home=home.root)
        assert json.loads(done.stdout)["sessionId"] == session_id
        assert "some data could not be read" in done.stderr


def test_the_document_of_a_crashed_session_holds_the_answer_as_far_as_it_got(home: Home):
    async def crash() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("a question"))
        await service.record_partial(session_id, (TextPart(text="half an ans"),))
        service._writers[session_id].abandon()
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


def test_archive_without_an_id_means_the_newest_session_of_the_workspace(home: Home, tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    older = home.recorded("older", workspace=str(place))
    newest = home.recorded("newest", workspace=str(place))
    for verb, status in (("archive", "archived"), ("unarchive", "closed")):
        assert ollm("sessions", verb, home=home.root, cwd=place).returncode == 0
        lines = {line["sessionId"]: line["status"] for line in json_of("sessions", "list", "--json", home=home)}
        assert lines == {older: "closed", newest: status}
    nowhere = ollm("sessions", "archive", home=home.root, cwd=tmp_path)
    assert nowhere.returncode == 1
    assert "No session in" in nowhere.stderr
