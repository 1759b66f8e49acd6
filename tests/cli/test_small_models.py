"""`ollm -p` with small models, bad summaries and long instructions."""

import json
from pathlib import Path
from typing import Any

import pytest
from bench.context_simulation.scenario import ScriptedTurn, Step
from bench.context_simulation.server import FACT_FREE, REFUSAL, CountingServer
from bench.context_simulation.tokenizer import ByteTokenizer

from tests.cli.command import ollm
from tests.cli.running import running
from tests.covers import covers
from tests.servers.answers import LEAKS, Answer, write_probed_call
from tests.sizes import size

FENCE = '```json\n{"name": "read_file", "arguments": {"path": "note.txt"}}\n```'


async def answered(
    directory: Path, script: list[Answer | str], *more: str, form: str = "text", **options: Any
) -> tuple[dict[str, Any], Any]:
    async with running(directory, script, **options) as runner:
        (runner.workspace / "note.txt").write_text("the code is 4711\n")
        done = await runner.run("-p", "what does note.txt say?", "-o", "json", *more, OLLM_CALL_FORM=form)
    return {"code": done.code, "err": done.err, **(json.loads(done.out) if done.out else {})}, runner


def leak(form: str, *answers: str) -> Any:
    """The answers of a server that does not recognize its model's calls, and passes them on as text."""
    left = list(answers)
    return lambda request: Answer(text=write_probed_call(request, form) or left.pop(0))


def facts(runner: Any) -> dict[str, Any]:
    (found,) = json.loads((runner.home / "model-facts.json").read_text()).values()
    return dict(found)


@covers("T10.1", "S1.3")
@pytest.mark.parametrize("form", LEAKS)
async def test_a_call_that_the_server_leaks_as_text_is_run_once_a_probe_has_shown_the_leak(
    tmp_path: Path, form: str
) -> None:
    script = leak(form, f"Let me look.\n{LEAKS[form] % ('read_file', 'path', 'note.txt')}", "It says 4711.")
    said, runner = await answered(tmp_path, script, form="auto", kind="llama.cpp")

    assert (said["code"], said["text"]) == (0, "Let me look.\n\nIt says 4711.")
    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("read_file", "ok")]
    assert "the code is 4711" in runner.server.chats[-1]["messages"][-1]["content"]
    known = facts(runner)
    assert (known["callForm"], known.get("writtenForm", "fence"), known["resultForm"]) == ("text", form, "user")
    assert said["err"].count("writes tool calls as text") == 1
    assert ("--jinja" in said["err"]) is (form != "fence")


async def test_of_a_model_that_is_set_to_write_calls_the_probe_finds_the_form(tmp_path: Path) -> None:
    said, runner = await answered(
        tmp_path, leak("tag", LEAKS["tag"] % ("read_file", "path", "note.txt"), "It says 4711."), kind="vllm"
    )

    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("read_file", "ok")]
    assert facts(runner)["writtenForm"] == "tag"
    assert "--tool-call-parser" in said["err"]


async def test_text_that_looks_like_a_call_stays_text_if_the_probe_shows_no_leak(tmp_path: Path) -> None:
    native = Answer(calls=[("read_file", {"path": "x"})])
    script = [f"It says:\n{FENCE}", "I cannot do that.", f"Again:\n{FENCE}", native]
    async with running(tmp_path, script) as runner:
        first = await runner.run("-p", "what does it say?", "-o", "json", "--yes")
        assert (json.loads(first.out)["text"], json.loads(first.out)["toolCalls"]) == (f"It says:\n{FENCE}", [])
        assert len(runner.server.chats) == 2


async def test_a_prompt_with_results_as_user_messages_only_grows(tmp_path: Path) -> None:
    other = FENCE.replace("note.txt", "other.txt")
    _, runner = await answered(tmp_path, [FENCE, other, "Done."])

    before, after = (chat["messages"] for chat in runner.server.chats[1:3])
    assert after[: len(before)] == before


@covers("T12.1")
async def test_a_call_that_does_not_parse_gets_one_word_of_what_was_wrong(tmp_path: Path) -> None:
    wrong = '```json\n{"name": "show_file", "arguments": {"path": "note.txt"}}\n```'
    said, runner = await answered(tmp_path, [wrong, FENCE, "It says 4711."])

    assert said["text"] == "It says 4711."
    told = runner.server.chats[1]["messages"][-1]
    assert told["role"] == "user"
    assert "there is no tool named 'show_file'" in told["content"]
    assert "show_file" not in json.dumps(runner.sessions()[0])


async def test_only_one_such_word_is_said(tmp_path: Path) -> None:
    wrong = '```json\n{"name": "show_file", "arguments": {}}\n```'
    said, runner = await answered(tmp_path, [wrong, wrong])

    assert said["code"] == 0
    assert said["text"] == wrong
    assert said["toolCalls"] == []
    assert len(runner.server.chats) == 2


async def test_a_server_that_takes_no_tools_has_them_listed_in_the_prompt(tmp_path: Path) -> None:
    refused = Answer(status=400, body={"error": {"message": "scripted does not support tools"}})
    said, runner = await answered(tmp_path, [refused, FENCE, "It says 4711."])

    assert said["text"] == "It says 4711."
    system = runner.server.chats[1]["messages"][0]["content"]
    assert "- read_file(path" in system
    assert '"name": "' in system
    assert "tools" not in runner.server.chats[1]
    assert [chat.get("tools") for chat in runner.server.chats[1:]] == [None, None]
    assert facts(runner)["takesTools"] is False


