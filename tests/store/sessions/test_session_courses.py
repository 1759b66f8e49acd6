"""Sessions as they are written, read in parts, gone on with and searched, recorded: every byte, every page, every hit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.messages import Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from ollm.services.chat_recording import ChatRecordingService
from ollm.store.session_files import MessagePage, SessionFiles, marks, recovery
from ollm.store.session_files.recovery import KnownDocument
from ollm.store.session_index.search import NO_FILTERS, SearchFilters, search_sessions
from tests.recorded_courses import compare_course, describe_text
from tests.store.sessions.support import AT, Home, call, run, said

RECORDED = Path(__file__).with_name("recorded")
BEGIN = datetime(2026, 1, 28, 9, 30, tzinfo=UTC)


def make_id(number: int) -> str:
    return f"550e8400-e29b-41d4-a716-{number:012}"


class Course:
    """One home, a clock that goes a second each time it is asked, and what was seen."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.lines: list[str] = []
        self._seconds = 0
        self._names = map(make_id, range(1, 100))
        self.home.files = SessionFiles(self.home.places, clock=self.tell_time)

    def tell_time(self) -> datetime:
        self._seconds += 1
        return BEGIN + timedelta(seconds=self._seconds)

    def service(self) -> ChatRecordingService:
        return self.home.service(clock=self.tell_time, make_id=lambda: next(self._names))

    def note(self, title: str, found: Any = "") -> None:
        text = found if isinstance(found, str) else json.dumps(msgspec.to_builtins(found), ensure_ascii=False)
        text = re.sub(r'"document":"\d+,(\d+),\d+"', r'"document":"\1"', text.replace(str(self.home.root), "HOME"))
        self.lines += [f"{title} {line}" for line in text.split("\n")]

    def note_files(self, title: str) -> None:
        self.lines.append(f"== {title}")
        for path in sorted(self.home.sessions.iterdir()):
            if path.suffix in (".json", ".journal"):
                for line in path.read_bytes().decode().splitlines():
                    self.note(path.suffix, line if len(line) < 3000 else describe_text(line))


async def write_session(course: Course) -> None:
    service, name = course.service(), ""

    def look(title: str) -> None:
        writer = service._writers[name]
        course.note_files(title)
        state = [writer.is_empty, writer.is_saved, writer.has_partial, writer.has_own_files, writer.is_fold_due]
        course.note("writer", [*state, writer.message_count, writer.last_number, len(writer.pending)])

    name = await service.create_session("m", "ollama", workspace="/w", context_window=4096)
    look("created")
    await service.record_message(name, said("the first question, grün \ud800"))
    await service.record_partial(name, [ThinkingPart(text="hm")])
    await service.record_partial(name, [ThinkingPart(text="hm, so"), TextPart(text="It")])
    await service.record_partial(name, [ThinkingPart(text="hm, so"), TextPart(text="It")])
    look("an answer under way")
    await service.save_session(name)
    look("saved in the middle of it")
    answer = Message("assistant", (ThinkingPart(text="hm, so"), TextPart(text="It is"), ToolCallPart("c1")), AT)
    await service.record_message(name, answer, [call("c1")])
    await service.record_tool_call(name, call("c1", result="found\x00 é"))
    await service.record_message(name, Message("tool", (ToolResultPart(id="c1"),), AT))
    await service.record_partial(name, [TextPart(text="one")])
    await service.record_partial(name, [TextPart(text="another")])
    await service.record_message(name, Message("assistant", (TextPart(text="a third"),), AT))
    look("calls, and an answer begun anew")
    await service.update_metadata(name, {"title": "Named", "notes": ["a"], "model": "m2"})
    await service.update_metadata(name, {"notes": ["a", "b", "c"]})
    await service.update_metadata(name, {"notes": ["b"], "provider": "p2"})
    look("fields")
    await service.end_turn(name)
    look("the end of a turn")
    service._writers[name].deferred = True
    await service.record_message(name, said("two"))
    look("waiting")
    await service.end_turn(name)
    for depth in (57, 58, 59, 60, 61):
        nested: Any = "x"
        for _ in range(depth):
            nested = {"a": nested}
        await service.record_tool_call(name, call("c7", args=nested))
    await service.record_partial(name, [TextPart(text="never fin")])
    look("deep, and cut off")
    await service.close_session(name)
    course.note_files("closed")
    course.note("events", [type(event).__name__ for event in course.home.events])


