"""The model server's memory of a session: what is saved of it, and what is sent back to a llama.cpp server."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import zlib
from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import create_process, open_conversation
from ollm.domain.errors import TurnFailedError
from ollm.domain.events import Notice
from ollm.runtime.base import ConversationOptions
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.observers import server_memory
from ollm.store.saved_slots import HEADER, MAGIC
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer
from tests.sizes import SOAK

NOTES = " ".join(f"note{number}" for number in range(2000))


class SlotServer(ScriptedServer):
    """llama.cpp with one slot and `--slot-save-path`. It checks no file, and a refused restore empties the slot."""

    chat_paths = ("/v1/chat/completions",)

    def __init__(self, folder: Path) -> None:
        super().__init__(lambda request: Answer(text="ok"), kind="llama.cpp", window=65536)
        self.folder = folder
        self.build, self.refuses, self.greeting = "b1", False, ""
        self.slot_window = self.window
        self.read: list[int] = []  # tokens of each request that were not in the slot
        self.away = 0  # how many requests for pages find it loading
        self.fails = False
        self.restart()

    def restart(self) -> None:
        self.held: list[int] = []
        self.task = -1

    def tokenize(self, text: str) -> list[int]:
        return [zlib.crc32(word.encode()) >> 1 for word in text.split()]

    def render(self, messages: list[dict[str, Any]]) -> str:
        return self.greeting + "".join(f" <{each['role']}> {each['content']}" for each in messages)

    def answer(self, request: Request) -> Answer:
        if self.away or self.fails:
            return Answer(status=500 if self.fails else 503, body={"error": {"message": "Loading model", "code": 503}})
        tokens = self.tokenize(self.render(request.body["messages"]))
        same = next((at for at, pair in enumerate(zip(self.held, tokens, strict=False)) if pair[0] != pair[1]), None)
        self.read.append(len(tokens) - (min(len(self.held), len(tokens)) if same is None else same))
        self.held, self.task = tokens, self.task + 1
        return super().answer(request)

    def page(self, request: Request) -> tuple[int, Any]:
        path, _, action = request.path.partition("?action=")
        self.away = max(0, self.away - 1)
        if self.away or self.fails:
            return 500 if self.fails else 503, {"error": {"message": "Loading model", "code": 503}}
        match path:
            case "/props":
                known = {"build_info": self.build, "model_path": "/models/m.gguf"}
                return 200, {**known, "default_generation_settings": {"n_ctx": self.window}}
            case "/apply-template":
                return 200, {"prompt": self.render(request.body["messages"])}
            case "/tokenize":
                return 200, {"tokens": self.tokenize(request.body["content"])}
            case "/completion":
                self.held, self.task = request.body["prompt"], self.task + 1
                return 200, {"id_slot": 0, "content": ""}
            case "/slots":
                slot = {"id": 0, "n_ctx": self.slot_window, "is_processing": False, "n_prompt_tokens": len(self.held)}
                return 200, [slot | ({"id_task": self.task} if self.task >= 0 else {})]
            case "/slots/0":
                return self.act(action, request.body["filename"])
        return super().page(request)

    def act(self, action: str, name: str) -> tuple[int, Any]:
        file = self.folder / name
        if "/" in name:
            return 400, {"error": {"message": "Invalid filename"}}
        if action == "save":
            data = HEADER.pack(MAGIC, 2, len(self.held)) + array("i", self.held).tobytes() + b"kv" * 9000
            return 200, {"n_saved": len(self.held), "n_written": file.write_bytes(data)}
        self.held = []
        if self.refuses:
            return 400, {"error": {"message": "Unable to restore slot"}}
        data = file.read_bytes()
        tokens = array("i")
        tokens.frombytes(data[HEADER.size :][: HEADER.unpack_from(data)[2] * 4])
        self.held = list(tokens)
        return 200, {"n_restored": len(self.held)}

    @property
    def restores(self) -> list[str]:
        return [request.path for request in self.requests if "action=restore" in request.path]


class Place:
    """A home and a workspace, and the server's folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.slots = root, root / "slots"
        self.slots.mkdir(mode=0o700)
        (root / "work").mkdir()
        self.told: list[str] = []

    def options(self, **more: Any) -> ConversationOptions:
        return ConversationOptions(workspace=self.root / "work", home=self.root / "home", **more)

    def configure(self, url: str, **more: Any) -> None:
        provider = {"type": "openai", "baseUrl": url, "model": "m", "slotSavePath": str(self.slots)} | more
        (self.root / "home").mkdir(exist_ok=True)
        settings = {"provider": provider, "models": {"default": {"extra": {"max_tokens": 2}}}}
        (self.root / "home" / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")

    @asynccontextmanager
    async def chat(self, session: str | None = None, **more: Any) -> AsyncIterator[LocalConversation]:
        async with open_conversation(self.options(session=session, **more)) as conversation:
            conversation.parts.stream.add_listener(self.listen)
            yield conversation

    def listen(self, event: object) -> None:
        if isinstance(event, Notice):
            self.told.append(event.text)

    async def talk(self, text: str, session: str | None = None, **more: Any) -> str:
        async with self.chat(session, **more) as conversation:
            await conversation.ask(text)
            return conversation.session_id or ""

    @property
    def files(self) -> list[Path]:
        return sorted(self.slots.iterdir())


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[SlotServer]:
    async with SlotServer(tmp_path / "slots") as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, server: SlotServer) -> Place:
    place = Place(tmp_path)
    place.configure(server.base_url)
    return place


