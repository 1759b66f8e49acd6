"""The namespaces that all boxes of a session share."""

import os
from pathlib import Path

import pytest

from ollm.system.sandbox import kernel
from ollm.system.sandbox.base import _render_id_map, build_base, list_scratch_places
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.levels import detect_level
from tests.system.sandbox.children import run_in_child


def read_namespace(name: str) -> str:
    return str(Path(f"/proc/self/ns/{name}").readlink())


def test_every_box_may_write_to_temporary_directories_and_caches() -> None:
    found = list_scratch_places("/home/ada")

    assert found[:2] == ["/tmp", "/var/tmp"]
    assert {"/home/ada/.cache", "/home/ada/.npm", "/home/ada/.cargo/registry"} <= set(found)
    assert "/home/ada" not in found


def test_a_map_under_which_every_id_is_itself() -> None:
    for line in _render_id_map("uid").splitlines():
        first, same, count = line.split()
        assert first == same
        assert int(count) > 0


@pytest.mark.skipif(not kernel.AUDIT_ARCH, reason="namespaces are Linux's")
def test_the_namespaces_are_others_and_the_workspace_stays_writable(tmp_path_factory: pytest.TempPathFactory) -> None:
    if detect_level() != "full":
        pytest.skip("this machine makes no namespaces")
    workspace = tmp_path_factory.mktemp("work").resolve()
    outside = [read_namespace(name) for name in ("user", "mnt", "net")]

    def look() -> tuple[bool, bool, str]:
        made = build_base(Box(kind="working", workspace=str(workspace), home="/nowhere"))
        inside = [read_namespace(name) for name in ("user", "mnt", "net")]
        (workspace / "file").write_text("x")
        try:
            Path("/etc/made-by-test").touch()
            refused = ""
        except OSError as error:
            refused = os.strerror(error.errno or 0)
        return len(made) == 3, all(one != other for one, other in zip(inside, outside, strict=True)), refused

    assert run_in_child(look) == "(True, True, 'Read-only file system')"
    assert (workspace / "file").read_text() == "x"
