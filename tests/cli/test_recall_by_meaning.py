"""Messages are embedded while a chat waits, found by their meaning, and deleted with their session."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.servers.answers import Answer
from tests.store.sessions.support import Home

SUBJECTS = (("cat", "kitten", "feline"), ("car", "vehicle", "van"), ("rain", "weather", "storm"))
FACT = "Our cat Biscuit limps."
TALK = [f"Part {number} of the report is ready now." for number in range(20)]


class Handler(BaseHTTPRequestHandler):
    """Embeds a text by the subjects it speaks of."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, asked["model"], self.headers.get("authorization")))  # type: ignore[attr-defined]
        rows = [
            [1.0 if any(word in text.lower() for word in words) else -0.1 for words in SUBJECTS] + [0.3]
            for text in asked["input"]
        ]
        ordered = [{"index": place, "embedding": row} for place, row in enumerate(rows)][::-1]
        body = json.dumps({"embeddings": rows} if self.path == "/api/embed" else {"data": ordered}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Stay silent."""


@contextmanager
def embedding_server() -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
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


def count_vectors(runner: Runner) -> int:
    with suppress(sqlite3.Error), closing(sqlite3.connect(runner.home / "index.db")) as connection:
        count: int = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
        return count
    return 0


async def recall_in_chat(runner: Runner, url: str, query: str, kind: str = "openai") -> str:
    """Resume a session, let its messages be embedded, and ask; the text of the last request to the model. The session
    is deleted at the end, and its vectors with it."""
    runner.home.mkdir(exist_ok=True)
    search = {"embeddingModel": "m", "type": kind, "baseUrl": f"{url}/v1", "apiKeyEnv": "EMBEDDING_KEY"}
    (runner.home / "config.yaml").write_text(json.dumps({"search": search}))
    session = await asyncio.to_thread(Home(runner.home).recorded, *TALK[:9], FACT, *TALK[9:])
    runner.server.script = ["Ready.", Answer(calls=[("recall", {"queries": [query]})]), "It limps."]  # type: ignore[attr-defined]
    async with at_terminal(
        runner, "chat", "--resume", session, "--yes", OLLM_PLAIN="1", EMBEDDING_KEY="key"
    ) as terminal:
        await terminal.wait_for("\n>")
        terminal.type("Go on.\n")
        await terminal.wait_for("Ready.")
        async with asyncio.timeout(120):
            while count_vectors(runner) < len(TALK) + 3:
                await asyncio.sleep(0.1)
        terminal.type("What is wrong with the pet?\n")
        await terminal.wait_for("It limps.")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
    said = json.dumps(runner.server.chats[-1]["messages"][-1])
    assert (await runner.run("sessions", "delete", session, "--yes")).code == 0
    assert count_vectors(runner) == 0
    return said


@pytest.mark.parametrize(("kind", "path"), [("openai", "/v1/embeddings"), ("ollama", "/api/embed")])
async def test_a_message_is_found_by_its_meaning_and_its_vector_goes_with_the_session(
    tmp_path: Path, kind: str, path: str
) -> None:
    with embedding_server() as (url, asked):
        async with running(tmp_path, []) as runner:
            said = await recall_in_chat(runner, url, "feline illness", kind)

    assert FACT in said
    assert set(asked) == {(path, "m", "Bearer key")}


async def test_a_workspace_cannot_set_the_server(tmp_path: Path) -> None:
    with embedding_server() as (url, asked):
        async with running(
            tmp_path, ["Ready.", Answer(calls=[("recall", {"queries": ["feline"]})]), "Done."]
        ) as runner:
            settings = runner.workspace / ".ollm" / "config.yaml"
            settings.parent.mkdir()
            settings.write_text(json.dumps({"search": {"embeddingModel": "m", "baseUrl": url}}))
            assert (await runner.run("trust")).code == 0
            await runner.run("-p", "Hello.", "--yes")
            done = await runner.run("-p", "Well?", "--continue", "--yes")

    assert "search.embeddingModel: can only be set in your own config file" in done.err
    assert asked == []


async def test_a_server_that_is_away_leaves_the_search_by_words(tmp_path: Path) -> None:
    with embedding_server() as (url, _):
        pass
    async with running(tmp_path, ["Ready.", Answer(calls=[("recall", {"queries": ["limps"]})]), "Done."]) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"search": {"embeddingModel": "m", "baseUrl": url}}))
        await runner.run("-p", FACT, "--yes")
        done = await runner.run("-p", "Well?", "--continue", "--yes")

    assert done.code == 0
    assert FACT in json.dumps(runner.server.chats[-1]["messages"][-1])
