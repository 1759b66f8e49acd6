"""The page of the tools, written from the tools themselves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

INTRODUCTION = """\
# Tools

*Written by `make docs` from the tools themselves.*

What a model can do here, it does with these tools. Each call is checked against the tool's parameters, judged by the
[policy](configuration.md), confirmed by you where the policy asks, run, and recorded in the session with its result.

```sh
ollm tools list                                             # every tool and its risk
ollm tools run read_file --args '{"path": "README.md"}'     # one call by hand, through the same policy and limits
ollm tools run write_file --args '{"path": "a.txt", "content": "x"}' --yes --json
```

`--json` prints `{ok, llmContent, returnDisplay, exitCode?, error: {type, message} | null}`. What the policy asks about
needs `--yes` or `--allow GRANT`; questions about protected files and paths outside the workspace are never answered by
either. `--args -` reads the arguments from stdin. Exit codes: 0 done, 1 the tool failed, 2 the arguments are not JSON,
5 denied.

## What holds for all of them

- **Arguments** are understood where their meaning is plain: `"5"` for 5, snake_case, one text for a list, JSON inside a
  text, `file_path` for `path`. Everything else is answered with one line per mistake and what was expected.
- **Files** are reached inside the workspace and `tools.allowedRoots`. Links are followed and judged by where they lead.
  Reading outside asks every time; writing outside is refused. `~` and `$VAR` are plain characters.
- **Output** has its limits (`tools.output`). What is cut is counted, and the model can read the rest with `recall`.
  Terminal escape sequences never reach the model or the screen.
- **Calls that only read** run side by side, the others in order. Every call gets exactly one result, also when it is
  cancelled. Esc stops them within a tenth of a second.
- **Edits** can be taken back one by one with `/undo`, byte for byte, as long as nobody else changed the file since;
  `/rewind` takes back whole turns, [commands included](rewind.md). A
  file that others changed since the model saw it is not overwritten: the model is shown what it says now.
- **Few at a time**: a mode shows the model nine or ten tools, up to twelve in a window of 32,000 tokens, fewer in a
  small one. One that is not shown can
  still be called.
"""

WEB = """\
## The web

`web_fetch` connects to public addresses only. The name is resolved once, every answer is checked, and the connection
goes to the address that was checked; so does each of at most five redirects. Loopback, private, link-local and
metadata addresses are refused; `tools.webFetch.allowPrivate: [localhost:8000]` opens single places. Limits: 30 seconds,
64 kB of headers, 5 MB after decompression. Pages and PDFs are made into text in a process of their own with little
memory and time. Proxies from the environment are not used, because behind one the address cannot be checked.

`web_search` asks ddgs where it is installed; another backend is set in the configuration:

| `tools.webSearch.backend` | needs | tried against the live service |
|---|---|---|
| `searxng` | `baseUrl`, and `json` among `search.formats` of the server | no |
| `brave` | `apiKeyEnv` | no |
| `tavily` | `apiKeyEnv` | no |
| `ddgs` | the extra `ollm-cli[search]` | no |

Each is tested with a stand-in that answers as the service documents it, with its errors, rate limits and nonsense.

## Errors

`error.type` is one of ValidationError, FileNotFound, FileTooLarge, IsDirectory, NotARegularFile, BinaryFile,
FileExists, InvalidLineRange, EditTargetNotFound, EditTargetAmbiguous, EditsOverlap, FileChanged, EncodingError,
InvalidPattern,
PermissionDenied, OutsideWorkspace, Timeout, IdleTimeout, Cancelled, Denied, LoopStopped, InvalidUrl, AddressRefused,
HttpError, NetworkError, TooLarge, NoBackend, NotFound, Interrupted, McpError, UnknownTool. The message names the path
or the URL and says what to do next where there is something.
"""


def tools_page() -> str:
    from ollm.app import create_tool_registry

    with tempfile.TemporaryDirectory() as folder:
        specs = create_tool_registry(Path(folder)).list()
    parts = [INTRODUCTION, "## Each of them\n"]
    for spec in specs:
        kind = "only reads" if spec.reads_only else "changes things"
        parts.append(f"### {spec.name}\n\n{spec.description} Risk {spec.risk}, {kind}.\n")
        parts.append("| parameter | type | |\n|---|---|---|\n" + "\n".join(_rows(spec.parameters)) + "\n")
    return "\n".join([*parts, WEB])


def _rows(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    required = schema.get("required", [])
    for name, parameter in schema["properties"].items():
        needed = "required. " if name in required else ""
        note = f"{needed}{parameter.get('description', '')}".strip()
        yield f"| `{prefix}{name}` | {_type(parameter)} | {note} |"
        items = parameter.get("items", {})
        if items.get("type") == "object":
            yield from _rows(items, f"{prefix}{name}[].")


def _type(parameter: dict[str, Any]) -> str:
    if "enum" in parameter:
        return ", ".join(f"`{value}`" for value in parameter["enum"])
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true/false", "array": "list"}
    return words.get(parameter.get("type", ""), "any JSON value")
