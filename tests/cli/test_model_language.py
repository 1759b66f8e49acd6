"""A model's own language: what a server gave with an answer goes back to it in the same form."""

import asyncio
import json
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import pytest

from tests.cli.running import Runner, running
from tests.servers.answers import Answer, Request
from tests.servers.ollama import OllamaServer
from tests.servers.openai import ScriptedServer


def call(identity: Any, path: str = "a.txt") -> dict[str, Any]:
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return {"tool_calls": [{"index": 0, "id": identity, "type": "function", "function": function}]}


def prose(words: int) -> str:
    """A text that never repeats itself."""
    return " ".join(f"{word}{number}" for number, word in zip(range(words), cycle(("so", "then", "if")), strict=False))


def wire_ids(chat: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The ids of calls and of results, as the server reads them."""
    asked = [each["id"] for message in chat["messages"] for each in message.get("tool_calls") or ()]
    return asked, [message["tool_call_id"] for message in chat["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["Ab3dE6gH9", "functions.read_file:1"], ["Ab3dE6gH9", "functions.read_file:1"]),
        (["call_0", "call_0"], ["call_0", "c00000002"]),
        (["", None], ["c00000001", "c00000002"]),
        (["x" * 500, 7], ["c00000001", "c00000002"]),
        (["c00000002", ""], ["c00000002", "a00000002"]),
        (["", "c00000001"], ["c00000001", "c00000002"]),
    ],
)
async def test_a_call_and_its_result_carry_the_id_that_the_server_gave(
    tmp_path: Path, given: list[Any], sent: list[str]
) -> None:
    script = [*(Answer(deltas=[call(identity)], reason="tool_calls") for identity in given), "One.", "Two."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        first = await runner.run("-p", "Read a.txt twice")
        second = await runner.run("-p", "And now?", "--continue")

    assert (first.code, second.code) == (0, 0)
    assert wire_ids(runner.server.chats[2]) == (sent, sent)
    assert wire_ids(runner.server.chats[3]) == (sent, sent), "the same after a resume"
    assert [record["id"] for record in runner.sessions()[0]["toolCalls"]] == ["c1", "c2"]


async def test_a_session_without_the_server_ids_goes_on(tmp_path: Path) -> None:
    script = [Answer(deltas=[call("Ab3dE6gH9")], reason="tool_calls"), "One.", "Two."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        await runner.run("-p", "Read a.txt")
        (document,) = (runner.home / "sessions").glob("*.json")
        document.write_text(document.read_text().replace(',"wireId":"Ab3dE6gH9"', ""))
        done = await runner.run("chat", "--continue", "--full", stdin="And now?")

    assert done.code == 0
    assert "Ab3dE6gH9" not in document.read_text()
    assert wire_ids(runner.server.chats[2]) == (["c00000001"], ["c00000001"])


def think(text: str, field: str = "reasoning_content", path: str = "a.txt", **more: Any) -> Answer:
    return Answer(deltas=[{field: text, **more}, call("", path)], reason="tool_calls")


def thoughts(chat: dict[str, Any]) -> list[Any]:
    names = ("reasoning_content", "reasoning", "thinking")
    return [m.get(name) for m in chat["messages"] if m["role"] == "assistant" for name in names if name in m]


def set_replay(runner: Runner, replay: str) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(f"models: {{scripted: {{replayThinking: {replay}}}}}\n")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thinking_goes_back_with_its_call_in_the_field_in_which_it_came(tmp_path: Path, field: str) -> None:
    details = [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s=="}]
    async with running(
        tmp_path, [think("I look.", field, reasoning_details=details), think("Again.", field), "ok"]
    ) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        done = await runner.run("-p", "Read a.txt twice")

    assert done.code == 0
    sent = [message for message in runner.server.chats[2]["messages"] if message["role"] == "assistant"]
    assert [message[field] for message in sent] == ["I look.", "Again."]
    assert sent[0]["reasoning_details"] == details
    assert "I look." not in sent[0]["content"]


@pytest.mark.parametrize(("replay", "later"), [("session", ["One.", "Two.", "Three."]), ("turn", []), ("off", [])])
async def test_the_setting_says_how_long_thinking_goes_back(tmp_path: Path, replay: str, later: list[str]) -> None:
    last = Answer(deltas=[{"reasoning_content": "Three."}], text="Done.")
    async with running(tmp_path, [think("One."), think("Two."), last, think("Four."), "ok"]) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        set_replay(runner, replay)
        await runner.run("-p", "Read a.txt twice")
        await runner.run("-p", "Once more", "--continue")

    assert thoughts(runner.server.chats[2]) == ([] if replay == "off" else ["One.", "Two."])
    assert thoughts(runner.server.chats[3]) == later
    assert thoughts(runner.server.chats[4]) == ([] if replay == "off" else [*later, "Four."])


def said_before(chat: dict[str, Any]) -> list[str]:
    return [message["content"] for message in chat["messages"] if message["role"] == "assistant"]


@pytest.mark.parametrize(("replay", "sent"), [("session", "<think>Mine.</think>\n\nI look."), ("off", "I look.")])
@pytest.mark.parametrize("form", ["auto", "blocks"])
async def test_thinking_in_the_text_is_thinking_from_the_first_answer_on(
    tmp_path: Path, replay: str, sent: str, form: str
) -> None:
    pieces = [{"content": text} for text in ("<th", "ink>Mine.</think>", "\n\nI look.")]
    async with running(tmp_path, [Answer(deltas=pieces), "ok", "ok"], models=("scripted", "other")) as runner:
        set_replay(runner, replay)
        done = await runner.run("-p", "Look", OLLM_CALL_FORM=form)
        await runner.run("-p", "Go on", "--continue", OLLM_CALL_FORM=form)
        await runner.run("-p", "Go on", "--continue", "--full", "-m", "other", OLLM_CALL_FORM=form)

    assert done.out == "I look.\n"
    assert sent in said_before(runner.server.chats[1])
    assert "I look." in said_before(runner.server.chats[2]), "another model gets none of it"


async def test_another_model_or_server_gets_no_thinking_and_no_ids(tmp_path: Path) -> None:
    script = [Answer(deltas=[{"reasoning_content": "Mine."}, call("Ab3dE6gH9")], reason="tool_calls"), "ok", "ok"]
    async with running(tmp_path, script, models=("scripted", "other")) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        await runner.run("-p", "Read a.txt")
        await runner.run("-p", "Go on", "--continue", "--full", "-m", "other")

    assert thoughts(runner.server.chats[1]) == ["Mine."]
    assert thoughts(runner.server.chats[2]) == []
    assert wire_ids(runner.server.chats[2]) == (["c00000001"], ["c00000001"])


NAMED = "messages[2]: unknown field `reasoning_content`"


@pytest.mark.parametrize(
    ("status", "words", "learnt"),
    [(400, NAMED, True), (500, NAMED, True), (400, "Again", False), (413, "Large", False)],
)
async def test_a_server_that_refuses_thinking_is_asked_without_it_and_remembered_once_that_is_proved(
    tmp_path: Path, status: int, words: str, learnt: bool
) -> None:
    answers = iter([think("Hm."), Answer(text="ok"), think("Hm."), Answer(text="ok")])

    def strict(request: Request) -> Answer:
        refusal = {"error": {"message": words}}
        return Answer(status=status, body=refusal) if thoughts(request.body) else next(answers)

    async with running(tmp_path, strict) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        first = await runner.run("-p", "Read a.txt")
        second = await runner.run("-p", "And again")
        card = await runner.run("models", "card", "scripted")

    assert (first.code, second.code) == (0, 0)
    assert [bool(thoughts(chat)) for chat in runner.server.chats[:4]] == [False, True, False, False]
    assert len(runner.server.chats) == (5 if learnt else 6)
    assert first.err.count("refuses messages with thinking") == learnt
    assert ("the server refuses it back" in card.out) == learnt


async def test_ids_that_the_template_refuses_are_replaced_by_nine_letters(tmp_path: Path) -> None:
    answers = iter([Answer(deltas=[call("call_1")]), Answer(deltas=[call("call_2")]), Answer(text="ok")])

    def strict(request: Request) -> Answer:
        fits = all(len(each) == 9 for ids in wire_ids(request.body) for each in ids)
        return next(answers) if fits else Answer(status=400, body={"error": {"message": "length 9!"}})

    async with running(tmp_path, strict) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        done = await runner.run("-p", "Read a.txt twice")

    assert done.code == 0
    assert [wire_ids(chat)[1] for chat in runner.server.chats[2:]] == [["c00000001"], ["c00000001", "c00000002"]]


@pytest.mark.parametrize("killed", [False, True])
async def test_a_turn_that_was_cut_off_goes_on_with_its_thinking(tmp_path: Path, killed: bool) -> None:
    planned = Answer(deltas=[{"reasoning_content": "Plan: a, b."}, call("x1")], reason="tool_calls")
    async with running(tmp_path, [planned, Answer(status=500, body={}, delay=30 * killed), "ok"]) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        set_replay(runner, "turn")
        process = await runner.start("-p", "Read a.txt")
        while killed and len(runner.server.chats) < 2:
            await asyncio.sleep(0.05)
        if killed:
            process.kill()
        assert await process.wait() == (-9 if killed else 4)
        await runner.run("-p", "Go on", "--continue")

    assert thoughts(runner.server.chats[-1]) == ["Plan: a, b."]
    assert wire_ids(runner.server.chats[-1]) == (["x1"], ["x1"])


@pytest.mark.parametrize(("steps", "words", "lines"), [(12, 300, 1), (20, 60, 28)])
async def test_thinking_gives_way_before_results_and_shows_as_a_part(
    tmp_path: Path, steps: int, words: int, lines: int
) -> None:
    long = [think(f"Step {step}. {prose(words)}", path=f"{step}.txt") for step in range(steps)]
    async with running(tmp_path, [*long, "Done."], kind="vllm") as runner:
        for step in range(steps):
            (runner.workspace / f"{step}.txt").write_text(f"hello {step}\n" * lines)
        done = await runner.run("-p", "Read all files")
        shown = await runner.run("context", "show")

    assert done.code == 0
    assert "Left older thinking out" in done.err
    assert len(runner.server.chats) == steps + 1, "no summary was asked for"
    last = runner.server.chats[-1]
    assert 0 < len(thoughts(last)) < steps
    assert f"Step {steps - 1}." in thoughts(last)[-1]
    assert sum("hello" in str(message["content"]) for message in last["messages"]) == steps
    assert "thinking" in shown.out
    assert "Step 0." in (next((runner.home / "sessions").glob("*.json"))).read_text()


HOSTILE = {
    "50,000 tokens": [{"reasoning_content": prose(20_000)}],
    "no text": [{"reasoning_content": {"steps": ["look"]}}, {"reasoning_content": ["then", 7]}],
    "both fields": [
        {"reasoning_content": "the same", "reasoning": "the same"},
        {"reasoning_content": "a", "reasoning": "b"},
    ],
    "an end alone": [{"content": "</think>\n\nI look."}],
    "nothing but an end": [{"content": "</think>"}],
    "no end": [{"content": f"<think>\n{prose(500)}"}],
    "details without a form": [{"reasoning": "I look", "reasoning_details": ["encrypted", None, {"text": 5}]}],
}


@pytest.mark.parametrize("deltas", HOSTILE.values(), ids=HOSTILE)
async def test_odd_thinking_breaks_nothing_and_is_kept(tmp_path: Path, deltas: list[dict[str, Any]]) -> None:
    after, done = {"reasoning_content": "Thought after the call."}, {"content": "Done."}
    script = [Answer(deltas=[*deltas, call("x1"), after], reason="tool_calls"), Answer(deltas=[*deltas, done]), "Fine."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        first = await runner.run("-p", "Read a.txt")
        shown = json.loads((await runner.run("context", "show", "--json")).out)
        second = await runner.run("-p", "And?", "--continue")

    assert (first.code, second.code) == (0, 0)
    assert "Traceback" not in first.err + second.err
    thinking = [part["tokens"] for part in shown["parts"] if part["name"] == "thinking"]
    assert sum(thinking) < shown["limit"], "thinking without room is not sent"
    (session,) = runner.sessions()
    kept = "".join(part.get("text", "") for message in session["messages"] for part in message["parts"])
    said = [value for delta in deltas for name, value in delta.items() if name != "reasoning_details"]
    said = [value.removeprefix("<think>") if isinstance(value, str) else value for value in said]
    texts = [value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for value in said]
    assert all(text in kept for text in [*texts, "Thought after the call."])


async def test_thinking_without_an_end_ends_the_turn(tmp_path: Path) -> None:
    endless = Answer(deltas=[{"reasoning_content": "I think again. "}] * 400, reason="length")
    async with running(tmp_path, [endless, "Fine."]) as runner:
        first = await runner.run("-p", "Hello")
        second = await runner.run("-p", "And?", "--continue")

    assert (first.code, second.code) == (6, 0), "the first is a loop"
    assert "I think again." in json.dumps(runner.sessions()[0])


def entry(index: int, arguments: str, identity: str = "", name: str = "") -> dict[str, Any]:
    head = {"id": identity, "type": "function"} if identity else {}
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, **head, "function": function}


def ask(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"tool_calls": list(entries), **more}


A, B = '{"path": "a.txt"}', '{"path": "b.txt"}'
SHAPES: dict[str, tuple[list[dict[str, Any]], str, list[str]]] = {
    "vLLM": (
        [
            {"role": "assistant", "content": ""},
            {"reasoning": "I read", "reasoning_content": None},
            {"reasoning": " both."},
            {"content": ""},
            ask(entry(0, "", "chatcmpl-tool-1a", "read_file")),
            *(ask(entry(0, piece)) for piece in (A[:4], A[4:11], A[11:])),
            ask(entry(1, "", "chatcmpl-tool-2b", "read_file")),
            *(ask(entry(1, piece), content=None) for piece in (B[:9], B[9:])),
            {"content": ""},
        ],
        "reasoning",
        ["chatcmpl-tool-1a", "chatcmpl-tool-2b"],
    ),
    "Ollama": (
        [
            {"role": "assistant", "content": "", "reasoning": "I read both."},
            ask(entry(0, A, "call_ab12", "read_file"), role="assistant", content=""),
            ask(entry(0, B, "call_cd34", "read_file"), role="assistant", content=""),
        ],
        "reasoning",
        ["call_ab12", "call_cd34"],
    ),
    "LM Studio": (
        [
            {"role": "assistant", "reasoning_content": "I read both."},
            ask(entry(0, "", "365174485", "read_file")),
            ask(entry(0, A)),
            ask(entry(1, "", "365174486", "read_file")),
            ask(entry(1, B)),
        ],
        "reasoning_content",
        ["365174485", "365174486"],
    ),
    "the same id twice": (
        [
            {"reasoning_content": "I read both."},
            ask(entry(0, A, "call_0", "read_file"), entry(1, B, "call_0", "read_file"), content=None),
        ],
        "reasoning_content",
        ["call_0", "c00000002"],
    ),
}


@pytest.mark.parametrize(("deltas", "field", "ids"), SHAPES.values(), ids=SHAPES)
async def test_several_calls_after_thinking_come_and_go_back_in_the_form_of_each_server(
    tmp_path: Path, deltas: list[dict[str, Any]], field: str, ids: list[str]
) -> None:
    async with running(tmp_path, [Answer(deltas=deltas, reason="tool_calls"), "Done."]) as runner:
        for name in ("a", "b"):
            (runner.workspace / f"{name}.txt").write_text(f"the {name}\n")
        done = await runner.run("-p", "Read both")

    *_, asked, first, second = runner.server.chats[1]["messages"]
    assert done.code == 0
    assert asked[field] == "I read both."
    assert [each["function"]["arguments"] for each in asked["tool_calls"]] == [A.replace(" ", ""), B.replace(" ", "")]
    assert wire_ids(runner.server.chats[1]) == (ids, ids)
    assert ["the a" in first["content"], "the b" in second["content"]] == [True, True]


async def test_a_recorded_call_of_llama_cpp_is_one_though_its_fence_leaks(tmp_path: Path) -> None:
    """As llama.cpp b9844 streamed it: Qwen2.5-Coder 1.5B with the template of Llama 3.1."""
    pieces = ('\n        "', "path", '":', ' "', "read", ".txt", '"', "\n    }")
    identity = "UuxmWzelcFZDsc1fZTDq8vhoCUGlGekL"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{"content": text} for text in ("```", "json", "\n")]
    deltas += [ask(entry(0, "{", identity, "read_file")), *(ask(entry(0, piece)) for piece in pieces)]
    async with running(tmp_path, [Answer(deltas=deltas, reason="tool_calls"), "Done."]) as runner:
        (runner.workspace / "read.txt").write_text("hello\n")
        done = await runner.run("-p", "Read it")

    assert done.code == 0
    assert wire_ids(runner.server.chats[1]) == ([identity], [identity])
    assert "hello" in runner.server.chats[1]["messages"][-1]["content"]


async def test_thinking_and_calls_of_ollama_go_back_in_its_own_fields(tmp_path: Path) -> None:
    calls = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
    async with OllamaServer([Answer(thinking="I read both.", calls=calls), "Done."], model="qwen3:30b") as server:
        runner = Runner(tmp_path, cast("ScriptedServer", server))
        for name in ("a", "b"):
            (runner.workspace / f"{name}.txt").write_text(f"the {name}\n")
        done = await runner.run("-p", "Read both", OLLM_PROVIDER="ollama", OLLM_MODEL="qwen3:30b")

    *_, asked, first, second = server.chats[1]["messages"]
    assert done.code == 0
    assert asked["thinking"] == "I read both."
    assert [each["function"]["arguments"]["path"] for each in asked["tool_calls"]] == ["a.txt", "b.txt"]
    assert [first["tool_name"], "the a" in first["content"], "the b" in second["content"]] == ["read_file", True, True]
