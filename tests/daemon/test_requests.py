"""Requests to one daemon: refusals, lists, exports, questions, checkpoints."""

import asyncio
import contextlib
from pathlib import Path
from urllib.parse import quote

import pytest

from ollm.app.process import ProcessScope
from ollm.daemon.service import BadPathError, parse_workspace
from ollm.daemon.transcript import read_transcript
from tests.cli.command import ollm
from tests.daemon.long_session import LONG, write_long_session
from tests.daemon.running import daemon, listing
from tests.servers.answers import Answer

NOBODY = "00000000-0000-4000-8000-000000000000"

HEAD = b"POST /init HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "


async def test_each_mistake_has_its_status_and_a_problem_document(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"]) as found:
        session = await found.open()
        here = {"workspacePath": str(found.workspace)}
        cases = [
            (400, ("POST", "/sessions", None), {"raw": b"{broken"}),
            (400, ("POST", "/sessions", None), {"raw": b"[" * 100_000}),
            (400, ("POST", "/init", None), {"raw": b'{"a":' * 100_000}),
            (400, ("POST", "/init", None), {"raw": b'{"workspacePath":"\xff\xfe"}'}),
            (400, ("POST", "/init", None), {}),
            (400, ("POST", "/sessions", {"workspacePath": "relative"}), {}),
            (400, ("POST", "/sessions", {"workspacePath": f"/{found.workspace}"}), {}),
            (400, ("POST", "/sessions", {"workspacePath": f"{found.workspace}/../project"}), {}),
            (404, ("POST", "/sessions", {"workspacePath": "/nowhere/at/all"}), {}),
            (400, ("POST", "/init", {"workspacePath": "a\0b"}), {}),
            (404, ("GET", "/workspaces/%00/sessions", None), {}),
            (404, ("GET", "/workspaces/project/sessions", None), {}),
            (404, ("GET", "/workspaces/%252Ftmp/sessions", None), {}),
            (404, ("GET", "/workspaces/%2Ftmp%2F..%2Ftmp/sessions", None), {}),
            (404, ("GET", "/tools?workspace=/no/such/folder", None), {}),
            (403, ("GET", "/health", None), {"headers": {"origin": "http://example.org"}}),
            (403, ("GET", "/health", None), {"headers": {"sec-fetch-site": "cross-site"}}),
            (404, ("GET", "/nothing", None), {}),
            (404, ("GET", f"/sessions/{NOBODY}", None), {}),
            (404, ("POST", "/sessions", {**here, "sessionId": NOBODY}), {}),
            (404, ("DELETE", f"/sessions/{NOBODY}", None), {}),
            (404, ("GET", f"/sessions/{NOBODY}/snapshots", None), {}),
            (404, ("POST", f"/sessions/{NOBODY}/snapshots", None), {}),
            (404, ("GET", f"/sessions/{NOBODY}/context", None), {}),
            (404, ("POST", "/snapshots/none/restore", None), {}),
            (404, ("POST", f"/sessions/{session}/messages", {"text": "hi", "attachments": ["nothing"]}), {}),
            (405, ("PUT", "/health", None), {}),
            (413, ("POST", "/sessions", None), {"raw": b'{"workspacePath": "' + b"x" * 1_100_000 + b'"}'}),
            (415, ("POST", "/sessions", None), {"raw": b"a=1", "headers": {"content-type": "text/plain"}}),
            (422, ("POST", "/sessions", {**here, "sessionId": "not-a-uuid"}), {}),
            (422, ("POST", "/sessions", {"workspacePath": 7}), {}),
            (422, ("POST", "/sessions", {**here, "colour": "red"}), {}),
            (404, ("GET", "/sessions/../etc/passwd", None), {}),
            (422, ("GET", "/sessions/..%2F..%2fetc%2Fpasswd", None), {}),
            (422, ("GET", f"/sessions/{NOBODY}/history?limit=0", None), {}),
            (422, ("POST", "/web/logout", None), {}),
            (422, ("POST", "/policy/check", {"tool": 7}), {}),
            (422, ("POST", "/policy/check", {"tool": "shell", "params": []}), {}),
            (422, ("POST", "/policy/check", {"tool": "shell", "params": {"command": 7}}), {}),
            (422, ("POST", "/policy/backtest", {"rules": ""}), {}),
            (422, ("POST", "/policy/backtest", {"rules": "x", "colour": "red"}), {}),
            (422, ("POST", f"/sessions/{session}/attachments", {"name": "a", "mediaType": "text/x", "data": ""}), {}),
            (422, ("POST", f"/sessions/{session}/attachments", {"name": "a", "mediaType": "text/plain", "data": "%"}), {}),
        ]  # fmt: skip
        for status, request, more in cases:
            reply = await found.ask(*request, **more)
            assert reply.status == status, (request, reply.body)
            assert reply.headers["content-type"].startswith("application/problem+json")
            assert reply.json["status"] == reply.status
            assert reply.json["detail"]
            assert "access-control-allow-origin" not in reply.headers
        for path in ("/" + "a" * 300, "/" + "a/" * 3000 + "b", "/" + "ü" * 200):
            assert (await found.ask("POST", "/init", {"workspacePath": path})).status in (404, 422)
            assert (await found.ask("GET", f"/workspaces/{quote(path, safe='')}/sessions")).status == 404
        for path in ("/sessions/" + "a" * 300, "/sessions/%00", "/snapshots/" + "b" * 5000 + "/restore"):
            assert (await found.ask("GET" if "snap" not in path else "POST", path)).status in (404, 422, 400)
        with contextlib.suppress(asyncio.TimeoutError):
            headers = {"last-event-id": "9" * 5000}
            reply = await asyncio.wait_for(found.ask("GET", f"/sessions/{session}/events", headers=headers), 0.5)
            assert reply.status == 200

        for sent, status in (
            (b"\x16\x03\x01 hello\r\n\r\n", b" 400"),
            (HEAD + b"9" * 20 + b"\r\n\r\n{}", b" 413"),
            (
                HEAD + b"5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n",
                b" 400",
            ),
        ):
            reader, writer = await asyncio.open_unix_connection(str(found.socket))
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(300), 15)
            writer.close()
            assert answer.startswith(b"HTTP/1.1" + status)
            assert b"application/problem+json" in answer
            assert answer.count(b"HTTP/1.1 ") == 1, "what follows is not answered"


