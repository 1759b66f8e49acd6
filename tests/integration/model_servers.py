"""Real model servers, fetched, started and ended here: vLLM and transformers on the same weights, litellm as a proxy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ollm.domain.errors import OllmError
from ollm.providers.local_models.model_files import find_in_catalogue
from ollm.providers.local_models.model_store import ModelStore
from tests.integration import dequantise, packages

START_SECONDS = 600
WEIGHTS_NAME = "qwen-coder"
FETCHED_BEFORE = Path.home() / ".cache" / "ollm-real-model" / "qwen0.5b.gguf"


@cache
def make_weights(python: Path) -> Path:
    """The folder of Qwen2.5-Coder 0.5B as vLLM and transformers read it, made once from the GGUF file."""
    folder = packages.CACHE / "models" / WEIGHTS_NAME
    if not (folder / "model.safetensors").exists():
        packages.run_installer([str(python), dequantise.__file__, str(find_gguf()), str(folder)], packages.CACHE)
    return folder


def find_gguf() -> Path:
    if FETCHED_BEFORE.exists():
        return FETCHED_BEFORE
    model = find_in_catalogue("qwen2.5-coder-0.5b")
    assert model is not None
    try:
        return ModelStore(packages.CACHE / "models", {}).get(model, lambda done, total: None).path
    except OllmError as error:
        raise packages.UnavailableError(str(error)) from error


@contextmanager
def start_vllm() -> Iterator[str]:
    """vLLM as it is started by default: without a parser of tool calls."""
    place = packages.install_vllm()
    weights = make_weights(place / "bin" / "python")
    options = ["--served-model-name", WEIGHTS_NAME, "--max-model-len", "8192", "--enforce-eager"]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    command = [str(place / "bin" / "vllm"), "serve", str(weights), *options]
    with start_server(command, environment, "/health") as url:
        yield url


@contextmanager
def start_transformers(home: Path) -> Iterator[str]:
    """`transformers serve`; the cache it lists is empty, so that it knows one model alone."""
    place = packages.install_vllm()
    weights = make_weights(place / "bin" / "python")
    (home / "hub").mkdir(parents=True, exist_ok=True)
    command = [str(place / "bin" / "transformers"), "serve", weights.name]
    environment = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    with start_server(command, environment, "/health", folder=weights.parent) as url:
        yield url


@contextmanager
def start_litellm(behind: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A litellm proxy in front of another server: its address and version."""
    program, found = packages.install_pypi("litellm[proxy]", "litellm")
    params = {"model": "openai/smollm2", "api_base": behind, "api_key": "none"}
    entry = {"model_name": "small-model", "litellm_params": params, "model_info": {"max_input_tokens": 4096}}
    config = folder / "config.yaml"
    config.write_text(json.dumps({"model_list": [entry]}), encoding="utf-8")
    environment = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # on loopback, for the length of a test
    }
    with start_server([str(program), "--config", str(config)], environment, "/health/liveliness") as url:
        yield url, found


@contextmanager
def start_server(
    command: Sequence[str], environment: Mapping[str, str], page: str, folder: Path | None = None
) -> Iterator[str]:
    """The address of a server that is ready, on a free port; it ends with everything it started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = packages.CACHE / f"{Path(command[0]).name}.log"
    line = ["nice", "-n", "15", *command, "--host", "127.0.0.1", "--port", str(port)]
    # vLLM compiles with what stands beside its Python.
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    with (
        log.open("wb") as told,
        subprocess.Popen(
            line,
            cwd=folder,
            env={**os.environ, "PATH": path, **environment},
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            process_group=0,
        ) as run,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for_page(f"{url}{page}", run, log)
            yield url
        finally:
            end_group(run)


def wait_for_page(url: str, run: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and run.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(1)
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    ended = f"ended with {run.returncode}" if run.poll() is not None else f"did not answer within {START_SECONDS} s"
    raise packages.UnavailableError(f"{Path(log).stem} {ended}; {log} ends with {last}")


def end_group(run: subprocess.Popen[bytes]) -> None:
    from contextlib import suppress
    from signal import SIGKILL, SIGTERM

    for number in (SIGTERM, SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(run.pid, number)
        with suppress(subprocess.TimeoutExpired):
            run.wait(timeout=20)
