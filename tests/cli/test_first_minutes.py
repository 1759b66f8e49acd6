"""What a newcomer tries in the first five minutes, through the command and on a terminal."""

import json
import re
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import running, texts
from tests.cli.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, TAB, UP, at_terminal
from tests.servers.answers import Answer

READ = Answer(text="Fixing it now.", calls=[("ls", {})])


async def test_two_messages_of_a_turn_are_two_paragraphs(tmp_path: Path) -> None:
    async with running(tmp_path, [READ, "All done.", READ, "All done."]) as runner:
        plain = await runner.run("-p", "fix")
        document = await runner.run("-p", "fix", "-o", "json")

    assert plain.out == "Fixing it now.\n\nAll done.\n"
    assert json.loads(document.out)["text"] == "Fixing it now.\n\nAll done."


async def test_a_turn_whose_calls_were_all_denied_exits_with_5(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "a.txt", "content": "x"})])
    async with running(tmp_path, [write, "I may not.", READ, write, "Only half."]) as runner:
        denied = await runner.run("-p", "write")
        partly = await runner.run("-p", "look, then write")

    assert (denied.code, partly.code) == (5, 0)


async def test_an_empty_prompt_is_refused_and_piped_text_alone_is_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path, ["Read."]) as runner:
        empty = await runner.run("-p", " ")
        piped = await runner.run("-p", "", stdin="the text")

    assert (empty.code, "prompt is empty" in empty.err) == (2, True)
    assert piped.out == "Read.\n"
    assert "the text" in str(runner.server.chats[0]["messages"][-1])


async def test_a_model_the_server_does_not_list_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        wrong = await runner.run("-p", "hi", "-m", "scripte")
        slashed = await runner.run("-p", "/model scripte")

    assert (wrong.code, "Did you mean 'scripted'?" in wrong.err) == (4, True)
    assert "has no model 'scripte'" in slashed.err
    assert runner.server.chats == []


@pytest.mark.parametrize(
    ("group", "shown"),
    [
        ("models", "MODEL"),
        ("config", "maxSessions: 100"),
        ("env", "PATH"),
        ("mcp", "No MCP servers"),
        ("extensions", "No extensions"),
        ("policy", "Approval level"),
        ("tools", "read_file"),
        ("daemon", "not running"),
        ("hooks", "no hooks"),
    ],
)
def test_a_group_alone_does_the_obvious_thing(tmp_path: Path, group: str, shown: str) -> None:
    done = ollm(group, home=tmp_path, cwd=tmp_path, OLLM_BASE_URL="http://127.0.0.1:9")

    assert shown.lower() in (done.stdout + done.stderr).lower()
    assert "Usage:" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--context-window", "8192"), "ollm config set provider.contextWindow"),
        (("resume",), "Choosing a session needs a terminal."),
    ],
)
def test_what_cannot_be_done_so_is_answered_with_how(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = ollm(*words, home=tmp_path, cwd=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr


async def test_a_backtest_keeps_the_built_in_rules(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {})]), "done"]) as runner:
        await runner.run("-p", "look")
        rules = tmp_path / "rules.yaml"
        rules.write_text("policy:\n  rules:\n    - {tool: shell, action: deny}\n")
        done = await runner.run("policy", "backtest", str(rules), "--json")

        rules.write_text("rules:\n  - deny shell\n")
        wrong = await runner.run("policy", "backtest", str(rules))

    assert json.loads(done.out)["changes"] == []
    assert (wrong.code, "rules.yaml:2:5" in wrong.err) == (2, True)


async def test_the_front_matter_of_a_command_is_for_people_not_for_the_model(tmp_path: Path) -> None:
    async with running(tmp_path, ["Reviewed."]) as runner:
        folder = runner.home / "commands"
        folder.mkdir(parents=True)
        (folder / "review.md").write_text("---\ndescription: Review a file\n---\nReview $1 for $ARGUMENTS\n")
        told = await runner.run("-p", "/help")
        await runner.run("-p", "/review a.py bugs")

    assert "Review a file" in told.out
    assert runner.server.chats[0]["messages"][-1]["content"].startswith("Review a.py for a.py bugs")
    assert "description:" not in str(runner.server.chats[0])


