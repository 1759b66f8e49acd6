"""Snapshots through the API."""

from pathlib import Path

from tests.daemon.running import daemon


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
