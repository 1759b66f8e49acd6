"""Servers that load models on request, and models that go by several names."""

import asyncio
import json
import os
import pty
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, at_terminal
from tests.servers.answers import Answer, Request
from tests.servers.ollama import OllamaServer
from tests.servers.openai import ScriptedServer, _event

WINDOWS = {"small": 8192, "big": 16384}


class Host(ScriptedServer):
    """Two models, of which `small` is in memory."""

    owner = "someone"

    def __init__(self, script: Any = (), **options: Any) -> None:
        super().__init__(script, models=tuple(WINDOWS), strict=True, **options)
        self.states = {"small": "loaded", "big": "unloaded"}
        self.steps = 0  # pages that a load takes

    def move(self, model: str, state: str) -> tuple[int, Any]:
        self.states[model] = state
        return 200, {"success": True}

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "owned_by": self.owner}

    calls: ClassVar[list[str]] = []

    @property
    def asked(self) -> list[str]:
        asked = (f"{request.method} {request.path}" for request in self.requests)
        return [each for each in asked if each in self.calls]


class Router(Host):
    """llama.cpp without a model of its own."""

    owner = "llamacpp"
    calls: ClassVar = ["POST /models/load", "POST /models/unload"]

    def __init__(self, script: Any = (), *, autoload: bool = True) -> None:
        super().__init__(script, kind="llama.cpp")
        self.autoload = autoload
        self.broken: set[str] = set()  # models that cannot be loaded

    def answer(self, request: Request) -> Answer:
        if self.states[request.body["model"]] == "loaded":
            return super().answer(request)
        return Answer(status=400, body={"error": {"code": 400, "message": "model is not loaded"}})

    def _model(self, name: str) -> dict[str, Any]:
        loaded = (
            {"meta": {"n_ctx": WINDOWS[name], "size": 5_000_000, "n_params": 10**8}}
            if self.states[name] == "loaded"
            else {}
        )
        args = ["--ctx-size", str(2 * WINDOWS[name]), "--model", __file__, "--parallel", "2"]
        return {**super()._model(name), "status": {"value": self.states[name], "args": args}, **loaded}

    def page(self, request: Request) -> tuple[int, Any]:
        path, _, query = request.path.partition("?")
        if path in ("/models/load", "/models/unload"):
            self.steps = 2
            return self.move(request.body["model"], "loading" if path == "/models/load" else "unloaded")
        if path == "/models":
            self.steps -= 1
            self.states |= dict.fromkeys(self.broken, "unloaded") if self.steps < 0 else {}
            for name, state in self.states.items():
                self.states[name] = "loaded" if state == "loading" and self.steps < 0 else state
            return 200, {"data": [self._model(name) for name in self.models]}
        if path == "/props":
            name = query.partition("model=")[2].partition("&")[0]
            assert "autoload=false" in query, "to look is no reason to load"
            if self.states.get(name) != "loaded":
                return 400, {"error": {"message": "model is not loaded"}}
            return 200, {"default_generation_settings": {"n_ctx": WINDOWS[name]}, "total_slots": 1}
        return super().page(request)


