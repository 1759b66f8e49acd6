"""The service: rules and their order, streams, entries, memory."""

import asyncio
import fnmatch
import os
import shutil
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.errors import NotFoundError
from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant, rules
from tests.services.file_discovery.test_cache import make_old

FOLDERS = ["src", "docs", "node_modules", "dist", "out"]


FILES = ["a.py", "b.log", "c.txt", "keep.log"]


PATTERNS = ["*.log", "*.py", "docs", "docs/", "/src", "src/a.py", "out/", "keep.log", "node_modules", "dist", "c.*"]


lines = st.lists(st.tuples(st.booleans(), st.sampled_from(PATTERNS)), max_size=4)


paths = st.lists(st.sampled_from(FOLDERS), max_size=3).flatmap(
    lambda folders: st.sampled_from(FILES).map(lambda name: "/".join([*folders, name]))
)


trees = st.sets(paths, min_size=1, max_size=25)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture
def place(scratch: Path) -> Iterator[Path]:
    """One directory that every example fills anew."""
    yield scratch / "project"
    shutil.rmtree(scratch / "project", ignore_errors=True)


def fill(root: Path, tree: set[str]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    plant(root, *tree)


def model(path: str, groups: list[list[tuple[str, bool, str]]]) -> bool:
    """Whether a path is shown: the last rule about each of its parts decides, a hidden directory hides all below."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        part, directory, hidden = "/".join(parts[:end]), end < len(parts), False
        for base, negated, pattern in (rule for group in groups for rule in group):
            inside = part[len(base) :] if part.startswith(base) else None
            if inside is None or (pattern.endswith("/") and not directory):
                continue
            plain = pattern.rstrip("/")
            against = inside if "/" in plain else inside.rpartition("/")[2]
            if fnmatch.fnmatchcase(against, plain.lstrip("/")):
                hidden = not negated
        if hidden:
            return False
    return True


@covers("S6.2", "S6.3", "S6.4", "P22")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tree=trees, git=lines, ollm=lines, deep_git=lines, deep_ollm=lines)
def test_later_rules_win_and_ollmignore_comes_last(place, tree, git, ollm, deep_git, deep_ollm) -> None:
    """Feature: services-sessions, Property 22: files that .ollmignore, .gitignore or built-in rules match are left out."""
    fill(place, tree)
    deep = sorted({path.rpartition("/")[0] for path in tree if "/" in path})[:1]
    written = [(".gitignore", "", git), (".ollmignore", "", ollm)]
    written += [(f"{deep[0]}/.gitignore", f"{deep[0]}/", deep_git)] if deep else []
    written += [(f"{deep[0]}/.ollmignore", f"{deep[0]}/", deep_ollm)] if deep else []
    for path, _, said in written:
        (place / path).write_text("".join(f"{'!' if negated else ''}{pattern}\n" for negated, pattern in said))
    service = FileDiscoveryService(FileDiscoverySettings(), place.parent / "home")

    shown = asyncio.run(files(service, place))

    built_in = [[("", False, name) for name in FileDiscoverySettings().builtin_ignores]]
    groups = built_in + [
        [(base, negated, pattern) for negated, pattern in said]
        for name in (".gitignore", ".ollmignore")
        for path, base, said in written
        if path.endswith(name)
    ]
    assert shown - {path for path, _, _ in written} == {path for path in tree if model(path, groups)}


@covers("S6.5", "P23")
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tree=trees, limit=st.integers(0, 4))
def test_nothing_deeper_than_the_limit_is_found(place, tree, limit) -> None:
    """Feature: services-sessions, Property 23: files deeper than maxDepth are not discovered, all others are."""
    fill(place, tree)
    service = FileDiscoveryService(FileDiscoverySettings(builtin_ignores=()), place.parent / "home")

    answer = asyncio.run(service.collect_result(DiscoveryOptions(root=str(place), max_depth=limit)))

    assert {entry.relative_path for entry in answer.entries} == {path for path in tree if path.count("/") <= limit}
    cut = {"/".join(path.split("/")[: limit + 1]) for path in tree if path.count("/") > limit}
    assert set(answer.too_deep) == cut


@covers("S6.4", "D333", "D333")
async def test_the_built_in_names_are_left_out_at_any_depth(service: FileDiscoveryService, root: Path) -> None:
    hidden = ["node_modules", ".git", "dist", "build", ".next", ".cache"]
    plant(root, "kept.txt", *(f"{name}/x" for name in hidden), *(f"deep/er/{name}/x" for name in hidden))

    assert await files(service, root) == {"kept.txt"}


@covers("S6.4", "D446")
async def test_a_configured_list_replaces_the_built_in_one(root: Path) -> None:
    plant(root, "node_modules/x.js", "vendor/y.js", "[odd/z.js")
    service = FileDiscoveryService(FileDiscoverySettings(builtin_ignores=("vendor", "[odd")), root / "home")

    assert await files(service, root) == {"node_modules/x.js", "[odd/z.js"}
    assert [(bad.source, bad.line, bad.text) for bad in service.list_bad_rules()] == [("built-in rules", 2, "[odd")]


@covers("S6.2")
async def test_ollmignore_brings_back_what_the_others_hide(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a.log", "dist/app.js", "secret/plan.txt", "notes.txt")
    rules(root, ".gitignore", "*.log", "secret/")
    rules(root, ".ollmignore", "!*.log", "!dist", "!secret/", "notes.txt")

    assert await files(service, root) == {".gitignore", ".ollmignore", "a.log", "dist/app.js", "secret/plan.txt"}


@covers("S6.1", "D310", "D310")
async def test_the_first_entries_come_before_the_walk_is_over(service: FileDiscoveryService, root: Path) -> None:
    plant(root, *(f"d{folder:03}/f{number}" for folder in range(120) for number in range(10)))
    stream = service.discover(DiscoveryOptions(root=str(root)))
    first = await anext(stream)
    plant(root, "d119/late")

    rest = [entry.relative_path async for entry in stream]

    assert first.relative_path == "d000/f0"
    assert "d119/late" in rest
    assert len(rest) == 1200


async def test_a_stream_that_is_left_ends_the_walk(service: FileDiscoveryService, root: Path) -> None:
    plant(root, *(f"d{folder}/f" for folder in range(30)))
    stream = service.discover(DiscoveryOptions(root=str(root)))

    await anext(stream)
    await stream.aclose()

    assert len(await files(service, root)) == 30


async def test_a_project_outside_a_repository_lends_its_rules_to_its_folders(
    service: FileDiscoveryService, root: Path
) -> None:
    plant(root, "src/a.log", "src/b.txt", "src/c.md")
    rules(root, ".gitignore", "*.log")
    rules(root, ".ollmignore", "/src/*.md")

    assert await files(service, root / "src", within=str(root)) == {"b.txt"}
    assert await files(service, root / "src") == {"a.log", "b.txt", "c.md"}


@pytest.mark.parametrize("name", ["a file", "missing"])
async def test_a_root_that_is_no_directory_is_told(service: FileDiscoveryService, root: Path, name: str) -> None:
    plant(root, "a file")

    with pytest.raises(NotFoundError, match=name):
        await service.discover_all(DiscoveryOptions(root=str(root / name)))


def test_a_scan_warns_of_each_bad_rule_once(
    service: FileDiscoveryService, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plant(root, "a")
    rules(root, ".gitignore", "[odd", "*.log")

    for _ in range(2):
        assert [place.files for place in service.scan_tree(str(root), 9)] == [[".gitignore", "a"]]

    (warned,) = caplog.messages
    assert ".gitignore:1 is skipped" in warned
    assert [bad.text for bad in service.list_bad_rules()] == ["[odd"]


@covers("D293", "D294", "D295", "D296", "D297", "D311", "D293", "D294", "D295", "D296", "D297", "D311")
async def test_directories_sizes_and_times_come_when_asked_for(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/a.py")
    os.utime(root / "src" / "a.py", (1_700_000_000, 1_700_000_000))

    entries = await service.discover_all(DiscoveryOptions(root=str(root), directories=True, stat=True))

    folder, file = entries
    assert (folder.relative_path, folder.type) == ("src", "directory")
    assert (file.path, file.type, file.size) == (str(root / "src/a.py"), "file", 5)
    assert file.modified is not None
    assert file.modified.isoformat() == "2023-11-14T22:13:20+00:00"


@covers("D303", "D304", "D303", "D304")
async def test_include_and_exclude_globs(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a.ts", "src/b.ts", "src/c.tsx", "src/gen/d.ts", "e.py")

    assert await files(service, root, include_patterns=("*.ts",)) == {"a.ts", "src/b.ts", "src/gen/d.ts"}
    assert await files(service, root, include_patterns=("src/**/*.{ts,tsx}",)) == {
        "src/b.ts",
        "src/c.tsx",
        "src/gen/d.ts",
    }
    assert await files(service, root, include_patterns=("/*.ts", "*.py")) == {"a.ts", "e.py"}
    assert await files(service, root, exclude_patterns=("gen", "*.py")) == {"a.ts", "src/b.ts", "src/c.tsx"}


_listening: list[list[str]] = []


def _note_open(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _listening and isinstance(arguments[0], str | bytes):
        _listening[-1].append(os.fsdecode(arguments[0]))


sys.addaudithook(_note_open)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Every file that is opened inside, by name."""
    _listening.append([])
    try:
        yield _listening[-1]
    finally:
        _listening.pop()


@covers("D334")
async def test_the_rules_of_a_directory_are_read_once(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept", "sub/kept", "sub/left.log", "left.log")
    (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (root / "sub" / ".gitignore").write_text("!kept\n", encoding="utf-8")
    for path in (root / ".gitignore", root / "sub" / ".gitignore"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    make_old(root)

    with opened_files() as first:
        found = await files(service, root)
    with opened_files() as second:
        again = await files(service, root)

    assert found == again == {"kept", "sub/kept", ".gitignore", "sub/.gitignore"}
    assert len([name for name in first if name.endswith(".gitignore")]) == 2
    assert [name for name in second if name.endswith(".gitignore")] == []


@covers("D335")
async def test_going_through_a_large_project_keeps_no_entry_of_it(service: FileDiscoveryService, root: Path) -> None:
    plant(root, *(f"{folder}/{number}" for folder in range(20) for number in range(100)))

    tracemalloc.start()
    try:
        count = 0
        async for _ in service.discover(DiscoveryOptions(root=str(root))):
            count += 1
        streamed = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert count == 2000
    assert streamed < 2000 * 163  # bytes: what a list of all entries takes
