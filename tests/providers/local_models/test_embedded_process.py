"""The embedded server's process: started, waited for, ended, and read when it died."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from ollm.config.settings import ProviderSettings, ProviderTimeouts
from ollm.domain.errors import ExitCode, ModelError
from ollm.providers.local_models.embedded import EmbeddedProvider, choose_thread_count, open_embedded
from ollm.providers.local_models.model_files import ModelFile
from tests.providers.conftest import ask, openai, said
from tests.providers.local_models.test_embedded import pid, provider, short


async def test_cancelling_while_the_model_loads_ends_its_process_at_once(model_home: Path) -> None:
    before = set(psutil.Process().children())
    task = asyncio.create_task(said(provider(model_home), short()))
    while not (started := set(psutil.Process().children()) - before):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    task.cancel()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await task

    assert not any(process.is_running() for process in started)


async def test_a_file_that_is_no_model_is_refused_in_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    model = EmbeddedProvider(ModelFile(name="broken", path=broken, size=104), ProviderTimeouts(), dict(os.environ))

    with pytest.raises(ModelError, match=r"broken.gguf|process is gone") as caught:
        await said(model, ask(model="broken", window=512))
    assert caught.value.exit_code is ExitCode.MODEL_FAILED


async def test_the_server_gets_no_secret_and_wants_its_key(model_home: Path) -> None:
    environment = dict(os.environ) | {"MY_API_TOKEN": "hush", "PYTHONPATH": "/somewhere"}
    model = open_embedded(ProviderSettings(), model_home / "models", environment, "x")[0]
    try:
        await said(model, short())
        seen = psutil.Process(pid(model)).environ()
        assert "MY_API_TOKEN" not in seen
        assert "PYTHONPATH" not in seen
        assert model._process is not None
        with pytest.raises(ModelError, match="rejected the API key"):
            await said(openai(model._process.url), short())
    finally:
        await model.close()


@pytest.mark.parametrize(
    ("cores", "threads"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 2), (8, 4), (16, 8), (17, 8), (64, 8)]
)
def test_threads_by_cores(monkeypatch: pytest.MonkeyPatch, cores: int, threads: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))

    assert choose_thread_count() == threads
