"""The list of `ollm files` before anything else is imported: a walk takes less time than what the other commands need.

Everything that there is something to say about (settings that have to be read, rules that are no good, directories that
cannot be read, whatever fails) is left to the ordinary way, which begins anew; until then nothing has been printed.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ollm.services.file_discovery.path_lines import Lines
    from ollm.services.file_discovery.walk import Walk

CODE_COMMANDS = ("outline", "map")  # as the first word; a directory of that name is `map/`


def parse_file_arguments(words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `show_files` in a line of patterns, `--json` and `--workspace DIR`; None for any other line."""
    if words and words[0] in CODE_COMMANDS:
        return None
    patterns: list[str] = []
    workspace, as_json, rest = None, False, iter(words)
    for word in rest:
        if word == "--json":
            as_json = True
        elif word == "--workspace":
            workspace = next(rest, "-")
            if workspace.startswith("-"):
                return None
        elif word.startswith("-"):
            return None
        else:
            patterns.append(word)
    return {"patterns": tuple(patterns), "workspace": workspace, "as_json": as_json}


def print_list_quickly(words: Sequence[str]) -> int | None:
    """Print what `ollm files` is asked for and give the exit code; None where that is for the ordinary way.
    Raises OSError where the output cannot be written."""
    import gc

    gc.disable()  # what is made here stays to the end
    try:
        parts = _render_list(words)
    except Exception:  # noqa: BLE001 - the ordinary way meets it again and says it
        parts = None
    finally:
        gc.enable()
    if parts is None:
        return None
    write_output(parts)
    return 0


def write_output(parts: Sequence[bytes]) -> None:
    """All of it, also where PYTHONUNBUFFERED lets a write end early."""
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def _render_list(words: Sequence[str]) -> Sequence[bytes] | None:
    given, out = parse_file_arguments(words), sys.stdout
    if given is None or out is None or out.encoding.lower() != "utf-8":
        return None
    named = given["workspace"]
    if named and named.startswith("~"):
        return None
    root = os.path.realpath(named or os.getcwd(), strict=True)
    found = _read_lines(root, make_globs(root, given["patterns"]))
    if found is None:
        return None
    if (given["as_json"] or out.isatty()) and not all(map(_is_plain, found)):
        return None
    return _render_json(found) if given["as_json"] else [lines for lines, _ in found]


def make_globs(root: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """A pattern that is a directory stands for all that is in it."""
    globs = tuple(
        f"/{pattern.strip('/')}/**" if os.path.isdir(os.path.join(root, pattern)) else pattern for pattern in patterns
    )
    return () if "/./**" in globs else globs


def _read_lines(root: str, globs: tuple[str, ...]) -> list[Lines] | None:
    """The paths, one a line, in pieces; None where there is something to say about the walk."""
    walk = _make_walk(root)
    if walk is None:
        return None
    from ollm.services.file_discovery.path_lines import PathLineReader

    search = None
    if globs:
        from ollm.services.file_discovery.globs import compile_globs

        search = compile_globs(globs)
    found = PathLineReader(walk, search).read()
    return None if walk.has_troubles else found


def _make_walk(root: str) -> Walk | None:
    from ollm import __version__
    from ollm.config.discovery_memory import SettingSources, recall_walk_settings
    from ollm.services.file_discovery.git import GitFinder
    from ollm.services.file_discovery.walk import WalkOptions, make_walk

    user_home, home = os.environ["HOME"], os.environ.get("OLLM_HOME", "").strip()
    if not user_home or home.startswith("~"):
        return None
    home = os.path.abspath(home) if home else f"{user_home}/.ollm"
    settings = recall_walk_settings(SettingSources(os.environ, home, root, __version__))
    if settings is None:
        return None
    options = WalkOptions(root, max_depth=settings.max_depth, follow_symlinks=settings.follow_symlinks)
    git = GitFinder(user_home, os.environ.get("XDG_CONFIG_HOME") or f"{user_home}/.config")
    return make_walk(options, git, settings.builtin_ignores)


def _render_json(found: Sequence[Lines]) -> list[bytes] | None:
    """The document that the ordinary way makes of names that need no escapes."""
    texts = [lines for lines, _ in found if lines]
    if any(b'"' in text or b"\\" in text for text in texts):
        return None
    if not texts:
        return [b"[]\n"]
    quoted = [text.replace(b"\n", b'",\n  "') for text in texts]
    return [b'[\n  "', *quoted[:-1], quoted[-1].removesuffix(b',\n  "'), b"\n]\n"]


def _is_plain(piece: Lines) -> bool:
    """Whether no name has a line end or another character that is not to be seen."""
    lines, count = piece
    text = os.fsdecode(lines)
    return text.count("\n") == count and text.replace("\n", "").isprintable()
