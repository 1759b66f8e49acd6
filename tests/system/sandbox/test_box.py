"""What a box holds, and which workspaces can have one."""

import pytest

from ollm.system.sandbox.box import Box, explain_why_unboxable, is_inside


@pytest.mark.parametrize("workspace", ["/", "/home", "/home/u", "/etc"])
def test_some_workspaces_cannot_be_boxed_and_it_is_said_why(workspace: str) -> None:
    assert explain_why_unboxable(workspace, "/home/u") is not None


def test_an_ordinary_workspace_can_be_boxed() -> None:
    assert explain_why_unboxable("/home/u/project", "/home/u") is None


@pytest.mark.parametrize(
    ("path", "directory", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("/a/b", "/a/", True),
    ],
)
def test_a_directory_holds_itself_and_what_is_below(path: str, directory: str, inside: bool) -> None:
    assert is_inside(path, directory) is inside


@pytest.mark.parametrize(
    ("workspace", "why"),
    [
        ("/", "the workspace is the whole file system"),
        ("/home/ada", "the workspace is your home directory"),
        ("/home", "the workspace contains your home directory"),
        ("/etc", "the workspace is the system directory /etc"),
        ("/usr", "the workspace is the system directory /usr"),
        ("/etc/nginx", None),
        ("/srv", None),
        ("/home/ada/work", None),
    ],
)
def test_why_a_workspace_cannot_be_boxed(workspace: str, why: str | None) -> None:
    assert explain_why_unboxable(workspace, "/home/ada") == why


def test_a_box_travels_as_fields_and_comes_back() -> None:
    import json

    box = Box(kind="working", workspace="/w", home="/h", network="all", writable=("/x",), approved=("/y", "/z"))

    assert Box.from_fields(json.loads(json.dumps(box.to_fields()))) == box


def test_what_is_below_an_approved_path_is_approved() -> None:
    box = Box(kind="working", workspace="/w", home="/h", approved=("/y",))

    assert box.is_approved("/y/deeper")
    assert not box.is_approved("/yes")
    assert not Box(kind="working", workspace="/w", home="/h").is_approved("/y")
