"""What boxed commands can do and cannot, judged by what was changed, read, reached or ended outside."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from ollm.system.sandbox import names
from ollm.system.sandbox.box import Kind, Level, Network
from tests.ordinary_user import as_ordinary_user
from tests.sizes import SOAK, size
from tests.system.box_escapes import NETWORKED, READING, WORKING
from tests.system.box_world import LEVELS, SECRET, World, find_place

KINDS: tuple[Kind, ...] = ("reading", "working")
PATIENCE_SECONDS = 900  # on a machine that is busy with other things
ATTEMPTS: list[tuple[Kind, Network, dict[str, str]]] = [
    ("reading", "none", READING),
    ("working", "none", WORKING),
    ("working", "all", NETWORKED),
]


def attempt_all(root: Path, level: Level, every: int = 1) -> None:
    """With `every`, one line in so many."""
    world = World(root, level)
    broken = []
    try:
        for kind, network, lines in ATTEMPTS:
            for name, line in list(lines.items())[::every]:
                output = world.run(line, kind, network)
                broken += [f"{kind}, network {network}: {name}: {fault}" for fault in world.judge(output, kind)]
                world.restore_workspace()
    finally:
        world.close()
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("level", LEVELS)
def test_no_way_out_as_an_ordinary_user(level: Level) -> None:
    every = {"full": 1, "landlock": size(3, 1), "bubblewrap": size(8, 1)}[level]  # which are slower, and hold the same
    as_ordinary_user(lambda root: attempt_all(root, level, every), seconds=PATIENCE_SECONDS, within=find_place(level))


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.skipif(os.geteuid() != 0, reason="this is about root")
@pytest.mark.parametrize("level", LEVELS)
def test_no_way_out_as_root(level: Level) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="ollm-box-") as root:
        attempt_all(Path(root), level)


@pytest.mark.parametrize("level", LEVELS)
def test_what_other_people_and_linked_places_keep_is_not_seen(level: Level) -> None:
    def body(root: Path) -> None:
        names.HOMES, names.ROOT_HOME = str(root / "homes"), str(root / "nobody's")
        kept = {"homes/other/.ssh/id_rsa": SECRET, "kept/kube/config": SECRET, "homes/other/notes.txt": "their notes"}
        for name, text in {**kept, "home/.cache/huggingface/token": SECRET}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "home/.kube").symlink_to(root / "kept/kube")
        world = World(root, level)
        line = f"cat {root}/homes/other/.ssh/id_rsa {root}/kept/kube/config {root}/home/.cache/huggingface/token"
        said = {kind: world.run(f"{line} {root}/homes/other/notes.txt", kind) for kind in KINDS}
        world.close()

        assert SECRET not in str(said)
        assert "their notes" not in said["reading"]
        assert "their notes" in said["working"]

    as_ordinary_user(body, within=find_place(level))


def test_there_are_at_least_forty_attempts_in_each_box() -> None:
    assert all(len(lines) >= 40 for lines in (READING, WORKING))


def test_the_judge_sees_what_was_done() -> None:
    """The same lines without a box do harm, so that a world that is never harmed proves something."""

    def body(root: Path) -> None:
        world = World(root, "landlock")
        try:
            for line in ("echo x > $O/file", "cat ~/.ssh/id_rsa", "mkdir -p g/workflows; ln -s g .github"):
                command = ["/bin/bash", "-c", line]
                places = {**os.environ, "HOME": str(world.home), "O": str(world.outside)}
                done = subprocess.run(
                    command, cwd=world.workspace, env=places, capture_output=True, text=True, check=False
                )
                assert world.judge(done.stdout, "working"), line
        finally:
            world.close()

    as_ordinary_user(body)
