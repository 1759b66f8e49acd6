"""A recorded tool call in the words it had when it ran (`Run pytest -q`, `Edit shop/cart.py (1 edit)`), and what a
person answered when they were asked about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ollm.domain.counting import format_count
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, GrantScope

MAX_VALUE_CHARS = 200
MAX_TASK_CHARS = 100
MAX_NAMED_FILES = 5
Arguments = Mapping[str, Any]
_OTHER_NAMES = {  # that models give what they mean
    "path": ("file_path", "filePath", "file", "filename"),
    "command": ("cmd", "script"),
    "content": ("contents", "text"),
}
SCOPE_WORDS: dict[GrantScope, str] = {
    "once": "yes",
    "session": "yes, for this session",
    "always": "yes, always in this workspace",
    "everywhere": "yes, everywhere",
}


def summarize_call(name: str, arguments: Arguments) -> str:
    """What was done to what; the tool's name where that is not known."""
    words = _SUMMARIES[name](arguments) if name in _SUMMARIES else ""
    return " ".join(words.split()) or name


def describe_answer(details: ConfirmationDetails, answer: ConfirmationAnswer | None) -> str:
    """What was said to a question, as it is shown below it."""
    if answer is None:
        return "no answer in time"
    if not answer.approved:
        return f"no: {answer.reason}" if answer.reason else "no"
    if details.typed:
        return answer.text or "(empty)"
    if answer.text:
        return f"yes, {answer.text}"
    granted = details.prefix if answer.prefix else details.grant
    return SCOPE_WORDS[answer.scope] + (f" ({granted})" if granted and answer.scope != "once" else "")


def _find_value(arguments: Arguments, key: str) -> Any:
    names = (key, *_OTHER_NAMES.get(key, ()))
    return next((arguments[name] for name in names if arguments.get(name) is not None), "")


def _read_text(arguments: Arguments, key: str) -> str:
    """An argument as text of one line; empty where there is none."""
    return " ".join(str(_find_value(arguments, key)).split())[:MAX_VALUE_CHARS]


def _describe_place(arguments: Arguments) -> str:
    path = _read_text(arguments, "path")
    return f" in {path}" if path not in ("", ".") else ""


def _summarize_shell(arguments: Arguments) -> str:
    if job := _read_text(arguments, "id"):
        return f"{(_read_text(arguments, 'action') or 'read').capitalize()} background command {job}"
    command = _read_text(arguments, "command")
    return f"Run {command}{' in the background' * bool(arguments.get('background'))}" if command else ""


def _summarize_read(arguments: Arguments) -> str:
    path, symbol = _read_text(arguments, "path"), _read_text(arguments, "symbol")
    first, last = _read_text(arguments, "startLine") or "1", _read_text(arguments, "endLine")
    lines = f", lines {first} to {last}" if last else f" from line {first}" if first != "1" else ""
    return "" if not path else f"Read {symbol} in {path}" if symbol else f"Read {path}{lines}"


def _summarize_edit(arguments: Arguments) -> str:
    path, edits = _read_text(arguments, "path"), arguments.get("edits")
    count = f" ({format_count(len(edits), 'edit')})" if isinstance(edits, list) and edits else ""
    return f"Edit {path}{count}" if path else ""


def _summarize_write(arguments: Arguments) -> str:
    path, content = _read_text(arguments, "path"), str(_find_value(arguments, "content"))
    lines = content.count("\n") + (bool(content) and not content.endswith("\n"))
    return f"{'Replace' if arguments.get('overwrite') else 'Create'} {path} ({format_count(lines, 'line')})" * bool(
        path
    )


def _summarize_grep(arguments: Arguments) -> str:
    pattern, files = _read_text(arguments, "pattern"), _read_text(arguments, "filePattern")
    return f"Search for {pattern!r}{_describe_place(arguments)}{f' ({files})' * bool(files)}" if pattern else ""


def _summarize_glob(arguments: Arguments) -> str:
    pattern = _read_text(arguments, "pattern")
    return f"Find files matching {pattern}{_describe_place(arguments)}" if pattern else ""


def _summarize_ls(arguments: Arguments) -> str:
    return f"List {_read_text(arguments, 'path') or '.'}{' and what is below' * bool(arguments.get('recursive'))}"


def _summarize_many(arguments: Arguments) -> str:
    given = arguments.get("paths")
    paths = [str(path) for path in given] if isinstance(given, list) else []
    return f"Read {', '.join(paths[:MAX_NAMED_FILES])}{' …' * (len(paths) > MAX_NAMED_FILES)}" if paths else ""


def _summarize_recall(arguments: Arguments) -> str:
    if query := _read_text(arguments, "query"):
        return f"Search the conversation for “{query}”"
    call, message = _read_text(arguments, "callId"), _read_text(arguments, "messageId")
    return f"Recall call {call}" if call else f"Recall message {message}" if message else ""


def _summarize_task(arguments: Arguments) -> str:
    agent = _read_text(arguments, "agent")
    first = str(arguments.get("prompt") or "").strip().split("\n")[0]
    return f"Task{f' for {agent}' * bool(agent)}: {first[:MAX_TASK_CHARS]}" if first else ""


def _summarize_memory(arguments: Arguments) -> str:
    action, key = _read_text(arguments, "action"), _read_text(arguments, "key")
    where = " for all workspaces" * (arguments.get("scope") == "global")
    return f"List memory{where}" if action == "list" else f"Memory: {action} {key}{where}" if action else ""


def _summarize_goal(arguments: Arguments) -> str:
    action, text = _read_text(arguments, "action"), _read_text(arguments, "text")
    return f"Note {action}{f': {text}' * bool(text)}" if action else ""


def _summarize_todo(arguments: Arguments) -> str:
    action = _read_text(arguments, "action")
    words = {"": "", "add": f"Add the todo: {_read_text(arguments, 'text')}", "list": "List the todos"}
    return words.get(action, f"{action.capitalize()} todo {_read_text(arguments, 'id')}")


def _summarize_value(key: str, before: str, after: str = "") -> Callable[[Arguments], str]:
    def summarize(arguments: Arguments) -> str:
        value = _read_text(arguments, key)
        return f"{before}{value}{after}" if value else ""

    return summarize


_SUMMARIES: dict[str, Callable[[Arguments], str]] = {
    "shell": _summarize_shell,
    "read_file": _summarize_read,
    "edit_file": _summarize_edit,
    "write_file": _summarize_write,
    "grep": _summarize_grep,
    "glob": _summarize_glob,
    "ls": _summarize_ls,
    "web_fetch": _summarize_value("url", "Fetch "),
    "web_search": _summarize_value("query", "Search the web for “", "”"),
    "outline": _summarize_value("path", "Outline "),
    "read_many_files": _summarize_many,
    "recall": _summarize_recall,
    "task": _summarize_task,
    "memory": _summarize_memory,
    "goal": _summarize_goal,
    "write_todos": _summarize_todo,
}
