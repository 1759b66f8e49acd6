"""What a model and its server are found to do: `models probe`, `models card`, `models import`, `doctor --model`."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.clock import format_stamp, now
from tests.cli.running import Runner, running
from tests.servers.answers import PROBE, Answer, Request, write_probed_call
from tests.servers.ollama import OllamaServer
from tests.servers.openai import ScriptedServer
from tests.sizes import SOAK

REFUSED = {"error": {"message": "Conversation roles must alternate", "code": 400}}
NO_PARSER = {"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'}}


class Template:
    """A server's template, parsers and counters, with the faults that are named. The model itself knows nothing but
    what it is asked to call."""

    def __init__(self, *drops: str, refuses: str = "", text: str = "I do not know.", **faults: Any) -> None:
        self.drops, self.refuses, self.text, self.faults = drops, refuses, text, faults
        self.read: list[str] = []

    def render(self, body: dict[str, Any]) -> list[str]:
        said = [] if "tools" in self.drops else [json.dumps(body.get("tools", ""))]
        for message in body["messages"]:
            if message["role"] not in self.drops:
                said += [message["role"], message["content"]]
            if "calls" not in self.drops:
                said.append(json.dumps(message.get("tool_calls", "")))
        return " ".join(said).split()

    def __call__(self, request: Request) -> Answer:
        body = request.body
        roles = [message["role"] for message in body["messages"]]
        if self.refuses in roles or (self.refuses == "users" and roles[-2:] == ["user", "user"]):
            return Answer(status=400, body=REFUSED)
        if body.get("tools") and self.faults.get("parser") == "missing":
            return Answer(status=400, body=NO_PARSER)
        words = self.render(body)[-self.faults.get("cut", 10**6) :]
        same = next((at for at, pair in enumerate(zip(words, self.read, strict=False)) if pair[0] != pair[1]), 10**6)
        cached = 0 if self.faults.get("forgets") else min(same, len(words), len(self.read))
        self.read = words
        window = self.faults.get("window", 10**6)
        if len(words) > window:
            message = f"This model's maximum context length is {window} tokens, your prompt has {len(words)} tokens."
            return Answer(status=400, body={"error": {"message": message, "code": 400}})
        counted = 0 if self.faults.get("silent") else len(words)
        probed = PROBE.search(body["messages"][-1]["content"])
        if body.get("tools") and probed:
            if self.faults.get("parser"):
                return Answer(text=write_probed_call(request, "tag"), prompt_tokens=counted)
            return Answer(calls=[(probed[1], {probed[2]: probed[3]})], prompt_tokens=counted)
        return Answer(text=self.text, prompt_tokens=counted, cached_tokens=cached, read_seconds=0.01)


async def examine(runner: Runner, **variables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = await runner.run("doctor", "--model", "--json", **variables)
    document = json.loads(done.out)
    assert document["ok"] == (done.code == 0), done.err
    return done.code, {trial["name"]: trial for trial in document["trials"]}


def read_facts(runner: Runner) -> dict[str, Any]:
    (facts,) = json.loads((runner.home / "model-facts.json").read_text()).values()
    return dict(facts)


FAULTS = [
    (Template(), {}),
    (Template("system"), {"system messages": "system"}),
    (Template(refuses="system"), {"system messages": "system"}),
    (Template(refuses="users"), {"two user messages": "users"}),
    (Template("tools"), {"tool list": "tools"}),
    (Template("calls"), {"earlier calls": "calls"}),
    (Template("tool"), {"tool results": "results"}),
    (Template(parser="wrong"), {"tool parser": "parser"}),
    (Template(text="<think>\nHm.\n</think>\nIt is 51."), {"thinking": "thinking"}),
    (Template(forgets=True), {"prompt cache": "prefix"}),
    (Template(window=2000), {"window": "window"}),
    (Template(cut=4500), {"window": "window"}),
]


@pytest.mark.parametrize(("template", "expected"), FAULTS, ids=range(len(FAULTS)))
async def test_each_fault_is_found_by_the_counts_of_the_server_and_no_other(
    tmp_path: Path, template: Template, expected: dict[str, Any]
) -> None:
    async with running(tmp_path, template, kind="sglang") as runner:
        code, trials = await examine(runner, OLLM_CONTEXT_WINDOW="8192")

    found = {name: trial["fault"] for name, trial in trials.items() if trial["fault"]}
    assert found.keys() == expected.keys(), trials
    assert code == (4 if expected else 0)
    assert set(read_facts(runner)["faults"]) == set(found.values())
    for name in found:
        assert trials[name]["ok"] is False
        assert "--" in trials[name]["remedy"]


async def test_a_weak_model_on_a_server_without_counts_is_not_blamed_for_its_template(tmp_path: Path) -> None:
    async with running(tmp_path, Template("system", "tool", "calls", silent=True)) as runner:
        code, trials = await examine(runner)

    parts = [trials[name] for name in ("system messages", "two user messages", "earlier calls", "tool results")]
    assert [(trial["ok"], trial["told"]) for trial in parts] == [(None, "could not be told")] * 4
    assert (code, read_facts(runner)["faults"]) == (0, [])


@pytest.mark.parametrize("counted", ["", "user"])
async def test_a_model_that_knows_the_fact_proves_that_it_arrived(tmp_path: Path, counted: str) -> None:
    """The server counts nothing, or only what users say."""

    def recite(request: Request) -> Answer:
        messages = request.body["messages"]
        said = " ".join(message["content"] for message in messages if message["role"] == counted)
        return Answer(text=f"{request.body.get('tools')} {messages}", prompt_tokens=len(said.split()))

    async with running(tmp_path, recite) as runner:
        _, trials = await examine(runner)

    assert all(trials[name]["ok"] for name in ("system messages", "tool list", "earlier calls", "tool results")), trials


def write_facts(runner: Runner, **facts: Any) -> None:
    runner.home.mkdir(mode=0o700, exist_ok=True)
    key = f"openai|{runner.server.base_url}/v1|scripted"
    (runner.home / "model-facts.json").write_text(json.dumps({key: facts}))


async def test_a_retry_for_a_schema_teaches_no_smaller_window(tmp_path: Path) -> None:
    def count_all(request: Request) -> Answer:
        return Answer(text="not json", prompt_tokens=len(json.dumps(request.body)) // 4)

    (tmp_path / "s.json").write_text('{"type": "object", "required": ["a"]}')
    async with running(tmp_path, count_all, kind="vllm", window=8192) as runner:
        done = await runner.run("-p", "SAY not json", "--schema", str(tmp_path / "s.json"))
        windows = [request["max_tokens"] for request in runner.server.chats]
        await runner.run("-p", "again")

    assert done.code == 7
    assert "read only" not in done.err
    assert "servedWindow" not in read_facts(runner)["learnt"]
    assert "tools" in runner.server.chats[-1]
    assert runner.server.chats[-1]["max_tokens"] >= windows[0]


async def test_facts_of_another_server_or_file_of_the_same_name_stay(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."], kind="llama.cpp", model="/x/b/small.gguf") as runner:
        runner.home.mkdir(mode=0o700)
        here, file = f"openai|{runner.server.base_url}/v1|", runner.home / "model-facts.json"
        keys = [f"{here}/x/a/small.gguf", f"{here}/x/b/small.gguf", "openai|http://127.0.0.1:9/v1|/x/b/small.gguf"]
        late = {"call_form": {"source": "use", "at": format_stamp(now())}}
        facts = [
            {"callForm": form, "learnt": late if form != "native" else {}} for form in ("text", "native", "blocks")
        ]
        file.write_text(json.dumps(dict(zip(keys, facts, strict=True))))
        card = await runner.run("models", "card", "small")
        elsewhere = await runner.run("models", "card", "small", OLLM_BASE_URL="http://127.0.0.1:7")
        gone = await runner.run("models", "card", "small", OLLM_BASE_URL="http://127.0.0.1:9")
        forgotten = await runner.run("models", "forget", "small")
        kept = [json.loads(file.read_text())[key]["callForm"] for key in keys]
    offline = await runner.run("models", "card", "small")

    assert re.search(r"calls +native", card.out)
    assert re.search(r"calls +in blocks", gone.out), "it is the only one known there"
    assert (elsewhere.code, "at http://127.0.0.1:7 yet" in elsewhere.err) == (1, True)
    assert (forgotten.code, kept) == (0, ["text", "unknown", "blocks"])
    assert (offline.code, "/x/a/small.gguf at" in offline.err) == (2, True), "the name could mean either"


async def test_damaged_facts_are_kept_beside_the_new_ones(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        write_facts(runner, callForm="native")
        file = runner.home / "model-facts.json"
        file.write_bytes(damaged := file.read_bytes()[:-3])
        done = await runner.run("-p", "hi")

    (kept,) = runner.home.glob("model-facts.json.damaged-*")
    assert kept.read_bytes() == damaged
    assert f"model-facts.json is damaged: it was kept as {kept.name}" in done.err
    assert read_facts(runner)["learnt"]


MARKED = b'data: {"choices": [{"delta": {"content": "Hm."}, "finish_reason": "stop"}], "truncated": true, "usage": {"prompt_tokens": %d}}\n\ndata: [DONE]\n\n'


def refuse(words: str) -> Answer:
    return Answer(status=400, body={"error": {"message": words, "code": 400}})


def mark_cut(count: int) -> Answer:
    return Answer(
        raw=b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + MARKED % count
    )


@pytest.mark.parametrize(
    ("said", "learnt"),
    [
        (refuse("This model's maximum context length is 2048 tokens, your prompt has 2300 tokens."), 2048),
        (refuse("This model's maximum context length is 17 tokens."), None),
        (refuse("The maximum context length is 1000000000, you requested 1043."), None),
        (refuse("The maximum context length is 131072 tokens, you sent 1043."), None),
        (refuse("context length exceeded: rate limit 60"), None),
        (mark_cut(1200), 1200),
        (mark_cut(500), None),
        (mark_cut(5000), None),
    ],
)
async def test_only_a_limit_that_the_server_says_and_that_fits_what_was_sent_is_learnt(
    tmp_path: Path, said: Answer, learnt: int | None
) -> None:
    async with running(tmp_path, [said], kind="vllm", window=32768) as runner:
        first = await runner.run("-p", "word " * 1500)
        runner.server.script = ["Hello."]
        again = await runner.run("-p", "hi")
        kept = read_facts(runner).get("servedWindow")
        runner.server.window = 65536
        await runner.run("-p", "hi")
        runner.server.window = 32768
        back = await runner.run("-p", "hi")
        set_one = await runner.run("-p", "hi", OLLM_CONTEXT_WINDOW="16384")

    assert kept == learnt, first.err
    assert (f"serves {learnt or 0:,} tokens" in again.err) is bool(learnt)
    assert "5,000 of" not in first.err
    assert "The server serves" not in back.err + set_one.err


async def test_each_fact_has_its_source_and_date_and_is_forgotten_by_name(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Hello."], kind="vllm", window=8192) as runner:
        learnt = {"takes_tools": {"source": "error", "at": format_stamp(now() - timedelta(days=2))}}
        write_facts(runner, takesTools=False, servedWindow=1043, saidWindow=8192, prefillPerSecond=20, learnt=learnt)
        card = (await runner.run("models", "card", "scripted")).out
        await runner.run("-p", "hi")
        forgotten = await runner.run("models", "forget", "scripted", "tools")
        again = await runner.run("models", "forget", "scripted", "tools")
        await runner.run("-p", "hi")
        wrong = await runner.run("models", "forget", "scripted", "dreams")

    assert re.search(r"tools +the server takes none.* \(from the server's error, 2 d ago\)", card)
    assert re.search(r"window +as the server says\n", card), "nothing proves the window of an earlier version"
    assert re.search(r"speed +prompt: 20.0 tok/s", card)
    assert forgotten.err == f"ollm: Forgot the tools of scripted at {runner.server.base_url}/v1.\n"
    assert again.err == f"ollm: Nothing was known about the tools of scripted at {runner.server.base_url}/v1.\n"
    assert ["tools" in request for request in runner.server.chats] == [False, True]
    assert wrong.code == 2


@pytest.mark.parametrize(("days", "offered"), [(29, False), (31, True)])
async def test_a_fact_of_more_than_thirty_days_is_learnt_anew(tmp_path: Path, days: int, offered: bool) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        at = format_stamp(now() - timedelta(days=days))
        write_facts(runner, takesTools=False, learnt={"takes_tools": {"source": "error", "at": at}})
        await runner.run("-p", "hi", OLLM_CONTEXT_WINDOW="8192")

    assert ("tools" in runner.server.chats[0]) is offered


async def test_a_refusal_of_tools_goes_with_another_window_of_the_server(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(status=400, body=NO_PARSER), "Hello."], kind="vllm", window=8192) as runner:
        await runner.run("-p", "hi")
        await runner.run("-p", "hi")
        runner.server.window = 16_384
        await runner.run("-p", "hi")
        await runner.run("-p", "hi")

    assert ["tools" in chat for chat in runner.server.chats] == [True, False, False, True, True]
    assert (read_facts(runner)["takesTools"], read_facts(runner)["resultForm"]) == (True, "tool")


@pytest.mark.parametrize(("reuses", "announced"), [(True, 1), (False, 2)])
async def test_the_time_to_read_counts_the_whole_prompt_if_the_cache_is_not_used(
    tmp_path: Path, reuses: bool, announced: int
) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {})]), "Nothing."]) as runner:
        write_facts(runner, callForm="native", prefillPerSecond=20, reusesPrefix=reuses)
        done = await runner.run("-p", "List the files.", OLLM_CONTEXT_WINDOW="32768")

    assert done.err.count("new tokens") == announced, done.err


async def test_a_server_that_refuses_tools_is_named_with_its_flag(tmp_path: Path) -> None:
    async with running(tmp_path, Template(parser="missing"), kind="vllm") as runner:
        done = await runner.run("doctor", "--model")

    assert done.code == 4
    assert "tool parser: the server refuses tools" in done.out
    assert "--enable-auto-tool-choice --tool-call-parser" in done.out.partition("\nfault")[2]
    assert "tool parser: the server refuses tools" in done.err  # as it goes on
    assert "All set." not in done.out
    assert "`ollm models forget scripted` undoes what was learnt" in done.out


async def test_what_a_template_drops_is_sent_in_another_form_until_it_is_fixed(tmp_path: Path) -> None:
    async with running(tmp_path, Template("system", "tool"), kind="sglang") as runner:
        await examine(runner)
        await runner.run("-p", "Hello.")
        sent = runner.server.chats[-1]["messages"]
        runner.server.script = Template()
        code, _ = await examine(runner)
        await runner.run("-p", "Hello.")

    assert {message["role"] for message in sent} == {"user"}
    assert "coding agent" in sent[0]["content"]
    assert [message["role"] for message in runner.server.chats[-1]["messages"]] == ["system", "user"]
    facts = read_facts(runner)
    assert (code, facts["faults"], facts["systemForm"], facts["resultForm"]) == (0, [], "system", "tool")


@pytest.mark.parametrize("text", ["<think>\nHm.\n</think>\n\nIt is 51.", "Hm.\n</think>\n\nIt is 51."])
async def test_thinking_in_the_answer_is_separated_once_it_was_found(tmp_path: Path, text: str) -> None:
    async with running(tmp_path, Template(text=text)) as runner:
        before = await runner.run("-p", "What is 17 times 3?")
        await examine(runner)
        after = await runner.run("-p", "What is 17 times 3?")

    assert ("</think>" in before.out) == text.startswith("Hm."), "only an end tag alone is not understood at once"
    assert after.out == "It is 51.\n"


async def test_ollama_is_told_apart_and_has_remedies_of_its_own(tmp_path: Path) -> None:
    async with OllamaServer(Template("tool"), model="scripted") as server:
        runner = Runner(tmp_path, ScriptedServer())
        code, trials = await examine(runner, OLLM_BASE_URL=server.base_url, OLLM_PROVIDER="ollama")

    assert (code, trials["tool results"]["fault"]) == (4, "results")
    assert "ollama create" in trials["tool results"]["remedy"]


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_a_real_llama_cpp_shows_its_template(tmp_path: Path, llama_server: str) -> None:
    """SmolLM2's template knows roles and contents, but neither tools nor calls."""
    runner = Runner(tmp_path, ScriptedServer())
    _, trials = await examine(runner, OLLM_BASE_URL=llama_server, OLLM_MODEL="smollm2")

    told = {name: trials[name]["ok"] for name in ("system messages", "two user messages", "earlier calls")}
    assert told == {"system messages": True, "two user messages": True, "earlier calls": False}
    assert trials["prompt cache"]["ok"] is True
    assert "--chat-template-file" in trials["earlier calls"]["remedy"]