async def test_a_command_that_fails_is_not_shown_as_a_success(tmp_path: Path) -> None:
    fail = Answer(calls=[("shell", {"command": "ls nowhere-at-all"})])
    async with (
        running(tmp_path, [fail, "It failed."]) as runner,
        at_terminal(runner, "look for it", "--allow", "shell") as terminal,
    ):
        await terminal.wait_for("✗ Run ls", "exit 2", "It failed.")
        assert "✓" not in terminal.text()
        terminal.type(CTRL_D)
        await terminal.ended()
        shown = await runner.run("sessions", "view")

    assert "exit 2" in shown.out


async def test_a_file_that_is_not_there_is_not_dropped_in_silence(tmp_path: Path) -> None:
    async with running(tmp_path, ["Which?"]) as runner:
        (runner.workspace / "Makefile").touch()
        async with at_terminal(runner, "see @missing.py and @Makefle, mail @alice", size=(110, 30)) as terminal:
            await terminal.wait_for("@missing.py was not attached: no such file", "Which?")
            assert "@Makefle was not attached: no such file; did you mean @Makefile?" in terminal.text()
            assert "@alice was" not in terminal.text()
            terminal.type(CTRL_D)
            await terminal.ended()


async def test_a_model_that_is_not_there_ends_the_chat_with_its_name(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner, at_terminal(runner, "-m", "nope") as terminal:
        assert await terminal.ended() != 0
        assert "has no model 'nope'" in terminal.text()


async def test_a_text_on_the_command_line_is_the_first_message(tmp_path: Path) -> None:
    async with running(tmp_path, ["Fixed.", "Again.", "Third."]) as runner:
        async with at_terminal(runner, "fix", "the", "bug") as terminal:
            await terminal.wait_for("fix the bug", "Fixed.")
            terminal.type(CTRL_D)
            await terminal.ended()
        await runner.run("-p", "one shot")
        async with at_terminal(runner, "-c") as terminal:
            await terminal.wait_for("fix the bug", "Resumed")
            terminal.type(CTRL_D)
            await terminal.ended()
        typos = [await runner.run(*words) for words in (("fixx",), ("sesions", "--json"), ("--yolo",))]

    assert texts(runner.sessions()[0])[0] == ("user", "fix the bug")
    assert [typo.code for typo in typos] == [2, 2, 2]
    assert "unknown command" in typos[0].err
    assert "did you mean sessions?" in typos[1].err
    assert "here it is --yes" in typos[2].err


async def test_the_list_of_sessions_never_swallows_a_prompt(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Answer to it."]) as runner:
        async with at_terminal(runner, "first chat") as terminal:
            await terminal.wait_for("One.")
            terminal.type(CTRL_D)
            await terminal.ended()
        await runner.run("-p", "asked once")
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("Resume a chat", "first chat")
            assert "asked once" not in terminal.screen()
            terminal.type(TAB)
            await terminal.wait_for("One-shot sessions", "asked once")
            terminal.type(TAB + "first" + ENTER)
            await terminal.wait_for("› first", "Answer to it.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("Resume a chat")
            terminal.type("not sent")
            await terminal.wait_for("New chat: not sent")
            await terminal.settle(0.4)
            terminal.type(ESCAPE)
            await terminal.wait_for("scripted", "› not sent", gone="New chat")
            terminal.type(CTRL_C + CTRL_D)
            assert await terminal.ended() == 0
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("Resume a chat")
            terminal.type(CTRL_C)
            assert await terminal.ended() == 0


async def test_ollm_alone_opens_a_chat_and_names_the_ways_back(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner:
        async with at_terminal(runner, "first chat") as terminal:
            await terminal.wait_for("One.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner) as terminal:
            await terminal.wait_for("`ollm -c` continues the last chat, `ollm -r` lists them.", "code·ask")
            terminal.type("first" + ENTER)
            await terminal.wait_for("Two.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "resume") as terminal:
            await terminal.wait_for("Resume a chat")
            terminal.type("chat" + ENTER)
            await terminal.wait_for("One.", "Resumed")
            terminal.type(CTRL_D)
            await terminal.ended()


async def test_up_takes_one_queued_message_after_the_other_back(tmp_path: Path) -> None:
    slow = Answer(text="Slowly it comes, word by word, for a while.", stall_after=3)
    async with running(tmp_path, [slow, "Fine."]) as runner, at_terminal(runner, "go on then") as terminal:
        await terminal.wait_for("Slowly")
        for text in ("the first", "the second", "the third"):
            terminal.type(text + ENTER)
            await terminal.wait_for(f"queued: {text}")
        terminal.type(UP)
        await terminal.wait_for("› the third", gone="queued: the third")
        terminal.type(UP)
        await terminal.wait_for("› the second\n  the third", gone="queued: the second")
        terminal.type("!" + UP)
        await terminal.wait_for("the third!")
        assert "queued: the first" in terminal.screen(), "what was changed stays as it is"
        terminal.type(CTRL_C)
        await terminal.wait_for("stopped", gone="queued:")
        terminal.type(ENTER)
        await terminal.wait_for("Fine.")
        assert runner.server.chats[-1]["messages"][-1]["content"].endswith("the first\nthe second\nthe third!")
        terminal.type(CTRL_D)
        await terminal.ended()


async def test_a_resumed_session_names_its_calls_as_they_were_when_they_ran(tmp_path: Path) -> None:
    calls = [
        ("write_file", {"file_path": "new.txt", "contents": "one\n"}),
        ("ls", {}),
        ("grep", {"pattern": "one", "path": "new.txt"}),
    ]
    async with running(tmp_path, [Answer(calls=calls), "All done."]) as runner:
        async with at_terminal(runner, "--approval", "yolo", "make it", size=(100, 40)) as terminal:
            await terminal.wait_for("All done.")
            shown = terminal.text()
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "-c", size=(100, 40)) as terminal:
            await terminal.wait_for("All done.")
            again = terminal.text()
            terminal.type(CTRL_D)
            await terminal.ended()
    for name in ("✓ Create new.txt (1 line)", "✓ List .", "✓ Search for 'one' in new.txt"):
        assert name in shown
        assert name in again


async def test_a_file_with_a_quote_in_its_name_is_completed_and_attached(tmp_path: Path) -> None:
    async with running(tmp_path, ["Seen."]) as runner:
        (runner.workspace / 'q"uote.py').write_text("x = 1\n")
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("see @quo")
            await terminal.wait_for('q"uote.py')
            terminal.type(TAB)
            await terminal.wait_for('› see @q"uote.py')
            terminal.type(ENTER)
            await terminal.wait_for('+ q"uote.py', "Seen.")
            assert "x = 1\n" in runner.server.chats[-1]["messages"][-1]["content"]
            terminal.type(CTRL_D)
            await terminal.ended()


async def test_the_first_question_takes_the_url_of_a_server_and_goes_on(tmp_path: Path) -> None:
    away = {"OLLM_PROVIDER": "", "OLLM_MODEL": "", "OLLM_BASE_URL": "", "COLUMNS": ""}
    async with running(tmp_path, ["Found you.", "Again."]) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("provider: {type: embedded}\n")
        async with at_terminal(runner, "hello", "there", size=(60, 40), **away) as terminal:
            await terminal.wait_for("1.1 GB: the smallest that does\n  real work", "98 MB", "Number or URL")
            terminal.type("127.0.0.1:9" + ENTER)
            await terminal.wait_for("No model server answers at")
            terminal.type(runner.server.base_url.removeprefix("http://") + ENTER)
            await terminal.wait_for("Saved", "› hello there", "Found you.")
            terminal.type(CTRL_D)
            await terminal.ended()
        again = await runner.run("-p", "and now", **away)
    assert (again.code, again.out) == (0, "Again.\n")


async def test_a_slow_start_says_for_how_long_it_connects(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}"
            async with at_terminal(runner, "chat", OLLM_BASE_URL=address, OLLM_MODEL="") as terminal:
                shown = await terminal.wait_until(lambda: bool(re.search(r"connecting… [1-9] s", terminal.screen())))
                assert shown, terminal.text()


def test_make_install_puts_the_command_on_a_path(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["make", "install", f"PREFIX={tmp_path}"], cwd=root, capture_output=True, text=True, check=False, timeout=300
    )
    shown = subprocess.run([tmp_path / "bin" / "ollm", "--version"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert shown.stdout.startswith("ollm ")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("set", "model", "x"), "provider.model"),
        (("get", "base_url"), "provider.baseUrl"),
        (("unset", "provider.base_url"), "provider.baseUrl"),
        (("set", "provider.modle", "x"), "provider.model"),
    ],
)
def test_a_wrong_setting_names_the_right_one_in_full_whatever_the_command(
    tmp_path: Path, words: tuple[str, ...], meant: str
) -> None:
    assert f"did you mean {meant}?" in ollm("config", *words, home=tmp_path).stderr


async def test_a_resumed_chat_shows_what_an_edit_changed(tmp_path: Path) -> None:
    edits = [{"target": "one", "replacement": "two"}]
    script = [Answer(calls=[("edit_file", {"path": "a.txt", "edits": edits})]), "Edited."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("one\n")
        await runner.run("-p", "edit it", "--yes")
        session = runner.sessions()[0]["sessionId"]
        async with at_terminal(runner, "-r", session[:8]) as terminal:
            await terminal.wait_for("✓ Edit a.txt", "1 - one", "1 + two", "Resumed")


async def test_a_terminal_shows_commands_rendered_and_the_doctor_in_lines_that_fit(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        async with at_terminal(runner, "-p", "/status") as terminal:
            assert await terminal.ended() == 0
        async with at_terminal(runner, "doctor", size=(40, 20), COLUMNS="") as narrow:
            assert await narrow.ended() == 0
    assert " • model: scripted at" in terminal.text()
    rows = [row for row in narrow.raw.decode().splitlines() if not row.startswith(("ollama ", "llama.cpp "))]
    assert [row for row in rows if len(row) >= 40 and len(row.split()) > 2 + row.startswith(" ")] == []


async def test_names_of_servers_are_taken_with_capitals_blanks_and_hyphens(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        done = await runner.run("-p", "hi", OLLM_PROVIDER="LM Studio")
        await runner.run("config", "set", "provider.type", "Llama-CPP")
        wrong = await runner.run("config", "set", "provider.type", "lmstudioo")
    assert (done.code, done.out) == (0, "Hello.\n")
    assert (runner.home / "config.yaml").read_text() == "provider:\n  type: llamacpp\n"
    assert (wrong.code, "did you mean lmstudio?" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("word", "said"), [("login", "provider.baseUrl URL"), ("update", "uv tool upgrade ollm"), ("lgoin", "ollm -p TEXT")]
)
def test_commands_of_other_agents_say_what_to_do_here(tmp_path: Path, word: str, said: str) -> None:
    done = ollm(word, home=tmp_path, cwd=tmp_path)

    assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "offered"), [("models ", "get"), ("sessions l", "list"), ("config s", "set"), ("mcp a", "add")]
)
def test_the_commands_of_a_group_are_completed(tmp_path: Path, words: str, offered: str) -> None:
    typed = f"ollm {words}"
    asking = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1), "_OLLM_COMPLETE": "bash_complete"}

    assert f"plain,{offered}" in ollm(home=tmp_path, cwd=tmp_path, **asking).stdout.splitlines()


@pytest.mark.parametrize("words", ["what does this do", "session files leak", "model the data"])
async def test_several_words_are_a_prompt_unless_the_first_is_a_command(tmp_path: Path, words: str) -> None:
    async with running(tmp_path, ["It counts."]) as runner:
        done = await runner.run(*words.split())

    assert (done.code, done.out.strip()) == (0, "It counts."), done.err
    assert runner.server.chats[0]["messages"][-1]["content"].endswith(words)


@pytest.mark.parametrize("plain", ["", "1"])
async def test_the_words_of_a_chat_that_finds_no_server_are_saved(tmp_path: Path, plain: str) -> None:
    async with running(tmp_path, []) as runner:
        pass
    async with at_terminal(runner, "my", "precious", "message", OLLM_PLAIN=plain) as terminal:
        assert await terminal.ended() == 3
        shown = terminal.text()

    (kept,) = runner.sessions()
    assert texts(kept)[0] == ("user", "my precious message")
    assert f"Your prompt is saved: `ollm -r {kept['sessionId'][:8]}`" in shown
