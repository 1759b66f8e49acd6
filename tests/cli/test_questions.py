"""Questions in the chat, and going back in it."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.sessions.test_rewind import FORMATTER, call, read_files, write_project
from tests.cli.terminal import CTRL_D, DOWN, ENTER, ESCAPE, Terminal, at_terminal
from tests.servers.answers import Answer

SERVER = str(Path(__file__).parents[1] / "servers" / "raw_mcp.py")


def squeeze(text: str) -> str:
    """Text as it was before it was broken into lines and set off at the side."""
    return re.sub(r"[\s│┃▌|]+", "", text)


async def ask(runner: Runner, terminal: Terminal) -> str:
    """Bring up the question; what stands on the screen beside its keys."""
    await terminal.wait_for("\n›")
    terminal.type("go\r")
    await terminal.wait_for("[y] yes")
    return terminal.screen()


async def refuse(terminal: Terminal) -> None:
    terminal.type("n")
    await terminal.wait_for("Reason (optional)")
    terminal.type("\r")
    await terminal.wait_for("As you wish.")
    terminal.type(CTRL_D)
    await terminal.ended()


async def test_what_asks_stands_beside_the_keys_and_the_whole_command_above(tmp_path: Path) -> None:
    home = tmp_path / "user"
    (home / "important").mkdir(parents=True)
    echoes = [f"echo harmless line number {number}" for number in range(60)]
    line = "\n".join(["rm -rf ~/important", *echoes])
    async with running(tmp_path, [Answer(calls=[("shell", {"command": line})]), "As you wish."]) as runner:
        async with at_terminal(runner, "chat") as terminal:
            shown = await ask(runner, terminal)
            whole = terminal.text()
            await refuse(terminal)

    assert "rm -rf ~/important" in shown, shown
    assert shown.index("harmless line number 59") < shown.rindex("rm -rf ~/important") < shown.index("[y] yes")
    assert all(echo in whole for echo in echoes)
    assert (home / "important").exists()


@pytest.mark.parametrize("columns", [40, 80])
async def test_long_words_push_neither_what_asks_nor_the_keys_out_of_sight(tmp_path: Path, columns: int) -> None:
    line = f"echo {'a' * 3000}; rm -rf build-{'b' * 900}-end && make {'c' * 2000}"
    async with running(tmp_path, [Answer(calls=[("shell", {"command": line})]), "As you wish."]) as runner:
        async with at_terminal(runner, "chat", size=(columns, 40)) as terminal:
            shown = await ask(runner, terminal)
            await terminal.wait_for("[n] no")
            whole, shown = terminal.text(), terminal.screen()
            await refuse(terminal)

    assert squeeze(line) in squeeze(whole), "all of it can be seen"
    seen = squeeze(shown)
    assert seen.index("rm-rfbuild-bbb") < seen.index("bbb-end") < seen.index("makeccc") < seen.index("[y]yes"), shown
    assert "characters,seeabove" in seen
    assert seen.index("[y]yes") < seen.index("[n]no")


async def test_arguments_of_a_server_are_shown_to_their_end(tmp_path: Path) -> None:
    arguments = {"text": "".join(f"<{number:04}>" for number in range(800)) + "AND DELETE EVERYTHING"}
    call = Answer(calls=[("good__echo", arguments)])
    async with running(tmp_path, [call, "As you wish."]) as runner:
        runner.home.mkdir()
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        offered = runner.workspace / "server.json"
        offered.write_text(json.dumps({"tools": [{"name": "echo", "description": "Say it.", "inputSchema": schema}]}))
        servers = {"good": {"command": sys.executable, "args": [SERVER, str(offered)]}}
        (runner.home / "config.yaml").write_text(json.dumps({"mcpServers": servers}))
        await runner.run("mcp", "test")
        async with at_terminal(runner, "chat") as terminal:
            shown = await ask(runner, terminal)
            whole = terminal.text()
            await refuse(terminal)

    assert len(arguments["text"]) > 4_800
    assert squeeze(arguments["text"]) in squeeze(whole)
    assert squeeze("AND DELETE EVERYTHING") in squeeze(shown)


async def test_words_typed_at_a_question_wait_in_the_input_and_answer_nothing(tmp_path: Path) -> None:
    """Each of these has letters that would answer: always, for the session, everywhere, no."""
    write = Answer(calls=[("write_file", {"path": "a.txt", "content": "x\n"})])
    async with running(tmp_path, [write, "Written.", "You said it."]) as runner:
        async with at_terminal(runner, "chat") as terminal:
            await ask(runner, terminal)
            for words in ("okay stop ", "/resume ", "a new plan "):
                terminal.type(words)
                await terminal.wait_for(words.strip())
                await terminal.wait_for("[y] yes", "? Create a.txt (1 line)")
            assert not (runner.workspace / "a.txt").exists()
            terminal.type("\r")
            await terminal.wait_for("queued: okay stop /resume a new plan")
            await terminal.wait_for("or a letter · Esc stops")
            terminal.type("y\r")
            await terminal.wait_for("Written.", "You said it.")

    assert (runner.workspace / "a.txt").read_text() == "x\n"
    assert not (runner.home / "grants.yaml").exists()
    assert "already answered" not in terminal.text()


async def test_a_line_that_begins_with_yes_or_no_answers_the_question_it_was_typed_at(tmp_path: Path) -> None:
    writes = [Answer(calls=[("write_file", {"path": name, "content": "x\n"})]) for name in ("a.txt", "b.txt")]
    async with running(tmp_path, [*writes, "Finished."]) as runner, at_terminal(runner, "chat") as terminal:
        await ask(runner, terminal)
        terminal.type("yes please" + ENTER)
        await terminal.wait_for("› yes, please", "? Create b.txt", "[y] yes")
        terminal.type("no, use tabs" + ENTER)
        await terminal.wait_for("› no: use tabs", "Finished.")
        terminal.type(CTRL_D)
        await terminal.ended()

    assert [file.name for file in runner.workspace.glob("*.txt")] == ["a.txt"]
    assert "use tabs" in str(runner.server.chats[-1]["messages"][-1])
    assert len(runner.server.chats) == 3


async def test_a_question_takes_arrows_tab_and_enter(tmp_path: Path) -> None:
    def write(name: str) -> Answer:
        return Answer(calls=[("write_file", {"path": name, "content": "x\n"})])

    script = [write("a.txt"), write("b.txt"), write("c.txt"), "Written.", "You said it."]
    async with running(tmp_path, script) as runner, at_terminal(runner, "chat", size=(80, 24)) as terminal:
        await ask(runner, terminal)
        terminal.type(ENTER)
        await terminal.wait_for("✓ Create a.txt", "? Create b.txt", "› [y] yes")
        terminal.type("\t\x1b[D" + ENTER)
        await terminal.wait_for("✓ Create b.txt", "? Create c.txt", "› [y] yes")
        terminal.type("\t")
        await terminal.wait_for("› [a] always …")
        terminal.type(ENTER)
        await terminal.wait_for("Asked because it changes files (built-in rule: ask write_file)")
        await terminal.wait_for("› [a] always in this workspace (write_file:c.txt)", "[e] always in every workspace")
        terminal.type(ESCAPE)
        await terminal.wait_for("› [y] yes", gone="[e] always in every workspace")
        terminal.type("a")
        await terminal.wait_for("› [a] always in this workspace")
        terminal.type("\x1b[A" + ENTER)
        await terminal.wait_for("› yes, for this session (write_file:c.txt)", "Written.")
        terminal.type("thanks" + ENTER)
        await terminal.wait_for("You said it.")
        terminal.type(CTRL_D)
        await terminal.ended()

    said = runner.server.chats[-1]["messages"][-1]["content"]
    assert said.endswith("thanks")
    assert not said.endswith("athanks")


@pytest.mark.parametrize(
    ("before", "at_the_question", "kept"),
    [
        ("also run th", "e", "also run the"),
        ("", "wh|y", "why"),
        ("", "h|m| |u|s|e| |b|y|1", "hm use by1"),
        ("", "a|n|y", "any"),
        ("", "e|5|s", "e5s"),
        ("", "x\x7fa|l|l", "all"),
        ("", "a|\x7f" + "hm", "hm"),
    ],
)
async def test_no_pause_in_a_text_turns_a_letter_into_an_answer(
    tmp_path: Path, before: str, at_the_question: str, kept: str
) -> None:
    """Wait longer than any time that the screen measures at each `|`."""
    delete = Answer(calls=[("shell", {"command": "rm precious.txt"})], delay=1.0 if before else 0.0)
    async with running(tmp_path, [delete, "As you wish.", "You said it."]) as runner:
        (runner.workspace / "precious.txt").touch()
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("go" + ENTER)
            await terminal.wait_for("› go")
            terminal.type(before)
            await terminal.wait_for("[y] yes", "[a] always …", "[n] no, because …")
            for keys in at_the_question.split("|"):
                terminal.type(keys)
                await terminal.settle(0.7)
            await terminal.wait_for(f"\n› {kept}\n", "[y] yes", "Enter sends the text")
            assert (runner.workspace / "precious.txt").exists()
            terminal.type(ENTER)
            await terminal.wait_for(f"queued: {kept}", "or a letter · Esc stops")
            terminal.type("n")
            await terminal.wait_for("Reason (optional)")
            terminal.type(ENTER)
            await terminal.wait_for("You said it.")

    assert (runner.workspace / "precious.txt").exists()
    assert not (runner.home / "grants.yaml").exists()
    assert runner.server.chats[-1]["messages"][-1]["content"].endswith(kept)


async def test_lines_typed_before_a_plain_question_are_no_answer(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "a.txt", "content": "x\n"})], delay=1.0)
    async with running(tmp_path, [write, "As you wish.", "You said it."]) as runner:
        async with at_terminal(runner, "chat", OLLM_PLAIN="1") as terminal:
            await terminal.wait_for("Ctrl-D to quit")
            terminal.type("go" + ENTER + "yes, and run it" + ENTER)
            await terminal.wait_for("[y] yes")
            await terminal.settle(0.5)
            assert not (runner.workspace / "a.txt").exists()
            terminal.type("n" + ENTER)
            await terminal.wait_for("As you wish.", "You said it.")

    assert not (runner.workspace / "a.txt").exists()
    assert runner.server.chats[-1]["messages"][-1]["content"].endswith("yes, and run it")


EDIT = Answer(calls=[("edit_file", {"path": "a.txt", "edits": [{"target": "one", "replacement": "two"}]})])

RUN = Answer(calls=[("shell", {"command": "touch b.txt"})])


async def test_answers_stand_below_their_questions_live_and_on_resume(tmp_path: Path) -> None:
    async with running(tmp_path, [EDIT, RUN, RUN, "Done."]) as runner:
        (runner.workspace / "a.txt").write_text("one\n")
        async with at_terminal(runner, "do it now") as terminal:
            await terminal.wait_for("? Edit a.txt (1 edit)", "[a] always …")
            terminal.type("f" + ENTER)
            await terminal.wait_for("  › yes, all file edits this session\n  ✓ Edit a.txt (1 edit)", "[n] no")
            terminal.type("n")
            await terminal.wait_for("reason:")
            terminal.type("write c.txt instead" + ENTER)
            await terminal.wait_for("  › no: write c.txt instead", "· Not run: write c.txt instead", "[a] always …")
            terminal.type("s")
            await terminal.wait_for("› [s] yes, for this session", "Enter confirms")
            terminal.type(ENTER)
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
        assert (
            "› no: write c.txt instead" in (await runner.run("sessions", "export", "-o", "-", "--format", "html")).out
        )
        written = (await runner.run("sessions", "view")).out
        assert "> Run touch b.txt\n>\n> **no: write c.txt instead**" in written


async def test_what_flags_answer_is_no_answer_of_a_person(tmp_path: Path) -> None:
    async with running(tmp_path, [RUN, "Done."]) as runner:
        await runner.run("-p", "do it", "--yes")
        assert "questions" not in runner.sessions()[0]["toolCalls"][0]["result"]


async def press_escape_twice(terminal: Terminal) -> None:
    """Until the list is there: on a busy machine two presses may lie too far apart to count as one."""
    await terminal.wait_for(gone="· Esc stops")
    for seconds in (5, 10, 20, 40):
        terminal.type(ESCAPE)
        await terminal.settle(0.4)
        terminal.type(ESCAPE)
        if await terminal.wait_until(lambda: "Rewind to before which message?" in terminal.screen(), seconds):
            break
    await terminal.wait_for("Rewind to before which message?")
    terminal.type(ENTER)
    await terminal.wait_for("files would change back", "Conversation and files", "Files only")


async def test_a_formatter_over_fifty_files_is_taken_back_in_the_chat(tmp_path: Path) -> None:
    script = [call(FORMATTER), "Formatted.", "Nothing to see.", call("rm module1.py"), "Removed."]
    async with running(tmp_path, script) as runner:
        before = write_project(runner.workspace)
        async with at_terminal(runner, "chat", "--approval", "yolo", size=(100, 40)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("!echo attached" + ENTER)
            await terminal.wait_for("the model sees this")
            terminal.type("format everything" + ENTER)
            await terminal.wait_for("Formatted.")
            after = read_files(runner.workspace)
            assert after != before
            await press_escape_twice(terminal)
            terminal.type(ENTER)
            await terminal.wait_for(
                "Rewound to before message 1.", "52 files restored, 2 files deleted.", "\n› format everything\n───"
            )
            assert read_files(runner.workspace) == before
            terminal.type("\x15/redo" + ENTER)
            await terminal.wait_for("Undid the rewind to before message 1.")
            assert read_files(runner.workspace) == after
            await press_escape_twice(terminal)
            terminal.type(DOWN + DOWN)
            await terminal.settle(0.2)
            terminal.type(ENTER)
            await terminal.wait_for("Files are as they were before message 1.")
            assert read_files(runner.workspace) == before
            terminal.type("what is this?" + ENTER)
            await terminal.wait_for("Nothing to see.")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0

    assert "The user put files back as they were before message 1" in str(runner.server.chats[-1])