class Swap(Host):
    owner = "llama-swap"
    calls: ClassVar = ["GET /upstream/big/health", "POST /api/models/unload/big"]

    def page(self, request: Request) -> tuple[int, Any]:
        running = [{"model": name, "state": "ready"} for name, state in self.states.items() if state == "loaded"]
        parts = request.path.split("/")
        if request.path == "/running":
            return 200, {"running": running}
        if request.path.startswith("/api/models/unload/"):
            return self.move(parts[-1], "unloaded")
        if request.path.startswith("/upstream/"):
            name = parts[2]
            self.move(name, "loaded")
            listed = {"id": name, "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}
            props = {"default_generation_settings": {"n_ctx": WINDOWS[name]}}
            return 200, {"data": [listed]} if parts[-1] == "models" else props
        return super().page(request)


class Studio(Host):
    owner = "organization_owner"
    calls: ClassVar = ["POST /api/v1/models/load", "POST /api/v1/models/unload"]

    def page(self, request: Request) -> tuple[int, Any]:
        if request.path in self.calls[0] + self.calls[1] and request.method == "POST":
            return self.move(request.body["model"], "loaded" if request.path.endswith("/load") else "not-loaded")
        if request.path == "/api/v0/models":
            entries = [{"id": name, "state": state} for name, state in self.states.items()]
            return 200, {"data": [{**each, "loaded_context_length": WINDOWS[each["id"]]} for each in entries]}
        return super().page(request)


class Ollama(OllamaServer):
    """`parameters` is that of the Modelfile."""

    calls: ClassVar = ["POST /api/generate", "POST /api/generate"]
    parameters = ""

    def __init__(self, script: Any = ()) -> None:
        super().__init__(script, model="small", others=("big",))
        self.loads = [("small", 4096)]

    asked = Host.asked

    def page(self, request: Request) -> tuple[int, Any]:
        if request.path == "/api/generate":
            window = request.body.get("options", {}).get("num_ctx", 4096)
            self.loads = [] if request.body.get("keep_alive") == 0 else [(request.body["model"], window)]
            return 200, {"done": True}
        status, page = super().page(request)
        return status, page | {"parameters": self.parameters} if request.path == "/api/show" else page


async def list_states(runner: Runner, **variables: str) -> dict[str, str]:
    document = json.loads((await runner.run("models", "list", "--json", **variables)).out)
    return {model["name"]: model["state"] for model in document["servers"][0]["models"]}


@pytest.mark.parametrize("autoload", [True, False])
async def test_a_router_loads_what_is_chosen_and_says_the_window_of_each_model(tmp_path: Path, autoload: bool) -> None:
    async with Router(["Hello.", "Hello."], autoload=autoload) as server:
        runner = Runner(tmp_path, server)
        before = await list_states(runner)
        cold = (await runner.run("models", "list")).out
        doctor = (await runner.run("doctor", OLLM_MODEL="big")).out
        done = await runner.run("-p", "hi", "-m", "big")
        shown = json.loads((await runner.run("context", "show", "--json")).out)
        table = (await runner.run("models", "list")).out
        unloaded = await runner.run("models", "unload", "big")
        after = await list_states(runner)
        twice = await runner.run("models", "unload", "big")
        unknown = await runner.run("models", "load", "bigger")
        loaded = await runner.run("models", "load", "big")

    assert before == {"small": "loaded", "big": "unloaded"}
    assert (done.code, done.out) == (0, "Hello.\n"), done.err
    assert "tools" not in server.chats[0], "a tiny model only chats, which is known once it is loaded"
    assert shown["window"] == 16384
    assert {"name": "tool schemas", "tokens": 0} in shown["parts"]
    assert re.search(r"big +0 MB +16,384 .* unloaded", cold)
    assert "16384 tokens: by the arguments of its server" in doctor
    assert "Load the model" not in doctor
    assert re.search(r"big +5 MB +16,384 .* loaded", table)
    assert (unloaded.code, after["big"], loaded.code) == (0, "unloaded", 0)
    assert (twice.code, "big is not loaded at" in twice.err) == (1, True)
    assert "Did you mean 'big'?" in unknown.err
    assert re.fullmatch(rf"ollm: Loaded big at {server.base_url}/v1 in \d+ s\.\n", loaded.err)
    assert server.asked == ["POST /models/load", "POST /models/unload", "POST /models/load"]


async def test_a_model_is_chosen_in_the_chat_and_a_load_without_end_is_stopped(tmp_path: Path) -> None:
    async with Router([Answer(text="Hello.", prompt_tokens=900, cached_tokens=450), "Hello again."]) as server:
        runner = Runner(tmp_path, server)
        async with at_terminal(runner, "chat", "-m", "small") as terminal:
            terminal.type("hi" + ENTER)
            await terminal.wait_for("Hello.", "cache 50%", gone="Esc stops")
            terminal.type("/model" + ENTER)
            await terminal.wait_for("small ✓", "  loaded", "big", "unloaded")
            terminal.type(ESCAPE)
            await terminal.wait_for(gone="Choose the model")
            terminal.type("/model big" + ENTER)
            await terminal.wait_for("Switched to big (16,384-token context)", gone="cache 50%")
            server.states["big"], server.steps = "loading", 10**9
            terminal.type("/model small" + ENTER)
            await terminal.wait_for("Switched to small (8,192-token context)")
            server.states["small"] = "loading"
            server.script = lambda _: Answer(status=503, body={"error": {"message": "Loading model"}})
            terminal.type("and now" + ENTER)
            await terminal.wait_for("loading the model (2 s)", "Esc stops")
            terminal.type(ESCAPE)
            await terminal.wait_for("stopped", gone="Esc stops")
            terminal.type(CTRL_D)
            await terminal.ended()


async def test_a_model_that_cannot_be_loaded_is_not_switched_to(tmp_path: Path) -> None:
    async with Router() as server:
        server.broken = {"big"}
        async with at_terminal(Runner(tmp_path, server), "chat", "-m", "small") as terminal:
            terminal.type("/model big" + ENTER)
            await terminal.wait_for("could not load big")
            assert "Switched to" not in terminal.text()
            terminal.type("/status" + ENTER)
            await terminal.wait_for("model: small at")
            terminal.type(CTRL_D)
            await terminal.ended()


class Named(ScriptedServer):
    """llama.cpp, which names its model in each part of an answer."""

    def events(self, answer: Answer, request: Request) -> list[bytes]:
        named = f'data: {{"model": "{self.models[0]}", '.encode()
        return [event.replace(b"data: {", named, 1) for event in super().events(answer, request)]


async def test_a_model_that_was_replaced_on_the_server_during_a_chat_is_told_once(tmp_path: Path) -> None:
    told = "The server answers with other now, not small: choose it with `/model other`."
    async with Named(["One.", "Two.", "Three."], kind="llama.cpp", models=("/x/small.gguf",)) as server:
        async with at_terminal(Runner(tmp_path, server), "chat", "-m", "small") as terminal:
            terminal.type("hi" + ENTER)
            await terminal.wait_for("One.", gone="Esc stops")
            server.models = ("/x/other.gguf",)
            terminal.type("again" + ENTER)
            await terminal.wait_for("Two.", gone="Esc stops")
            terminal.type("more" + ENTER)
            await terminal.wait_for("Three.", gone="Esc stops")
            assert " ".join(terminal.text().split()).count(told) == 1
            terminal.type("/model other" + ENTER)
            await terminal.wait_for("Switched to other")
            terminal.type(CTRL_D)
            await terminal.ended()


class Starting(ScriptedServer):
    """llama.cpp that still loads its model."""

    loads = True

    def page(self, request: Request) -> tuple[int, Any]:
        loading = 503, {"error": {"message": "Loading model", "code": 503}}
        return loading if self.loads else super().page(request)


async def test_a_server_that_starts_is_shown_as_loading_and_esc_stops_the_wait(tmp_path: Path) -> None:
    async with Starting(["Hello."], kind="llama.cpp") as server:
        runner = Runner(tmp_path, server)
        doctor = asyncio.create_task(runner.run("doctor", OLLM_MODEL=""))
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("loading the model… ")
            terminal.type(ESCAPE)
            await terminal.ended()
        async with at_terminal(runner, "-p", "hi") as terminal:
            await terminal.wait_for("loading the model (")
            server.loads = False
            await terminal.wait_for("Hello.")
            await terminal.ended()

    assert "The server is loading the model; waiting for it." in (await doctor).err


@pytest.mark.parametrize("kind", [Swap, Studio, Ollama])
async def test_each_server_loads_and_unloads_in_its_own_way(tmp_path: Path, kind: type[Any]) -> None:
    told = {"OLLM_PROVIDER": "ollama"} if kind is Ollama else {}
    async with kind(["Hello."]) as server:
        runner = Runner(tmp_path, server)
        before = await list_states(runner, **told)
        loaded = await runner.run("models", "load", "big", **told)
        between = await list_states(runner, **told)
        unloaded = await runner.run("models", "unload", "big", **told)
        after = await list_states(runner, **told)

    assert (loaded.code, unloaded.code) == (0, 0), loaded.err + unloaded.err
    assert [states["big"] for states in (before, between, after)] == ["unloaded", "loaded", "unloaded"]
    assert before["small"] == "loaded"
    assert server.asked == kind.calls


@pytest.mark.parametrize("kind", [Swap, Studio])
async def test_the_window_is_that_of_the_loaded_model(tmp_path: Path, kind: type[Host]) -> None:
    async with kind(["Hello."]) as server:
        runner = Runner(tmp_path, server)
        done = await runner.run("-p", "hi", "-m", "small")
        window = json.loads((await runner.run("context", "show", "--json")).out)["window"]

    assert (done.code, window) == (0, 8192)


@pytest.mark.parametrize(("parameters", "sent"), [("num_ctx                        16384", 16384), ("", 8192)])
async def test_ollama_serves_the_window_of_the_modelfile_or_one_that_suffices(
    tmp_path: Path, parameters: str, sent: int
) -> None:
    async with Ollama(["Hello."]) as server:
        server.parameters = parameters
        runner = Runner(tmp_path, server)
        done = await runner.run("-p", "hi", "-m", "small", OLLM_PROVIDER="ollama")
        server.loads = [("small", 4096)]
        doctor = await runner.run("doctor", OLLM_PROVIDER="ollama", OLLM_MODEL="small")

    assert (done.code, server.chats[0]["options"]["num_ctx"]) == (0, sent)
    assert ("num_ctx of its Modelfile" if parameters else "reloads the model, loaded with 4096") in doctor.out


async def test_a_model_that_is_unloaded_for_another_one_is_loaded_again(tmp_path: Path) -> None:
    async with Router() as server:

        def answer(_: Request) -> Answer:
            if len(server.chats) > 1:
                return Answer(text="Hello.")
            server.states["small"] = "unloaded"
            return Answer(status=500, body={"error": {"message": "proxy error: Could not establish connection"}})

        server.script = answer
        runner = Runner(tmp_path, server)
        done = await runner.run("-p", "hi", "-m", "small")

    assert (done.code, done.out, len(server.chats)) == (0, "Hello.\n", 2), done.err


class Contested(Router):
    """Keeps one model in memory. Another program loads `small` while `big` is loading."""

    contested = True

    def page(self, request: Request) -> tuple[int, Any]:
        if request.path == "/models/load":
            self.states["small"] = "unloaded"
        found = super().page(request)
        if self.contested and self.states["big"] == "loaded":
            self.contested, self.states = False, {"small": "loaded", "big": "unloaded"}
            return super().page(request)
        return found


async def test_a_load_that_another_program_ended_is_tried_again(tmp_path: Path) -> None:
    async with Contested() as server:
        loaded = await Runner(tmp_path, server).run("models", "load", "big")

    assert (loaded.code, server.states) == (0, {"small": "unloaded", "big": "loaded"}), loaded.err
    assert server.asked == ["POST /models/load", "POST /models/load"]


async def test_a_server_behind_a_proxy_that_is_gone_for_a_moment_is_not_taken_for_a_small_one(tmp_path: Path) -> None:
    async with Router(["Hello."]) as server:
        runner = Runner(tmp_path, server)
        pages = server.page
        server.page = lambda request: (502, "Bad gateway")  # type: ignore[method-assign]
        gone = await runner.run("-p", "hi", "-m", "small")
        server.page = pages  # type: ignore[method-assign]
        back = await runner.run("-p", "hi", "-m", "small")

    assert (gone.code, back.code, len(server.chats)) == (4, 0, 1), gone.err
    assert "502" in gone.err


async def test_a_server_that_is_not_there_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    async with ScriptedServer() as gone:
        port = gone.port
    runner = Runner(tmp_path, ScriptedServer(port=port))
    turn = asyncio.create_task(runner.run("-p", "hi", OLLM_CONTEXT_WINDOW="8192", OLLM_BASE_URL=gone.base_url))
    await asyncio.sleep(0.6)
    async with ScriptedServer(["Hello."], port=port):
        done = await turn

    assert (done.code, done.out) == (0, "Hello.\n"), done.err


@pytest.mark.parametrize(
    ("given", "name"),
    [("/x/smollm2.gguf", "smollm2"), ("org/Name-GGUF:Q4_K_M", "Name:Q4_K_M"), ("qwen:latest", "qwen")],
)
async def test_a_model_has_one_name(tmp_path: Path, given: str, name: str) -> None:
    models = {name: {"temperature": 0.25}, given: {"seed": 7}, f"{name[:3]}*": {"topK": 3}, "other": {"seed": 1}}
    async with running(tmp_path, ["Hello.", "Hello."], kind="llama.cpp", model=given) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"models": models}))
        named = {"OLLM_MODEL": name}
        done = await runner.run("-p", "hi", **named)
        checked = await runner.run("config", "check", **named)
        doctor = await runner.run("doctor", **named)
        shown = await runner.run("context", "show", **named)
        card = await runner.run("models", "card", name, "--json")
        (tmp_path / "card.json").write_text(card.out)
        forgotten = await runner.run("models", "forget", name)
        imported = await runner.run("models", "import", str(tmp_path / "card.json"))

    sent = {key: runner.server.chats[0].get(key) for key in ("temperature", "seed", "top_k")}
    assert (done.code, sent) == (0, {"temperature": 0.25, "seed": 7, "top_k": 3})
    assert f"Sent with every request to {name}: " in shown.out
    assert json.loads(card.out)["model"] == name
    assert (forgotten.code, imported.code) == (0, 0), imported.err
    unmatched = f"models.other matches no model here: the servers have {name}."
    assert (checked.code, checked.out.strip()) == (0, unmatched)
    assert f"config    {unmatched}" in doctor.out
    assert re.search(rf"^model +{re.escape(name)}$", doctor.out, re.MULTILINE)


