"""The languages that can be parsed: their files, grammars, and nodes that are definitions."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ollm.domain.struct import Data


class CodeLanguage(Data, frozen=True):
    """A parsable language. `wrappers` are nodes that may enclose definitions without owning them."""

    name: str
    suffixes: tuple[str, ...]
    wrappers: frozenset[str]
    module: str
    function: str = "language"

    def get_kind(self, node: str) -> str | None:
        """Return the kind of definition of a node, or None if it is not a definition."""
        return TABLE.kinds_by_language.get(f"{self.name} {node}") or _KINDS.get(node)

    def is_container(self, node: str) -> bool:
        """Return True if a definition may contain others. A C struct does not."""
        return node in TABLE.containers and self.name != "c"


class LanguageTable(Data, frozen=True):
    """The content of `languages.json`. `nodes` maps kinds to the nodes of the grammars,
    which name them alike, so one table serves all."""

    nodes: dict[str, tuple[str, ...]]
    containers: frozenset[str]
    kinds_by_language: dict[str, str]
    languages: tuple[CodeLanguage, ...]
    families: dict[str, str]


TABLE = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=LanguageTable)
_KINDS = {node: kind for kind, nodes in TABLE.nodes.items() for node in nodes}
_BY_SUFFIX = {suffix: language for language in TABLE.languages for suffix in language.suffixes}


def find_language(name: str) -> CodeLanguage | None:
    before, dot, suffix = name.rpartition("/")[2].lstrip(".").rpartition(".")
    return _BY_SUFFIX.get(suffix.lower()) if before or dot else None


def get_family(name: str) -> str:
    """Return the family of languages that can call each other, such as C and C++."""
    language = find_language(name)
    return TABLE.families.get(language.name, language.name) if language else ""
