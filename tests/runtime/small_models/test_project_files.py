"""The project's text files as the model may see them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.tools import Verdict
from ollm.runtime.small_models.project_files import MAX_TEXT_BYTES, ProjectFiles
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext
from tests.runtime.calls.support import ALLOW, ASK, Fixed


class Place:
    def __init__(self, root: Path, verdict: Verdict = ALLOW) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.ledger = EditLedger()
        self.policy = Fixed(verdict)
        self.discovery = FileDiscoveryService(FileDiscoverySettings(), root.parent / "home")
        self.files = ProjectFiles(ToolContext(boundary=Boundary.around(root)), self.policy, self.ledger, self.discovery)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def is_stale(self, name: str) -> bool:
        path = self.root / name
        return self.ledger.is_stale(path, path.stat(), path.read_bytes())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "w")
    yield made
    made.discovery.close()


async def test_names_are_sorted_and_ignored_ones_are_left_out(place: Place) -> None:
    for name in ("b.py", "a/c.py", "node_modules/x.js", "out.log"):
        place.write(name, "x")
    place.write(".gitignore", "*.log\n")

    assert await place.files.list_names() == [".gitignore", "a/c.py", "b.py"]


def test_texts_are_read_and_what_is_none_is_not(place: Place) -> None:
    place.write("a.txt", "héllo\n")
    place.write("binary", b"\x00\x01\x02" * 50)
    place.write("long", "x" * (MAX_TEXT_BYTES + 1))
    place.write("fits", "x" * MAX_TEXT_BYTES)
    (place.root / "folder").mkdir()

    assert place.files.read_text("a.txt") == "héllo\n"
    assert place.files.read_text("fits") is not None
    for name in ("binary", "long", "folder", "missing", "../outside", "a\0b", ""):
        assert place.files.read_text(name) is None
    assert place.files.read_texts(["a.txt", "missing"]) == {"a.txt": "héllo\n"}
    assert place.files.exists("a.txt")
    assert not place.files.exists("folder")
    assert not place.files.exists("missing")


def test_what_a_reading_tool_would_have_to_ask_about_is_not_read(tmp_path: Path) -> None:
    place = Place(tmp_path / "w", ASK)
    place.write("a.txt", "secret")

    assert place.files.read_text("a.txt") is None
    (request,) = place.policy.requests
    assert (request.tool, request.params, request.reads_only) == ("read_file", {"path": "a.txt"}, True)
    assert [(found.target, found.access) for found in request.locations] == [("a.txt", "read")]


def test_a_file_that_is_remembered_is_stale_when_it_changes(place: Place) -> None:
    place.write("a.txt", "one")
    place.files.remember("a.txt")
    assert not place.is_stale("a.txt")
    place.write("a.txt", "two")
    assert place.is_stale("a.txt")
    place.files.remember("a.txt")
    assert not place.is_stale("a.txt")
    place.files.remember("missing")
