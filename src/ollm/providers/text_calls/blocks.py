"""The blocks of an answer that stand for calls: fenced shell commands, files by name, and tools by their name.

A model that knows no tool calls writes what it has seen most: a fenced block. Pure: text in, blocks out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Literal

from ollm.domain.struct import Data

BlockKind = Literal["shell", "file", "tool", "code"]

SHELLS = frozenset({"bash", "sh", "shell", "console", "zsh", "terminal", "shell-session", "shellsession", "cmd"})
BARE_NAMES = frozenset(
    {"makefile", "dockerfile", "readme", "license", "licence", "changelog", "procfile", "gemfile", "justfile", "notes"}
)
# What a block without a language runs when it is all of the answer and begins with one of these.
PROGRAMS = frozenset(
    [
        "ls",
        "cat",
        "grep",
        "rg",
        "sed",
        "awk",
        "python",
        "python3",
        "pytest",
        "mv",
        "rm",
        "cp",
        "mkdir",
        "rmdir",
        "touch",
        "echo",
        "printf",
        "git",
        "wc",
        "find",
        "head",
        "tail",
        "sort",
        "uniq",
        "node",
        "npm",
        "make",
        "go",
        "cargo",
        "sh",
        "bash",
        "chmod",
        "diff",
        "pwd",
        "tree",
    ]
)
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_PATH = re.compile(r"(?:\.{0,2}/)?[\w.@+-]*(?:/[\w.@+-]+)*")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_NAME_PREFIX = re.compile(
    r"^(?:\d+[.)]\s*)?(?:(?:new |updated |the )?(?:file(?: ?name)?|path|in|update|edit|create|modify)\b\s*:?\s*)",
    re.IGNORECASE,
)
_NAME_SUFFIX = re.compile(
    r"\s*\((?:new|updated|changed|modified|new file|complete|full)\)$|\s*(?:now|:)$", re.IGNORECASE
)
_NAMED = re.compile(
    r"^(?:[-*\d.)]+\s*)?(?:\w+,?\s+){0,3}?(?:creat|updat|writ|sav|chang|edit|modif|replac|mak|add|fil)\w*\b.*:$",
    re.IGNORECASE,
)
_WINDOWS = re.compile(r"(?:[\w.@+-]+\\)+[\w.@+-]+", re.ASCII)
_TICKED = re.compile(r"`([^`\s]+)`|\*\*([^*\s]+)\*\*")
_COMMENT_NAME = re.compile(
    r"^\s*(?:#|//|--|;|/\*|<!--)\s*(?:file(?:name)?\s*:\s*)?(\S+?)\s*(?:\*/|-->)?\s*$", re.IGNORECASE
)
_INFO_NAME = re.compile(r"(?:title|file(?:name)?|path)\s*[=:]\s*[\"']?([^\"'\s]+)", re.IGNORECASE)


class Block(Data, frozen=True):
    """A fenced block. `end` is where the text behind it begins; `closed` is false where the answer stopped early."""

    kind: BlockKind
    body: str
    start: int
    end: int
    path: str = ""
    language: str = ""
    closed: bool = True


def read_blocks(text: str, tools: Collection[str] = (), known: Collection[str] = ()) -> list[Block]:
    """All blocks of an answer in their order. `known` are the paths of files that exist."""
    blocks: list[Block] = []
    lines = text.splitlines(keepends=True)
    place, number = 0, 0
    while number < len(lines):
        opening = _FENCE.match(lines[number].rstrip("\r\n"))
        if opening is None:
            place += len(lines[number])
            number += 1
            continue
        last, closed = _find_end(lines, number, opening, known)
        body = _remove_indent("".join(lines[number + 1 : last]).replace("\r\n", "\n"), len(opening["indent"]))
        end = place + sum(map(len, lines[number : last + closed]))
        blocks.append(_classify(opening["info"].strip(), body, lines[:number], place, end, closed, tools, known))
        number, place = last + closed, end
    return _admit_bare_command(blocks, text)


def find_steps(
    text: str,
    tools: Collection[str] = (),
    known: Collection[str] = (),
    is_meant: Callable[[Block], bool] = lambda _: True,
) -> tuple[list[Block], int]:
    """The blocks that are calls, and where what the model made up behind them begins: any number of files, then at most
    one command or tool, for whatever follows those was written without their result."""
    steps: list[Block] = []
    for block in read_blocks(text, tools, known):
        if block.kind == "code" or not is_meant(block):
            if steps:
                break
            continue
        steps.append(block)
        if block.kind != "file":
            break
    return steps, steps[-1].end if steps else len(text)


def _find_end(lines: list[str], opened: int, opening: re.Match[str], known: Collection[str]) -> tuple[int, bool]:
    """The line that closes the block, and whether there is one. A page of text may hold blocks of its own, and so may
    the text that a command writes."""
    mark, depth = opening["mark"], 1
    nested = _is_page(opening["info"], lines[:opened], known)
    shell = _name_in_info(opening["info"].strip(), known)[1] in SHELLS
    number = opened
    while (number := number + 1) < len(lines):
        if shell and (end := find_heredoc_end(lines, number)):
            number = end
            continue
        found = _FENCE.match(lines[number].rstrip("\r\n"))
        if found is None or found["mark"][0] != mark[0] or len(found["mark"]) < len(mark):
            continue
        if found["info"].strip() or (nested and depth == 1 and _opens_inner(lines, number, known)):
            depth += nested
            continue
        depth -= 1
        if depth <= 0:
            return number, True
    return len(lines), False


def find_heredoc_end(lines: list[str], number: int) -> int:
    """The line that ends the text which begins behind this line of a command; 0 where none does."""
    begins = HEREDOC.search(lines[number])
    ends = (place for place in range(number + 1, len(lines)) if begins and lines[place].strip() == begins[2])
    return next(ends, 0)


def _opens_inner(lines: list[str], number: int, known: Collection[str]) -> bool:
    """Whether a bare fence in a page begins a block in it: text follows at once, and two more fences come."""
    follows = lines[number + 1].strip() if number + 1 < len(lines) else ""
    if not follows or follows.startswith("#") or looks_like_path(follows.strip("*#:` \t"), known):
        return False
    fences = [line for line in lines[number + 1 :] if _FENCE.match(line.rstrip("\r\n"))]
    bare = [line for line in fences if not line.strip().strip("`~")]
    return len(bare) == len(fences) and len(fences) >= 2 and len(fences) % 2 == 0


def _remove_indent(body: str, indent: int) -> str:
    """The lines of a block that is under a list item, as far left as its fence."""
    if not indent:
        return body
    lines = body.splitlines(keepends=True)
    return "".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines)


def _is_page(info: str, before: list[str], known: Collection[str]) -> bool:
    name = _name_in_info(info, known)[0] or _name_before(before, known)
    return name.endswith((".md", ".rst", ".mdx")) or info.split(" ", maxsplit=1)[0].lower() in ("markdown", "md")


def _classify(
    info: str,
    body: str,
    before: list[str],
    start: int,
    end: int,
    closed: bool,
    tools: Collection[str],
    known: Collection[str],
) -> Block:
    path, language = _name_in_info(info, known)
    path = path or _name_before(before, known)
    kind: BlockKind = "code"
    if language in tools:
        kind, path = "tool", ""
    elif language in SHELLS and not (path and path.endswith((".sh", ".bash"))):
        kind, path, body = "shell", "", clean_command(body)
    elif language not in ("output", "text", "txt", "console", "plaintext") or path:
        found, rest = ("", body) if path else _name_inside(body, known)
        path, body = path or found, rest
        kind = "file" if path else "code"
    if kind == "shell" and not body.strip():
        kind = "code"
    return Block(kind=kind, body=body, start=start, end=end, path=path, language=language, closed=closed)


def _admit_bare_command(blocks: list[Block], text: str) -> list[Block]:
    """A block without a language that is all of the answer and begins with a program's name is a command."""
    if len(blocks) != 1 or blocks[0].kind != "code" or blocks[0].language:
        return blocks
    block = blocks[0]
    words = block.body.split()
    alone = not text[: block.start].strip() and not text[block.end :].strip()
    if alone and words and words[0] in PROGRAMS and len(block.body.splitlines()) <= 3:
        return [Block(kind="shell", body=block.body.strip("\n"), start=block.start, end=block.end, closed=block.closed)]
    return blocks


