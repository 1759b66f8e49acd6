"""Embeds the messages of a session with a user-configured server, for semantic search."""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import msgspec

from ollm.config.roles import find_role
from ollm.config.settings import Settings
from ollm.domain.clock import monotonic
from ollm.providers.registry import OLLAMA, resolve_server_name
from ollm.providers.request_settings import expand_headers, find_model_settings
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.session_texts import SessionTexts, Vector
from ollm.system.http import HttpFailure, Timeouts, open_client

BATCH_MESSAGES = 16
MAX_EMBEDDED_CHARS = 2_000  # Longer messages are cut.
QUIET_SECONDS = 2.0  # The server may be needed again soon after an answer.
_TIMEOUTS = Timeouts(connect=5, first=120, stall=60)

log = logging.getLogger(__name__)


class EmbeddingFailed(Exception):  # noqa: N818 - search goes on by words alone
    """The server returned no usable embeddings."""


class EmbeddingServer:
    """Requests embeddings of texts from the server at `base_url`."""

    def __init__(self, model: str, base_url: str, headers: Mapping[str, str]) -> None:
        self.model = model
        self.url = base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        self._headers = {"content-type": "application/json", **headers}
        self.seconds = 0.0  # All requests took so long.

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts, each cut to a maximum length. Raises EmbeddingFailed."""
        begun = monotonic()
        body = msgspec.json.encode({"model": self.model, "input": [text[:MAX_EMBEDDED_CHARS] for text in texts]})
        try:
            client = open_client(self.url, headers=self._headers, timeouts=_TIMEOUTS)
            try:
                answer = await client.fetch("POST", "/v1/embeddings", body)
            finally:
                await client.close()
            if answer.status != 200:
                raise EmbeddingFailed(f"status {answer.status}")
            rows = sorted(msgspec.json.decode(answer.body)["data"], key=lambda row: row["index"])
            vectors = [array("f", row["embedding"]) for row in rows]
        except (HttpFailure, OSError, ValueError, TypeError, LookupError, msgspec.MsgspecError) as error:
            raise EmbeddingFailed(str(error)) from error
        finally:
            self.seconds += monotonic() - begun
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise EmbeddingFailed(f"{len(vectors)} embeddings for {len(texts)} texts")
        return vectors


def find_embedding_server(settings: Settings, environment: Mapping[str, str]) -> EmbeddingServer | None:
    """Find the server of `roles.embedding`, or return None if no model or address is known."""
    role = find_role(settings, "embedding")
    url = role and (resolve_server_name(role).base_url or (OLLAMA.url if role.type == "ollama" else ""))
    if not role or not role.model or not url:
        return None
    key = role.api_key or environment.get(role.api_key_env or "", "")
    chosen = find_model_settings(settings.models, role.model)
    headers = expand_headers(chosen.headers, environment)[0] if chosen else {}
    headers |= {"authorization": f"Bearer {key}"} if key else {}
    return EmbeddingServer(role.model, url, headers)


class SessionEmbedder:
    """Embeds new messages of a session while it is idle, and queries on demand."""

    def __init__(self, server: EmbeddingServer, open_index: Callable[[], SessionIndex]) -> None:
        self.server = server
        self._open_index = open_index
        self.turn_end = asyncio.Lock()  # Work after a turn holds it, so that a server changes its model seldom.
        self._task: asyncio.Task[None] | None = None

    def start(self, session_id: str) -> None:
        self._task = asyncio.create_task(self._embed_quietly(session_id), name="embeddings")

    async def stop(self) -> None:
        """Stop embedding. Finished embeddings are kept."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def embed_queries(self, queries: Sequence[str]) -> list[Vector]:
        """Embed queries. Returns [] if the server fails."""
        try:
            return await self.server.embed_texts(queries)
        except EmbeddingFailed as error:
            log.warning("No embeddings: %s", error, extra={"operation": "recall"})
            return []

    async def _embed_quietly(self, session_id: str) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        try:
            async with self.turn_end:
                await self.embed_session(session_id)
        except EmbeddingFailed as error:
            log.warning("No embeddings: %s", error, extra={"operation": "embed"})

    async def embed_session(self, session_id: str) -> None:
        """Embed all messages that have no embedding yet. Raises EmbeddingFailed."""
        while waiting := await asyncio.to_thread(self._list_waiting, session_id):
            vectors = await self.server.embed_texts([text for _, text in waiting])
            rows = [row for row, _ in waiting]
            await asyncio.to_thread(self._save, session_id, dict(zip(rows, vectors, strict=True)))

    def _list_waiting(self, session_id: str) -> list[tuple[int, str]]:
        with closing(self._open_index()) as index:
            texts = SessionTexts(index, session_id)
            texts.refresh()
            return texts.list_without_vectors(self.server.model, BATCH_MESSAGES) if texts.session else []

    def _save(self, session_id: str, vectors: dict[int, Vector]) -> None:
        with closing(self._open_index()) as index:
            SessionTexts(index, session_id).save_vectors(self.server.model, vectors)
