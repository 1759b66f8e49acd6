"""Taking a rewind back from outside: which one it is, and that talk alone comes back too."""

from pathlib import Path

from tests.cli.running import running


async def test_rewinds_of_the_talk_are_taken_back_one_after_the_other(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "first words")
        await runner.run("--continue", "-p", "second words")
        await runner.run("sessions", "rewind", "--to", "3")
        await runner.run("sessions", "rewind", "--to", "1")
        first = await runner.run("sessions", "redo")
        second = await runner.run("sessions", "redo")
        third = await runner.run("sessions", "redo")
        await runner.run("--continue", "-p", "third words")

    assert [done.out.strip() for done in (first, second)] == [
        f"The rewind to before message {number} is taken back." for number in (1, 3)
    ]
    assert (third.code, "Nothing to redo." in third.err) == (2, True)
    said = str(runner.server.chats[-1])
    assert "first words" in said
    assert "second words" in said
