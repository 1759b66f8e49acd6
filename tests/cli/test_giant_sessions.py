"""Files as large as any that is read, whole and damaged in every way, through the command: never a failure, every
complete message, what is missing said, no file changed by reading, flat memory. `make soak` does it at 480 MB."""

import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from ollm.store.session_files.document import iter_document
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import MessagePage, SessionFiles
from tests.cli.command import SCRIPT
from tests.cli.running import running
from tests.covers import covers
from tests.sizes import SOAK, size

ID = "550e8400-e29b-41d4-a716-446655440000"
AT = "2026-01-27T10:00:00.000Z"
MEGABYTES = size(2, 480)
FLAT = 120  # MB a process may take whatever the size of a whole file
IMPORT_SHARE = 9  # times its size that a damaged file may take in memory
SECONDS = 20
TEXT = ('The quick brown fox said "hello" & went <home>.\n' * 21)[:1000]


class Ran(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float
    megabytes: int


def message(number: int) -> bytes:
    parts: list[dict] = [{"type": "text", "text": f"m{number} {TEXT}"}]
    if number % 2 == 0:
        parts.append({"type": "tool_call", "id": f"c{number}"})
    role = "user" if number % 2 else "assistant"
    return encoded({"role": role, "parts": parts, "timestamp": AT, "id": number})


def tool_call(number: int) -> bytes:
    call = {"id": f"c{number}", "name": "ls", "args": {"path": "."}, "result": {"llmContent": TEXT[:300]}}
    return encoded({**call, "timestamp": AT, "messageId": number, "status": "ok", "error": None})


def encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def write(path: Path, count: int) -> None:
    head = {"sessionId": ID, "startTime": AT, "lastActivity": AT, "model": "m", "provider": "p"}
    metadata = {"tokenCount": 1, "compressionCount": 0, "schemaVersion": 1, "title": "giant"}
    path.parent.mkdir(parents=True)
    calls = (tool_call(number) for number in range(2, count + 1, 2))
    with path.open("wb") as file:
        file.writelines(iter_document({**head, "metadata": metadata}, map(message, range(1, count + 1)), calls))


COUNT = MEGABYTES * 1_000_000 // 1400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "sessions" / f"{ID}.json"
    write(made, COUNT)
    return made


def run(home: Path, *arguments: str, to: Path | None = None, more: Mapping[str, str] | None = None) -> Ran:
    """The command, with what it took: measured by a small process between, whose own size does not count."""
    program = (
        "import os,resource,subprocess,sys;"
        "done=subprocess.run(sys.argv[1:],stdin=subprocess.DEVNULL);"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime+used.ru_stime,used.ru_maxrss//1024,file=sys.stderr);"
        "sys.exit(done.returncode)"
    )
    environment = {**os.environ, "OLLM_HOME": str(home), **(more or {})}
    with (to or home / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", program, SCRIPT, *arguments],
            env=environment,
            cwd=home,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            check=False,
        )
    *err, last = done.stderr.splitlines()
    seconds, megabytes = last.split()
    shown = "" if to else (home / "out").read_text(encoding="utf-8")
    assert "Traceback" not in done.stderr
    if SOAK:
        print(f"\n  {' '.join(arguments)}: {float(seconds):.1f} s, {megabytes} MB", end="")
    return Ran(done.returncode, shown, "\n".join(err), float(seconds), int(megabytes))


def within(ran: Ran, megabytes: int = FLAT) -> None:
    assert ran.megabytes <= megabytes, ran
    if SOAK:
        assert ran.seconds < SECONDS * 2, ran  # of a machine that may be busy with something else


def over(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 9 // 10 + 7)


def nuls(path: Path) -> None:
    length = path.stat().st_size // 5
    over(path, path.stat().st_size - length, b"\0" * length)


def garbage(path: Path) -> None:
    over(path, path.stat().st_size // 3, random.Random(3).randbytes(min(MEGABYTES * 20_000, path.stat().st_size // 50)))


def not_utf8(path: Path) -> None:
    over(path, path.stat().st_size // 3, b"\xff\xfe" * 20)


def head(path: Path) -> None:
    over(path, 10, b"\0" * 60)


def beginning(path: Path) -> None:
    over(path, 0, random.Random(4).randbytes(5000))


def no_lines(path: Path) -> None:
    middle = path.stat().st_size // 3
    data = path.read_bytes()
    path.write_bytes(data[:middle] + data[middle:].replace(b"\n", b" "))


def other_layout_cut(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=2), encoding="utf-8")
    cut(path)


def one_line_with_garbage(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes())), encoding="utf-8")
    garbage(path)


def large_journal(path: Path) -> None:
    """The second half of the messages stands in the journal, damaged in its middle, with NULs at its end."""
    data = path.read_bytes()
    middle = data.index(b'\n],"toolCalls"')
    half = data.rindex(b"\n", 0, middle // 2)
    path.write_bytes(data[:half].rstrip(b",") + b'\n],"toolCalls":[\n]}\n')
    journal = path.with_suffix(".journal")
    with journal.open("wb") as file:
        for line in data[half + 1 : middle].split(b"\n"):
            file.write(b'{"at":"' + AT.encode() + b'","message":' + line.rstrip(b",") + b',"tokens":5}\n')
    garbage(journal)
    nuls(journal)


FEW = (garbage, one_line_with_garbage, large_journal)  # in every run; all of them in `make soak`
KINDS = (
    cut,
    nuls,
    garbage,
    not_utf8,
    head,
    beginning,
    no_lines,
    other_layout_cut,
    one_line_with_garbage,
    large_journal,
)


def intact(path: Path) -> set[int]:
    """The numbers of the messages whose bytes still stand somewhere in the files, whole."""
    held = b"".join(found.read_bytes() for found in (path, path.with_suffix(".journal")) if found.exists())
    return {number for number in range(1, min(COUNT, 3000) + 1) if any(form in held for form in _forms(number))}


def _forms(number: int) -> Iterator[bytes]:
    told = json.loads(message(number))
    yield message(number)
    yield json.dumps(told).encode()
    yield json.dumps(told, indent=2).replace("\n", "\n    ").encode()


def prints(path: Path) -> dict[str, str]:
    return {found.name: hashlib.sha256(found.read_bytes()).hexdigest() for found in path.parent.iterdir()}


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@covers("S10.2", "D606", "D607")
@pytest.mark.parametrize("damage", KINDS if SOAK else FEW, ids=lambda damage: damage.__name__)
def test_a_giant_damaged_file_gives_all_that_can_be_read_and_is_not_changed(path: Path, damage: Callable[[Path], None]):
    damage(path)
    home, before = path.parent.parent, prints(path)
    mapped = FLAT + MEGABYTES * IMPORT_SHARE

    listed = run(home, "sessions", "list", "--json")
    within(listed, mapped)
    line = json.loads(listed.out)[0]
    assert line["damaged"]

    viewed = run(home, "sessions", "view", ID)
    within(viewed, mapped)
    assert "some data could not be read" in viewed.err
    document = run(home, "sessions", "export", ID, "--output", "-")
    within(document, mapped)
    found = {entry["id"] for entry in json.loads(document.out)["messages"]}
    assert len(found) == line["messageCount"]
    for form in ("markdown", "html"):
        exported = run(home, "sessions", "export", ID, "--output", "-", "--format", form, to=home / form)
        assert exported.code == 0
        within(exported, mapped)
    searched = run(home, "sessions", "search", f"m{max(found)}")
    assert searched.code == 0
    assert SOAK or ID[:8] in searched.out
    assert run(home, "sessions", "check").code == 1
    assert prints(path) == before, "reading changes no file"

    repaired = run(home, "sessions", "check", "--repair")
    assert repaired.code == 0, repaired
    kept = {name.partition(".damaged-")[0]: value for name, value in prints(path).items() if ".damaged-" in name}
    assert kept == before, "what was there is kept beside"
    assert {entry["id"] for entry in json.loads(path.read_bytes())["messages"]} == found
    assert run(home, "sessions", "check").code == 0


@covers("S10.2", "D606")
@pytest.mark.parametrize("damage", KINDS if SOAK else FEW, ids=lambda damage: damage.__name__)
async def test_a_giant_damaged_session_is_gone_on_with(tmp_path: Path, damage: Callable[[Path], None]):
    async with running(tmp_path, ["Going on."] * 9) as runner:
        path = runner.home / "sessions" / f"{ID}.json"
        write(path, COUNT)
        damage(path)
        before = {f"{name}.damaged": value for name, value in prints(path).items()}
        ran = await asyncio.to_thread(run, runner.home, "-p", "go on", "--session", ID, more=runner.environment())
    assert ran.code == 0, ran
    assert "Going on." in ran.out
    assert "damaged" in ran.err
    within(ran, FLAT + MEGABYTES * IMPORT_SHARE)
    kept = {name.partition("-20")[0]: value for name, value in prints(path).items() if ".damaged-" in name}
    assert kept == before
    loaded = SessionFiles(SessionPlaces(directory=path.parent)).read(ID, MessagePage(before=None, limit=2))
    assert [entry.text for entry in loaded.session.messages[-2:]] == ["go on", "Going on."]


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.parametrize("damage", KINDS, ids=lambda damage: damage.__name__)
def test_every_message_that_still_stands_whole_in_a_damaged_file_is_read(tmp_path: Path, damage: Callable):
    path = tmp_path / "sessions" / f"{ID}.json"
    write(path, min(COUNT, 3000))
    damage(path)
    loaded = SessionFiles(SessionPlaces(directory=path.parent)).read(ID)
    found = {entry.id: entry.text for entry in loaded.session.messages}
    assert found.keys() >= intact(path)
    assert loaded.damage


def test_a_giant_whole_file_is_read_with_flat_memory_and_exported_to_the_byte(path: Path, tmp_path: Path):
    home = path.parent.parent
    for arguments in (("list",), ("view", ID), ("check",), ("search", "m7")):
        ran = run(home, "sessions", *arguments)
        assert ran.code == 0, ran
        within(ran)
    for form in ("json", "markdown", "html"):
        target = tmp_path / form
        ran = run(home, "sessions", "export", ID, "--output", str(target), "--format", form)
        assert ran.code == 0, ran
        within(ran)
        assert target.stat().st_size > path.stat().st_size // 2
    assert (tmp_path / "json").read_bytes() == path.read_bytes()


def test_one_message_of_fifty_megabytes_is_read_listed_searched_and_exported(tmp_path: Path):
    path = tmp_path / "home" / "sessions" / f"{ID}.json"
    write(path, 9)
    long = b"word and more " * (size(4, 50) * 1_000_000 // 14)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"text":"m5 ', b'"text":"m5 ' + long))
    for arguments in (("list",), ("view", ID), ("check",), ("search", "word")):
        ran = run(path.parent.parent, "sessions", *arguments, to=tmp_path / "out")
        assert ran.code == 0, ran
        within(ran, FLAT + size(30, 350))


def test_a_pager_gets_the_first_page_at_once_and_leaving_it_ends_the_reading_quietly(path: Path):
    over(path, path.stat().st_size * 2 // 5, b"\xff\xff")  # which nobody hears of who does not read so far
    program = (
        "import os,pty,resource,sys\n"
        "pty.spawn(sys.argv[1:])\n"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print('took',used.ru_utime+used.ru_stime,used.ru_maxrss//1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, SCRIPT, "sessions", "view", ID],
        env={**os.environ, "OLLM_HOME": str(path.parent.parent), "PAGER": "head -c 300", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    shown, _, took = done.stdout.rpartition("took ")
    seconds, megabytes = map(float, took.split())
    assert shown.startswith("# giant")
    assert "not everything" not in shown
    assert "rror" not in shown
    assert megabytes < FLAT
    assert seconds < 3


HOLE = 8 << 30


def only_a_hole(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, HOLE)


def hole_behind(path: Path) -> None:
    os.truncate(path, HOLE)


def hole_inside(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(len(data) // 2)
        file.seek(HOLE)
        file.write(data[len(data) // 2 :])


def hole_in_the_journal(path: Path) -> None:
    journal = path.with_suffix(".journal")
    journal.write_bytes(b"")
    os.truncate(journal, HOLE)


@pytest.mark.parametrize(
    "hole", [only_a_hole, hole_behind, hole_inside, hole_in_the_journal], ids=lambda hole: hole.__name__
)
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_a_file_of_eight_gigabytes_that_are_mostly_a_hole_is_not_read_through(tmp_path: Path, hole: Callable):
    home = tmp_path / "home"
    path = home / "sessions" / f"{ID}.json"
    write(path, 40)
    other = "0" + ID[1:]
    (home / "sessions" / f"{other}.json").write_bytes(path.read_bytes().replace(ID.encode(), other.encode()))
    hole(path)
    before = path.stat()
    for arguments in (("list",), ("search", "m7"), ("view", ID), ("check",)):
        ran = run(home, "sessions", *arguments)
        assert ran.seconds < 6, "of processor time"
        assert ran.megabytes <= FLAT
        if arguments[0] in ("list", "search"):
            assert ran.code == 0
            assert other[:8] in ran.out, "what is whole is listed and found beside it"
    assert "too large" in run(home, "sessions", "list").err
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    gone = run(home, "sessions", "delete", ID, "--yes")
    assert gone.code == 0, gone
    assert not path.exists()
