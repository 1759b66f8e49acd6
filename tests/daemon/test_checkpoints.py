"""Checkpoints and snapshots through the API."""

from pathlib import Path

from tests.daemon.running import daemon
from tests.servers.answers import Answer

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
    assert "~~~diff" in dry.json["text"]
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