class Holding(ScriptedServer):
    """Holds the first 3,000 tokens of each prompt, and says so when it begins to read."""

    def events(self, answer: Answer, request: Request) -> list[bytes]:
        progress = {"processed": 3000, "cache": 3000, "total": 4500}
        return [_event({"choices": [], "prompt_progress": progress}), *super().events(answer, request)]


async def test_at_a_terminal_with_the_answer_in_a_file_the_reading_is_a_line(tmp_path: Path) -> None:
    async with Holding(["Hello."], kind="llama.cpp") as server:
        runner = Runner(tmp_path, server)
        ours, theirs = pty.openpty()
        line = (sys.executable, "-m", "ollm", "-p", "hi")
        streams = {"stdin": DEVNULL, "stdout": PIPE, "stderr": theirs}
        child = await asyncio.create_subprocess_exec(*line, **streams, cwd=runner.workspace, env=runner.environment())
        answer, _ = await child.communicate()
        told = os.read(ours, 10_000).decode()

    assert (answer, told.count("· reading 1,500 new tokens, speed not known yet")) == (b"Hello.\n", 1), told


async def test_the_price_counts_only_what_the_server_does_not_hold(tmp_path: Path) -> None:
    script = [*2 * [Answer(text="Never said.", stall_after=1)], "Hello."]
    async with Holding(script, kind="llama.cpp") as server:
        runner = Runner(tmp_path, server)
        async with at_terminal(runner, "-p", "hi") as terminal:
            await terminal.wait_for("reading 1,500 new tokens, speed not known yet (", "Ctrl-C stops")
            terminal.type(CTRL_C)
            await terminal.ended()
        async with at_terminal(runner, "chat") as terminal:
            terminal.type("hi" + ENTER)
            await terminal.wait_for("reading 1,500 new tokens, speed not known yet", "Esc stops")
            terminal.type(ESCAPE + CTRL_D)
            await terminal.ended()
        key = f"openai|{server.base_url}/v1|scripted"
        (runner.home / "model-facts.json").write_text(json.dumps({key: {"prefillPerSecond": 100}}))
        done = await runner.run("-p", "hi")

    assert done.err.count("· reads 1,500 new tokens, about 15 s\n") == 1
    assert done.err.count("new tokens") == 1


