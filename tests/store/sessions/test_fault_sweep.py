"""Every call to the disk fails in turn, in every way: what was acknowledged is there afterwards, and what is not saved is
said when the session is closed."""

import asyncio
import errno
import logging
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ollm.domain.errors import OllmError, UnsavedError
from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.services.chat_recording.service import ChatRecordingService
from tests.covers import covers
from tests.sizes import SOAK, size
from tests.store.sessions.support import AT, Home, call, said

CALLS = ("open", "write", "fsync", "fdatasync", "replace", "rename", "unlink", "ftruncate", "link", "pread", "mkdir")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EMFILE)
TIMES = (1, 3, 10_000)
CASES = size(44, 8000)


class DiskFault:
    """Lets calls of one kind fail from the `after`-th on, so many `times`; in places below `root` only."""

    def __init__(self, root: Path, name: str, after: int, number: int, times: int) -> None:
        self.root, self.name, self.after, self.number, self.times = str(root), name, after, number, times
        self.seen = self.failed = 0

    def check(self, target: Any) -> None:
        path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else os.fspath(target)
        if not str(path).startswith(self.root):
            return
        self.seen += 1
        if self.seen > self.after and self.failed < self.times:
            self.failed += 1
            raise OSError(self.number, os.strerror(self.number))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        real = getattr(os, self.name)

        def failing(target: Any, *arguments: Any, **more: Any) -> Any:
            self.check(target)
            return real(target, *arguments, **more)

        setattr(os, self.name, failing)
        try:
            yield
        finally:
            setattr(os, self.name, real)


class Talk:
    """A session that is talked in, closed, resumed, talked in and closed; knows what it was told is on the disk."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.session_id = ""
        self.saved: set[str] = set()  # acknowledged, and the service says that all is on the disk
        self.everything: set[str] = set()
        self.unsaved = False  # it was said that something is not saved

    async def say(self, service: ChatRecordingService, text: str, message: Message | None = None) -> Message:
        done = await service.record_message(self.session_id, message or said(text))
        self.everything.add(text)
        if self.home.files.writers[-1].is_saved:
            self.saved |= self.everything
        return done

    async def work(self, service: ChatRecordingService, prefix: str) -> None:
        for turn in range(3):
            await self.say(service, f"{prefix} {turn}")
            await service.record_text(self.session_id, TextPart, "half")
            answer = f"{prefix} answer {turn}"
            parts = (TextPart(answer), ToolCallPart(f"c{prefix}{turn}"))
            asked = await self.say(service, answer, Message("assistant", parts, AT))
            await service.record_tool_call(self.session_id, call(f"c{prefix}{turn}", message_id=asked.id))
            await service.record_tool_call(self.session_id, call(f"c{prefix}{turn}", message_id=asked.id, result="r"))
            await service.record_message(self.session_id, Message("tool", (ToolResultPart(id=f"c{prefix}{turn}"),), AT))
            await service.end_turn(self.session_id)
        await service.save_session(self.session_id)

    async def close(self, service: ChatRecordingService) -> None:
        try:
            await service.close_session(self.session_id)
        except UnsavedError:
            self.unsaved = True

    async def run(self) -> None:
        service = self.home.service()
        self.session_id = await service.create_session("m", "ollama")
        await self.work(service, "first")
        await self.close(service)
        again = self.home.service()
        try:
            await again.open_session(self.session_id)
        except OllmError:
            return
        await self.work(again, "second")
        await self.close(again)


def run_case(directory: Path, name: str, after: int, number: int, times: int) -> tuple[int, str]:
    """How many calls failed, and what is wrong, if anything."""
    home = Home(directory)
    fault, talk = DiskFault(directory, name, after, number, times), Talk(home)
    try:
        with fault.at_work():
            asyncio.run(talk.run())
    except OllmError as error:
        return fault.failed, f"not guarded: {error!r}"
    except Exception as error:
        return fault.failed, f"{type(error).__name__}: {error}"
    present = set(home.texts(talk.session_id)) if home.places.has(talk.session_id) else set()
    if missing := talk.saved - present:
        return fault.failed, f"acknowledged and lost: {sorted(missing)}"
    if not talk.unsaved and (missing := talk.everything - present):
        return fault.failed, f"lost without a word: {sorted(missing)}"
    left = [path.name for path in home.sessions.glob(".*.tmp")] if home.sessions.is_dir() and name != "unlink" else []
    return fault.failed, f"left behind: {left}" if left else ""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory where there is such a place: what fails is not the disk itself, and its syncs would take most of the time."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        logging.disable(logging.CRITICAL)
        yield Path(made)
        logging.disable(logging.NOTSET)


@covers("S10.1", "S9.3", "P7")
def test_whatever_fails_nothing_acknowledged_is_lost_and_nothing_unsaved_ends_in_silence(place: Path) -> None:
    chance, total, kinds = random.Random(11), 0, Counter[str]()
    wrong: dict[str, str] = {}
    for number in range(CASES):
        name = CALLS[number % len(CALLS)]
        after = chance.choice((chance.randrange(6), chance.randrange(120)))
        case = (name, after, chance.choice(ERRORS), chance.choice(TIMES))
        failed, problem = run_case(place / str(number), *case)
        shutil.rmtree(place / str(number), ignore_errors=True)
        total += failed
        kinds[name] += failed > 0
        if problem:
            wrong[str(case)] = problem
    print(f"{CASES} cases, {total} failed calls: {dict(kinds)}")
    assert wrong == {}
    assert total > CASES // 3, "the calls did fail"
    assert not SOAK or total > 2000
