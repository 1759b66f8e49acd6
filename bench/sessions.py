"""Recording, loading, listing and searching sessions, beside a raw append, `json.loads` and a bare Python."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.row import Row, pair, program
from ollm.config.settings import SessionSettings
from ollm.domain.messages import Message, TextPart, ToolCallPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.chat_recording.library import SessionLibrary
from ollm.services.chat_recording.service import ChatRecordingService
from ollm.store.session_files.document import iter_document
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.search import search_sessions

AT = "2026-01-27T10:00:00.000Z"
KILOBYTE = "x" * 1024
WORDS = [f"word{number}" for number in range(5000)]


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory(prefix="ollm-bench-") as root:
        for number, measure in enumerate((recording, bytes_written, loading, listing, searching, memory)):
            place = Path(root) / str(number)
            place.mkdir()
            yield from measure(place)


def service(root: Path) -> ChatRecordingService:
    files = SessionFiles(SessionPlaces(directory=root / "sessions", trash=root / "trash"))
    settings = SessionSettings(max_sessions=0)
    library = SessionLibrary(files, SessionIndex(root / "index.db", root / "sessions"), settings)
    return ChatRecordingService(files, settings, library=library)


def said(text: str, role: str = "user") -> Message:
    return Message(role=role, parts=(TextPart(text=text),), timestamp=AT)


def written(root: Path, count: int, text: str) -> str:
    """A closed session of `count` messages, put on disk in one go."""
    session_id = str(uuid.uuid4())
    head = {"sessionId": session_id, "startTime": AT, "lastActivity": AT, "model": "m", "provider": "p"}
    part = json.dumps(text)
    line = f'{{"role":"user","parts":[{{"type":"text","text":{part}}}],"timestamp":"{AT}","id":%d}}'
    (root / "sessions").mkdir(exist_ok=True)
    lines = ((line % number).encode() for number in range(1, count + 1))
    metadata = {"tokenCount": 1, "compressionCount": 0, "schemaVersion": 1, "title": text[:40]}
    with (root / "sessions" / f"{session_id}.json").open("wb") as file:
        file.writelines(iter_document({**head, "metadata": metadata}, lines, ()))
    return session_id


def recording(root: Path) -> Iterator[Row]:
    """One message of 1 KB, against an append and fdatasync of the same bytes, in turns."""
    for already in (100, 100_000):
        ours, raw = asyncio.run(_record(root, already))
        yield Row(f"record 1 KB after {already} messages", ours, raw, 1.5)


async def _record(root: Path, already: int) -> tuple[float, float]:
    recorder = service(root)
    session_id = written(root, already, KILOBYTE)
    await recorder.open_session(session_id)
    journal = root / "sessions" / f"{session_id}.journal"
    await recorder.record_message(session_id, said(KILOBYTE))
    size = journal.stat().st_size
    descriptor = os.open(root / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    line = b"x" * (size - 1) + b"\n"
    ours, raw = [], []
    for _ in range(300):
        start = time.perf_counter()
        await recorder.record_message(session_id, said(KILOBYTE))
        middle = time.perf_counter()
        os.write(descriptor, line)
        os.fdatasync(descriptor)
        ours.append(middle - start)
        raw.append(time.perf_counter() - middle)
    os.close(descriptor)
    await recorder.close_session(session_id)
    return statistics.median(ours), statistics.median(raw)


def bytes_written(root: Path) -> Iterator[Row]:
    """Every byte handed to the system, against the bytes that were said."""
    asyncio.run(_turn_of_calls(root))
    ours, told = asyncio.run(_turn_of_calls(root))
    yield Row("bytes written, one turn of 50 calls", ours / 1e6, told / 1e6, 2.5, "MB")
    ours, told = asyncio.run(_many_turns(root))
    yield Row("bytes written, 10,000 messages, two a turn", ours / 1e6, told / 1e6, 4.5, "MB")


def _handed_over() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(fields["wchar"])


async def _turn_of_calls(root: Path) -> tuple[int, int]:
    before, told = _handed_over(), 0
    recorder = service(root)
    session_id = await recorder.create_session("m", "p")
    await recorder.record_message(session_id, said("please do"))
    for number in range(50):
        args, result = {"path": f"src/{number}.py"}, KILOBYTE * 2
        asked = Message(role="assistant", parts=(TextPart(text="next"), ToolCallPart(id=f"c{number}")), timestamp=AT)
        message = await recorder.record_message(session_id, asked)
        call = ToolCallRecord(id=f"c{number}", name="read_file", args=args, timestamp=AT, message_id=message.id)
        await recorder.record_tool_call(session_id, call)
        done = {**{name: getattr(call, name) for name in call.__struct_fields__}, "status": "ok"}
        await recorder.record_tool_call(
            session_id, ToolCallRecord(**done | {"result": RecordedResult(llm_content=result)})
        )
        told += len("next") + len(json.dumps(args)) + len(result)
    await recorder.end_turn(session_id)
    await recorder.close_session(session_id)
    return _handed_over() - before, told


async def _many_turns(root: Path) -> tuple[int, int]:
    before = _handed_over()
    recorder = service(root)
    session_id = await recorder.create_session("m", "p")
    for _ in range(5000):
        await recorder.record_message(session_id, said(KILOBYTE))
        await recorder.record_message(session_id, said(KILOBYTE, "assistant"))
        await recorder.end_turn(session_id)
    await recorder.close_session(session_id)
    return _handed_over() - before, 10_000 * len(KILOBYTE)


def loading(root: Path) -> Iterator[Row]:
    session_id = written(root, 9_000, KILOBYTE)
    files = SessionFiles(SessionPlaces(directory=root / "sessions"))
    path = files.places.get_document_path(session_id)
    ours, baseline = pair(lambda: files.read(session_id), lambda: json.loads(path.read_bytes()), times=9)
    yield Row("load a session of 10 MB", ours, baseline, 2)


def listing(root: Path) -> Iterator[Row]:
    """1,000 sessions of 1 MB and of 1 KB, each home listed once before, as `ollm sessions list` in a process."""
    calls = {}
    for name, count in (("large", 900), ("small", 1)):
        home = root / name
        home.mkdir()
        for _ in range(1000):
            written(home, count, KILOBYTE)
        calls[name] = program([str(Path(sys.executable).parent / "ollm"), "sessions", "list"], _environment(home))
        calls[name]()
    bare = program([sys.executable, "-c", "import sqlite3"], _environment(root))
    large, small = pair(calls["large"], calls["small"], times=9)
    yield Row("list 1,000 sessions of 1 MB, against 1 KB", large, small, 1.1)
    ours, baseline = pair(calls["large"], bare, times=9)
    yield Row("list 1,000 sessions, against Python with sqlite3", ours, baseline, 4.5)
    (root / "large" / "config.yaml").write_text("sessions:\n  maxSessions: 200\n", encoding="utf-8")
    ours, baseline = pair(calls["large"], bare, times=9)
    yield Row("the same with a config file", ours, baseline, 5.5)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OLLM_HOME": str(home)}


def searching(root: Path) -> Iterator[Row]:
    """A million messages of ten words, searched inside the process."""
    chance = random.Random(3)
    for _ in range(1000):
        written_lines(root, [" ".join(chance.choices(WORDS, k=10)) for _ in range(1000)])
    index = SessionIndex(root / "index.db", root / "sessions")
    index.refresh_text()
    times = []
    for text in ("word17", "word42 word4711", "word3", "word999 word1 word2"):
        search_sessions(index, text)
        start = time.perf_counter()
        search_sessions(index, text)
        times.append(time.perf_counter() - start)
    yield Row("search a million messages", max(times) * 1000, None, 100, "ms", "figure", "the slowest of four")
    told = sum(path.stat().st_size for path in (root / "sessions").iterdir())
    gone = next((root / "sessions").iterdir()).name.removesuffix(".json")
    start = time.process_time()
    index.erase_all([gone])
    yield Row(
        "delete one of 1,000 sessions of it", time.process_time() - start, None, 10, "s", "figure", "of processor"
    )
    yield Row("index.db, against the session files", (root / "index.db").stat().st_size / 1e6, told / 1e6, 2, "MB")


def written_lines(root: Path, texts: list[str]) -> None:
    session_id = str(uuid.uuid4())
    head = {"sessionId": session_id, "startTime": AT, "lastActivity": AT, "model": "m", "provider": "p", "metadata": {}}
    line = f'{{"role":"user","parts":[{{"type":"text","text":"%s"}}],"timestamp":"{AT}","id":%d}}'
    lines = ((line % (text, number)).encode() for number, text in enumerate(texts, start=1))
    (root / "sessions").mkdir(exist_ok=True)
    with (root / "sessions" / f"{session_id}.json").open("wb") as file:
        file.writelines(iter_document(head, lines, ()))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(root: Path) -> Iterator[Row]:
    """How much the process grows while 20,000 messages of 1 KB are recorded."""

    async def record() -> int:
        recorder = service(root)
        session_id = await recorder.create_session("m", "p")
        before = 0
        for number in range(20_000):
            await recorder.record_message(session_id, said(KILOBYTE))
            if number % 2:
                await recorder.end_turn(session_id)
            if number == 2_000:
                before = _resident()
        await recorder.close_session(session_id)
        return _resident() - before

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(asyncio.run(record())).encode())
        os._exit(0)
    os.waitpid(child, 0)
    grown = int(os.read(reading, 100))
    yield Row("memory grown while recording 20 MB", grown / 1e6, None, 8, "MB", "figure")