async def test_a_session_is_restored_to_a_restarted_server_and_hardly_read_again(
    place: Place, server: SlotServer
) -> None:
    session = await place.talk(NOTES)
    paths = [request.path for request in server.requests]
    assert not [path for path in paths[: paths.index("/v1/chat/completions")] if "slot" in path]
    (file,) = place.files
    assert session in file.name
    assert file.stat().st_mode & 0o777 == 0o600

    server.restart()
    await place.talk("And now?", session)

    assert server.read[0] > 2000
    assert server.read[1] < server.read[0] // 10
    assert server.chats[-1]["id_slot"] == 0
    assert "Restored" in place.told[-1]


@pytest.mark.parametrize("used", [0, 100_000])
async def test_a_restore_that_did_nothing_is_noticed_by_the_count_of_the_server(
    place: Place, server: SlotServer, used: int
) -> None:
    session = await place.talk(NOTES)
    server.restart()
    server.script = lambda request: Answer(text="ok", prompt_tokens=2100, cached_tokens=used)
    async with place.chat(session) as conversation:
        await conversation.ask("And now?")
        server.restart()
        await conversation.ask("And then?")

    told = [text for text in place.told if "it read the session again" in text]
    assert [text.rpartition("reused ")[2][:2] for text in told] == ([] if used else ["0:"])
    assert len(server.restores) == (2 if used else 1), "a restore without effect is not tried again"
    assert bool(place.files) == bool(used), "and nothing more is saved"


async def test_a_server_that_holds_the_session_is_left_alone(place: Place, server: SlotServer) -> None:
    session = await place.talk(NOTES)
    await place.talk("And now?", session)
    await place.talk("And then?", session, one_shot=True)
    await place.talk("At last?", session)

    assert server.restores == []
    assert max(server.read[1:]) < server.read[0] // 10
    assert "id_slot" not in server.chats[-1]


@pytest.mark.parametrize("away", [0, 5])
async def test_a_server_restarted_during_a_chat_gets_the_session_back(
    place: Place, server: SlotServer, away: int
) -> None:
    session = await place.talk(NOTES)
    async with place.chat(session) as conversation:
        await conversation.ask("And now?")
        server.restart()
        server.away = away
        await conversation.ask("And then?")

    assert len(server.restores) == 1
    assert server.read[-1] < server.read[0] // 10


async def test_a_session_that_could_not_be_restored_is_restored_with_the_next_message(
    place: Place, server: SlotServer
) -> None:
    session = await place.talk(NOTES)
    server.restart()
    async with place.chat(session) as conversation:
        server.fails = True
        with pytest.raises(TurnFailedError):
            await conversation.ask("And now?")
        server.fails = False
        await conversation.ask("And now?")

    assert len(server.restores) == 1
    assert server.read[-1] < server.read[0] // 10


class SlotRouter(SlotServer):
    """The same behind llama.cpp's router, which can unload the model."""

    loaded = True

    def _model(self, name: str) -> dict[str, Any]:
        return {**super()._model(name), "id": "m", "status": {"value": "loaded" if self.loaded else "unloaded"}}

    def page(self, request: Request) -> tuple[int, Any]:
        path = request.path.partition("?")[0]
        if path == "/models/load":
            self.loaded = True
            self.restart()
            return 200, {"success": True}
        if path == "/models":
            return 200, {"data": [self._model("m")]}
        if path != "/v1/models" and not self.loaded:
            return 400, {"error": {"message": "model is not loaded"}}
        request.path = request.path.replace("&model=m", "").replace("?model=m", "").replace("&autoload=false", "")
        return super().page(request)


async def test_a_model_that_was_unloaded_during_a_chat_gets_the_session_back(tmp_path: Path) -> None:
    async with SlotRouter(tmp_path / "slots") as server:
        place = Place(tmp_path)
        place.configure(server.base_url)
        session = await place.talk(NOTES)
        async with place.chat(session) as conversation:
            await conversation.ask("And now?")
            server.loaded = False
            await conversation.ask("And then?")

    assert server.loaded
    assert len(server.restores) == 1
    assert server.read[-1] < server.read[0] // 10


def damage(place: Place, server: SlotServer) -> None:
    (file,) = place.files
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)


