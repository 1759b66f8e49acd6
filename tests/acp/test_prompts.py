"""Prompts and commands of an editor, and what it is told of them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp import schema as wire

from ollm.acp.prompts import read_prompt
from ollm.acp.updates import split_diff
from ollm.domain.errors import UsageError
from ollm.domain.tools import FileChange
from ollm.runtime.mentions import MAX_TEXT_BYTES
from ollm.system.paths import Boundary
from ollm.tools.files.file_change import make_diff
from tests.acp.editor import EDIT, editing, raw_agent, variables
from tests.acp.test_client_files import FILES, prepare_file
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

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


def test_a_diff_becomes_old_and_new_text_hunk_by_hunk() -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    after = before.replace("line 3\n", "line three\n").replace("line 30\n", "")
    first, second = split_diff(make_diff("src/a.py", before, after))

    assert (first.path, second.path) == ("src/a.py", "src/a.py")
    assert "line 3\n" in (first.before or "")
    assert "line three\n" in first.after
    assert "line 30\n" in (second.before or "")
    assert "line 30\n" not in second.after


def test_a_new_file_has_no_old_text_and_a_change_too_long_to_show_is_none() -> None:
    assert split_diff(make_diff("new", "", "one\n")) == [FileChange(path="new", before=None, after="one\n")]
    assert split_diff("--- a\n+++ a\n(9,000 lines become 1)\n") == []
    assert split_diff("") == []


async def test_errors_say_what_is_wrong_with_the_right_code(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        with pytest.raises(RequestError, match="absolute path") as relative:
            await editor.agent.new_session(cwd="project", mcp_servers=[])
        with pytest.raises(RequestError, match="not a directory"):
            await editor.agent.new_session(cwd=str(tmp_path / "none"), mcp_servers=[])
        with pytest.raises(RequestError, match="is not open") as unknown:
            await editor.say("nothing", "hi")

    assert (relative.value.code, unknown.value.code) == (-32602, -32002)
    assert relative.value.data == {"reason": "invalid-params"}
    assert unknown.value.data == {"reason": "not-found", "action": "Open it with session/load."}


HELLO = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}}}


def ask(number: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


async def test_parameters_left_out_an_answer_of_nothing_and_a_stop_that_wants_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    script = [EDIT, "Done.", Answer(text="word " * 4000, pace=0.05)]
    async with ScriptedServer(script) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        agent.write(ask(1, "initialize", **HELLO), ask(2, "session/list"))
        assert (await agent.answer(2))["result"]["sessions"] == []
        agent.write(ask(3, "session/new", cwd=5))
        wrong = (await agent.answer(3))["error"]
        assert wrong["code"] == -32602
        assert wrong["message"] == "Invalid params: Expected `str`, got `int` - at `$.cwd`."
        assert "http" not in json.dumps(wrong)
        agent.write(ask(4, "session/new", cwd=str(tmp_path), mcpServers=[]))
        session = (await agent.answer(4))["result"]["sessionId"]
        text = {"type": "text", "text": "change it"}
        agent.write(ask(5, "session/prompt", sessionId=session, prompt=[text]))
        written = ""
        while (message := await agent.read()).get("id") != 5 or "method" in message:
            if message.get("method") == "session/request_permission":
                chosen = {"outcome": {"outcome": "selected", "optionId": "once"}}
                agent.write({"jsonrpc": "2.0", "id": message["id"], "result": chosen})
            elif message.get("method") == "fs/read_text_file":
                agent.write({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "new\ntwo\n"}})
            elif message.get("method") == "fs/write_text_file":
                written = message["params"]["content"]
                agent.write({"jsonrpc": "2.0", "id": message["id"]})
        assert written == "new\nthree\n"
        agent.write(ask(6, "session/prompt", sessionId=session, prompt=[text]))
        while (await agent.read()).get("params", {}).get("update", {}).get("sessionUpdate") != "agent_message_chunk":
            pass
        agent.write(ask(7, "session/cancel", sessionId=session))
        assert (await agent.answer(7))["result"] is None
        assert (await agent.answer(6))["result"]["stopReason"] == "cancelled"


async def test_what_only_a_terminal_can_do_is_the_editors_and_no_keys_are_named(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        session = await editor.open()
        for line, told in (
            ("/exit", "close the thread"),
            ("/clear", "Start a new thread"),
            ("/new", "Start a new thread"),
            ("/help", "`/undo`: Undo"),
            ("/help undo", "Undo the last"),
        ):
            editor.client.updates.clear()
            await editor.say(session, line)
            assert told in editor.client.said()
            assert not any(word in editor.client.said() for word in ("Esc", "Ctrl", "Alt-", "/exit"))