def think(request: Request) -> Answer:
    """A model that calls and thinks."""
    body = request.body
    thinks = body.get("chat_template_kwargs", {}).get("enable_thinking", True)
    if body.get("tools") and "alpha.txt" in body["messages"][-1]["content"]:
        return Answer(calls=[("read_file", {"path": "alpha.txt"})])
    return Answer(text="some words", thinking="Hm." if thinks else "", prompt_tokens=900)


async def test_the_probe_measures_thinking(tmp_path: Path) -> None:
    async with running(tmp_path, think, kind="vllm") as runner:
        done = await runner.run("models", "probe", "--json")
        shown = await runner.run("models", "card", "scripted")

    facts = json.loads(done.out)["facts"]
    assert (facts["thinking"], facts["thinkingOff"], facts["server"]) == ("separate", True, "vllm")
    assert "`thinking: off` stops it" in shown.out


async def make_card(tmp_path: Path, script: Callable[[Request], Answer], kind: str) -> dict[str, Any]:
    (tmp_path / "friend").mkdir()
    async with running(tmp_path / "friend", script, kind=kind) as friend:
        await friend.run("models", "probe")
        card = await friend.run("models", "card", "scripted", "--json")
        assert str(friend.server.port) not in card.out  # no address
        return dict(json.loads(card.out))


