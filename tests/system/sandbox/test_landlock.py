"""What Landlock lets a process change, tried in a child that restricts itself."""

import errno
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ollm.system.sandbox.landlock import get_landlock_version, restrict_writes
from tests.system.sandbox.children import run_in_child

VERSION = get_landlock_version()
pytestmark = pytest.mark.skipif(VERSION == 0, reason="this kernel has no Landlock")
DENIED = f"errno {errno.EACCES}"


def try_restricted(writable: list[str], body: Callable[[], object], **more: bool) -> str:
    def work() -> object:
        restrict_writes(writable, VERSION, **more)
        return body()

    return run_in_child(work)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("before")
    return tmp_path / "open", tmp_path / "closed"


def test_files_are_changed_under_the_named_places_only(places: tuple[Path, Path]) -> None:
    opened, closed = places

    assert try_restricted([str(opened)], lambda: (opened / "new").write_text("x")) == "1"
    assert try_restricted([str(opened)], lambda: (closed / "new").write_text("x")) == DENIED
    assert try_restricted([str(opened)], lambda: (closed / "file").write_text("x")) == DENIED
    assert try_restricted([str(opened)], (closed / "file").unlink) == DENIED
    assert try_restricted([str(opened)], (closed / "dir").mkdir) == DENIED
    assert try_restricted([str(opened)], lambda: (closed / "link").symlink_to("x")) == DENIED
    assert (closed / "file").read_text() == "before"


def test_everything_can_still_be_read(places: tuple[Path, Path]) -> None:
    assert try_restricted([], (places[1] / "file").read_text) == "'before'"


def test_a_single_file_can_be_named_and_what_is_missing_needs_no_permission(places: tuple[Path, Path]) -> None:
    _, closed = places

    assert try_restricted([str(closed / "file"), "/no/such/place"], lambda: (closed / "file").write_text("x")) == "1"
    assert try_restricted([str(closed / "file")], lambda: (closed / "other").write_text("x")) == DENIED


@pytest.mark.skipif(VERSION < 4, reason="this kernel's Landlock knows no network")
@pytest.mark.parametrize("tcp", [True, False])
def test_without_tcp_nothing_is_bound_or_connected(tcp: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def connect() -> str:
            with socket.create_connection(server.getsockname(), timeout=60):
                return "connected"

        def bind() -> str:
            with socket.create_server(("127.0.0.1", 0)):
                return "bound"

        assert try_restricted([], connect, tcp=tcp) == ("'connected'" if tcp else DENIED)
        assert try_restricted([], bind, tcp=tcp) == ("'bound'" if tcp else DENIED)
