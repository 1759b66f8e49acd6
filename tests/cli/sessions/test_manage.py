"""`ollm sessions`: lists, tables, checks, and what it changes."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize

import pytest

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.cli.sessions.listing import parse_since
from ollm.cli.sessions.session_list import SessionList
from ollm.domain.clock import parse_stamp
from ollm.domain.messages import Message, TextPart
from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.running import running
from tests.cli.sessions.samples import full_session, json_of
from tests.covers import covers
from tests.store.sessions.support import AT, Home, said


def test_a_command_that_is_not_there_is_said(inside: Inside) -> None:
    assert "unknown command 'lst'; did you mean list?" in inside.fail("sessions", "lst", code=2)
    assert "unknown command 'xyzzy'; available: list, attach, view, " in inside.fail("sessions", "xyzzy", code=2)


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


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
        "snippet": "the «configuration» of it",
    }
    assert json_of("sessions", "search", "config", "--role", "assistant", "--json", home=home) == []
    assert json_of("sessions", "search", "config", "--since", "2026-01-01", "--model", "m", "--json", home=home)
    for odd in ("", '"', "*", "AND", "NEAR("):
        assert json_of("sessions", "search", odd, "--json", home=home) == []
    assert ollm("sessions", "search", "x", "--since", "yesterday-ish", home=home.root).returncode == 2


def test_words_of_many_scripts_are_found_and_shown_as_written(home):
    said = {
        "Сын пойдёт в первый класс": ("пойдет", "ПЕРВЫЙ", "первый"),
        "الطائرة والأسرة والقرآن": ("الطائرة", "والأسرة", "والقرآن"),
        "Ο αδερφός μου στην Αθήνα": ("αθηνα", "ΑΔΕΡΦΌΣ", normalize("NFD", "Αθήνα")),
        "Київ їжак": ("Київ", "їжак"),
        "Die Straße im ﬁnalen Ort": ("STRASSE", "finalen"),
        "Iğdır ılık": ("ığdır", "ILIK"),
    }
    home.recorded(*said)
    for number, (text, words) in enumerate(said.items(), 1):
        for word in words:
            (hit,) = json_of("sessions", "search", word, "--json", home=home)
            assert (hit["number"], hit["snippet"].replace("«", "").replace("»", "")) == (number, text)


@pytest.mark.parametrize(("text", "seconds"), [("7d", 7 * 86_400), ("12h", 12 * 3600), ("90m", 90 * 60), ("0d", 0)])
def test_how_long_ago_is_a_time(text: str, seconds: int) -> None:
    ago = datetime.now(UTC) - parse_stamp(parse_since(text))

    assert seconds - 1 <= ago.total_seconds() <= seconds + 60


def test_messages_are_found_and_narrowed(inside: Inside) -> None:
    home = Home(inside.home)
    first = home.recorded("the red parser breaks", workspace=str(inside.workspace))
    second = home.recorded("the blue parser works", workspace="/elsewhere")

    found = inside.read_json("sessions", "search", "parser")
    assert {hit["sessionId"] for hit in found} == {first, second}
    assert [hit["sessionId"] for hit in inside.read_json("sessions", "search", "parser", "red")] == [first]
    assert [hit["sessionId"] for hit in inside.read_json("sessions", "search", "parser", "--workspace", ".")] == [first]
    assert inside.read_json("sessions", "search", "parser", "--role", "assistant") == []
    assert inside.read_json("sessions", "search", "parser", "--model", "other") == []
    assert inside.read_json("sessions", "search", "parser", "--since", "2027-01-01") == []
    assert len(inside.read_json("sessions", "search", "parser", "--limit", "1")) == 1
    shown = inside.read("sessions", "search", "red")
    assert shown.startswith(f"{first[:4]}")
    assert "#1 user, " in shown
    assert "the red parser" in shown.replace("**", "").replace("[", "").replace("]", "")


def test_no_match_is_said(inside: Inside) -> None:
    done = inside.run("sessions", "search", "nothing")

    assert (done.code, done.out, done.err) == (0, "", "ollm: no matches.\n")


def test_the_list_is_narrowed_to_a_workspace_and_a_number(inside: Inside) -> None:
    home = Home(inside.home)
    for place in (str(inside.workspace), "/elsewhere"):
        home.recorded("hi", workspace=place)

    assert len(inside.read_json("sessions", "list")) == 2
    assert len(inside.read_json("sessions", "list", "--limit", "1")) == 1
    (line,) = inside.read_json("sessions", "list", "--workspace", ".")
    assert line["workspace"] == str(inside.workspace)
    assert inside.read_json("sessions", "list", "--trash") == []


def test_hits_in_tasks_do_not_count_as_too_many(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(inside.home)
    home.recorded("the parser breaks")
    home.recorded("the parser one", "the parser two", "the parser three", origin="task")
    monkeypatch.setattr("ollm.store.session_index.search.MAX_RANKED_HITS", 2)

    shown, everything = inside.run("sessions", "search", "parser"), inside.run("sessions", "search", "parser", "--all")

    assert (shown.code, "more than" in shown.err, shown.out.count("#")) == (0, False, 1)
    assert "more than 2 hits: the newest are shown first." in everything.err


@pytest.fixture
def scope(tmp_path: Path) -> WorkspaceScope:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return WorkspaceScope(ProcessScope({"OLLM_HOME": str(tmp_path / "home")}, workspace=workspace), workspace)


async def record(scope: WorkspaceScope, text: str, origin: str | None = None) -> str:
    recording = scope.process.create_recording_service(lambda _: None)
    session = await recording.create_session("m", "ollama", workspace=str(scope.path), origin=origin)
    await recording.record_message(session, Message(role="user", parts=(TextPart(text),), timestamp=""))
    await recording.close_session(session)
    return session


async def test_a_workspace_without_sessions_is_left_untouched(scope: WorkspaceScope) -> None:
    assert SessionList(scope).load_items() == []
    assert not (scope.path / ".ollm" / "memory.db").exists()


async def test_sessions_are_listed_archived_and_deleted(scope: WorkspaceScope) -> None:
    first, second = await record(scope, "one"), await record(scope, "two", "one-shot")
    sessions = SessionList(scope)
    items = {item.session_id: item for item in sessions.load_items()}

    assert set(items) == {first, second}
    assert items[first].messages == 1
    assert (items[first].one_shot, items[second].one_shot) == (False, True)
    assert not items[first].archived
    sessions.archive(first, True)
    assert {item.session_id for item in sessions.load_items() if item.archived} == {first}
    sessions.archive(first, False)
    assert not any(item.archived for item in sessions.load_items())
    sessions.delete(first)
    assert [item.session_id for item in sessions.load_items()] == [second]
    assert scope.process.session_files.places.has(first) is False
    scope.close()


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
    assert (checked.returncode, hurt in checked.stdout, "check --repair` writes" in checked.stdout) == (1, True, True)
    assert ollm("sessions", "check", "--repair", home=home.root).returncode == 0
    assert ollm("sessions", "check", home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home)[0]["damaged"] is None


def test_whole_sessions_are_counted(inside: Inside) -> None:
    stored = Home(inside.home)
    assert inside.read("sessions", "check") == "0 sessions OK.\n"
    stored.recorded("a")
    assert inside.read("sessions", "check") == "1 session OK.\n"
    stored.recorded("b")
    assert inside.read("sessions", "check") == "2 sessions OK.\n"
    assert inside.read_json("sessions", "check") == []


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


def test_what_somebody_else_put_beside_a_session_is_neither_deleted_nor_moved(home):
    session_id, other = home.recorded("x"), home.recorded("y")
    own = [
        f"{session_id}.json.damaged-2026-01-27T100000-000Z",
        f"{session_id}.journal.replaced-2026-01-27T100000-000Z-2",
    ]
    names = ["json.bak", "notes.md", "json~", "json.damaged-mine", "json.gz"]
    mine = {home.sessions / f"{found}.{end}" for found in (session_id, other) for end in names}
    mine |= {home.sessions / f".{session_id}.json.swp", home.sessions / "README"}
    for path in (*mine, *(home.sessions / name for name in own)):
        path.write_text("mine")
    (home.sessions / f"{session_id}.d").mkdir()
    done = ollm("sessions", "delete", session_id, "--yes", home=home.root)
    assert done.returncode == 0, done.stderr
    assert f"{session_id}.notes.md" in done.stderr
    home.recorded("z")
    home.settings = Home(home.root, max_sessions=1).settings
    assert home.library().enforce_limit() == [other]
    assert all(path.exists() for path in mine)
    assert ollm("sessions", "clear", "--all", "--yes", home=home.root).returncode == 0
    assert {path for path in home.sessions.iterdir() if path.is_file()} == mine
    assert {path.read_text() for path in mine} == {"mine"}


@covers("S9.4")
def test_a_session_that_goes_to_the_trash_again_takes_no_byte_from_the_one_that_is_there(home):
    old = home.recorded("old")
    trash = home.root / "trash"
    trash.mkdir()
    earlier = {trash / f"{old}.json": b"{}", trash / f"{old}.journal": b"an earlier journal\n"}
    for path, data in earlier.items():
        path.write_bytes(data)
    home.recorded("new")
    home.settings = Home(home.root, max_sessions=1).settings
    assert home.library().enforce_limit() == [old]
    assert {path.read_bytes() for path in trash.iterdir()} >= set(earlier.values())
    assert ollm("sessions", "restore", old, home=home.root).returncode == 0
    assert home.texts(old) == ["old"]


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


@pytest.fixture
def stored(inside: Inside) -> Home:
    return Home(inside.home)


def test_what_is_not_in_the_trash_cannot_be_restored(inside: Inside, stored: Home) -> None:
    session = stored.recorded("hi")

    assert "ollm sessions list --trash" in inside.fail("sessions", "restore", session, code=1)


async def test_a_session_is_named_by_the_first_line_that_is_not_pasted_code(tmp_path: Path) -> None:
    pasted = "```\nfor each line in lines\n```\n"
    async with running(tmp_path, ["So."]) as runner:
        await runner.run("-p", f"{pasted}Why does this import fail? It worked yesterday.\nThanks")

    assert runner.sessions()[0]["metadata"]["title"] == "Why does this import fail? It worked yesterday."