@pytest.mark.parametrize(("kind", "thinking"), [("vllm", "separate"), ("sglang", None)])
async def test_a_card_is_used_until_the_model_is_measured_here(tmp_path: Path, kind: str, thinking: str | None) -> None:
    card = await make_card(tmp_path, think, "vllm")
    (tmp_path / "card.json").write_text(json.dumps(card))
    async with running(tmp_path, Template(), kind=kind) as runner:
        done = await runner.run("models", "import", str(tmp_path / "card.json"))
        facts = read_facts(runner)
        doctor = await runner.run("doctor")
        await runner.run("models", "probe")
        again = await runner.run("models", "import", str(tmp_path / "card.json"))

    assert done.code == 0, done.err
    assert (facts["callForm"], facts.get("thinking"), facts.get("probed")) == (
        card["facts"]["callForm"],
        thinking,
        None,
    )
    assert facts["imported"].endswith("Z")
    assert "prefillPerSecond" not in facts  # that of another machine
    assert "from an imported card, not measured here" in doctor.out
    assert ("only facts of the model are used" in done.err) == (kind != "vllm")
    measured = read_facts(runner)
    assert (measured["imported"], measured["thinking"]) == (None, "none")
    assert (again.code, "was measured here" in again.err) == (2, True)
    assert read_facts(runner) == measured


