"""How modules of Python in a project name each other, and which of them use what moves. Pure but for the reading."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from ollm.domain.struct import Data
from ollm.services.request_reading.asked_places import MovedNames
from ollm.services.request_reading.python_modules import Imported, read_module

Read = Callable[[str], str | None]
MAX_READ_MODULES = 200
_SETTINGS = (".toml", ".cfg", ".ini", ".yml", ".yaml")


class Users(Data, frozen=True):
    """`changes` are the commands for modules whose imports are rewritten, `left` the names that others go on taking
    from the source."""

    changes: tuple[str, ...]
    left: frozenset[str]


def name_module(source: str, target: str, names: Sequence[str], read: Read) -> str:
    """How the source imports from the target; empty where its folders leave it open."""
    folder, _, file = target.rpartition("/")
    stem, home = file.removesuffix(".py"), source.rpartition("/")[0]
    parts = [*folder.split("/"), stem] if folder else [stem]
    dunder = any(path.rpartition("/")[2].startswith("__") for path in (source, target))
    if not all(part.isidentifier() for part in parts) or dunder or "__init__.py" in names:
        return ""
    if not home:
        return ".".join(parts)
    return _name_beside(source, home, stem, names, read) if home == folder else ""


def _name_beside(source: str, home: str, stem: str, names: Sequence[str], read: Read) -> str:
    """In the same folder: as the source imports others there."""
    module = read_module(read(source) or "")
    imports = module.imports if module else ()
    beside = {name.rpartition("/")[2].removesuffix(".py") for name in names if name.rpartition("/")[0] == home}
    if any(found.module.startswith(".") for found in imports):
        return f".{stem}"
    if any(found.module in beside for found in imports):
        return stem
    heads = (f".{found.module}".rpartition(".")[0] for found in imports)
    if head := next((head for head in heads if head.endswith(f".{home.rpartition('/')[2]}")), ""):
        return f"{head[1:]}.{stem}"
    runs = re.search(r"^if __name__\b", read(source) or "", re.MULTILINE)
    return f".{stem}" if f"{home}/__init__.py" in names and not runs else ""


def reaches(start: str, goal: str, names: Sequence[str], read: Read) -> bool:
    """Whether a module imports another, by others or itself, as far as the last parts of their names say."""
    by_stem: dict[str, list[str]] = {}
    for name in names:
        if name.endswith(".py"):
            by_stem.setdefault(name.rpartition("/")[2].removesuffix(".py"), []).append(name)
    seen, waiting = {start}, [start]
    while waiting:
        words = re.findall(r"^\s*(?:from|import)\s+(.+)$", read(waiting.pop()) or "", re.MULTILINE)
        found = {path for line in words for word in re.findall(r"\w+", line) for path in by_stem.get(word, ())}
        waiting += found - seen
        seen |= found
    return goal in seen


def find_users(moved: MovedNames, names: Sequence[str], read: Read, may_change: Callable[[str], bool]) -> Users:
    """The modules that take what moves from the source: a plain import is rewritten, for others it stays there."""
    modules = [name for name in names if name.endswith(".py") and name not in (moved.source, moved.target)]
    if len(modules) > MAX_READ_MODULES:
        return Users(changes=(), left=frozenset(moved.names))
    changes, left = [], _list_configured(moved, names, read)
    for path in modules:
        text = read(path)
        if text is None:
            return Users(changes=(), left=frozenset(moved.names))
        taken, others = _list_taken(text, moved, names)
        change = _rewrite_imports(path, taken, moved) if may_change(path) and not others else ""
        changes += [change] if change else []
        left |= set() if change else others | {name for found in taken for name in found.names if name in moved.names}
    return Users(changes=tuple(changes), left=frozenset(left))


def _list_configured(moved: MovedNames, names: Sequence[str], read: Read) -> set[str]:
    """What files of settings name with its module, as `shop:main`."""
    stem = moved.source.rpartition("/")[2].removesuffix(".py")
    texts = [read(name) or "" for name in names if name.endswith(_SETTINGS)]
    return {name for name in moved.names for text in texts if re.search(rf"\b{stem}[:.]{name}\b", text)}


def _list_taken(text: str, moved: MovedNames, names: Sequence[str]) -> tuple[list[Imported], set[str]]:
    """The plain imports of what moves, and what of it may be used in another way."""
    stem = moved.source.rpartition("/")[2].removesuffix(".py")
    said = {name for name in moved.names if re.search(rf"\b{name}\b", text)}
    if not re.search(rf"\b{stem}\b", text):
        return [], set()
    module = read_module(text)
    if module is None:
        return [], said
    alike = [name for name in names if name.rpartition("/")[2] == f"{stem}.py"]
    ours = [found for found in module.imports if found.module.lstrip(".").rpartition(".")[2] == stem]
    taken = [found for found in ours if set(found.names) & set(moved.names)]
    plain = len(alike) == 1 and all(found.plain for found in taken)
    elsewhere = re.search(rf"\b{stem}\b", module.cut([found.lines for found in ours]))
    hidden = [found for found in ours if not found.plain and found not in taken]
    if not plain or elsewhere or hidden:
        return [], said
    return taken, set()


def _rewrite_imports(path: str, taken: Sequence[Imported], moved: MovedNames) -> str:
    """sed's command for the imports of one module; empty where the new module's name is in doubt."""
    home, aim = moved.source.rpartition("/"), moved.target.rpartition("/")
    stem = aim[2].removesuffix(".py")
    edits = []
    for found in taken:
        head, dot, _ = found.module.rpartition(".")
        if home[0] != aim[0] and (home[0] or head or dot):
            return ""
        new = f"{head}{dot}{stem}" if home[0] == aim[0] else moved.target.removesuffix(".py").replace("/", ".")
        stays = [name for name in found.names if name not in moved.names]
        goes = [name for name in found.names if name in moved.names]
        lines = [f"from {found.module} import {', '.join(stays)}"] if stays else []
        lines.append(f"from {new} import {', '.join(goes)}")
        written = "\\n".join(lines)
        edits.append(f"-e '{found.lines[0]}s/.*/{written}/'")
    return f"sed -i {' '.join(edits)} {shlex.quote(path)}" if edits else ""
