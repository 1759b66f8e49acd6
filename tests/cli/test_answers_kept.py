"""What a person answered to a question stands on the screen, in the session and in what is made of it."""

from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.servers.answers import Answer

EDIT = Answer(calls=[("edit_file", {"path": "a.txt", "edits": [{"target": "one", "replacement": "two"}]})])
RUN = Answer(calls=[("shell", {"command": "touch b.txt"})])


async def test_answers_stand_below_their_questions_live_and_on_resume(tmp_path: Path) -> None:
    async with running(tmp_path, [EDIT, RUN, RUN, "Done."]) as runner:
        (runner.workspace / "a.txt").write_text("one\n")
        async with at_terminal(runner, "do it now") as terminal:
            await terminal.wait_for("? Edit a.txt (1 edit)", "[f] all file edits")
            terminal.type("f")
            await terminal.wait_for("  › yes, all file edits this session\n  ✓ Edit a.txt (1 edit)", "[n] no")
            terminal.type("n")
            await terminal.wait_for("reason:")
            terminal.type("write c.txt instead" + ENTER)
            await terminal.wait_for("  › no: write c.txt instead", "· Not run: write c.txt instead", "[s] this session")
            terminal.type("s")
            await terminal.wait_for("  › yes, for this session (shell:", "✓ Run touch b.txt", "Done.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "-c") as terminal:
            await terminal.wait_for(
                "Resumed", "  ? Edit a.txt (1 edit)\n  › yes, all file edits this session\n  ✓ Edit"
            )
            await terminal.wait_for("  ? Run touch b.txt\n  › no: write c.txt instead\n  ✗ Run touch b.txt · Not run")
            await terminal.wait_for("  ? Run touch b.txt\n  › yes, for this session (shell:", "1 - one", "1 + two")
        kept = [call["result"]["questions"] for call in runner.sessions()[0]["toolCalls"]]
        assert kept[1] == [{"question": "Run touch b.txt", "answer": "no: write c.txt instead"}]
        viewed = (await runner.run("sessions", "view")).out
        assert "? Run touch b.txt\n    › no: write c.txt instead" in viewed
        assert (
            "› no: write c.txt instead" in (await runner.run("sessions", "export", "-o", "-", "--format", "html")).out
        )
        written = (await runner.run("sessions", "export", "-o", "-", "--format", "markdown")).out
        assert "> Run touch b.txt\n>\n> **no: write c.txt instead**" in written


async def test_what_flags_answer_is_no_answer_of_a_person(tmp_path: Path) -> None:
    async with running(tmp_path, [RUN, "Done."]) as runner:
        await runner.run("-p", "do it", "--yes")
        assert "questions" not in runner.sessions()[0]["toolCalls"][0]["result"]