def test_every_byte_of_a_session_that_is_written(tmp_path: Path) -> None:
    course = Course(tmp_path)
    run(lambda: write_session(course))
    compare_course(RECORDED / "written.txt", course.lines)


async def record_long(course: Course, turns: int, folded: int) -> str:
    """Left as a kill leaves it; the first turns are in the document."""
    service = course.service()
    name = await service.create_session("m", "ollama")
    for turn in range(1, turns + 1):
        await service.record_message(name, said(f"question {turn}"))
        parts = (TextPart(f"looking {turn}"), ToolCallPart(f"c{turn}"))
        asked = await service.record_message(name, Message("assistant", parts, AT), [call(f"c{turn}")])
        await service.record_tool_call(name, call(f"c{turn}", message_id=asked.id, result=f"result {turn}"))
        await service.record_message(name, Message("tool", (ToolResultPart(id=f"c{turn}"),), AT))
        if turn == folded:
            await service.save_session(name)
    await service.record_partial(name, [TextPart(text="half")])
    service._writers.pop(name).abandon()
    return name


def describe_part(loaded: Any) -> list[Any]:
    session = loaded.session
    numbers = [message.id for message in session.messages]
    calls = [(one.id, one.status) for one in session.tool_calls]
    return [
        *(numbers[:1], numbers[-1:], len(numbers), calls[:1], calls[-1:], len(calls)),
        *(loaded.skipped, loaded.calls_so_far, loaded.unfinished, loaded.damage),
    ]


@pytest.mark.parametrize(("marked", "folded"), [(False, 40), (True, 15), (True, 0)])
def test_every_page_of_a_session_and_every_place_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marked: bool, folded: int
) -> None:
    if marked:
        monkeypatch.setattr(marks, "MARK_EVERY_BYTES", 1000)
        monkeypatch.setattr(marks, "MARK_EVERY_MARKS", 0)
    course = Course(tmp_path / "one")
    name = run(lambda: record_long(course, 40, folded))
    for limit in (1, 2, 5, 33, 200):
        for before in (None, 1, 2, 30, 61, 62, 63, 90, 120, 121, 122, 500):
            found = course.home.files.read(name, MessagePage(before=before, limit=limit))
            course.note(f"page {before} {limit}", describe_part(found))
    for since in (0, 1, 29, 60, 88, 119, 120):
        course.note(f"since {since}", go_on(course, tmp_path / f"since{since}", name, since))
    monkeypatch.setattr(recovery, "LARGE_BYTES", 0)
    for since in (0, 60, 120):
        course.note(f"large {since}", go_on(course, tmp_path / f"large{since}", name, since))
    compare_course(RECORDED / f"pages_{folded}{'_marked' if marked else ''}.txt", course.lines)


def go_on(course: Course, place: Path, name: str, since: int) -> list[Any]:
    """What is given of a copy, and what its writer knows; with what is known of its document, and without."""
    told = []
    for number, known in enumerate((None, KnownDocument(120, 120, since), KnownDocument(120, 121, since))):
        home = Home(place / str(number))
        shutil.copytree(course.home.sessions, home.sessions, copy_function=shutil.copy2)
        files = SessionFiles(home.places, clock=lambda: BEGIN)
        writer, loaded = files.open(name, since=since, known=lambda given=known: given if since else None)
        told += [describe_part(loaded), writer.message_count, writer.last_number, writer.journal_size]
        writer.abandon()
    return told


