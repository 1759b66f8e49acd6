"""The words and expressions of `patterns.txt`, read for the first text that could hold a secret."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

MARK = "[redacted]"


@cache
def load_lines() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            found[name].append(line[2:])
        elif line and line[0] != "#":
            name, _, value = line.partition(" = ")
            found[name] = [value]
    return found


@cache
def get_words(name: str) -> frozenset[str]:
    return frozenset(" ".join(load_lines()[name]).split())


@cache
def get_pattern(name: str) -> re.Pattern[str]:
    return re.compile("".join(load_lines()[name]))


@cache
def list_shapes() -> dict[str, str]:
    """List the expressions of tokens, each with a text that is in every token of that shape."""
    rest = "".join(load_lines()["random_rest"])
    begun = {prefix: re.escape(prefix) + rest for prefix in sorted(get_words("token_prefixes"))}
    named = {name.removeprefix("shape "): "".join(lines) for name, lines in load_lines().items() if " " in name}
    return begun | named