@pytest.mark.parametrize("path", ["relative", "/a/../b", "//a", "/a//b", "/a/./b", "/a\0", ""])
def test_a_path_that_could_mean_two_things_is_refused(path: str) -> None:
    with pytest.raises(BadPathError, match="is not an absolute path") as found:
        parse_workspace(path)
    assert found.value.action == "Send an absolute path of a directory."


async def test_sessions_and_workspaces_are_listed_page_by_page_and_narrowed(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"] * 5) as found:
        made = []
        for number in range(5):
            place = tmp_path / f"project{number % 2}"
            place.mkdir(exist_ok=True)
            made.append(await found.open(workspacePath=str(place)))
            await found.say(made[-1], f"hello {number} {'apples' if number == 4 else 'pears'}")
        first = await found.ask("GET", "/sessions?limit=2")
        rest = await found.ask("GET", "/sessions?limit=10&offset=2")
        places = (await found.ask("GET", "/workspaces")).json

        async def ids(query: str) -> list[str]:
            return [line["sessionId"] for line in (await found.ask("GET", f"/sessions{query}")).json]

        assert await ids("?q=APPLES") == [made[4]]
        assert await ids("?q=pears+project1") == [made[3], made[1]]
        assert await ids(f"?workspace={tmp_path / 'project1'}") == [made[3], made[1]]
        assert await ids("?status=archived") == []
        line = (await found.ask("GET", "/sessions?q=apples")).json[0]
        assert (line["open"], line["running"], line["questions"]) == (True, False, 0)
        paged = await found.ask("GET", "/sessions?q=hello&limit=1")
        assert (paged.headers["x-total-count"], "q=hello" in paged.headers["link"]) == ("5", True)
        assert (await found.ask("GET", "/sessions?status=nonsense")).status in (400, 422)
    assert first.headers["x-total-count"] == "5"
    assert "offset=2" in first.headers["link"]
    assert "link" not in rest.headers
    assert [line["sessionId"] for line in first.json + rest.json] == made[::-1]
    assert [(line["workspacePath"], line["sessions"]) for line in places] == [
        (str(tmp_path / "project0"), 3), (str(tmp_path / "project1"), 2),
    ]  # fmt: skip


async def test_a_session_is_read_exported_searched_pictured_and_erased(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["The **door** is blue.", "What do you mean?", "Once."]) as found:
        session = await found.open()
        await found.say(session, "What colour?")
        said = await found.say(session, "/approval yolo")
        at = f"/sessions/{session}"

        assert (await found.ask("GET", "/health")).json["sessions"] == 1
        assert (await found.ask("GET", at)).json["sessionId"] == session
        assert (await found.ask("GET", f"{at}/status")).json["model"] == "scripted"
        assert [m["id"] for m in (await found.ask("GET", f"{at}/history?limit=1")).json] == [4]
        assert [m["id"] for m in (await found.ask("GET", f"{at}/history?before=2")).json] == [1]
        assert b"The **door** is blue." in (await found.ask("GET", f"{at}/export?format=markdown")).body
        assert b'"format: ' in (await found.ask("GET", f"{at}/export?format=pdf")).body
        assert (await found.ask("GET", f"{at}/export")).json["sessionId"] == session
        assert (await found.ask("GET", "/search?q=door")).json[0]["sessionId"] == session
        assert "tokens used" in (await found.ask("POST", f"{at}/commands", {"name": "context"})).json["text"]
        approval = (await found.ask("POST", f"{at}/commands", {"name": "approval"})).json["text"]
        assert (said[-1]["reason"], "yolo" in approval.partition(".")[0]) == ("answered", False), "a message is text"
        assert found.server.chats[1]["messages"][-1]["content"] == "/approval yolo"
        taken = await found.ask("POST", f"{at}/snapshots")
        assert [s["id"] for s in (await found.ask("GET", f"{at}/snapshots")).json] == [taken.json["id"]]
        assert (await found.ask("POST", f"/snapshots/{taken.json['id']}/restore")).status == 200
        assert (await found.ask("DELETE", f"/snapshots/{taken.json['id']}")).status == 204
        assert (await found.ask("POST", f"{at}/cancel")).json == {"accepted": False}
        live = (await found.ask("GET", f"{at}/context")).json
        await found.ask("DELETE", at)
        await asyncio.to_thread(ollm, "-p", "once", cwd=found.workspace, **found.environment)
        kinds = [len((await found.ask("GET", f"/sessions?status={one}")).json) for one in ("unarchived", "chats")]
        assert kinds == [2, 1], "a one-shot session is not a chat"
        closed = (await found.ask("GET", f"{at}/context")).json
        renamed = await found.ask("PATCH", at, {"title": "Doors", "status": "archived"})
        assert renamed.json["metadata"]["title"] == "Doors"
        listed = (await found.ask("GET", listing(found.workspace))).json
        assert {line["sessionId"]: line["status"] for line in listed}[session] == "archived"
        counts = [len((await found.ask("GET", f"/sessions?status={one}")).json) for one in ("archived", "unarchived")]
        assert counts == [1, 1]
        assert (await found.ask("DELETE", f"{at}?erase=true")).status == 204
        assert (await found.ask("GET", at)).status == 404

    left = [path for path in found.home.rglob("*") if path.is_file() and session.encode() in path.read_bytes()]
    assert left == []
    assert (live["live"], closed["live"]) == (True, False)
    for picture in (live, closed):
        assert [one["numbers"] for one in picture["messages"]] == [[1], [2], [3], [4]]
        assert {part["name"] for part in picture["parts"]} >= {"instructions", "tool schemas", "user messages"}
        assert 0 < picture["used"] < picture["window"]
        assert picture["recallableCount"] == 0
    assert [turn["messageId"] for turn in live["turns"]] == [1, 3]
    assert live["reuse"][-1]["reusedShare"] == 1.0


RULES = "policy:\n  rules:\n    - {tool: ls, action: deny}\n    - {tool: shell, action: perhaps}\n"

WRONG = "sessions:\n  maxSessions: 7\nprovider:\n  apiKey: sk-very-secret\ncolour: red\n"


async def test_the_setup_is_shown_with_its_origin(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with daemon(tmp_path, [Answer(calls=[("ls", {"path": "."})]), "ok"]) as found:
        (found.home / "config.yaml").write_text(WRONG)
        await found.say(await found.open(), "list it")
        here = {"workspacePath": str(found.workspace)}
        tools = (await found.ask("GET", "/tools")).json
        policy = (await found.ask("GET", f"/policy?workspace={found.workspace}")).json
        call = {"tool": "shell", "params": {"command": "rm x"}, **here}
        verdict = (await found.ask("POST", "/policy/check", call)).json
        tested = (await found.ask("POST", "/policy/backtest", {"rules": RULES, **here})).json
        broken = await found.ask("POST", "/policy/backtest", {"rules": "policy: [", **here})
        models = (await found.ask("GET", "/models")).json
        settings = await found.ask("GET", "/settings")
        rendered = await found.ask("POST", "/web/render", {"text": "**a** <b onclick=x>y</b>\n\n```python\nx = 1\n```"})

    assert {"shell", "read_file"} <= {tool["name"] for tool in tools}
    assert policy["defaultAction"] == "ask"
    assert (verdict["decision"], len(verdict["parts"])) == ("ask", 1)
    assert (tested["calls"], tested["deny"], tested["changes"][0]["tool"]) == (1, 1, "ls")
    assert [problem.partition(" (")[0] for problem in tested["problems"]] == ["The rule in line 4 is invalid"]
    assert broken.json["problems"][0].startswith("These rules cannot be used: line 1, column 10 is not YAML: ")
    assert broken.json["changes"] == []
    assert [model["name"] for server in models["servers"] for model in server["models"]] == ["scripted"]
    assert models["facts"][0]["key"].endswith("|scripted")
    assert settings.json["settings"]["sessions"]["maxSessions"] == 7
    assert settings.json["sources"]["sessions.maxSessions"].endswith("config.yaml:2:3")
    assert b"sk-very-secret" not in settings.body
    assert "colour: unknown key" in str(settings.json["problems"])
    assert capfd.readouterr().err.count("colour: unknown key") <= 2, "once by the service, once by the session"
    assert "<strong>a</strong>" in rendered.json["html"]
    assert '<span class="mi">1</span>' in rendered.json["html"]
    assert "<b onclick" not in rendered.json["html"]


HOSTILE = "<img src=x onerror=alert(1)> **bold** [x](javascript:alert(1))"


async def test_messages_come_as_clean_html_with_their_calls(tmp_path: Path) -> None:
    script = [Answer(calls=[("read_file", {"path": "a.txt"})]), Answer(text=HOSTILE, thinking="hm"), "more"]
    async with daemon(tmp_path, script) as found:
        (found.workspace / "a.txt").write_text("x" * 30_000)
        session = await found.open()
        await found.say(session, "<script>alert(2)</script>")
        await found.say(session, "again")
        whole = (await found.ask("GET", f"/sessions/{session}/transcript")).json
        part = (await found.ask("GET", f"/sessions/{session}/transcript?before=4&after=1")).json
        tail = (await found.ask("GET", f"/sessions/{session}/transcript?limit=1")).json

    html = "".join(message["html"] for message in whole["messages"])
    assert [message["number"] for message in whole["messages"]] == [1, 2, 3, 4, 5, 6]
    assert whole["last"] == 6
    assert "&lt;script&gt;alert(2)" in html
    assert "<strong>bold</strong>" in html
    assert "<img" not in html
    assert "javascript:" not in html.replace("[x](javascript:", "")
    assert "data-call=" in html
    assert whole["messages"][2]["html"] == "", "a result stands with its call"
    assert len(html) < 45_000
    assert [message["number"] for message in part["messages"]] == [2, 3]
    assert [message["number"] for message in tail["messages"]] == [6]


@pytest.mark.parametrize("foreign", [False, True])
def test_any_page_of_a_long_session_holds_its_own_messages(tmp_path: Path, foreign: bool) -> None:
    process = ProcessScope({"HOME": str(tmp_path), "OLLM_HOME": str(tmp_path / ".ollm")})
    write_long_session(tmp_path / ".ollm", tmp_path, 3000, foreign=foreign)

    for before, limit in ((None, 16), (40, 60), (2985, 40), (1500, 40), (None, 200), (2, 1)):
        page = read_transcript(process, LONG, before, 0, limit)
        last = (before or 3001) - 1
        assert [message.number for message in page.messages] == list(range(max(1, last - limit + 1), last + 1))
        assert page.last == last


CHANGE = Answer(calls=[("write_file", {"path": "a.txt", "content": "new\n", "overwrite": True})])


async def test_files_of_an_open_session_go_back(tmp_path: Path) -> None:
    async with daemon(tmp_path, [CHANGE, "Done.", "two"]) as found:
        session = await found.open()
        await found.ask("POST", f"/sessions/{session}/commands", {"name": "approval", "arguments": "accept-edits"})
        (found.workspace / "a.txt").write_text("old\n")
        await found.say(session, "change it")
        listed = (await found.ask("GET", f"/sessions/{session}/checkpoints")).json
        path = f"/sessions/{session}/checkpoints/1/restore"
        dry = await found.ask("POST", path, {"what": "both", "dryRun": True, "diff": True})
        assert (found.workspace / "a.txt").read_text() == "new\n"
        done = await found.ask("POST", path, {"what": "both", "dryRun": False})
        await found.say(session, "and now?")
        wrong = [
            (await found.ask("POST", at, body)).status
            for at, body in (
                (path.replace("/1/", "/2/"), {"what": "both"}),
                (path.replace("/1/", "/0/"), {"what": "both"}),
                (path, {"what": "all"}),
                (path, {}),
                (path, {"dryRun": True}),
                (path, {"what": "files", "force": "false"}),
                (path, {"what": "files", "dryRun": 1}),
                (path, {"what": "files", "forced": True}),
                (path.replace(session, "11111111-1111-4111-8111-111111111111"), {"what": "both"}),
            )
        ]

    assert (found.workspace / "a.txt").read_text() == "old\n"
    assert [(line["messageId"], line["kind"], line["changed"]) for line in listed] == [(1, "turn", 1)]
    assert dry.json["files"] == done.json["files"] == [{"path": "a.txt", "change": "M"}]
    assert (dry.json["dryRun"], done.json["dryRun"]) == (True, False)
    assert "-new\n+old" in dry.json["text"]
    assert "change it" not in str(found.server.chats[-1])
    assert wrong == [422] * 8 + [404]


async def test_a_directory_is_added_to_a_session_of_the_daemon(tmp_path: Path) -> None:
    (other := tmp_path / "library").mkdir()
    write = Answer(calls=[("write_file", {"path": f"{other}/new.txt", "content": "there"})])
    async with daemon(tmp_path, [write, "Done."]) as found:
        session = await found.open()
        for name, words in (("approval", "accept-edits"), ("add-dir", str(other))):
            await found.ask("POST", f"/sessions/{session}/commands", {"name": name, "arguments": words})
        await found.say(session, "write it")

    assert (other / "new.txt").read_text() == "there"


async def test_files_of_a_closed_session_go_back(tmp_path: Path) -> None:
    async with daemon(tmp_path, [CHANGE, "Done.", "two"]) as found:
        session = await found.open()
        await found.ask("POST", f"/sessions/{session}/commands", {"name": "approval", "arguments": "accept-edits"})
        await found.say(session, "change it")
        await found.ask("DELETE", f"/sessions/{session}")
        path = f"/sessions/{session}/checkpoints/1/restore"
        dry = await found.ask("POST", path, {"what": "files", "dryRun": True, "diff": True})
        assert (found.workspace / "a.txt").exists()
        done = await found.ask("POST", path, {"what": "files"})
        listed = (await found.ask("GET", f"/sessions/{session}/checkpoints")).json

    assert dry.json["files"] == done.json["files"] == [{"path": "a.txt", "change": "D"}]
    assert "```diff" in dry.json["text"]
    assert "-new" in dry.json["text"]
    assert not (found.workspace / "a.txt").exists()
    assert [line["kind"] for line in listed] == ["turn", "rewind"]


async def test_snapshots_of_a_closed_session_are_taken_and_restored_from_the_archive(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        session = await found.open()
        await found.say(session, "first")
        await found.ask("DELETE", f"/sessions/{session}")
        taken = (await found.ask("POST", f"/sessions/{session}/snapshots")).json["id"]
        await found.open(sessionId=session)
        await found.say(session, "second")
        await found.ask("DELETE", f"/sessions/{session}")

        assert (await found.ask("POST", f"/snapshots/{taken}/restore")).status == 200
        await found.open(sessionId=session)
        await found.say(session, "third")

    sent = [message["content"] for message in found.server.chats[2]["messages"]]
    assert "first" in sent[1]
    assert not any(text.startswith("second") for text in sent)
