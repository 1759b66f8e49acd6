"""What steps did to the files, in words: the lines that changed, files that came and went."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ollm.domain.counting import format_count
from ollm.domain.messages import JsonObject, ToolCall
from ollm.domain.tools import ToolCallRecord
from ollm.providers.text_calls.block_edits import IDLE_SED

MAX_CHANGE_LINES = 14
MAX_COMMAND_CHARS = 60
MAX_CHANGE_CHARS = 1_200
_SED = re.compile(r"\s*sed\s+(?:-\w+\s+)*-\w*i[^|;&\n]*")


def describe_changes(before: dict[str, str], after: dict[str, str], old: set[str], new: set[str]) -> str:
    """Lines that changed, files that came and went, and files that parsed and no longer do."""
    from ollm.services.syntax_check import describe_broken_syntax

    told = [f"Deleted {name}." for name in sorted(old - new)]
    for name, text in sorted(after.items()):
        earlier = before.get(name)
        if earlier == text or (earlier is None and name in old):
            continue
        if earlier is None:
            count = len(text.splitlines())
            told.append(f"Created {name} ({format_count(count, 'line')}).")
        else:
            told.append(f"Changed lines of {name}:\n{list_changed_lines(earlier, text)}")
        if broken := describe_broken_syntax(name, earlier, text):
            told.append(broken)
    return "\n".join(told)[:MAX_CHANGE_CHARS]


def describe_deed(name: str, before: str | None, after: str | None, *, known: bool) -> str:
    """A file with its lines; nothing of one that is as it was. `known`: it was there before the first step."""
    if after is None:
        return f"{name} (deleted)" if known else ""
    added, removed = count_changed_lines(before or "", after)
    return "" if before == after else f"{name} (+{added} -{removed})"


def find_idle_sed(calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> str:
    """Said of an edit by sed alone that ended well and, as all files are as they were, did nothing."""
    command = str(calls[-1].arguments.get("command", "")) if calls else ""
    result = records[-1].result if records else None
    return IDLE_SED if _SED.fullmatch(command) and result and result.exit_code == 0 else ""


def count_changed_lines(before: str, after: str) -> tuple[int, int]:
    lines = list_changed_lines(before, after, 10_000).splitlines()
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def count_output(records: Sequence[ToolCallRecord]) -> str:
    """How many lines came: a small model cannot count them."""
    result = records[-1].result if records else None
    lines = result.llm_content.strip().splitlines() if result and result.exit_code == 0 else ()
    return f"That is {len(lines)} lines." if len(lines) > 1 else ""


def count_changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """How many lines changed."""
    lines = sum(count_changed_lines(text, after[name])[0] for name, text in before.items() if name in after)
    return f"That is {lines} changed lines." if lines > 1 else ""


def shorten_command(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= MAX_COMMAND_CHARS else f"{line[: MAX_COMMAND_CHARS - 1]}…"


def list_changed_lines(before: str, after: str, limit: int = MAX_CHANGE_LINES) -> str:
    import difflib

    _, _, *told = [*difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)] or ["", ""]
    lines = [line for line in told if not line.startswith("@@")]
    return "\n".join([*lines[:limit], *(["…"] if len(lines) > limit else [])])


def apply_edits(text: str, edits: Sequence[JsonObject]) -> str:
    """The text as the edits leave it."""
    for edit in edits:
        text = text.replace(str(edit["target"]), str(edit["replacement"]), -1 if edit.get("replaceAll") else 1)
    return text
