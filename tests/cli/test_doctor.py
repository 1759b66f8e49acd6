"""`ollm doctor` and `ollm models`: servers, windows, the machine, and model files."""

import asyncio
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ollm.cli.machine import Gpu, inspect_hardware
from tests.cli.command import ollm
from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_C, at_terminal
from tests.servers.answers import Answer, Request
from tests.servers.files import FileServer, serving
from tests.servers.openai import ScriptedServer


class OddServer(ScriptedServer):
    """Answers some of its pages with something of its own."""

    def __init__(self, pages: dict[str, tuple[int, Any]], script: Any = (), **options: Any) -> None:
        super().__init__(script, **options)
        self.pages = pages

    def page(self, request: Request) -> tuple[int, Any]:
        return self.pages.get(request.path) or super().page(request)


def refusal(message: str) -> dict[str, Any]:
    return {"error": {"message": message}}


async def run(tmp_path: Path, server: OddServer, *arguments: str, **variables: Any) -> Any:
    async with server:
        runner = Runner(tmp_path, server)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"provider": dict(variables)}))
        environment = runner.environment()
        if variables.get("model") == "":
            environment.pop("OLLM_MODEL")
        runner.environment = lambda: environment  # type: ignore[method-assign]
        return await runner.run(*arguments)


@pytest.mark.parametrize(
    ("status", "said", "model"), [(401, "rejected the API key", "scripted"), (500, "failed (HTTP 500)", "")]
)
async def test_a_refused_list_of_models_is_no_empty_one(tmp_path: Path, status: int, said: str, model: str) -> None:
    server = OddServer({"/v1/models": (status, refusal("no"))})
    done = await run(tmp_path, server, "doctor", model=model)

    assert done.code == 4
    assert said in done.out


@pytest.mark.parametrize(
    ("window", "set_to", "said"),
    [
        (4096, "", "The context window is small (4,096): serve 8,192 tokens or more."),
        (8192, "32768", "`ollm config set provider.contextWindow 8192`."),
        (32768, "", "All set. To test what this model can do: `ollm models probe` (minutes)."),
    ],
)
async def test_the_next_step_is_the_one_that_helps_most(tmp_path: Path, window: int, set_to: str, said: str) -> None:
    server = OddServer({}, kind="llama.cpp", window=window)
    done = await run(tmp_path, server, "doctor", **({"contextWindow": int(set_to)} if set_to else {}))

    assert done.out.splitlines()[-1].endswith(said)


async def test_a_window_learnt_from_an_error_is_the_one_in_use(tmp_path: Path) -> None:
    long = "This model's maximum context length is 1200 tokens. However, you requested 1500 tokens."
    async with running(tmp_path, [Answer(status=400, body=refusal(long)), "Hello.", "Hello."], kind="vllm") as runner:
        await runner.run("-p", "hi")
        done = await runner.run("doctor")

    assert "1200 tokens: learnt" in done.out


async def test_a_server_without_a_list_is_used(tmp_path: Path) -> None:
    done = await run(tmp_path, OddServer({"/v1/models": (404, refusal("Not Found"))}), "doctor")

    assert done.code == 0
    assert "does not say its context window" in done.out
    assert "serve 8,192 tokens" not in done.out


@pytest.mark.parametrize(
    ("mode", "status", "said"),
    [
        (None, 501, "not saved: set provider.slotSavePath"),
        (0o755, 400, "run `chmod 700"),
        (0o700, 501, "start the server with --slot-save-path"),
        (0o700, 400, "saved in"),
        (0o700, None, "the server shows no slots"),
    ],
)
async def test_doctor_says_if_the_server_keeps_sessions(
    tmp_path: Path, mode: int | None, status: int | None, said: str
) -> None:
    server = OddServer({"/slots/0?action=save": (status or 400, refusal("no"))}, kind="llama.cpp")
    server.slot_busy = False if status else None
    folder = tmp_path / "slots"
    folder.mkdir()
    folder.chmod(mode or 0o700)
    done = await run(tmp_path, server, "doctor", **({"slotSavePath": str(folder)} if mode else {}))

    assert done.code == 0
    assert said in done.out