@pytest.mark.parametrize(("cached", "shown"), [(50, True), (None, False)])
async def test_only_reuse_that_the_server_reports_is_shown(tmp_path: Path, cached: int | None, shown: bool) -> None:
    script = [Answer(text="Hello.", prompt_tokens=100, cached_tokens=cached)] * 2
    async with running(tmp_path, script) as runner, at_terminal(runner, "chat") as terminal:
        for number in range(2):
            terminal.type(f"hi {number}" + ENTER)
            await terminal.wait_for(f"› hi {number}", "Hello.", gone="Esc stops")
        terminal.type("/context" + ENTER)
        await terminal.wait_for("window", "cache 50%" if shown else "code·ask")
        assert ("cache" in terminal.screen()) is shown
        terminal.type(CTRL_D)
        await terminal.ended()


async def test_doctor_in_a_chat_examines_the_server_of_the_chat(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner, ScriptedServer(models=("theirs",)) as other:
        chat = ("chat", "--base-url", f"{other.base_url}/v1", "-m", "theirs")
        async with at_terminal(runner, *chat) as terminal:
            terminal.type("/doctor" + ENTER)
            await terminal.wait_for(f"openai at {other.base_url}/v1", "theirs", "disk", "next")
            assert runner.server.base_url not in terminal.text()
            assert await terminal.wait_until(lambda: "theirs @" in terminal.screen() and "next" in terminal.screen())
            terminal.type(CTRL_D)
            await terminal.ended()


class Clocked(ScriptedServer):
    """A chat template that begins with the time."""

    def page(self, request: Request) -> tuple[int, Any]:
        status, page = super().page(request)
        return status, {
            "prompt": f"{len(self.requests)} {page['prompt']}"
        } if request.path == "/apply-template" else page


async def test_a_template_with_a_clock_gets_the_advice_that_mends_it(tmp_path: Path) -> None:
    async with Clocked(lambda _: Answer(text="ok", prompt_tokens=200, cached_tokens=0), kind="llama.cpp") as server:
        done = await Runner(tmp_path, server).run("doctor", "--model")

    assert "the chat template begins differently each time" in done.out
    assert "--cache-prompt" not in done.out
    assert "All set." not in done.out