def say_much(course: Course) -> Callable[[], Any]:
    async def work() -> None:
        for origin, model, workspace, texts in (
            (None, "m", "/w", ["The cart holds a total price.", "src/Cart.py:12 computes it", "été 日本語の文章"]),
            ("task", "m", "/w", ["The cart of a task"]),
            (
                None,
                "other",
                "/else",
                ["cartography is not carting", "100% of foo_bar(x) && !z", "x" * 500 + " cart end"],
            ),
            (None, "m", None, ["", "needle " + "hay " * 200 + "needle", "(){}[]; => ok"]),
            (None, "m", "/w", ["a cart, a CART, and a Cárt"]),
        ):
            service = course.service()
            name = await service.create_session(model, "ollama", workspace=workspace, origin=origin)
            for text in texts:
                asked = await service.record_message(name, said(text))
                answer = (TextPart(f"about {text[:20]}"), ThinkingPart("thinking of carts"), ToolCallPart("c1"))
                await service.record_message(name, Message("assistant", answer, AT), [call("c1", message_id=asked.id)])
                await service.record_tool_call(name, call("c1", result=f"listed {text[-20:]}", message_id=asked.id))
            await service.close_session(name)

    return work


WANTED = (
    *(
        "cart",
        "car",
        "ca",
        "Cart.py",
        "cart.py:12",
        "total price",
        "price total",
        "ete",
        "ÉTÉ",
        "語",
        "本語",
        "%",
        "&&",
    ),
    *(
        "foo_bar(x)",
        "=>",
        "(){}",
        "needle",
        "needle hay",
        "nowhere",
        "listed",
        "thinking",
        "xxxx",
        "a",
        "",
        " ",
        "!z :*",
    ),
    *('"cart"', "cart OR nowhere", "\ud800 cart", "carting is", "-", "about The cart", "holds a tot", "x" * 300),
)


def list_questions() -> Iterator[tuple[str, SearchFilters, int]]:
    yield from ((wanted, NO_FILTERS, 20) for wanted in WANTED)
    for limit in (0, 1, 2, 3, 5):
        yield "cart", NO_FILTERS, limit
    for filters in (
        *(SearchFilters(workspace="/w"), SearchFilters(workspace="/nowhere"), SearchFilters(model="other")),
        *(SearchFilters(role=role) for role in ("user", "assistant", "tool", "system")),
        *(SearchFilters(tasks=True), SearchFilters(since="2026-01-28T09:31:00.000Z"), SearchFilters(since="2027")),
        SearchFilters(workspace="/w", model="m", role="user", tasks=True),
    ):
        for wanted in ("cart", "car", "("):
            yield wanted, filters, 20


def test_every_answer_of_the_search_and_every_line_of_the_list(tmp_path: Path) -> None:
    course = Course(tmp_path)
    run(say_much(course))
    index = course.home.index()
    for tasks in (False, True):
        for row in index.list_sessions(tasks=tasks):
            course.note(f"listed {tasks}", dict(row))
    for wanted, filters, limit in list_questions():
        found = search_sessions(index, wanted, filters, limit)
        state = [found.ranked, found.total, found.complete]
        course.note(f"search {wanted[:40]!r} {[*filters]} {limit}", state)
        for hit in found.hits:
            course.note("hit", [hit[key] for key in ("sessionId", "messageId", "role", "timestamp", "snippet")])
    erase_some(course, index)
    compare_course(RECORDED / "searched.txt", course.lines)


def erase_some(course: Course, index: Any) -> None:
    """One that goes by a word of the program, one whose files go by hand, one that another one is put in place of."""
    told: list[tuple[int, int]] = []
    index.erase_all([make_id(3)], progress=lambda done, total: told.append((done, total)))
    course.note("erased", [told[0], told[-1][0] == told[-1][1], [row["sessionId"] for row in index.list_sessions()]])
    course.home.document(make_id(5)).unlink()
    course.home.document(make_id(4)).write_bytes(course.home.document(make_id(2)).read_bytes())
    for wanted in ("needle", "task", "cart"):
        found = search_sessions(index, wanted)
        course.note(f"then {wanted}", [[hit["sessionId"], hit["snippet"]] for hit in found.hits])
    course.note("counts", [index.get_counts(make_id(number), least) for number in range(1, 6) for least in (0, 10**9)])
    index.forget(make_id(1))
    course.note("forgotten", search_sessions(index, "cart").total)
    index.close()
