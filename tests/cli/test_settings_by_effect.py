"""Every setting of the services changes something that is seen through the command, and so does its absence."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, Runner, running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer, Request


def configure(runner: Runner, **sections: dict[str, Any]) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps(sections))


def shell(command: str) -> Answer:
    return Answer(calls=[("shell", {"command": command})])


async def ask(runner: Runner, text: str, *more: str, **variables: str) -> Ended:
    return await runner.run("-p", text, "--yes", *more, **variables)


def said_to_the_model(runner: Runner) -> str:
    return json.dumps(runner.server.chats[-1]["messages"], ensure_ascii=False)


LOOKS = [("shell", {"command": f"echo {number}"}) for number in range(8)]
SAME_OUTPUT = [Answer(text="First all.", calls=LOOKS), *(Answer(text="The next one.", calls=[look]) for look in LOOKS)]


@covers("S4.2", "S4.3", "S8.7", "D221", "P17")
@pytest.mark.parametrize(
    ("settings", "requests", "told"),
    [
        ({}, 4, "same"),
        ({"repeatThreshold": 5}, 6, "same"),
        ({"enabled": False}, 10, ""),
        ({"maxTurns": 2}, 2, "2"),
    ],
)
async def test_a_loop_of_equal_outputs_ends_the_turn_where_the_settings_say(
    tmp_path: Path, settings: dict[str, Any], requests: int, told: str
) -> None:
    async with running(tmp_path, [*SAME_OUTPUT, "Done."]) as runner:
        configure(runner, loopDetection=settings)
        done = await ask(runner, "go")

    assert len(runner.server.chats) == requests
    assert (done.code == 0) == (not told)
    assert told in done.err


@covers("S8.6", "S4.3")
async def test_a_turn_ends_after_fifty_requests_unless_another_number_is_set(tmp_path: Path) -> None:
    script = [shell(f"echo {number}") for number in range(60)]
    async with running(tmp_path, [*script, "Done."], window=200_000) as runner:
        await ask(runner, "count")
        assert len(runner.server.chats) == 50


@covers("S8.1")
async def test_sessions_are_kept_where_the_settings_say(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, sessions={"dataDir": str(tmp_path / "elsewhere")})
        assert (await ask(runner, "hi")).code == 0
        listed = await runner.run("sessions", "list")

    (file,) = (tmp_path / "elsewhere").glob("*.json")
    assert not list((runner.home / "sessions").glob("*.json"))
    assert json.loads(file.read_text())["sessionId"][:8] in listed.out


@covers("S9.4", "P8")
async def test_the_oldest_sessions_go_by_themselves_when_there_are_more_than_the_maximum(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three.", "Four."]) as runner:
        configure(runner, sessions={"maxSessions": 2})
        for text in ("first", "second", "third", "fourth"):
            assert (await ask(runner, text)).code == 0

    kept = [session["messages"][0]["parts"][0]["text"] for session in runner.sessions()]
    assert kept == ["third", "fourth"]


NAMES = "PATH HOME LANG LC_TIME TERM PLAIN MY_TOKEN DB_PASSWORD AWS_SECRET_ACCESS_KEY GITHUB_ACTOR AWS_REGION"
SHOW = f"for name in {NAMES}; do printenv $name > /dev/null && echo has $name; done; true"


@covers("S7.1", "S7.3", "S7.6", "S7.8", "S8.8", "T5.8", "D770", "P25", "P26")
@pytest.mark.parametrize(
    ("settings", "seen", "hidden"),
    [
        (
            {},
            {"PATH", "HOME", "LANG", "LC_TIME", "TERM", "PLAIN"},
            {"MY_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "GITHUB_ACTOR", "AWS_REGION"},
        ),
        ({"allowList": ["MY_TOKEN"]}, {"MY_TOKEN", "PATH"}, {"DB_PASSWORD"}),
        ({"denyPatterns": ["PLA*"]}, {"PATH", "HOME"}, {"PLAIN", "MY_TOKEN"}),
        ({"denyPatterns": ["*"]}, {"PATH", "HOME", "LANG", "LC_TIME", "TERM"}, {"PLAIN", "AWS_REGION"}),
    ],
)
async def test_a_command_of_the_model_sees_the_variables_that_the_settings_let_through(
    tmp_path: Path, settings: dict[str, Any], seen: set[str], hidden: set[str]
) -> None:
    variables = {name: f"value-of-{name}" for name in NAMES.split()[5:]}
    variables |= {"TERM": "xterm"} | ({"LANG": "C.UTF-8", "LC_TIME": "C"} if "LANG" in seen else {})
    async with running(tmp_path, [shell(SHOW), "Done."], window=32_768) as runner:
        configure(runner, environment=settings)
        assert (await ask(runner, "show", **variables)).code == 0

    result = runner.server.chats[1]["messages"][-1]["content"]
    names = {line.removeprefix("has ") for line in result.splitlines()}
    assert seen <= names
    assert not hidden & names


STORY = " ".join(
    f"Point {number} is about thing {number * number % 97} of {chr(97 + number % 26) * 4}." for number in range(60)
)


@covers("S8.3", "S8.5", "S3.4", "S3.1", "P12")
async def test_the_threshold_decides_when_old_messages_are_compacted(tmp_path: Path) -> None:
    requests = {}
    for threshold in (0.3, 0.95):
        place = tmp_path / str(threshold)
        place.mkdir()
        async with running(place, [f"Noted. {STORY}"] * 12, window=8192) as runner:
            configure(runner, compression={"threshold": threshold, "preserveRecent": 256})
            assert (await ask(runner, "remember the number 4711.")).code == 0
            for number in range(3):
                assert (await ask(runner, f"note {number}", "--continue")).code == 0
        (session,) = runner.sessions()
        seen = runner.server.chats[-1]["messages"]
        requests[threshold] = (session["metadata"]["compressionCount"], sum(len(str(one["content"])) for one in seen))

    assert requests[0.3][0] > requests[0.95][0] == 0
    assert requests[0.3][1] < requests[0.95][1] - len(STORY), "an old answer is not sent whole any more"


@covers("S8.5")
async def test_as_many_of_the_newest_answers_stay_whole_as_the_settings_say(tmp_path: Path) -> None:
    answers = [f"Answer {at}: " + " ".join(f"word{at}x{word}" for word in range(16)) for at in range(9)]
    whole = {}
    for tokens in (16, 4096):
        place = tmp_path / str(tokens)
        place.mkdir()
        async with running(place, [*answers, "And done."], window=32_768) as runner:
            configure(runner, compression={"strategy": "truncate", "preserveRecent": tokens, "idle": "off"})
            assert (await ask(runner, "question 0")).code == 0
            for at in range(1, 9):
                assert (await ask(runner, f"question {at}", "--continue")).code == 0
            assert (await ask(runner, "/compact", "--continue")).code == 0
            assert (await ask(runner, "and now?", "--continue")).code == 0
        whole[tokens] = [at for at, answer in enumerate(answers) if answer in said_to_the_model(runner)]

    assert whole[16] == [8]
    assert whole[4096][-2:] == [7, 8]
    assert 0 not in whole[4096]


@covers("S9.6")
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_turn_is_on_disk_at_its_end_and_every_record_at_once_where_that_is_set(
    tmp_path: Path, at_once: bool
) -> None:
    asked, kept_before_the_answer = ["the colour of the door", "the size of the roof"], []

    def answer(_request: Request) -> Answer:
        texts = [file.read_text() for file in (tmp_path / "home" / "sessions").iterdir()]
        kept_before_the_answer.append(any(asked[len(kept_before_the_answer)] in text for text in texts))
        return Answer(text="Hello.")

    async with running(tmp_path, answer) as runner:  # type: ignore[arg-type]
        configure(runner, sessions={"autoSave": at_once})
        assert (await ask(runner, f"Tell me {asked[0]}")).code == 0
        assert (await ask(runner, f"And {asked[1]}", "--continue")).code == 0

    assert kept_before_the_answer == [at_once, at_once]
    (session,) = runner.sessions()
    assert [message["role"] for message in session["messages"]] == ["user", "assistant"] * 2


@covers("H508")
async def test_no_maximum_keeps_every_session(tmp_path: Path) -> None:
    async with running(tmp_path, ["Yes."] * 4) as runner:
        configure(runner, sessions={"maxSessions": 0})
        for text in ("first", "second", "third", "fourth"):
            assert (await ask(runner, text)).code == 0

    assert len(runner.sessions()) == 4


@covers("S10.3", "D610", "D611")
async def test_a_summary_that_fails_is_in_the_log_and_the_turn_goes_on(tmp_path: Path) -> None:
    summaries = []

    def answer(request: Request) -> Answer:
        if "tools" in request.body and "note" in str(request.body["messages"][-1]["content"]):
            return Answer(text=f"{len(runner.server.chats)} is noted. {STORY}")
        summaries.append(request)
        return Answer(status=500, body={"error": {"message": "no summaries today"}})

    async with running(tmp_path, answer, window=8192) as runner:
        assert (await ask(runner, "note the number 4711")).code == 0
        for number in range(12):
            done = await ask(runner, f"note {number}", "--continue")
            assert done.code == 0, done.err
            assert "is noted." in done.out

    assert summaries
    log = [json.loads(line) for line in (runner.home / "logs" / "ollm.log").read_text().splitlines()]
    assert [line for line in log if "no summaries today" in json.dumps(line)], log
    (session,) = runner.sessions()
    assert session["metadata"]["compressionCount"] > 0, "the context became smaller without a model"
    assert "note the number 4711" in said_to_the_model(runner)


@covers("W125", "S1.5", "W63", "H86", "W98")
async def test_a_session_goes_on_with_its_calls_and_results_in_order(tmp_path: Path) -> None:
    async with running(tmp_path, [shell("echo from-the-tool"), "Ran it.", "Again."]) as runner:
        assert (await ask(runner, "run it")).code == 0
        before = runner.sessions()[0]["lastActivity"]
        assert (await ask(runner, "and now?", "--continue")).code == 0

    sent = [message for message in runner.server.chats[-1]["messages"] if message["role"] != "system"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
    assert "from-the-tool" in sent[2]["content"]
    (session,) = runner.sessions()
    times = [entry["timestamp"] for entry in (*session["messages"], *session["toolCalls"])]
    assert len(times) == 7
    assert all(time.endswith("Z") for time in times)
    assert before < session["lastActivity"] == max(session["lastActivity"], *times)


@covers("W141")
async def test_a_new_chat_begins_with_nothing_though_there_are_sessions(tmp_path: Path) -> None:
    async with running(tmp_path, ["About cats.", "Hello."]) as runner:
        for name in ("cats", "hi"):
            async with at_terminal(runner, "chat", "--new", OLLM_PLAIN="1") as terminal:
                await terminal.wait_for("\n>")
                assert "cats" not in terminal.text()
                terminal.type(f"{name}\n")
                await terminal.wait_for("\n> ", "About cats." if name == "cats" else "Hello.")
                terminal.type(CTRL_D)
                assert await terminal.ended() == 0

    assert "cats" not in json.dumps(runner.server.chats[-1]["messages"][1:])
    assert len(runner.sessions()) == 2
