"""Guides one turn of a model that writes blocks: files with the request, blocks as calls, a guard, an end.

It never suggests the next step, and reads only the tokens of a request that name files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import reduce

from ollm.domain.messages import JsonObject, ToolCall
from ollm.domain.text import format_count
from ollm.domain.tools import ToolCallRecord
from ollm.providers.base import CallPiece
from ollm.runtime.small_models.blocks import FILE_BLOCK, read_blocks
from ollm.runtime.small_models.edits import read_change
from ollm.runtime.small_models.placement import list_defined_names
from ollm.runtime.small_models.priming import MAX_SEARCHED_FILES, find_tokens, prime_request
from ollm.runtime.small_models.project_files import ProjectFiles
from ollm.services.syntax_check import describe_lost_syntax

PRIMED_SHARE = 0.3
CHARS_PER_TOKEN = 3
MAX_FAILURES = 6
MIN_LOST_LINES = 3
LOST_SHARE = 0.4  # A page or settings file that loses this share of its lines seems cut.
HARMS = "Nothing was changed: with this block {}."
NOTHING_DONE = "No file was changed and no command was run."
ONLY_SHOWN = (
    "This was only shown: nothing was run and no file was changed. Only blocks labelled `run` or `write` and a file's"
    " name are carried out. If the request is to do it, write that block. If it is to show it, answer in one sentence."
)
ALREADY_RUN = "That was just run: it was not run again."
NO_SHELL = "Nothing was run, this is no shell command: {}. To change a file, label its block `write` and its name."
REFUSED_BEFORE = "This was refused: it was not asked for again."


class TurnGuide:
    """A guide for one turn. `typed` is only the text the user typed: definitions it names may be removed."""

    def __init__(self, files: ProjectFiles, window: int, typed: str) -> None:
        self._files = files
        self._window = window
        self._typed = typed
        self._guarded: set[str] = set()  # Later blocks for these files are applied, and their problem is reported.
        self._shown: tuple[str, ...] = ()
        self._changed: set[str] = set()
        self._current: list[str] = []
        self._pending: dict[str, str] = {}  # Blocks of the same answer build on each other.
        self._failures: Counter[str] = Counter()
        self._last_command = ""  # It is "" after a block changed a file.
        self._denied: set[tuple[str, str]] = set()
        self._tried_in_vain = self._acted = self._explained = False
        self._only_shown: dict[str, None] = {}

    # Before the first request

    async def prime_request(self, attached: Collection[str] = ()) -> str:
        """Return the names and texts of files to send with the request and its attachments."""
        names = await self._files.list_names()
        max_chars = int(self._window * PRIMED_SHARE * CHARS_PER_TOKEN)
        if len(names) > MAX_SEARCHED_FILES:
            words = [token.lower() for token in find_tokens(self._typed)]
            names.sort(key=lambda name: not any(word in name.lower() for word in words))
        primed = prime_request(self._typed, names, self._files.read_text, max_chars, attached)
        for path in primed.whole:
            self._files.remember(path)
        self._shown = primed.whole
        return primed.text

    # An answer becomes calls

    def begin_answer(self, words: str, *, acts: bool) -> None:
        """Start reading the blocks of another answer. `words` is its remaining text; a block in it is not a step. One
        without a label may be the quoted output of a command."""
        self._pending = {}
        shown = {} if acts else dict.fromkeys(block.body for block in read_blocks(words) if block.name)
        self._only_shown = {} if acts else self._only_shown | shown

    def explain_shown(self) -> str:
        """Tell the model once that its blocks were only shown, and how to carry one out."""
        told = ONLY_SHOWN if self._only_shown and not self._explained else ""
        self._explained |= bool(told)
        return told

    def resolve_call(self, piece: CallPiece) -> tuple[CallPiece, str]:
        """Resolve a piece of an answer to a call. A block that names a file becomes the change it makes. A call with a
        refusal is not run, and that is its result."""
        if not isinstance(piece.arguments, dict):
            return piece, ""
        arguments = dict(piece.arguments)
        is_file = piece.name == FILE_BLOCK
        if broken := arguments.pop("brokenOff", ""):
            return CallPiece("write_file" if is_file else piece.name, arguments), broken
        if is_file:
            call, refusal = self._resolve_file(str(arguments["path"]), str(arguments["content"]))
        else:
            call = piece
            refusal = self._find_mistake(str(arguments.get("command", ""))) if piece.name == "shell" else ""
        denied = (call.name, str(call.arguments)) in self._denied
        return call, refusal or (REFUSED_BEFORE if denied else "")

    def _find_mistake(self, command: str) -> str:
        """Explain a refusal: the command was just run, or it is not shell, yet a shell would run its first lines."""
        if command and command == self._last_command:
            return ALREADY_RUN
        from ollm.policy.shell.parse import find_parser, parse_script

        error = parse_script(command).error if "\n" in command and find_parser() else ""
        return NO_SHELL.format(error) if error else ""

    def _resolve_file(self, path: str, content: str) -> tuple[CallPiece, str]:
        saved = self._files.read_text(path)
        if saved is None and self._files.exists(path):
            return CallPiece("write_file", {"path": path, "content": content}), ""
        saved = saved and saved.replace("\r\n", "\n")  # The tools keep the file's own line ends.
        current = self._pending.get(path, saved)
        change = read_change(path, content, current)
        edits: list[JsonObject] = [{"target": old, "replacement": new} for old, new in change.edits]
        after = reduce(lambda text, pair: text.replace(*pair, 1), change.edits, change.content or current or "")
        if refusal := change.mistake or self._find_harm(path, current or "", after):
            return CallPiece("write_file", {"path": path, "content": content}), refusal
        self._pending[path] = after
        if edits:
            return CallPiece("edit_file", {"path": path, "edits": edits}), ""
        overwrite = {"overwrite": True} if current is not None else {}
        return CallPiece("write_file", {"path": path, "content": after, **overwrite}), ""

    def _find_harm(self, path: str, before: str, after: str) -> str:
        """Return why a block is refused, once for a file: it would be unparsable, or lose definitions or much text."""
        told = describe_lost_syntax(path, before or None, after) or self._describe_loss(path, before, after)
        if not told or path in self._guarded:
            return ""
        self._guarded.add(path)
        return HARMS.format(told.rstrip("."))

    def _describe_loss(self, path: str, before: str, after: str) -> str:
        gone = _list_names(path, before) - _list_names(path, after)
        lost = sorted(name for name in gone if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._typed))
        if lost:
            return f"{path} loses {', '.join(lost)}"
        lines, left = (sum(bool(line.strip()) for line in text.splitlines()) for text in (before, after))
        cut = not gone and lines - left >= max(MIN_LOST_LINES, LOST_SHARE * lines)
        return f"{path} loses {lines - left} of {lines} lines" if cut else ""

    # What the calls did

    def note_before(self) -> None:
        """Note which files the model knows as they are, before commands change them."""
        self._current = [path for path in (*self._shown, *self._changed) if self._files.is_current(path)]

    def note_results(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> None:
        """Note what the calls did. The model knows what its commands did to files that it knew."""
        for call, record in zip(calls, records, strict=True):
            if record.status == "denied":
                self._denied.add((call.name, str(call.arguments)))
            if record.error is not None or record.result is None:
                self._tried_in_vain = True
                continue
            self._acted = True
            if call.name in ("write_file", "edit_file"):
                self._changed.add(str(call.arguments.get("path", "")))
                self._last_command = ""
            elif call.name == "shell":
                self._last_command = str(call.arguments.get("command", ""))
                self._failures[self._last_command] += bool(record.result.exit_code)
        for path in self._current:
            self._files.remember(path)

    # The end

    def find_circle(self) -> str:
        """Describe how the steps loop without progress, or return "" if they do not."""
        fails = any(count >= MAX_FAILURES for count in self._failures.values())
        return "the same command fails again and again" if fails else ""

    def describe_undone(self) -> str:
        """Say which blocks were only shown, or that nothing was done though the model tried to."""
        if self._only_shown:
            return f"{format_count(len(self._only_shown), 'block')} shown, not carried out."
        return NOTHING_DONE if self._tried_in_vain and not self._acted else ""


def _list_names(path: str, text: str) -> set[str]:
    """List the definitions in a text, or the keys of JSON."""
    if not path.endswith(".json"):
        return list_defined_names(text)
    import json

    names: set[str] = set()
    try:
        json.loads(text, object_hook=names.update)
    except (ValueError, RecursionError):
        return set()
    return names
