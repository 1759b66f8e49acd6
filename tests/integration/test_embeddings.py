"""Embeddings of a real llama.cpp server."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ollm.config.settings import SearchSettings
from ollm.services.message_search import search_messages
from ollm.services.message_search.embeddings import EmbeddingServer, SessionEmbedder
from ollm.store.session_index.session_texts import SessionTexts, compare_vectors
from tests.integration import packages
from tests.store.sessions.support import Home

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")
SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.embedding, params.n_ctx, params.hostnames, params.port = True, 2048, ["127.0.0.1"], 0
params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def embedding_server(smollm2: Path) -> Iterator[str]:
    command = [sys.executable, "-c", SERVER, str(smollm2)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        yield run.stdout.readline().strip()
        run.communicate()


def test_messages_are_embedded_by_llama_cpp_and_compared(tmp_path: Path, embedding_server: str) -> None:
    home = Home(tmp_path)
    session = home.recorded(*(f"Part {number} of the report is ready." for number in range(9)), "Our cat limps.")
    server = EmbeddingServer(SearchSettings(embedding_model="smollm2"), embedding_server)
    embedder = SessionEmbedder(server, home.index)

    asyncio.run(embedder.embed_session(session))
    near, far, wanted = asyncio.run(
        server.embed_texts(["Our cat limps a little.", "Part 3 of the report", "Our cat limps."])
    )

    assert compare_vectors(wanted, near) > compare_vectors(wanted, far)
    with closing(home.index()) as index:
        found = search_messages(SessionTexts(index, session), ["kitten"], 3, "smollm2", [wanted])
        assert index.connection.execute("SELECT count(*) FROM vectors").fetchone() == (10,)
    assert [match.text.text for match in found] == ["Our cat limps."]
