"""Private layers over directories, in which other file systems may be mounted."""

import os
from pathlib import Path

import pytest

from ollm.system.sandbox import kernel
from ollm.system.sandbox.layers import _escape
from tests.ordinary_user import as_ordinary_user
from tests.system.box_world import World

LINES = """\
cat $O/../mounted/f $O/../beside/deep/f; cat $O/../top $O/../link
echo made > $O/../mounted/new; echo made > $O/../beside/new; cat $O/../mounted/new $O/../beside/new
rm $O/../beside/deep/f; echo changed > $O/../top; mktemp
$PYTHON -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["SOCK"])'
"""


@pytest.mark.parametrize(("path", "escaped"), [("/a b", "/a b"), ("/a:b,c", "/a\\:b\\,c"), ("/a\\b", "/a\\\\b")])
def test_paths_in_mount_options_are_escaped(path: str, escaped: str) -> None:
    assert _escape(path) == escaped


def mount_in_namespaces_of_our_own(place: Path) -> None:
    """A file system in memory, which nobody outside this process sees."""
    user, group = os.geteuid(), os.getegid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.call("unshare", kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", str(place), "tmpfs", kernel.MS_NOSUID)


@pytest.mark.skipif(not kernel.AUDIT_ARCH, reason="namespaces are Linux's")
def test_a_file_system_mounted_below_the_temporary_directory_hides_nothing_else_in_it() -> None:
    def body(directory: Path) -> None:
        for name in ("mounted", "beside/deep"):
            (directory / name).mkdir(parents=True)
        mount_in_namespaces_of_our_own(directory / "mounted")
        (directory / "mounted/f").write_text("in the mount\n")
        (directory / "beside/deep/f").write_text("beside it\n")
        (directory / "top").write_text("a file\n")
        (directory / "link").symlink_to("top")
        world = World(directory, "full")
        said = world.run(LINES)
        faults = world.judge(said, "working")
        assert world.run("echo x > made; cat made", "working").startswith("x")
        world.close()
        assert said.split("\n")[:6] == ["in the mount", "beside it", "a file", "a file", "made", "made"], said
        assert "/tmp/tmp." in said
        assert faults == []
        assert (directory / "beside/deep/f").read_text() == "beside it\n"
        assert (directory / "top").read_text() == "a file\n"

    as_ordinary_user(body)
