"""A chat recalls with the embeddings of a real llama.cpp server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import running
from tests.cli.test_skills import FACT, recall_in_chat
from tests.integration import packages

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")
SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.embedding, params.n_ctx, params.hostnames, params.port = True, 2048, ["127.0.0.1"], 0
params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def llama_embeddings(smollm2: Path) -> Iterator[str]:
    command = [sys.executable, "-c", SERVER, str(smollm2)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        yield run.stdout.readline().strip()
        run.communicate()


async def test_every_message_of_a_chat_is_embedded_searched_and_deleted(tmp_path: Path, llama_embeddings: str) -> None:
    async with running(tmp_path, []) as runner:
        assert FACT in await recall_in_chat(runner, llama_embeddings, "the cat limps")
