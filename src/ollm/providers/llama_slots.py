"""Slots of a llama.cpp server: their state, and the files that it writes and reads for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.providers.base import as_entries, as_mapping, as_text
from ollm.providers.exchange import PAGE_TIMEOUT_SECONDS, QUICK_TIMEOUT_SECONDS, Exchange
from ollm.providers.server_errors import as_int

FILE_TIMEOUT_SECONDS = 20.0
NO_TASK = -1


class Slot(Data, frozen=True):
    """`task` is the number of its last request since the server started; `tokens` is the number it holds."""

    id: int
    window: int
    busy: bool
    task: int
    tokens: int


class LlamaSlots:
    """The slots of one model. `locate` returns the address of a page about a model."""

    def __init__(self, exchange: Exchange, locate: Callable[[str, str], str], model: str) -> None:
        self.model = model
        self._exchange = exchange
        self._locate = locate
        self._next_slot: int | None = None

    def take_next_slot(self) -> JsonObject:
        """Return the field that sends the first request after a restore to its slot."""
        slot, self._next_slot = self._next_slot, None
        return {} if slot is None else {"id_slot": slot}

    async def list_slots(self) -> list[Slot]:
        """List the slots, or nothing if the server does not show them."""
        listed = await self._request("GET", "/slots")
        return list(map(_parse_slot, as_entries(listed)))

    async def identify_model(self) -> str:
        """Return a hash of what a saved slot depends on: weights, adapters, build of the server. "" if unknown."""
        page = as_mapping(await self._request("GET", "/props"))
        build, path = as_text(page.get("build_info")), as_text(page.get("model_path"))
        if not build or not path:
            return ""
        params = as_mapping(as_mapping(page.get("default_generation_settings")).get("params"))
        parts: list[Any] = [build, path, params.get("lora")]
        with suppress(OSError):  # Other weights may replace a file of the same name.
            found = Path(path).stat()
            parts += [found.st_size, found.st_mtime_ns]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]

    async def tokenize(self, rendered: str) -> list[int]:
        body = {"content": rendered, "add_special": True, "parse_special": True}
        tokens = as_mapping(await self._request("POST", "/tokenize", body, QUICK_TIMEOUT_SECONDS)).get("tokens")
        return tokens if isinstance(tokens, list) else []

    async def free_slot(self, token: int) -> int | None:
        """Let the server empty a slot of its choice, with a request of one token that begins no other prompt.

        Unlike a restore, a request first moves what the slot held to the server's cache in memory."""
        body = {"prompt": [token], "n_predict": 0, "cache_prompt": True}
        slot = as_mapping(await self._request("POST", "/completion", body, QUICK_TIMEOUT_SECONDS)).get("id_slot")
        return slot if isinstance(slot, int) else None

    async def save(self, slot: int, name: str) -> int:
        """Write what a slot holds to a file in the server's folder. Returns its bytes, or 0 on failure."""
        return await self._act(slot, "save", name, "n_written")

    async def restore(self, slot: int, name: str) -> int:
        """Fill a slot from a file for the next request. Returns its tokens; 0 on failure, which empties the slot."""
        restored = await self._act(slot, "restore", name, "n_restored")
        self._next_slot = slot if restored else None
        return restored

    async def takes_files(self) -> bool:
        """Return True if the server runs with `--slot-save-path`: then it refuses an impossible name as such."""
        page, body = self._locate("/slots/0?action=save", self.model), {"model": self.model, "filename": "../x"}
        answer = await self._exchange.send_request("POST", page, body, timeout=PAGE_TIMEOUT_SECONDS)
        return answer.status == 400

    async def _act(self, slot: int, action: str, name: str, count: str) -> int:
        page, body = f"/slots/{slot}?action={action}", {"filename": name}
        return as_int(as_mapping(await self._request("POST", page, body, FILE_TIMEOUT_SECONDS)).get(count))

    async def _request(
        self, method: str, page: str, body: JsonObject | None = None, timeout: float = PAGE_TIMEOUT_SECONDS
    ) -> Any:
        named, address = {**body, "model": self.model} if body else None, self._locate(page, self.model)
        return await self._exchange.try_request_json(method, address, named, timeout=timeout)


def _parse_slot(entry: dict[str, Any]) -> Slot:
    task = entry.get("id_task")
    return Slot(
        id=as_int(entry.get("id")),
        window=as_int(entry.get("n_ctx")),
        busy=entry.get("is_processing", entry.get("state")) not in (False, 0),
        task=task if isinstance(task, int) else NO_TASK,
        tokens=as_int(entry.get("n_prompt_tokens")),
    )