async def test_a_model_that_is_not_on_the_list_is_named_by_doctor(tmp_path: Path) -> None:
    done = await run(tmp_path, OddServer({}, kind="vllm", models=("scripted-7b",)), "doctor")

    assert done.code == 4
    assert "Did you mean 'scripted-7b'?" in done.out


async def test_a_refusal_in_any_words_is_held_against_the_list(tmp_path: Path) -> None:
    refused = Answer(status=400, body={"detail": "we do not serve this one"})
    done = await run(tmp_path, OddServer({}, [refused], models=("scripted-7b",)), "-p", "hi")

    assert done.code == 4
    assert "Did you mean 'scripted-7b'?" in done.err


@pytest.mark.parametrize(
    ("owner", "path", "page"),
    [
        ("openai", "/model/info", {"data": [{"model_name": "scripted", "model_info": {"max_input_tokens": 12288}}]}),
        ("scripted", "/info", {"model_id": "x", "max_total_tokens": 12288, "max_input_tokens": 12000}),
    ],
)
async def test_the_window_is_asked_for_where_proxies_say_it(tmp_path: Path, owner: str, path: str, page: Any) -> None:
    listed = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": owner}]}
    done = await run(tmp_path, OddServer({path: (200, page), "/v1/models": (200, listed)}), "doctor", "--json")

    assert json.loads(done.out)["server"]["window"] == 12288


async def test_a_turn_at_an_unknown_server_waits_for_its_list_alone(tmp_path: Path) -> None:
    server = OddServer({}, ["Hello."])
    done = await run(tmp_path, server, "-p", "hi")

    assert done.code == 0
    assert [f"{asked.method} {asked.path}" for asked in server.requests] == [
        "GET /v1/models",
        "POST /v1/chat/completions",
    ]


async def test_a_window_set_above_the_served_one_is_told_before_the_first_request_and_asked_about_once(
    tmp_path: Path,
) -> None:
    set_to = {"OLLM_CONTEXT_WINDOW": "32768", "OLLM_CALL_FORM": "native"}
    async with ScriptedServer(["Hello.", "Hello."], kind="llama.cpp", window=8192) as server:
        runner = Runner(tmp_path, server)
        ended = [await runner.run("-p", "hi", **set_to) for _ in range(2)]

    told = "The server serves 8,192 tokens of context, not 32,768: the window is 8,192 tokens."
    assert [(done.code, told in done.err) for done in ended] == [(0, True), (0, True)], ended[1].err
    assert [request.path for request in server.requests].count("/props") == 1


async def test_speed_through_a_prompt_cache_nobody_counts_is_no_speed(tmp_path: Path) -> None:
    class Silent(OddServer):
        def events(self, answer: Answer, request: Request) -> list[bytes]:
            return [event.replace(b'"prompt_tokens_details": {"cached_tokens": 0}', b'"prompt_tokens_details": null')
                    for event in super().events(answer, request)]  # fmt: skip

    script = [Answer(text="word " * 40, delay=0.4, pace=0.02, prompt_tokens=3000, completion_tokens=40)]
    await run(tmp_path, Silent({}, script), "-p", "hi")

    (facts,) = json.loads((tmp_path / "home" / "model-facts.json").read_text()).values()
    assert facts.get("prefillPerSecond") is None
    assert facts["decodePerSecond"] > 0


