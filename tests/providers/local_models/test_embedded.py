"""The embedded model server and its process."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from ollm.config.environment import Home
from ollm.config.settings import ProviderSettings, ProviderTimeouts
from ollm.domain.errors import ExitCode, ModelError, NoServerError
from ollm.providers.base import ChatRequest, FinishPiece, ProgressPiece
from ollm.providers.local_models.embedded import EmbeddedProvider, choose_thread_count, open_embedded
from ollm.providers.local_models.embedded_server import die_with_parent
from ollm.providers.local_models.model_files import ModelFile, NoModelError, find_model
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.registry import ProviderRegistry
from ollm.providers.window import choose_window
from tests.providers.conftest import ask, openai, said, text_of

SHORT = {"model": "smollm2", "window": 1024, "max_tokens": 4}

pytestmark = pytest.mark.slow


def short(text: str = "Say hello") -> ChatRequest:
    return ask(text, **SHORT)


def provider(home: Path) -> EmbeddedProvider:
    return open_embedded(ProviderSettings(), home / "models", dict(os.environ), "nothing answers")[0]


def pid(model: EmbeddedProvider) -> int:
    assert model._process is not None
    return model._process._process.pid


async def test_it_answers_with_no_secret_survives_its_own_death_and_ends_with_its_owner(model_home: Path) -> None:
    environment = dict(os.environ) | {"MY_API_TOKEN": "hush", "PYTHONPATH": "/somewhere"}
    model = open_embedded(ProviderSettings(), model_home / "models", environment, "nothing answers")[0]
    try:
        pieces = await said(model, short())
        assert pieces[0] == ProgressPiece(stage="loading")
        assert text_of(pieces)
        assert isinstance(pieces[-1], FinishPiece)
        assert pieces[-1].usage.prompt_tokens == await model.count_prompt(short())
        again = (await said(model, short()))[-1]
        assert isinstance(again, FinishPiece)
        assert again.usage.reused_tokens > again.usage.prompt_tokens // 2

        assert not {"MY_API_TOKEN", "PYTHONPATH"} & psutil.Process(pid(model)).environ().keys()
        assert model._process is not None
        with pytest.raises(ModelError, match="rejected the API key"):
            await said(openai(model._process.url), short())

        with pytest.raises(
            ModelError, match=r"embedded model stopped \(ended by SIGKILL\).*restarts with your next message"
        ):
            async with aclosing(model.stream(ask("Tell a long story", model="smollm2", window=1024))) as stream:
                async for piece in stream:
                    if not isinstance(piece, ProgressPiece):
                        os.kill(pid(model), signal.SIGKILL)

        assert text_of(await said(model, short()))
        last = pid(model)
    finally:
        await model.close()
    assert not psutil.pid_exists(last)


async def test_nothing_answering_means_the_embedded_model_and_the_reason_is_told(model_home: Path) -> None:
    registry = ProviderRegistry(ProviderSettings(), Home(root=model_home), dict(os.environ), places=())
    choice = await registry.choose()

    assert (choice.provider.name, choice.model) == ("embedded", "smollm2")
    assert choice.why == "no model server is running on its usual port, so ollm uses the embedded model"
    assert (await choose_window(choice.provider, choice.model, ProviderSettings()))[0] == 8192


async def test_without_the_file_the_command_to_type_is_told(tmp_path: Path) -> None:
    registry = ProviderRegistry(ProviderSettings(), Home(root=tmp_path), dict(os.environ), places=())

    with pytest.raises(NoModelError, match=r"`ollm models get smollm2`") as caught:
        await registry.choose()
    assert caught.value.exit_code is ExitCode.NO_SERVER
    with pytest.raises(NoServerError, match="no model file 'llama9'"):
        await ProviderRegistry(ProviderSettings(model="llama9"), Home(root=tmp_path), {}, places=()).choose()


def test_any_gguf_file_is_found_by_its_path(smollm2: Path, tmp_path: Path) -> None:
    found = find_model(tmp_path, str(smollm2))

    assert found is not None
    assert found.path == smollm2
    assert find_model(tmp_path, "../" + smollm2.name) is None


async def test_a_real_server_renders_counts_and_binds_the_answer_to_a_schema(llama_server: str) -> None:
    server: OpenAICompatible = openai(llama_server, ProviderTimeouts())
    request = short()
    rendered = await server.render(request)

    assert rendered is not None
    assert "Say hello" in rendered
    assert (await server.describe("smollm2")).window == 4096
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    request = replace(request, response_schema=schema, max_tokens=20)
    answer = await said(server, request)
    assert isinstance(answer[-1], FinishPiece)
    assert answer[-1].usage.prompt_tokens == await server.count_prompt(request)
    said_tightly = "".join(text_of(answer).split())  # the limit may cut an answer of many blanks before its end
    assert said_tightly.removesuffix("}") in ('{"n":1', '{"n":2')
    await server.close()


async def test_cancelling_frees_a_real_server_at_once(llama_server: str) -> None:
    server = openai(llama_server, ProviderTimeouts())
    async with aclosing(server.stream(ask("Write a very long story.", model="smollm2", window=4096))) as pieces:
        async for piece in pieces:
            if not isinstance(piece, ProgressPiece):
                break
    async with asyncio.timeout(10):
        assert text_of(await said(server, short()))
    await server.close()


async def test_cancelling_while_the_model_loads_ends_its_process_at_once(model_home: Path) -> None:
    before = set(psutil.Process().children())
    task = asyncio.create_task(said(provider(model_home), short()))
    while not (started := set(psutil.Process().children()) - before):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    task.cancel()
    async with asyncio.timeout(20):
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


@pytest.mark.parametrize(
    ("cores", "threads"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 2), (8, 4), (16, 8), (17, 8), (64, 8)]
)
def test_threads_by_cores(monkeypatch: pytest.MonkeyPatch, cores: int, threads: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))

    assert choose_thread_count() == threads


def test_the_server_does_not_outlive_a_parent_that_was_killed(model_home: Path) -> None:
    script = textwrap.dedent("""
        import asyncio, os, sys, time
        from pathlib import Path
        from tests.providers.local_models.test_embedded import provider, pid, said, short
        async def main():
            model = provider(Path(sys.argv[1]))
            await said(model, short())
            print(pid(model), flush=True)
            time.sleep(60)
        asyncio.run(main())
    """)
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", script, str(model_home)], cwd=root, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_while_the_model_loads_it_dies_with_its_parent_and_not_afterwards() -> None:
    import ctypes
    import os

    def read_death_signal() -> int:
        number = ctypes.c_int()
        ctypes.CDLL(None).prctl(2, ctypes.byref(number))  # PR_GET_PDEATHSIG
        return number.value

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with die_with_parent():
            during = read_death_signal()
        os.write(writing, f"{during} {read_death_signal()}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "9 0"
    os.waitpid(child, 0)
