"""Random trees and changes, and a walk that judges them: it shares nothing with what it judges."""

import os
import random
import shutil
import stat
from pathlib import Path

from ollm.config.settings import CheckpointSettings, FileDiscoverySettings
from ollm.domain.clock import now
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import CheckpointPlace
from ollm.services.file_discovery.service import FileDiscoveryService

SESSION = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
NAMES = ("a", "b", "c.txt", "d d", "é", "-x", ".hidden", b"\xff\xfe".decode("utf-8", "surrogateescape"))
MODES = (0o644, 0o600, 0o755, 0o444, 0o640, 0o4755, 0o2711)
IGNORED_NAME = "node_modules"

State = dict[str, tuple[str, int, bytes]]


def read_state(root: Path) -> State:
    """Every name below a directory with its kind, mode (of files without set-id bits) and content, but what is ignored."""
    found: State = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [name for name in folders if name != IGNORED_NAME.encode()]
        for name in [*folders, *files]:
            path = os.path.join(folder, name)  # noqa: PTH118
            status = os.lstat(path)
            key = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", 0, os.readlink(path))  # noqa: PTH115
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", stat.S_IMODE(status.st_mode), b"")
            else:
                with open(path, "rb") as file:  # noqa: PTH123
                    found[key] = ("file", status.st_mode & 0o1777, file.read())
    return found


def change_tree(root: Path, chance: random.Random, count: int) -> None:
    """So many changes of every kind."""
    for _ in range(count):
        existing = [root / name for name in read_state(root)]
        deeper = [path for path in existing if path.is_dir() and not path.is_symlink()]
        target = chance.choice([root, *deeper]) / chance.choice(NAMES)
        chosen = chance.choice(existing) if existing else target
        action = chance.choice((write, write, write, make_folder, make_link, remove, remove, move, change_mode))
        action(chance, chosen if action in (remove, change_mode) and existing else target, chosen)


def write(chance: random.Random, target: Path, _other: Path) -> None:
    clear(target)
    target.write_bytes(chance.randbytes(chance.choice((0, 1, 40))))
    target.chmod(chance.choice(MODES))


def make_folder(_chance: random.Random, target: Path, _other: Path) -> None:
    clear(target)
    target.mkdir()


def make_link(chance: random.Random, target: Path, other: Path) -> None:
    clear(target)
    target.symlink_to(chance.choice([Path("nowhere"), Path("/etc"), Path(other.name), Path()]))


def remove(_chance: random.Random, target: Path, _other: Path) -> None:
    clear(target)


def move(_chance: random.Random, target: Path, other: Path) -> None:
    inside = target == other or other in target.parents or target in other.parents
    if not inside and os.path.lexists(other):
        clear(target)
        other.rename(target)


def change_mode(chance: random.Random, target: Path, _other: Path) -> None:
    if target.is_symlink() or not target.exists():
        return
    target.chmod(chance.choice((0o755, 0o700, 0o750)) if target.is_dir() else chance.choice(MODES))


def clear(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def make_checkpoints(place: Path, **settings: int | bool) -> FileCheckpoints:
    """Of `place/tree`, saved in `place/saved`."""
    discovery = FileDiscoveryService(FileDiscoverySettings(), place / "home")
    where = CheckpointPlace(root=place / "tree", folder=place / "saved", user_home=place / "home")
    return FileCheckpoints(where, CheckpointSettings(**settings), discovery.scan_tree, now)  # type: ignore[arg-type]


def take_turn(checkpoints: FileCheckpoints, message_id: int, session_id: str = SESSION) -> "Turn":
    return Turn(checkpoints, message_id, session_id)


class Turn:
    """`with take_turn(...)`: what is changed inside is what the session did."""

    def __init__(self, checkpoints: FileCheckpoints, message_id: int, session_id: str) -> None:
        self._checkpoints, self._message_id, self._session_id = checkpoints, message_id, session_id

    def __enter__(self) -> None:
        self._checkpoints.begin(self._session_id, self._message_id)

    def __exit__(self, *_: object) -> None:
        self._checkpoints.end()
