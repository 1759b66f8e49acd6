"""Parses command lines into syntax trees with shfmt: one process per text, with results cached."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import msgspec

from ollm.domain.struct import Data
from ollm.system.sandbox.confined import find_bundled_program

Node = dict[str, Any]
_TIMEOUT_SECONDS = 10
_PLAIN_LINE = r"[\w ./=:@,+%~^-]*([|;&]{1,2}[\w ./=:@,+%~^-]+)*"
_SEPARATORS = r"(&&|\|\||\$\(|[;&|\n(){}`<>])"
_QUOTES = r"\$?[\"']|\\\n?"
_ASSIGNMENT = r"[A-Za-z_]\w*(\[[^]]*\])?\+?="
_UNCLOSED = r"(?s)unclosed here-document `(.+)`"
_RESERVED = frozenset(("if", "then", "else", "elif", "do", "while", "until", "time", "!", "{", "function", "coproc"))


class ParsedScript(Data, frozen=True):
    """The statements of a text, or the reason why it could not be parsed; `failed` if that says nothing about it."""

    source: bytes
    statements: tuple[Node, ...] = ()
    error: str = ""
    failed: bool = False

    def get_text(self, node: Node) -> str:
        return self.source[node["Pos"] : node["End"]].decode("utf-8", "replace").strip()


def iter_nodes(tree: object) -> Iterator[Node]:
    """Iterate over every node of a tree, at any depth and in no particular order."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += [child for child in node.values() if isinstance(child, (dict, list))]
        elif isinstance(node, (list, tuple)):
            waiting += node


@lru_cache(maxsize=1024)
def parse_script(text: str) -> ParsedScript:
    """Parse a bash script into its syntax tree. Never raises: the result contains the reason for a failure."""
    source = text.replace("\0", "").encode("utf-8", "replace")
    program = find_parser()
    if program is None:
        return ParsedScript(source=source, error="the shell parser shfmt is not installed", failed=True)
    try:
        done = _run_parser([program, "-ln", "bash", "--to-json"], source)
    except (OSError, subprocess.SubprocessError) as error:
        return ParsedScript(source=source, error=f"the shell parser could not be run: {error}", failed=True)
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        error_line = reason[0] if reason else "the shell parser gave up"
        return ParsedScript(source=source, error=error_line, failed=done.returncode != 1 or not reason)
    try:
        statements = msgspec.json.decode(done.stdout).get("Stmts") or ()
    except (msgspec.DecodeError, RecursionError):
        return ParsedScript(source=source, error="it is nested too deeply")
    _strip_positions(statements)
    return ParsedScript(source=source, statements=tuple(statements))


def _run_parser(words: list[str], text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    variables = {"PATH": os.defpath, "LC_ALL": "C"}
    return subprocess.run(
        words, input=text, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False, env=variables, cwd="/"
    )


def _strip_positions(statements: object) -> None:
    """Reduce positions to the start and end offset of each node: they make up three quarters of a tree."""
    for node in iter_nodes(statements):
        for key, child in list(node.items()):
            if isinstance(child, dict) and isinstance(child.get("Offset"), int):
                if key in ("Pos", "End"):
                    node[key] = child["Offset"]
                else:
                    del node[key]


@lru_cache(maxsize=1024)
def explain_bash_refusal(text: str) -> str:
    """Return why bash does not parse a line, or "" if it does. Lines of plain words are not checked. If bash and our
    parser differ on a line, so may the commands they find."""
    if re.fullmatch(_PLAIN_LINE, text):
        return ""
    try:
        done = _run_parser(["bash", "-n", "-c", text.replace("\0", "")])
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""  # Without bash the line cannot run either.
    return "" if done.returncode == 0 and not done.stderr else "bash cannot read it"


def split_unparsed(text: str) -> Iterator[list[str]]:
    """Split a text that does not parse into the words between operators, without quotes. Good enough to find forbidden
    commands, never to allow anything."""
    pieces = re.split(_SEPARATORS, text)
    for separator, stretch in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        words = re.sub(_QUOTES, "", stretch).split()
        for some in (words, words[1:]) if separator in ("<", ">") else (words,):
            while some and (some[0] in _RESERVED or re.match(_ASSIGNMENT, some[0])):
                some = some[1:]  # noqa: PLW2901 - what is before the program is left out
            if some:
                yield some


def close_here_document(text: str, error: str) -> str | None:
    """Append the marker of an unclosed here-document: bash lets the end of the text close it."""
    found = re.search(_UNCLOSED, error)
    return None if found is None else f"{text}\n{found.group(1)}"


def take_balanced(text: str) -> str:
    """Return the text up to where its first parenthesis is closed, or all of it."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return text[: index + 1]
    return text


@cache
def find_parser() -> str | None:
    return find_bundled_program("shfmt")