@pytest.mark.parametrize(
    "nonsense",
    ["\n" * 5000, "Well.\n" + " \n" * 5000, "<tool_call>" + '{"name": "read_file", "x": "' + "abc " * 9000],
    ids=["newlines", "blanks", "a call without end"],
)
async def test_endless_output_is_cut_short(tmp_path: Path, nonsense: str) -> None:
    async with running(tmp_path, [Answer(text=nonsense, stall_after=4000)] * 2 + ["It is over."]) as runner:
        done = await runner.run("-p", "go", "-o", "json")

    assert done.code in (0, 6)
    assert len(done.out) < 100_000


@covers("S4.4")
async def test_a_model_that_only_repeats_its_call_is_stopped_all_the_same(tmp_path: Path) -> None:
    said, _ = await answered(tmp_path, [FENCE] * 12)

    assert said["code"] == 6
    assert said["reason"] == "loop"


async def test_words_are_streamed_while_they_cannot_be_a_call(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(text="One two three and more", stall_after=3)]) as runner:
        process = await runner.start("-p", "go")
        assert process.stdout
        assert await process.stdout.readexactly(13) == b"One two three"
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize(("form", "tools"), [("auto", False), ("native", True)])
async def test_a_model_under_0_4_billion_parameters_chats_without_tools_unless_asked_for(
    tmp_path: Path, form: str, tools: bool
) -> None:
    async with running(tmp_path, ["Hello!"], model="smollm2-135m") as runner:
        (runner.workspace / "a.py").write_text("x = 1\n")
        done = await runner.run("-p", "Say hello", "--model", "smollm2-135m", OLLM_CALL_FORM=form)

        assert (done.code, done.out.strip()) == (0, "Hello!")
        assert ("tools" in runner.server.chats[0]) is tools
        assert ("is good for a short chat, without tools" in done.err) is not tools
        if not tools:
            system, asked = (message["content"] for message in runner.server.chats[0]["messages"])
            assert "tool" not in system
            assert asked == "Say hello"


TALK = "We went through the module once more and found nothing that speaks against it. " * 40

MARKS = {
    "refusal": REFUSAL[:40],
    "garbage": "lorem <|x|>",
    "fact-free": FACT_FREE[8:50],
    "empty": "",
    "copied": "<record>",
    "inflated": "item number 399",
    "hang": "- late",
    "foreign": "用户和助手",
}


def tell(number: int) -> str:
    return f"The settings of billing-{number} live in /etc/billing/{number}.toml on port 90{number}1. {TALK}"


@covers("S10.3")
@pytest.mark.parametrize("kind", list(MARKS)[: size(2, len(MARKS))])
def test_a_bad_summary_costs_no_turn_and_no_fact(tmp_path: Path, kind: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    home.mkdir()
    (home / "config.yaml").write_text("compression: {timeout: 1}\n", "utf-8")
    server = CountingServer(ByteTokenizer(), 4096, summaries=kind, hang_seconds=120)
    with server:
        for number in range(1, 6):
            server.play(ScriptedTurn(number, tell(number), (Step(text="I read it. " * 30),)))
            again = ["--continue"] if number > 1 else []
            ended = ollm(
                *("-p", tell(number), *again, "-o", "json"),
                home=home,
                cwd=project,
                OLLM_PROVIDER="openai",
                OLLM_BASE_URL=server.base_url,
                OLLM_MODEL="counting",
                OLLM_CONTEXT_WINDOW="4096",
            )
            assert ended.returncode == 0, ended.stderr
            assert json.loads(ended.stdout)["reason"] == "answered"
        server.left.set()
    last = [heard for heard in server.heard if not heard.summary][-1].text

    assert any(heard.summary for heard in server.heard[1:])
    assert all(f"/etc/billing/{number}.toml" in last for number in range(1, 6))
    assert not MARKS[kind] or MARKS[kind] not in last
    assert all(heard.prompt_tokens + heard.max_tokens <= 4096 for heard in server.heard[1:])


class SomeTokenizer:
    """As far from our estimate as real vocabularies are."""

    def count(self, text: str) -> int:
        return max(1, round(len(text.encode()) / 4.2)) if text else 0


def test_it_is_shortened_the_same_way_in_every_process(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    rules = "".join(f"\n## Section {n}\n{'Some long rule about things. ' * 30}\n" for n in range(230))
    (project / "AGENTS.md").write_text(f"# Rules\nAlways use tabs.\n{rules}", "utf-8")
    server = CountingServer(SomeTokenizer(), 4096)
    with server:
        where = {
            "OLLM_PROVIDER": "openai",
            "OLLM_BASE_URL": server.base_url,
            "OLLM_MODEL": "counting",
            "OLLM_CONTEXT_WINDOW": "4096",
        }
        assert ollm("trust", str(project), home=home, cwd=project, **where).returncode == 0
        for number in range(1, 4):
            server.play(ScriptedTurn(number, "Go on.", (Step(text="Done. " * 20),)))
            again = ["--continue"] if number > 1 else []
            ended = ollm("-p", "Go on.", *again, home=home, cwd=project, **where)
            assert ended.returncode == 0, ended.stderr
    told = [heard.body["messages"][0]["content"] for heard in server.heard]

    assert "Always use tabs." in told[0]
    assert "## Section 9" in told[0]
    assert told[1] == told[2] == told[0]