GOOD = {"version": 1, "model": "scripted", "facts": {"callForm": "native"}}
BAD_CARDS = [
    "[" * 5000,
    json.dumps({**GOOD, "baseUrl": "http://127.0.0.1:9"}),
    json.dumps({**GOOD, "facts": {"callForm": "native", "headers": {"X-Key": "1"}}}),
    json.dumps({**GOOD, "facts": {"callForm": "native", "key": "openai|http://127.0.0.1:9|scripted"}}),
    json.dumps({**GOOD, "facts": {"callForm": "native", "maxTools": 0}}),
    json.dumps({**GOOD, "facts": {"callForm": "native", "tokenFactor": 1e9}}),
    json.dumps({**GOOD, "facts": {"callForm": "native", "probed": "$(rm -rf ~)"}}),
    json.dumps({**GOOD, "facts": {"callForm": "native", "faults": ["x" * 100_000]}}),
    json.dumps({**GOOD, "model": "other"}),
]


async def test_a_card_that_is_no_card_is_refused_whole(tmp_path: Path) -> None:
    async with running(tmp_path, Template(), models=("scripted",)) as runner:
        for card in BAD_CARDS:
            (tmp_path / "card.json").write_text(card)
            done = await runner.run("models", "import", str(tmp_path / "card.json"))
            assert (done.code, "Traceback" in done.err) == (4 if "other" in card else 2, False), (card[:80], done.err)

    assert not (runner.home / "model-facts.json").exists()


async def test_a_card_does_not_replace_what_the_doctor_found_here(tmp_path: Path) -> None:
    former = {
        "callForm": "constrained",
        "verbatimEdits": True,
        "bindsAnswers": False,
        "sampling": ["seed"],
    }  # as an earlier version wrote it
    facts = {**former, "server": "sglang", "systemForm": "system"}
    (tmp_path / "card.json").write_text(json.dumps({**GOOD, "facts": facts}))
    async with running(tmp_path, Template("system"), kind="sglang") as runner:
        await examine(runner)
        done = await runner.run("models", "import", str(tmp_path / "card.json"))

    facts = read_facts(runner)
    assert (done.code, facts["callForm"], facts["systemForm"]) == (0, "text", "user")
