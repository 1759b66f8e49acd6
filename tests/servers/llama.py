"""A real llama.cpp server on a real, tiny model, for the tests that no script can stand in for.

The model is kept in `~/.cache/ollm-test-models`, fetched once. Fixtures: `smollm2` (the file), `llama_server` (its URL,
one process for the whole run), `model_home` (a fresh OLLM_HOME that holds the model, for the embedded one).
As a process: `python -m tests.servers.llama [--window N]` prints its URL and ends with its stdin.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ollm.providers.local_models.embedded_server import EmbeddedOptions, end_with_parent, serve
from ollm.providers.local_models.model_files import DEFAULT_MODEL
from ollm.providers.local_models.model_store import ModelStore

CACHE = Path.home() / ".cache" / "ollm-test-models"
WINDOW = 4096


def model_file() -> Path:
    return ModelStore(CACHE, {}).get(DEFAULT_MODEL, lambda done, total: None).path


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return model_file()


@pytest.fixture(scope="session")
def llama_server(smollm2: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.llama", "--window", str(WINDOW)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None
        yield run.stdout.readline().decode().strip()
        run.communicate()


@pytest.fixture
def model_home(tmp_path: Path, smollm2: Path) -> Path:
    home = tmp_path / "ollm-home"
    (home / "models").mkdir(parents=True, mode=0o700)
    (home / "models" / smollm2.name).symlink_to(smollm2)
    return home


def make_parameters(kind: Any, slots: str) -> Any:
    parameters = kind()
    parameters.slot_save_path = f"{slots}/" if slots else ""
    return parameters


def main() -> None:
    import threading

    import xllamacpp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--slots", default="", help="The folder for saved slots.")
    options = parser.parse_args()
    threading.Thread(target=end_with_parent, daemon=True).start()
    xllamacpp.CommonParams = partial(make_parameters, xllamacpp.CommonParams, options.slots)
    server = serve(
        EmbeddedOptions(
            path=str(model_file()), name=DEFAULT_MODEL.name, window=options.window, threads=1, key="", tiny=True
        )
    )
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