@pytest.mark.parametrize("scripted", ["ollama"], indirect=True)
def test_the_doctor_says_which_server_why_its_window_and_what_next(home: Path, scripted: str) -> None:
    run = ollm("doctor", "--measure", "--json", OLLM_BASE_URL=scripted, home=home)
    found = json.loads(run.stdout)

    assert run.returncode == 0
    assert found["ok"] is True
    assert found["server"]["type"] == "ollama"
    assert found["server"]["model"] == "qwen3:8b"
    assert "as configured" in found["server"]["why"]
    assert (found["server"]["window"], found["server"]["trained"]) == (8192, 32768)
    assert found["facts"]["callForm"] == "unknown"
    assert found["facts"]["prefillPerSecond"] > 0
    assert {check["name"] for check in found["machine"]} >= {"rg", "shfmt", "FTS5", "[daemon]", "[embedded]", "[mcp]"}
    assert found["log"] == str(home / "logs" / "ollm.log")
    assert "model-facts.json" in {part["name"] for part in found["disk"]}
    assert found["next"]

    text = ollm("doctor", OLLM_BASE_URL=scripted, home=home).stdout
    for word in ("server ", "model ", "window ", "calls ", "speed ", "here ", "log ", "disk ", "next "):
        assert f"\n{word}" in f"\n{text}"
    assert "tok/s, output: " in text
    assert "model-facts.json" in text
    assert text.count(scripted) == 1
    assert max(map(len, text.splitlines())) < 400


def test_the_doctor_reports_a_configured_server_that_does_not_answer(home: Path) -> None:
    run = ollm("doctor", OLLM_BASE_URL="http://127.0.0.1:9", home=home)

    assert run.returncode == 3
    assert "No model server answers at http://127.0.0.1:9" in run.stdout
    assert "next      Start it, or set provider.baseUrl." in run.stdout
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("scripted", ["ollama"], indirect=True)
def test_the_doctor_says_that_nothing_can_be_saved(scripted: str) -> None:
    done = ollm("doctor", OLLM_BASE_URL=scripted, home=Path("/proc/ollm"))

    assert done.returncode == 0
    assert "cannot be written: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next      Make /proc/ollm writable")


