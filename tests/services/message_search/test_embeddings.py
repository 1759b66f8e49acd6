"""Messages are embedded in idle time by a server of the user's, found by meaning, and deleted with the session."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ollm.config.settings import SearchSettings
from ollm.services.message_search import search_messages
from ollm.services.message_search.embeddings import EmbeddingFailed, EmbeddingServer, SessionEmbedder
from ollm.store.session_index.session_texts import SessionTexts
from tests.store.sessions.support import Home

SUBJECTS = (("cat", "kitten", "feline"), ("car", "vehicle", "van"), ("rain", "weather", "storm"))


class Handler(BaseHTTPRequestHandler):
    """Embeds a text by the subjects it speaks of."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, asked["model"], self.headers.get("authorization")))  # type: ignore[attr-defined]
        rows = [
            [1.0 if any(word in text.lower() for word in words) else -0.1 for words in SUBJECTS] + [0.3]
            for text in asked["input"]
        ]
        answer = (
            {"embeddings": rows}
            if self.path == "/api/embed"
            else {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)][::-1]}
        )
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Stay silent."""


@contextmanager
def serve() -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("kind", "path"), [("openai", "/v1/embeddings"), ("ollama", "/api/embed")])
def test_a_message_is_found_by_its_meaning_and_its_vector_goes_with_the_session(
    tmp_path: Path, kind: str, path: str
) -> None:
    home = Home(tmp_path)
    noise = [f"Part {number} of the report is ready now." for number in range(40)]
    session = home.recorded(*noise[:20], "Our cat Biscuit limps.", *noise[20:], "Well?")
    other = home.recorded(*noise, *noise)
    with serve() as (url, asked):
        settings = SearchSettings(embedding_model="m", type=kind)  # type: ignore[arg-type]
        embedder = SessionEmbedder(EmbeddingServer(settings, f"{url}/v1", "key"), home.index)
        asyncio.run(embedder.embed_session(session))
        sent = len(asked)
        asyncio.run(embedder.embed_session(session))
        assert len(asked) == sent, "each message once"
        vectors = asyncio.run(embedder.embed_queries(["feline illness", "vehicle tax"]))

    assert set(asked) == {(path, "m", "Bearer key")}
    with closing(home.index()) as index:
        texts = SessionTexts(index, session)
        assert search_messages(texts, ["feline illness"], 3) == []
        found = search_messages(texts, ["feline illness", "vehicle tax"], 3, "m", vectors)
        assert [match.text.text for match in found] == ["Our cat Biscuit limps."]
        assert search_messages(texts, ["feline illness"], 3, "another model", vectors) == []
        index.refresh_text()
        index.erase(session)
        assert index.connection.execute("SELECT count(*) FROM vectors").fetchone() == (0,)
        assert index.connection.execute("SELECT count(*) FROM sessions WHERE session_id = ?", (other,)).fetchone()[0]


def test_a_server_that_is_away_leaves_the_search_by_words(tmp_path: Path) -> None:
    with serve() as (url, _):
        pass
    embedder = SessionEmbedder(EmbeddingServer(SearchSettings(embedding_model="m"), url), Home(tmp_path).index)

    assert asyncio.run(embedder.embed_queries(["x"])) == []
    with pytest.raises(EmbeddingFailed):
        asyncio.run(embedder.server.embed_texts(["x"]))
