"""Writes the pages of docs/ that follow from the code; `make docs` runs it, a test holds the pages to it."""

from __future__ import annotations

import importlib.util
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ollm.config.settings import Settings, as_document, make_default_settings
from ollm.config.variables import VARIABLES
from ollm.config.yaml_edit import format_flow_value

HERE = Path(__file__).parent
WORDS = {int: "number", float: "number", str: "text", bool: "true/false", type(None): "unset"}

INTRODUCTION = """\
# Configuration

*Written by `make docs` from the settings themselves.*

Settings are read from, each over the one before it: what is built in, your file `~/.ollm/config.yaml`, the file
`.ollm/config.yaml` of a workspace you trust, environment variables, and the options of the command. `OLLM_HOME` moves
`~/.ollm` as a whole.

```sh
ollm config show      # what is in force, and where each setting comes from; secrets are hidden
ollm config check     # everything that is wrong, with file, line and the likely right key; exit code 2
ollm config set loopDetection.maxTurns 80        # comments in your file stay
ollm config path      # where your file is
ollm config schema    # JSON Schema, for editors
```

The file is YAML 1.2. The sections `sessions`, `snapshots`, `compression`, `loopDetection`, `fileDiscovery` and
`environment` may also stand under `services:` (there `session` is the same as `sessions`).

A mistake does not stop the program: an unknown key is ignored and a bad value replaced by its default, and both are
said. Exceptions: a file that is not YAML and a mistake in `provider` end the command with exit code 2; a policy rule
that cannot be read makes its tool ask; an `environment` section of the wrong shape lets tools have the core variables
only.

A workspace's own file may add rules that deny or ask, patterns to ignore or to deny, hooks and MCP servers of its own,
and change limits. It may not set {restricted}, allow anything in `policy`, or replace a hook or server of yours.
"""


def pages() -> dict[Path, str]:
    """Every generated page and its text."""
    return {HERE / "configuration.md": configuration(), HERE / "tools.md": _module("tools_page").tools_page()}


def _module(name: str) -> Any:
    """Another file of this directory, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def configuration() -> str:
    from ollm.config.layers import USER_ONLY_KEYS

    restricted = ", ".join(f"`{key}`" for key in USER_ONLY_KEYS)
    parts = [INTRODUCTION.format(restricted=restricted), *_sections(), _variables()]
    return "\n".join(parts)


def _sections() -> Iterator[str]:
    yield "## Every key\n"
    document = as_document(make_default_settings())
    for field in msgspec.structs.fields(Settings):
        rows = list(_rows(field, field.encode_name, document[field.encode_name]))
        yield (
            f"### {field.encode_name}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )


def _rows(field: msgspec.structs.FieldInfo, path: str, default: Any) -> Iterator[str]:
    kind, meaning = _described(field.type)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for inner in msgspec.structs.fields(kind):
            yield from _rows(inner, f"{path}.{inner.encode_name}", default[inner.encode_name])
        return
    shown = "" if default is None else f"`{format_flow_value(default)}`"
    yield f"| `{path}` | {_type(kind)} | {shown} | {meaning} |"


def _described(kind: Any) -> tuple[Any, str]:
    """The bare type and the description of an annotation."""
    if typing.get_origin(kind) is not typing.Annotated:
        return kind, ""
    inner, *notes = typing.get_args(kind)
    meanings = [note.description for note in notes if isinstance(note, msgspec.Meta) and note.description]
    return inner, meanings[0] if meanings else ""


def _type(kind: Any) -> str:
    kind, _ = _described(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return ", ".join(str(word) for word in arguments)
    if origin is tuple:
        return f"list of {'text' if arguments[0] is str else 'mappings'}"
    if origin is dict:
        return "mapping"
    if arguments:
        return " or ".join(_type(part) for part in arguments if part is not type(None))
    return WORDS[kind]


def _variables() -> str:
    rows = [f"| `{name}` | `{key}` |" for name, key in VARIABLES.items()]
    rows += [
        "| `OLLAMA_HOST` | where Ollama is, as Ollama itself reads it |",
        "| `OLLM_HOME` | in place of `~/.ollm` |",
        "| `OLLM_LOG_LEVEL` | DEBUG, INFO, WARN or ERROR: what the log holds |",
        "| `NO_COLOR` | no colours |",
    ]
    return "## Environment variables\n\n| variable | sets |\n|---|---|\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
