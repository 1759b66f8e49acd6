"""Going back in a session that is not open."""

import pytest

from ollm.app import ClosedSession, ProcessScope
from ollm.app.closed_rewind import ClosedRewind
from ollm.domain.errors import BusyError
from tests.app.test_interrupted_restore import kill_between
from tests.runtime.talking import Talking
from tests.servers.answers import Answer

CHANGE = Answer(calls=[("shell", {"command": "echo new > a.txt"})])


async def test_files_alone_go_back_and_an_open_session_is_refused(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change it")
        known = talk.conversation.session_id or ""
        closed = ClosedSession(ProcessScope(workspace=talk.workspace), talk.workspace)
        with pytest.raises(BusyError):
            await ClosedRewind(closed, known).run(1, files=True, force=False, dry_run=False)
    done = await ClosedRewind(closed, known).run(1, files=True, force=False, dry_run=False, talk=False)

    assert (done.what, [file["path"] for file in done.files]) == ("files", ["a.txt"])
    assert (talk.workspace / "a.txt").read_text() == "old\n"
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.run("/redo")
    assert (talk.workspace / "a.txt").read_text() == "new\n"


async def test_one_that_was_killed_and_is_asked_for_again_is_done_once(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, keep_old=True)
    closed = ClosedSession(ProcessScope(workspace=talk.workspace), talk.workspace)

    done = await ClosedRewind(closed, known).run(1, files=True, force=False, dry_run=False)

    assert "it is complete now" in done.text
    assert [file["path"] for file in done.files] == ["a.txt"]
    assert [step["step"] for step in talk.document["metadata"]["contextHistory"]] == ["rewind"]
