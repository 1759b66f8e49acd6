"""Prompts: text, files that are sent, files that are named, pictures."""

import base64
from pathlib import Path
from typing import Any

import pytest
from acp import schema as wire

from ollm.acp.prompts import read_prompt
from ollm.domain.errors import UsageError
from ollm.runtime.mentions import MAX_TEXT_BYTES
from ollm.system.paths import Boundary
from tests.acp.editor import editing
from tests.acp.test_client_files import FILES, prepare_file

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()


@pytest.fixture
def boundary(tmp_path: Path) -> Boundary:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a b.txt").write_text("inside\n")
    (tmp_path / "secret.txt").write_text("outside\n")
    return Boundary.around(tmp_path / "work")


def link(path: Path) -> dict[str, Any]:
    return {"type": "resource_link", "name": path.name, "uri": path.as_uri()}


def test_a_file_that_is_named_is_attached_under_its_path(boundary: Boundary) -> None:
    found = read_prompt([{"type": "text", "text": "explain"}, link(boundary.workspace / "a b.txt")], boundary)

    assert found.text == "explain @a b.txt"
    assert [(one.name, one.text) for one in found.attachments] == [("a b.txt", "inside\n")]


def test_a_file_outside_or_missing_is_only_named(boundary: Boundary) -> None:
    outside = boundary.workspace.parent / "secret.txt"
    found = read_prompt([link(outside), link(boundary.workspace / "none")], boundary)

    assert str(outside) in found.text
    assert found.attachments == ()


def test_what_the_editor_sends_is_used_in_place_of_what_is_on_disk(boundary: Boundary) -> None:
    uri = (boundary.workspace / "a b.txt").as_uri()
    found = read_prompt([{"type": "resource", "resource": {"uri": uri, "text": "unsaved\n"}}], boundary)

    assert [(one.name, one.text) for one in found.attachments] == [("a b.txt", "unsaved\n")]


def test_long_text_is_cut_and_said(boundary: Boundary) -> None:
    resource = {"uri": "file:///x", "text": "x" * (MAX_TEXT_BYTES + 1)}
    (one,) = read_prompt([{"type": "resource", "resource": resource}], boundary).attachments

    assert (one.name, len(one.text)) == ("/x (truncated)", MAX_TEXT_BYTES)


def test_a_picture_is_what_its_bytes_say(boundary: Boundary) -> None:
    (one,) = read_prompt([{"type": "image", "mimeType": "image/jpeg", "data": PICTURE}], boundary).attachments
    assert one.image is not None
    assert one.image.media_type == "image/png"

    text = base64.b64encode(b"no picture").decode()
    with pytest.raises(UsageError, match="The image is binary data, not image/png"):
        read_prompt([{"type": "image", "mimeType": "image/png", "data": text}], boundary)


def test_an_address_that_is_none_is_said(boundary: Boundary) -> None:
    with pytest.raises(UsageError, match="is no address"):
        read_prompt([{"type": "resource_link", "name": "x", "uri": "file://["}], boundary)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ({"type": "text", "text": "  "}, "empty"),
        ({"type": "audio", "data": "", "mimeType": "audio/wav"}, "audio"),
        ({"type": "image", "data": "%%%", "mimeType": "image/png"}, "base64"),
        ({"type": "image", "data": PICTURE, "mimeType": "image/tiff"}, "PNG or JPEG"),
        ({"type": "resource", "resource": {"uri": "file:///x", "blob": "AAAA"}}, "neither text nor"),
    ],
)
def test_what_no_model_can_read_is_refused(boundary: Boundary, block: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_prompt([block], boundary)


async def test_a_picture_and_a_file_reach_the_model(tmp_path: Path) -> None:
    async with editing(tmp_path, ["I see."]) as (editor, server):
        (editor.workspace / "notes.txt").write_text("the notes\n")
        picture = wire.ImageContentBlock(type="image", data=PICTURE, mime_type="image/png")
        file = wire.ResourceContentBlock(
            type="resource_link", name="notes.txt", uri=(editor.workspace / "notes.txt").as_uri()
        )
        await editor.say(await editor.open(), "look", picture, file)

    sent = str(server.chats[0])
    assert PICTURE in sent
    assert "the notes" in sent


def test_files_named_with_an_at_sign_in_the_text_are_attached_like_those_the_editor_names(boundary: Boundary) -> None:
    (boundary.workspace / "p.png").write_bytes(base64.b64decode(PICTURE))
    (boundary.workspace / "ü.txt").write_text("umlaut\n")
    text = f'see @"a b.txt", @ü.txt. @p.png @{boundary.workspace.parent}/secret.txt @no/such.py @alice @{"n" * 5000}'
    found = read_prompt([{"type": "text", "text": text}, link(boundary.workspace / "ü.txt")], boundary)

    assert sorted(one.name for one in found.attachments) == ["a b.txt", "p.png", "ü.txt"]
    assert [one.image.data for one in found.attachments if one.image] == [PICTURE]
    assert found.problems == ("@no/such.py was not attached: no such file",)


@pytest.mark.parametrize("text", ["@notes.txt", " @notes.txt\n", "notes.txt @notes.txt"])
def test_a_message_that_is_nothing_but_the_name_of_a_file_attaches_it(boundary: Boundary, text: str) -> None:
    (boundary.workspace / "notes.txt").write_text("the notes\n")

    assert [one.text for one in read_prompt([{"type": "text", "text": text}], boundary).attachments] == ["the notes\n"]


@pytest.mark.parametrize("linked", [False, True])
async def test_a_file_with_unsaved_text_is_attached_as_the_editor_shows_it(tmp_path: Path, linked: bool) -> None:
    file = prepare_file(tmp_path)
    link = wire.ResourceContentBlock(type="resource_link", name="a.txt", uri=file.as_uri())
    async with editing(tmp_path, ["I see."], None, FILES) as (editor, server):
        editor.client.buffers[str(file)] = "not saved\n"
        await editor.say(await editor.open(), link if linked else "look at @a.txt")

    sent = str(server.chats[0]["messages"][-1])
    assert "not saved" in sent
    assert "two" not in sent


async def test_an_editor_that_does_not_answer_is_said_and_the_saved_text_is_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_file(tmp_path)
    monkeypatch.setattr("ollm.acp.client.READ_TIMEOUT_SECONDS", 0.05)
    async with editing(tmp_path, ["I see."], None, FILES) as (editor, server):
        editor.client.silent = True
        await editor.say(await editor.open(), "look at @a.txt")

    assert "two" in str(server.chats[0]["messages"][-1])
    assert "The editor did not give a.txt within 0.05 s" in editor.client.said("agent_thought_chunk")
