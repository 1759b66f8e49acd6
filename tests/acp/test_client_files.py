"""The editor's file system: unsaved text is read and changed through it, under the same policy and boundary."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import schema as wire

from tests.acp.editor import EDIT, editing
from tests.servers.answers import Answer

FILES = wire.ClientCapabilities(fs=wire.FileSystemCapabilities(read_text_file=True, write_text_file=True))
READ_ONLY = wire.ClientCapabilities(fs=wire.FileSystemCapabilities(read_text_file=True, write_text_file=False))
READ = Answer(calls=[("read_file", {"path": "a.txt"})])


def prepare_file(directory: Path) -> Path:
    file = directory / "project" / "a.txt"
    file.parent.mkdir()
    file.write_text("one\ntwo\n")
    return file


async def test_unsaved_text_is_read_shown_and_changed_in_the_editor(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [READ, EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)] = "unsaved\ntwo\n"
        await editor.say(await editor.open(), "change it")

    change = editor.client.asked[0][0].content[0]
    assert (change.old_text, change.new_text) == ("unsaved\ntwo\n", "unsaved\nthree\n")
    assert editor.client.written == {str(file): "unsaved\nthree\n"}
    assert "unsaved" in str(server.chats[1])


async def test_a_write_that_the_editor_refuses_fails_and_the_disk_keeps_its_text(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)], editor.client.refuses = "unsaved\ntwo\n", True
        await editor.say(await editor.open(), "change it")

    assert file.read_text() == "one\ntwo\n"
    assert "The editor did not write a.txt" in str(server.chats[-1])


async def test_where_the_editor_only_reads_a_saved_file_is_written_and_unsaved_text_is_not_put_on_disk(
    tmp_path: Path,
) -> None:
    file = prepare_file(tmp_path)
    back = Answer(calls=[("edit_file", {"path": "a.txt", "edits": [{"target": "three", "replacement": "four"}]})])
    over = Answer(calls=[("write_file", {"path": "a.txt", "content": "new\n", "overwrite": True})])
    async with editing(tmp_path, [EDIT, "Done.", back, over, "I see."], "once", READ_ONLY) as (editor, server):
        session = await editor.open()
        editor.client.buffers[str(file)] = "one\ntwo\n"
        await editor.say(session, "change it")
        assert file.read_text() == "one\nthree\n"
        editor.client.buffers[str(file)] = "unsaved\nthree\n"
        await editor.say(session, "change it")

    assert (len(editor.client.asked), editor.client.written) == (1, {})  # what cannot be done is not asked about
    assert file.read_text() == "one\nthree\n"
    told = [message["content"] for message in server.chats[-1]["messages"] if message["role"] == "tool"]
    assert [text.count("a.txt has unsaved changes in the editor") for text in told] == [0, 1, 1]


async def test_a_file_the_editor_does_not_have_is_read_and_written_on_disk(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    new = Answer(calls=[("write_file", {"path": "deep/new.txt", "content": "x\n"})])
    async with editing(tmp_path, [READ, EDIT, new, "Done."], "once", FILES) as (editor, _):
        await editor.say(await editor.open(), "change it")

    assert file.read_text() == "one\nthree\n"
    assert (file.parent / "deep" / "new.txt").read_text() == "x\n"
    assert editor.client.written == {}


async def test_the_encoding_of_the_file_is_kept(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    file.write_bytes("ä und ö und ü\r\ntwo\r\n".encode("latin-1"))
    async with editing(tmp_path, [EDIT, "Done."], "once", READ_ONLY) as (editor, _):
        editor.client.buffers[str(file)] = "ä und ö und ü\ntwo\n"
        await editor.say(await editor.open(), "change it")

    assert file.read_bytes() == "ä und ö und ü\r\nthree\r\n".encode("latin-1")


@pytest.mark.parametrize(
    ("given", "saves", "shown"),
    [
        ("new\ntwo\n", False, "new\nthree\n"),  # an editor with line ends of its own, as most are
        ("new\r\ntwo\r\n", False, "new\r\nthree\r\n"),
        ("one\ntwo\n", True, "one\r\nthree\r\n"),  # one that saves what it is given
    ],
)
async def test_line_ends_are_those_of_the_editor_and_the_file_keeps_its_own(
    tmp_path: Path, given: str, saves: bool, shown: str
) -> None:
    file = prepare_file(tmp_path)
    file.write_bytes(b"one\r\ntwo\r\n")
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)], editor.client.saves = given, saves
        await editor.say(await editor.open(), "change it")

    assert editor.client.buffers[str(file)] == shown
    assert file.read_bytes() == (b"one\r\nthree\r\n" if saves else b"one\r\ntwo\r\n")


async def test_the_editor_is_not_asked_for_what_the_boundary_refuses(tmp_path: Path) -> None:
    prepare_file(tmp_path)
    (tmp_path / "project" / ".env").write_text("KEY=1\n")
    outside = tmp_path / "outside.txt"
    outside.write_text("far\n")
    calls = Answer(calls=[("read_file", {"path": str(outside)}), ("read_file", {"path": ".env"})])
    async with editing(tmp_path, [calls, "Done."], "reject", FILES) as (editor, server):
        editor.client.buffers |= {str(outside): "far!\n", str(tmp_path / "project" / ".env"): "KEY=2\n"}
        await editor.say(await editor.open(), "read them")

    assert editor.client.read == []
    assert "far!" not in str(server.chats)
    assert "KEY=2" not in str(server.chats)


async def never(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()


async def test_an_editor_that_never_gives_a_file_is_said_and_the_disk_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = prepare_file(tmp_path)
    monkeypatch.setattr("ollm.acp.client.READ_TIMEOUT_SECONDS", 0.05)
    async with editing(tmp_path, [READ, EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.silent = True
        ended = await editor.say(await editor.open(), "change it")

    assert ended.stop_reason == "end_turn"
    assert "one" in str(server.chats[1])
    assert editor.client.said("agent_thought_chunk").count("did not give a.txt") == 1
    assert (file.read_text(), editor.client.written) == ("one\nthree\n", {})  # no buffer is written over unseen


async def test_a_file_that_was_read_in_the_editor_is_not_written_on_disk_when_it_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [READ, "Read.", EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)] = "one\ntwo\n"
        session = await editor.open()
        await editor.say(session, "read it")
        monkeypatch.setattr("ollm.acp.client.READ_TIMEOUT_SECONDS", 0.05)
        editor.client.silent = True
        await editor.say(session, "change it")

    assert (file.read_text(), editor.client.written) == ("one\ntwo\n", {})
    assert "a.txt is open in the editor, which does not answer; not written" in str(server.chats[-1])


async def test_an_editor_that_never_writes_fails_the_call_and_the_disk_keeps_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = prepare_file(tmp_path)
    monkeypatch.setattr("ollm.acp.client.WRITE_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr("tests.acp.editor.RecordingClient.write_text_file", never)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)] = "unsaved\ntwo\n"
        await editor.say(await editor.open(), "change it")

    assert file.read_text() == "one\ntwo\n"
    assert "did not write a.txt: no answer within" in str(server.chats[-1])
