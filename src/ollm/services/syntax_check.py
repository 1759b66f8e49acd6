"""Syntax checks by file name: Python, JSON, TOML and YAML with their parsers, other languages with their grammar if
installed (extra `[code]`)."""

from __future__ import annotations

import sys

from ollm.domain.lazy import compile_late

NEWEST_SYNTAX = (3, 14)
_NEWER_LINE = compile_late(
    r"type\s+\w+.*=|(?:async\s+)?(?:def|class)\s+\w+\[|except\*?\s+[\w.]+\s*,\s*[\w.]+.*:|.*\bt[\"']"
)
_COMMENTED = compile_late(
    r"(?:^|/)(?:[tj]sconfig[^/]*|devcontainer|\.eslintrc|\.babelrc|\.vscode/[^/]+)\.json$"
)  # These files often have comments.


def find_syntax_error(name: str, text: str) -> str | None:
    """Find a syntax error and its location, in one line. Returns None if there is none or it cannot be checked."""
    try:
        match name.rpartition(".")[2].lower():
            case "py" | "pyi":
                import warnings

                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compile(text, name, "exec", dont_inherit=True)
            case "json" if not _COMMENTED.search(name):
                import json

                json.loads(text)
            case "toml":
                import tomllib

                tomllib.loads(text)
            case "yaml" | "yml":
                return _find_yaml_error(text)
            case _:
                return _find_by_grammar(name, text)
    except SyntaxError as error:
        return _find_by_grammar(name, text) if _may_be_newer(error) else f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error).splitlines()[0]
    return None


def _find_yaml_error(text: str) -> str | None:
    """Find errors of the parser only. Tags and keys are left to the reader of the file."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    try:
        for _ in YAML(typ="safe", pure=True).parse(text):
            pass
    except MarkedYAMLError as error:
        where = error.problem_mark or error.context_mark
        return f"line {where.line + 1}: {error.problem}" if where else str(error.problem)
    return None


def _find_by_grammar(name: str, text: str) -> str | None:
    from ollm.services.code_map.languages import find_language

    if find_language(name) is None:
        return None
    from ollm.services.code_map.syntax_tree import find_parse_error

    line = find_parse_error(name, text.encode("utf-8", "replace"))
    return f"line {line}: syntax error" if line else None


def _may_be_newer(error: SyntaxError) -> bool:
    """Return True if a line may be valid in a newer Python than this one."""
    line = (error.text or "").strip()
    return sys.version_info < NEWEST_SYNTAX and bool(_NEWER_LINE.match(line) or error.msg.startswith("f-string"))


def describe_lost_syntax(name: str, before: str | None, after: str) -> str:
    """Describe a file that parsed before, or is new, and now does not parse. Returns "" otherwise."""
    found = find_syntax_error(name, after)
    if found is None or (before is not None and find_syntax_error(name, before) is not None):
        return ""
    return f"{name} {'no longer parses' if before is not None else 'does not parse'}: {found}"
