"""Imports of a name that a module of the project had and no longer has, found by reading. Pure but for the reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ollm.providers.text_calls.definitions import list_defined_names

MAX_READ_MODULES = 200
_ENDINGS = frozenset({"js", "mjs", "cjs", "ts", "jsx", "tsx"})
_TOP_NAME = re.compile(r"^(?:(?:async\s+)?(?:def|class)\s+)?([A-Za-z_]\w*)(?=\s*[(:=])", re.MULTILINE)
_FROM = re.compile(r"^\s*from\s+\.*([\w.]*)\s+import\s+(\([^)]*\)|[^\n#]+)", re.MULTILINE)


def find_lost_imports(
    before: Mapping[str, str], after: Mapping[str, str], names: Sequence[str], read: Callable[[str], str | None]
) -> list[str]:
    """The step for each Python file that imports what went, and where that is now."""
    lost = {
        (_stem(path), name): path
        for path, text in before.items()
        if path.endswith(".py") and path in after
        for name in _list_top_names(text) - _list_top_names(after[path])
    }
    others = _find_lost_uses(before, after, names, read)
    if not lost:
        return others
    modules = [name for name in names if name.endswith(".py")][:MAX_READ_MODULES]
    return [told for path in modules for told in _check_module(path, read(path) or "", lost, after)] + others


def _find_lost_uses(
    before: Mapping[str, str], after: Mapping[str, str], names: Sequence[str], read: Callable[[str], str | None]
) -> list[str]:
    """The step for each file in another language that names a module by its path and uses a function that went."""
    steps = []
    for source, text in before.items():
        stem, dot, ending = source.rpartition("/")[2].rpartition(".")
        gone = list_defined_names(text) - list_defined_names(after.get(source, text)) if ending in _ENDINGS else set()
        users = [name for name in names if gone and name != source and name.endswith(f"{dot}{ending}")]
        for user in users[:MAX_READ_MODULES]:
            held = read(user) or ""
            used = [
                name
                for name in sorted(gone - list_defined_names(held))
                if re.search(rf"(?<![\w$]){name}(?![\w$])", held)
            ]
            if used and re.search(rf"[\"'/]{re.escape(stem)}(?:\.\w+)?[\"']", held):
                steps.append(f"{user} uses {used[0]} from {source}, which no longer has it. Now change {user}.")
    return steps


def _check_module(path: str, text: str, lost: Mapping[tuple[str, str], str], after: Mapping[str, str]) -> list[str]:
    for found in _FROM.finditer(text):
        module = found[1].rsplit(".", 1)[-1]
        for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"\bas\s+\w+", "", found[2])):
            source = lost.get((module, name))
            if source is None or source == path:
                continue
            new = [
                _stem(other)
                for other, held in after.items()
                if other.endswith(".py") and name in _TOP_NAME.findall(held)
            ]
            where = f" It is in {new[0]} now." if len(new) == 1 else ""
            return [f"{path} imports {name} from {module}, which no longer has it.{where} Now change {path}."]
    return []


def _list_top_names(text: str) -> set[str]:
    """Names that a module sets, defines or imports at its top."""
    imported = {name for found in _FROM.finditer(text) for name in re.findall(r"[A-Za-z_]\w*", found[2])}
    return set(_TOP_NAME.findall(text)) | imported


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".py")