def test_the_doctor_reports_a_broken_configuration(home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("provider: {type: olama}\n", encoding="utf-8")
    run = ollm("doctor", home=home)

    assert run.returncode == 2
    assert "provider.type" in run.stdout


async def test_the_doctor_says_what_it_waits_for_on_a_terminal(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await held.wait()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with running(tmp_path, []) as runner, at_terminal(runner, "doctor", OLLM_BASE_URL=address) as terminal:
        await terminal.wait_for("asking the model server (1 s) · Ctrl-C stops")
        terminal.type(CTRL_C)
        assert await terminal.ended() == 130
    held.set()
    server.close()


GB = 2**30


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says")
def test_a_container_and_an_amd_card_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text(f"{2 * GB}\n")
    card = tmp_path / "sys/class/drm/card0/device"
    card.mkdir(parents=True)
    (card / "mem_info_vram_total").write_text(f"{16 * GB}\n")

    found = inspect_hardware(tmp_path)

    assert found.memory_bytes <= 2 * GB
    assert found.gpu == Gpu(name="AMD GPU", memory_bytes=16 * GB)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert inspect_hardware(tmp_path).memory_bytes > 0


@pytest.mark.skipif(sys.platform != "linux", reason="the command is looked for on Linux")
def test_doctor_names_the_gpu_and_the_commands_that_fit_it(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA GeForce RTX 4090, 24564'\necho 'broken'\n")
    (programs / "nvidia-smi").chmod(0o755)
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "OLLM_PROVIDER": "openai", "OLLM_BASE_URL": "http://127.0.0.1:9"}

    work = tmp_path / "work"
    work.mkdir()

    done = ollm("doctor", home=tmp_path / "home", cwd=work, **variables)
    document = json.loads(ollm("doctor", "--json", home=tmp_path / "home", cwd=work, **variables).stdout)

    assert "NVIDIA GeForce RTX 4090 with 24 GB" in done.stdout
    assert "ollama    ollama pull qwen2.5-coder:32b" in done.stdout
    assert "llama.cpp llama-server -hf Qwen/Qwen2.5-Coder-32B-Instruct-GGUF" in done.stdout
    assert document["hardware"]["gpu"]["name"] == "NVIDIA GeForce RTX 4090"
    # a program in the workspace is not run
    assert "no GPU found" in ollm("doctor", home=tmp_path / "home", cwd=tmp_path, **variables).stdout
    (programs / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert "no GPU found" in ollm("doctor", home=tmp_path / "home", cwd=work, **variables).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the command is looked for on Linux")
def test_a_driver_that_does_not_answer_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    hardware = inspect_hardware(timeout_seconds=0.05)

    assert (hardware.gpu, hardware.gpu_silent) == (None, True)
    assert "a GPU whose driver does not answer" in hardware.describe()


async def test_disk_use_is_told_by_part_without_following_links(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        (runner.home / "extra" / "deep").mkdir(parents=True)
        (runner.home / "extra" / "deep" / "a").write_bytes(bytes(300))
        (runner.home / "extra" / "loop").symlink_to(runner.home)
        disk = json.loads((await runner.run("doctor", "--json")).out)["disk"]

    assert {"name": "extra", "bytes": 300} in disk
    assert disk == sorted(disk, key=lambda part: -part["bytes"])


CONTENT = b"GGUF" + bytes(50_000)

HASH = hashlib.sha256(CONTENT).hexdigest()


def test_a_model_is_fetched_listed_and_removed(home: Path) -> None:
    with serving(FileServer(CONTENT)) as files:
        got = ollm("models", "get", "mine", "--url", files.url, "--sha256", HASH, home=home)
    assert (got.returncode, got.stdout) == (0, "")
    assert "downloading mine" in got.stderr
    assert "checksum verified" in got.stderr
    again = ollm("models", "get", "mine", "--if-missing", home=home)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")

    listed = ollm("models", "list", "--json", home=home)
    document = json.loads(listed.stdout)
    assert [file["name"] for file in document["files"]] == ["mine"]
    assert [model["installed"] for model in document["catalogue"]] == [False] * 3
    table = ollm("models", "list", home=home).stdout
    assert "mine" in table
    assert "smollm2" in table

    refused = ollm("models", "remove", "mine", home=home)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert ollm("models", "remove", "mine", "--yes", home=home).returncode == 0
    assert ollm("models", "remove", "mine", "--yes", home=home).returncode == 1


def test_the_place_a_model_comes_from_is_a_setting_and_the_hash_decides(home: Path) -> None:
    home.mkdir()
    with serving(FileServer(CONTENT)) as files:
        (home / "config.yaml").write_text(f"models: {{urls: {{smollm2: '{files.url}'}}}}\n", encoding="utf-8")
        got = ollm("models", "get", "smollm2", home=home)

    assert got.returncode == 1
    assert "wrong checksum" in got.stderr
    assert list((home / "models").iterdir()) == []


def test_an_unknown_model_and_one_without_a_place_are_told(home: Path) -> None:
    unknown, nowhere = (
        ollm("models", "get", "smolm2", home=home),
        ollm("models", "get", "mine", "--sha256", HASH, home=home),
    )

    assert (unknown.returncode, nowhere.returncode) == (1, 2)
    assert "Did you mean smollm2?" in unknown.stderr
    assert "models.urls" in nowhere.stderr


@pytest.mark.parametrize("scripted", ["ollama", "openai"], indirect=True)
def test_the_models_of_a_running_server_are_listed_beside(home: Path, scripted: str) -> None:
    document = json.loads(ollm("models", "list", "--json", OLLM_BASE_URL=scripted, home=home).stdout)

    assert document["servers"][0]["label"] == "configured"
    assert [model["name"] for model in document["servers"][0]["models"]] == ["qwen3:8b"]


def test_a_configured_server_that_is_away_does_not_hide_the_files(home: Path) -> None:
    (home / "models").mkdir(parents=True)
    (home / "models" / "mine.gguf").write_bytes(CONTENT)
    listed = ollm("models", "list", OLLM_BASE_URL="http://127.0.0.1:9", home=home)

    assert listed.returncode == 0
    assert "mine" in listed.stdout
    assert "No model server answers at http://127.0.0.1:9" in listed.stderr