def change_build(place: Place, server: SlotServer) -> None:
    server.build = "b2"


def shrink_window(place: Place, server: SlotServer) -> None:
    server.slot_window = 2000


def change_template(place: Place, server: SlotServer) -> None:
    server.greeting = "Another beginning"


def remove_file(place: Place, server: SlotServer) -> None:
    place.files[0].unlink()


@pytest.mark.parametrize("change", [damage, change_build, shrink_window, change_template, remove_file])
async def test_a_file_that_does_not_fit_is_never_sent(
    place: Place, server: SlotServer, change: Callable[[Place, SlotServer], None]
) -> None:
    session = await place.talk(NOTES)
    server.restart()
    change(place, server)
    await place.talk("And now?", session)

    assert server.restores == []
    assert len(server.read) == 2


async def test_a_refused_file_is_dropped_and_the_session_goes_on(place: Place, server: SlotServer) -> None:
    session = await place.talk(NOTES)
    server.restart()
    server.refuses = True
    await place.talk("And now?", session, one_shot=True)

    assert len(server.restores) == 1
    assert server.read[1] > server.read[0]
    assert place.files == []


async def test_what_another_session_left_in_the_slot_is_not_kept(place: Place, server: SlotServer) -> None:
    async with place.chat() as conversation:
        await conversation.ask(NOTES)
        server.held = server.held[:1000] + [7] * 3000

    assert place.files == []


async def test_a_folder_that_others_can_read_is_not_used(place: Place, server: SlotServer) -> None:
    place.slots.chmod(0o755)
    await place.talk(NOTES)

    assert place.files == []


async def test_a_wrong_folder_is_reported(place: Place, server: SlotServer, tmp_path: Path) -> None:
    server.folder = tmp_path
    await place.talk(NOTES)

    assert "--slot-save-path" in place.told[-1]
    assert not (tmp_path / "home" / "slots").exists()


async def test_a_session_that_pauses_is_saved(
    place: Place, server: SlotServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_memory, "IDLE_SECONDS", 0)
    async with place.chat() as conversation:
        await conversation.ask(NOTES)
        async with asyncio.timeout(30):
            while not [path for path in place.files if path.suffix == ".slot"]:
                await asyncio.sleep(0.01)


async def test_the_session_is_saved_before_the_model_changes_and_back_it_costs_little(
    place: Place, server: SlotServer
) -> None:
    forms, about = {"m": "native", "other": "blocks"}, {"prefillPerSecond": 10}
    facts = {f"openai|{server.base_url}/v1|{model}": {"callForm": form, **about} for model, form in forms.items()}
    (place.root / "home" / "model-facts.json").write_text(json.dumps(facts))
    server.script = lambda request: Answer(text="ok", prompt_tokens=4000, cached_tokens=0)
    async with place.chat() as conversation:
        await conversation.ask(NOTES)
        await conversation.command("model", "other")
        server.build = "b2"  # it has other weights
        switched = (await conversation.command("model", "other")).text
        assert len(place.files) == 1
        server.build = "b1"
        back = (await conversation.command("model", "m")).text
        await conversation.command("model", "other")
        await conversation.ask("And now?")
        told = (await conversation.command("context")).text

    assert re.search(r"Your next message reads \d+,\d{3} tokens, about \d+ min", switched), switched
    assert "0% reused; the model changed." in told
    assert "reads" not in back, back


async def test_the_oldest_files_are_dropped_above_the_limit(place: Place, server: SlotServer) -> None:
    place.configure(server.base_url, slotSaveGigabytes=0.00004)
    await place.talk(NOTES)
    session = await place.talk(f"More {NOTES}")

    (file,) = place.files
    assert session in file.name


async def test_a_deleted_session_takes_its_files_along_even_if_the_folder_changed(
    place: Place, server: SlotServer
) -> None:
    session, other = await place.talk(NOTES), await place.talk(f"More {NOTES}")
    place.configure(server.base_url, slotSavePath="")
    create_process(place.options()).library.delete(session)

    (file,) = place.files
    assert other in file.name
    assert [path.name for path in (place.root / "home" / "slots").iterdir()] == [other]


@contextmanager
def serve_real(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.llama", "--slots", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        yield run.stdout.readline().decode().strip()
        run.communicate()


@pytest.mark.slow
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.usefixtures("smollm2")
async def test_a_real_llama_cpp_reads_a_tenth_after_a_restart(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with serve_real(place.slots) as url:
        place.configure(url)
        session = await place.talk(" ".join(f"Part {number} has {number * 7} lines." for number in range(120)))
    with serve_real(place.slots) as url:
        place.configure(url)
        async with place.chat(session) as conversation:
            await conversation.ask("Say ok.")

    assert conversation.usage.prompt_tokens > 1024
    assert conversation.usage.reused_tokens > 0.9 * conversation.usage.prompt_tokens
