"""A chat template that leaves out or refuses a part of the conversation, as the server renders it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

TEMPLATE_ERROR = {
    "error": {"message": "No parser for this template: \n---\nWhile executing x\nError: Not supported here"}
}


class Templated(ScriptedServer):
    """A llama.cpp whose template leaves out tools, calls and results, and refuses a system message where one is set."""

    refuses_system = False
    hides_system = False  # once the last message is a result
    mended = False  # another template, which shows everything
    refuses_schemas = False
    busy = False
    silent = 0  # the status of a page about the model that does not answer

    def _llama_page(self, request: Request) -> Any:
        if request.path == "/props":
            return {**super()._llama_page(request), "chat_template": f"{{{{ messages }}}}{self.mended or ''}"}
        if request.path == "/apply-template" and self.mended:
            return {"prompt": json.dumps(request.body)}
        if request.path == "/apply-template" and self.hides_system and request.body["messages"][-1]["role"] == "tool":
            request.body["messages"] = [each for each in request.body["messages"] if each["role"] != "system"]
        return super()._llama_page(request)

    def page(self, request: Request) -> tuple[int, Any]:
        if self.silent and request.path == "/props":
            return self.silent, {"error": {"message": "busy"}} if self.silent != 200 else b'\xff\xfe{"path": "\xff"}'
        if request.path == "/apply-template" and (self.busy or self._refuses(request)):
            return 503 if self.busy else 400, TEMPLATE_ERROR
        return super().page(request)

    def _refuses(self, request: Request) -> bool:
        if self.refuses_schemas and any(
            len(tool["function"]["parameters"]["properties"]) > 1 for tool in request.body.get("tools", ())
        ):
            return True
        return self.refuses_system and request.body["messages"][0]["role"] == "system"

    def answer(self, request: Request) -> Answer:
        if self._refuses(request):
            return Answer(status=400, body=TEMPLATE_ERROR)
        return super().answer(request)


@pytest.mark.parametrize("refuses", ["", "refuses_system", "refuses_schemas"])
async def test_a_template_that_drops_tools_is_found_beside_the_first_answer(tmp_path: Path, refuses: str) -> None:
    written = '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'
    async with Templated([written, "Done.", "Fine."], kind="llama.cpp", models=("big-30b",)) as server:
        if refuses:
            setattr(server, refuses, True)
        runner = Runner(tmp_path, server)
        (runner.workspace / "a.txt").write_text("hello there\n")
        first = await runner.run("-p", "Read a.txt", OLLM_MODEL="big-30b")
        second = await runner.run("-p", "And now?", OLLM_MODEL="big-30b")

    assert (first.code, second.code) == (0, 0)
    assert first.err.count("its chat template leaves out") == 1
    assert "its chat template" not in second.err
    paths = [request.path for request in server.requests]
    assert "/apply-template" not in paths[: paths.index("/v1/chat/completions")]
    assert "tools" not in server.chats[-1]
    assert "Tools:" in server.chats[-1]["messages"][0]["content"]
    assert server.chats[-1]["messages"][0]["role"] == ("user" if server.refuses_system else "system")


async def test_a_template_without_tools_is_told_for_a_model_that_writes_blocks(tmp_path: Path) -> None:
    async with Templated(["Hi.", "Hi."], kind="llama.cpp", models=("coder-1.5b",)) as server:
        runner = Runner(tmp_path, server)
        first = await runner.run("-p", "Hello", OLLM_MODEL="coder-1.5b")
        second = await runner.run("-p", "Hello", OLLM_MODEL="coder-1.5b")
        card = await runner.run("models", "card", "coder-1.5b")

    assert [done.err.count("its chat template leaves out or refuses tools") for done in (first, second)] == [1, 0]
    assert re.search(r"faults +tool list", card.out), card.out


async def test_what_another_template_dropped_is_forgotten_for_good(tmp_path: Path) -> None:
    async with Templated(["Hi."] * 4, kind="llama.cpp", models=("big-30b",)) as server:
        runner = Runner(tmp_path, server)
        await runner.run("-p", "Hello", OLLM_MODEL="big-30b")
        server.mended = True
        for _ in range(3):
            done = await runner.run("-p", "Hello", OLLM_MODEL="big-30b")
            assert "its chat template" not in done.err
        card = (await runner.run("models", "card", "big-30b")).out

    assert [len(chat.get("tools", ())) > 0 for chat in server.chats] == [True] * 4
    assert re.search(
        r"calls +unknown until first use\ntools +no limit found\n.*\nfaults +none found", card, re.DOTALL
    ), card


@pytest.mark.parametrize("status", [404, 503, 200])
async def test_a_page_that_does_not_answer_changes_neither_the_window_of_a_session_nor_what_was_learnt(
    tmp_path: Path, status: int
) -> None:
    async with Templated(["Hi.", "Hi.", "Hi."], kind="llama.cpp", models=("big-30b",), window=16384) as server:
        runner = Runner(tmp_path, server)
        turns = []
        for server.silent in (0, status, 0):
            more = ("--continue",) if turns else ()
            turns.append(await runner.run("-p", "Hello", "-o", "stream-json", *more))

    events = [json.loads(line) for turn in turns for line in turn.out.splitlines()]
    assert {event["limit"] for event in events if event["type"] == "context-usage"} == {int(0.85 * 16384)}
    assert [turn.err.count("its chat template") for turn in turns[1:]] == [0, 0]
    assert all("tools" not in chat for chat in server.chats[1:])


async def test_a_template_that_a_busy_server_does_not_render_teaches_nothing(tmp_path: Path) -> None:
    async with Templated(["Hi.", "Hi."], kind="llama.cpp", models=("big-30b",)) as server:
        server.busy = True
        runner = Runner(tmp_path, server)
        first = await runner.run("-p", "Hello", OLLM_MODEL="big-30b")
        server.busy = False
        second = await runner.run("-p", "Hello", OLLM_MODEL="big-30b")

    assert (first.code, second.code) == (0, 0)
    assert "its chat template" not in first.err
    assert "its chat template" in second.err, "the next run looks again"


async def test_a_system_prompt_that_vanishes_after_a_call_is_a_fault(tmp_path: Path) -> None:
    async with Templated(["ok"] * 60, kind="llama.cpp", models=("big-30b",)) as server:
        server.hides_system = True
        runner = Runner(tmp_path, server)
        done = await runner.run("doctor", "--model", OLLM_MODEL="big-30b")

    assert done.code == 4
    assert "fault     system messages: not seen by the model" in done.out


async def test_an_error_of_a_template_is_told_by_its_reason(tmp_path: Path) -> None:
    async with running(tmp_path, lambda _request: Answer(status=400, body=TEMPLATE_ERROR)) as runner:
        done = await runner.run("-p", "Hello")

    assert done.code == 4
    assert "Not supported here" in done.err
    assert "While executing" not in done.err
