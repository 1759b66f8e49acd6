"""Which tests come past which block of the code: one run of the tests over a marked copy, kept for later runs."""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from bench.mutants.blocks import find_given_name, find_holders, find_users, list_blocks, mark_source
from bench.mutants.reach_plugin import ENTRY, NOTES, TIMES
from bench.mutants.sites import Mutant, list_modules

PLUGINS = ["-pno:cacheprovider", "-ppytest_asyncio.plugin", "-p_hypothesis_pytestplugin"]
MAX_RUN_SECONDS = 3600


class Reach(NamedTuple):
    """The tests that come past each block, by `module name#number`, and the seconds each passing test took."""

    blocks: dict[str, list[str]]
    seconds: dict[str, float]

    def list_past(self, mutant: Mutant, root: Path) -> list[str]:
        """Those that read what is changed, where that is a value with a name, in whichever module."""
        source = mutant.path.read_bytes()
        given = find_given_name(source, mutant.start)
        found = self._list_past_users(given, root) if given else []
        if found:
            return found
        module = str(mutant.path.relative_to(root))
        return self._list_past_blocks(
            f"{module} {name}" for name in find_holders(source, list_blocks(source), mutant.start)
        )

    def _list_past_users(self, name: str, root: Path) -> list[str]:
        waiting, blocks = [name], dict[str, None]()
        for wanted in waiting:
            for path in list_readers(wanted, root):
                held, made = find_users(path.read_bytes(), wanted)
                blocks |= dict.fromkeys(f"{path.relative_to(root)} {block}" for block in held)
                waiting += [given for given in made if given not in waiting]
        return self._list_past_blocks(blocks)

    def _list_past_blocks(self, blocks: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(test for block in blocks for test in self.blocks.get(block, [])))


def list_readers(name: str, root: Path) -> list[Path]:
    word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
    return [path for path in sorted((root / "src" / "ollm").rglob("*.py")) if word.search(path.read_bytes())]


def find_reach(
    packages: list[str], copy: Path, root: Path, tests: list[str], environment: dict[str, str], jobs: int = 2
) -> Reach:
    """Run `tests` once over a marked copy; said word by word (`-v`), or quick tests would not be reported one by one
    and what one came past would count for none of those after it."""
    modules = list(list_modules(root, packages))
    names = list(mark_copy(modules, copy, root))
    command = [sys.executable, "-m", "pytest", "-v", "-preach_plugin", *PLUGINS, "-pxdist.plugin", f"-n{jobs}", *tests]
    try:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=copy, env=environment, timeout=MAX_RUN_SECONDS, check=False)
    finally:
        for path in modules:
            shutil.copy(path, copy / path.relative_to(root))
    return read_notes(names, copy)


def mark_copy(modules: list[Path], copy: Path, root: Path) -> Iterator[str]:
    """The names of all blocks, each at the number that stands in its note."""
    number = 0
    for path in modules:
        source, inner = path.read_bytes(), path.relative_to(root)
        names = [block.name for block in list_blocks(source)]
        if names:
            numbers = {name: number + at for at, name in enumerate(names)}
            (copy / inner).write_bytes(mark_source(source, numbers))
            number += len(names)
            yield from (f"{inner} {name}" for name in names)


def read_notes(names: list[str], copy: Path) -> Reach:
    seconds: dict[str, float] = dict(read_entries(copy / TIMES))
    tests = {crc32(test.encode("utf-8", "replace")): test for test in seconds}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    notes = (copy / NOTES).read_bytes() if (copy / NOTES).exists() else b""
    for test, number in ENTRY.iter_unpack(notes[: len(notes) - len(notes) % ENTRY.size]):
        if test in tests and number < len(names):
            found[names[number]][tests[test]] = None
    return Reach({name: list(past) for name, past in found.items()}, seconds)


def read_entries(path: Path) -> Iterator[tuple[Any, Any]]:
    """A process that is killed, or has no space by a test's will, may leave a line half written."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError):
            first, second = json.loads(line)
            yield first, second


def save_reach(reach: Reach, path: Path) -> None:
    """Tests by number: most blocks are passed by thousands."""
    tests = list(reach.seconds)
    numbers = {test: number for number, test in enumerate(tests)}
    blocks = {name: [numbers[test] for test in past] for name, past in reach.blocks.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([list(reach.seconds.items()), blocks]), encoding="utf-8")


def load_reach(path: Path) -> Reach:
    seconds, blocks = json.loads(path.read_text(encoding="utf-8"))
    tests = [test for test, _ in seconds]
    return Reach({name: [tests[at] for at in past] for name, past in blocks.items()}, dict(seconds))


def join_reach(first: Reach, second: Reach) -> Reach:
    """What either saw; a test's seconds by the second."""
    blocks = {name: list(dict.fromkeys([*first.blocks.get(name, []), *past])) for name, past in second.blocks.items()}
    return Reach({**first.blocks, **blocks}, {**first.seconds, **second.seconds})
