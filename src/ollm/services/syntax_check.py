"""Whether a text still parses as what its file's name says it is: Python, JSON and TOML, by what Python brings."""

from __future__ import annotations


def find_syntax_error(name: str, text: str) -> str | None:
    """What is wrong and where, in one line; None when it parses or nothing here can tell."""
    try:
        match name.rsplit(".", 1)[-1].lower():
            case "py" | "pyi":
                import warnings

                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compile(text, name, "exec", dont_inherit=True)
            case "json":
                import json

                json.loads(text)
            case "toml":
                import tomllib

                tomllib.loads(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error).splitlines()[0]
    return None


def describe_broken_syntax(name: str, before: str | None, after: str) -> str:
    """A sentence when a file that parsed, or a new one, does not parse now; otherwise nothing."""
    found = find_syntax_error(name, after)
    if found is None or (before is not None and find_syntax_error(name, before) is not None):
        return ""
    return f"{name} {'no longer parses' if before is not None else 'does not parse'}: {found}"