def clean_command(body: str) -> str:
    """The command without the prompts of a terminal; where there are some, what is between them is output."""
    lines = body.strip("\n").splitlines()
    prompted = [line.lstrip()[2:] for line in lines if line.lstrip().startswith("$ ")]
    return "\n".join(prompted) if prompted else body.strip("\n")


def looks_like_path(text: str, known: Collection[str] = ()) -> bool:
    """Whether this is a file's name and nothing else."""
    bare = text.removeprefix("./")
    if bare in known:
        return True
    if not bare or not _PATH.fullmatch(text) or bare.endswith("/") or ".." in bare.split("/"):
        return False
    last = bare.rsplit("/", 1)[-1]
    return bool(_EXTENSION.search(last)) or last.lower() in BARE_NAMES


def _name_in_info(info: str, known: Collection[str]) -> tuple[str, str]:
    """A file's name behind the fence, and the language: `python app.py`, `app.py`, `python:app.py`, `title=app.py`."""
    if named := _INFO_NAME.search(info):
        return named[1].removeprefix("./"), info.split(maxsplit=1)[0].lower()
    words = info.replace(":", " ").split()
    language = words[0].lower() if words else ""
    for word in words[:2]:
        if looks_like_path(word, known) and (word in known or "." in word):
            return word.removeprefix("./"), "" if word == words[0] else language
    return "", language.strip("{}.")


def _name_before(before: list[str], known: Collection[str]) -> str:
    """The file's name on the line above: alone, in marks, or the only one in a sentence that ends with a colon."""
    above = [line.strip() for line in before[-2:]]
    line = above[-1] if above and above[-1] else above[0] if above else ""
    plain = line.strip("*#:` \t")
    plain = plain.replace("\\", "/") if _WINDOWS.fullmatch(plain) else plain
    for candidate in (plain, _NAME_SUFFIX.sub("", _NAME_PREFIX.sub("", plain)).strip("*#:`\"' \t")):
        if looks_like_path(candidate, known):
            return candidate.removeprefix("./")
    if not line.endswith((":", ":**")):
        return ""
    ticked = {name for pair in _TICKED.findall(line) for name in pair if looks_like_path(name.strip("`"), known)}
    words = {word.strip("`*:,\"'") for word in line.split()} if not ticked and _NAMED.match(line) else set()
    named = ticked or {word for word in words if looks_like_path(word, known) and not word[:1].isdigit()}
    return named.pop().strip("`").removeprefix("./") if len(named) == 1 else ""


def _name_inside(body: str, known: Collection[str]) -> tuple[str, str]:
    """The file's name in a comment on the first line, or alone above a search block; and the rest."""
    first, _, rest = body.partition("\n")
    comment = _COMMENT_NAME.match(first)
    if comment and looks_like_path(comment[1], known) and ("." in comment[1] or comment[1] in known):
        return comment[1].removeprefix("./"), rest
    if looks_like_path(first.strip(), known) and re.match(r"\s*<{5,9}", rest):
        return first.strip().removeprefix("./"), rest
    return "", body
