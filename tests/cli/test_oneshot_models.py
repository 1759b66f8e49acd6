"""`ollm -p` on real servers, and on what they streamed, refused or hid behind TLS."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from ollm.domain.errors import PromptTooLongError
from ollm.providers.server_errors import make_server_error
from ollm.system.http import FullResponse
from tests.cli.command import SCRIPT
from tests.cli.running import running
from tests.covers import covers
from tests.servers import OllamaServer
from tests.servers.answers import LEAKS, Answer, write_probed_call
from tests.servers.certificates import self_signed
from tests.servers.files import FileServer, serving
from tests.servers.handled import serve_with
from tests.sizes import SOAK

PROMPT = ("-p", "Say hello")


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "OLLM_HOME": str(home)} | more


def ollm(home: Path, workspace: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    options = {"cwd": workspace, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    return subprocess.run([SCRIPT, *arguments], env=environment(home, **more), check=False, **options)


@pytest.mark.slow
def test_the_embedded_model_answers_and_the_session_is_kept(model_home: Path, tmp_path: Path) -> None:
    """With native calls: their instructions are a third as long, and two cores read 40 tokens a second."""
    done = ollm(model_home, tmp_path, *PROMPT, "--provider", "embedded", OLLM_CALL_FORM="native")

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    listed = json.loads(ollm(model_home, tmp_path, "sessions", "list", "--json").stdout)
    assert [(session["title"], session["model"]) for session in listed] == [("Say hello", "smollm2")]


@pytest.mark.slow
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_a_real_llama_cpp_server_answers(llama_server: str, tmp_path: Path) -> None:
    """With native calls, which so small a model never makes: what it would run from a block is left to chance."""
    settings = {"OLLM_MODEL": "smollm2", "OLLM_CALL_FORM": "native"}
    done = ollm(tmp_path / "home", tmp_path, *PROMPT, "-o", "json", "--base-url", llama_server, **settings)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["text"].strip()
    assert answer["usage"]["promptTokens"] > 0


async def test_an_ollama_answers_under_one_window(tmp_path: Path) -> None:
    async with OllamaServer(["Hello there.", "Again."], model="qwen3:8b") as server:
        for expected in ("Hello there.\n", "Again.\n"):
            done = await asyncio.to_thread(ollm, tmp_path / "home", tmp_path, *PROMPT, OLLAMA_HOST=server.base_url)
            assert (done.returncode, done.stdout) == (0, expected), done.stderr

    assert server.loads == [("qwen3:8b", 8192)]


def test_without_a_terminal_a_missing_model_is_exit_3_and_the_command_to_type(tmp_path: Path) -> None:
    done = ollm(tmp_path / "home", tmp_path, *PROMPT, "--provider", "embedded")

    assert done.returncode == 3
    assert "ollm models get smollm2" in done.stderr
    assert not (tmp_path / "home" / "models").exists()


@pytest.mark.parametrize(("answer", "said", "code"), [("n", "ollm models get smollm2", 3), ("", "wrong checksum", 1)])
def test_on_a_terminal_a_missing_model_is_fetched_after_a_question(
    tmp_path: Path, answer: str, said: str, code: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with serving(FileServer(b"not the model")) as files:
        (home / "config.yaml").write_text(f"models: {{urls: {{smollm2: '{files.url}'}}}}\n", encoding="utf-8")
        command = ["-m", "ollm", *PROMPT, "--provider", "embedded"]
        options = {"env": environment(home, TERM="xterm"), "cwd": str(tmp_path), "timeout": 30, "encoding": "utf-8"}
        child = pexpect.spawn(sys.executable, command, **options)
        child.expect(r"(\d)  SmolLM2 135M, 98 MB: to look around, not for work")
        number = child.match[1]
        child.expect("Number or URL")
        child.sendline(answer or number)
        child.expect(said)
        child.expect(pexpect.EOF)
        child.close()

    assert child.exitstatus == code
    assert bool(files.asked) == (answer == "")


ANSWERS = Path(__file__).parents[1] / "providers" / "answers"

STREAMS = json.loads((ANSWERS / "streams.json").read_text(encoding="utf-8"))

FILES = {"notes.txt": "milk\n", "app.py": "foo = 1\n"}

# Every form but the native one is learnt by a probe, which the server answers in the same form.
FORMS = {"tool_call": "tag", "function with JSON": "function", "bare JSON": "json"}


def replay(entry: dict[str, Any]) -> Answer:
    """◇ and ◆ stand for what every chunk of a stream begins and ends with."""
    body = entry["stream"].replace("◇", entry["begins"]).replace("◆", entry["ends"]).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    return Answer(raw=head.encode() + body, close=True)


def test_there_is_a_recording_of_every_form() -> None:
    forms = {
        "native",
        "fence",
        "tool_call",
        "function",
        "function with JSON",
        "bare JSON",
        "invoke",
        "mistral",
    }

    assert {entry["form"] for entry in STREAMS} == forms


@covers("T10.1")
@pytest.mark.parametrize("entry", STREAMS, ids=[f"{entry['form']}: {entry['asked']}" for entry in STREAMS])
async def test_a_recorded_call_is_made(tmp_path: Path, entry: dict[str, Any]) -> None:
    left, form = [replay(entry), Answer(text="Done.")], FORMS.get(entry["form"], entry["form"])

    def answer(request: Any) -> Answer:
        probed = write_probed_call(request, form) if form in LEAKS else ""
        return Answer(text=probed) if probed else left.pop(0)

    async with running(tmp_path, answer) as runner:  # type: ignore[arg-type]
        for name, text in FILES.items():
            (runner.workspace / name).write_text(text, encoding="utf-8")
        ended = await runner.run("-p", entry["asked"], "--mode", "code", "-o", "json", "--yes")

    said = json.loads(ended.out)
    name, arguments = entry["call"]
    assert [(call["name"], call["args"]) for call in said["toolCalls"]] == [(name, arguments)]
    assert (ended.code, said["text"]) == (0, "Done.")
    (facts,) = json.loads((runner.home / "model-facts.json").read_text(encoding="utf-8")).values()
    assert (facts["callForm"], facts.get("writtenForm", "fence")) == (
        ("native", "fence") if form == "native" else ("text", form)
    )
    if name == "write_file":
        assert (runner.workspace / arguments["path"]).read_text(encoding="utf-8").strip() == "hi there"


RECORDED = json.loads((Path(__file__).parents[1] / "providers" / "answers" / "refusals.json").read_text("utf-8"))

FENCE = '```json\n{"name": "read_file", "arguments": {"path": "note.txt"}}\n```'


def select(means: str) -> list[Any]:
    return [
        pytest.param(entry, id=f"{entry['server']} {entry['version']} {number}")
        for number, entry in enumerate(RECORDED)
        if entry["means"] == means
    ]


@pytest.mark.parametrize("entry", select("tools-unsupported"))
async def test_a_server_started_without_tool_calls_works_and_says_once_how_to_have_them(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    refused = Answer(status=entry["status"], body=entry["body"])
    async with running(tmp_path, [refused, FENCE, "It says 4711.", FENCE, "Still 4711."]) as runner:
        (runner.workspace / "note.txt").write_text("the code is 4711\n")
        first = await runner.run("-p", "what does note.txt say?")
        second = await runner.run("-p", "and now?")
        card = await runner.run("models", "card", "scripted")
        runner.server.script = ["It says 4711."]
        native = await runner.run("-p", "and now?", OLLM_CALL_FORM="native")
        later = await runner.run("-p", "and now?")

    assert (first.code, first.out.strip()) == (0, "It says 4711.")
    assert (second.code, second.out.strip()) == (0, "Still 4711.")
    assert first.err.count("--enable-auto-tool-choice") == 1
    assert "--enable-auto-tool-choice" not in second.err
    assert ["tools" in chat for chat in runner.server.chats] == [True, False, False, False, False, True, True]
    assert "measured in use" not in re.sub(r"(?m)^(speed|counting).*", "", card.out)
    assert (native.code, later.code) == (0, 0)


@pytest.mark.parametrize("entry", select("tools-unsupported"))
async def test_the_probe_does_not_stop_at_a_server_without_tool_calls(tmp_path: Path, entry: dict[str, Any]) -> None:
    def say(request: Any) -> str:
        return write_probed_call(request, "fence") or FENCE

    def answer(request: Any) -> Answer:
        return (
            Answer(status=entry["status"], body=entry["body"])
            if request.body.get("tools")
            else Answer(text=say(request))
        )

    async with running(tmp_path, []) as runner:
        runner.server.script = answer
        done = await runner.run("models", "probe", "--json")

    assert done.code == 0, done.err
    (facts,) = json.loads((runner.home / "model-facts.json").read_text()).values()
    assert (facts["takesTools"], facts["callForm"]) == (False, "text")


@pytest.mark.parametrize("entry", select("too-long"))
def test_the_numbers_of_an_overflow_are_read_from_the_words(entry: dict[str, Any]) -> None:
    error = make_server_error("http://x", FullResponse(entry["status"], {}, json.dumps(entry["body"]).encode()))

    assert isinstance(error, PromptTooLongError)
    assert (error.window, error.prompt_tokens) == (entry["window"], entry["prompt"])
    assert (error.answer_tokens, error.prompt_at_least) == (entry["answer"], entry.get("atLeast", False))
    assert error.only_answer_too_long == (entry["answer"] > 0)


@pytest.mark.parametrize("entry", select("unknown-model"))
async def test_an_unknown_model_is_named_with_the_nearest_there_is(tmp_path: Path, entry: dict[str, Any]) -> None:
    refused = Answer(status=entry["status"], body=entry["body"])
    async with running(tmp_path, [refused], models=("scripted-7b",)) as runner:
        done = await runner.run("-p", "hi")

    assert done.code == 4
    assert "Did you mean 'scripted-7b'?" in done.err


async def test_two_models_of_one_short_name_are_told_apart(tmp_path: Path) -> None:
    pair = ("one/Qwen-GGUF:Q4", "two/Qwen-GGUF:Q4")
    async with running(tmp_path, ["Hello."], kind="vllm", models=(*pair, "other/big.gguf"), window=1) as runner:
        listed = await runner.run("models", "list")
        either = await runner.run("-p", "hi", "-m", "Qwen:Q4")
        tiny = await runner.run("-p", "hi", "-m", pair[1])

    assert all(re.search(rf"^{name} ", listed.out, re.MULTILINE) for name in (*pair, "big")), listed.out
    assert (either.code, "Qwen:Q4 can be one/Qwen-GGUF:Q4 or two/Qwen-GGUF:Q4." in either.err) == (2, True)
    assert "A context window of 1 tokens is too small" in tiny.err
    assert "internal error" not in tiny.err


NOBODY = "http://127.0.0.1:9"


async def test_a_certificate_nobody_vouches_for_is_refused_with_the_way_out(tmp_path: Path) -> None:
    _, context = self_signed(tmp_path)
    async with running(tmp_path, ["Hi."], tls=context) as runner:
        done = await runner.run("-p", "hi")

    assert done.code == 3
    assert "has a certificate that is not trusted (self-signed certificate)" in done.err
    assert "SSL_CERT_FILE" in done.err
    assert runner.server.chats == []


async def test_a_certificate_named_in_the_environment_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, context = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(shown))
    monkeypatch.setenv("HTTPS_PROXY", NOBODY)  # not asked: the server is on this machine
    async with running(tmp_path, ["Hi."], tls=context) as runner:
        done = await runner.run("-p", "hi")

    assert (done.code, done.out) == (0, "Hi.\n")


async def test_a_certificate_for_another_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, context = self_signed(tmp_path, "127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(shown))
    async with running(tmp_path, ["Hi."], tls=context) as runner:
        done = await runner.run("-p", "hi")

    assert done.code == 3
    assert "not trusted (IP address mismatch" in done.err


async def test_no_proxy_stands_between_us_and_a_server_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", NOBODY)
    async with running(tmp_path, ["Hi."]) as runner:
        done = await runner.run("-p", "hi")

    assert (done.code, done.out) == (0, "Hi.\n")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_server_elsewhere_is_reached_by_the_proxy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, ["Hi."]) as runner, forwarding(runner.server.port) as (proxy, asked):
        monkeypatch.setenv(name, proxy)
        monkeypatch.delenv("NO_PROXY", raising=False)
        done = await runner.run("-p", "hi", "--base-url", "http://models.invalid/v1")

    assert (done.code, done.out) == (0, "Hi.\n")
    assert "POST http://models.invalid/v1/chat/completions HTTP/1.1" in asked


async def test_what_no_proxy_lists_is_asked_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, ["Hi."]) as runner, forwarding(runner.server.port) as (proxy, asked):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        done = await runner.run("-p", "hi", "--base-url", "http://models.invalid/v1")

    assert done.code == 3
    assert asked == []


@asynccontextmanager
async def forwarding(port: int) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that takes everybody to one server; its address, and the first lines of what it was asked."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", port)
        back = asyncio.create_task(pass_on(there, writer))
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, _, rest = head.partition(b"\r\n")
                asked.append(first.decode())
                method, target, version = first.split(b" ")
                length = [line for line in rest.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(length[0].partition(b":")[2]) if length else 0)
                path = b"/" + target.split(b"/", 3)[3]
                here.write(b" ".join((method, path, version)) + b"\r\n" + rest + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            back.cancel()
            here.close()
            writer.close()

    async with serve_with(serve) as own_port:
        yield f"http://127.0.0.1:{own_port}", asked


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
