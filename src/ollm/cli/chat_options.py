"""The options of `chat`, said once: click reads any line, `plain_line` the everyday ones without importing click."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ollm.domain.struct import Data


class ChatOption(Data, frozen=True):
    """`kind` says what follows the name: nothing (flag), a word (text, path), perhaps a word (optional), a word each
    time it is given (many)."""

    names: tuple[str, ...]
    help: str
    kind: str = "text"
    to: str = ""  # what its value is called, where that is not the long name
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    default: str | None = None

    @property
    def destination(self) -> str:
        return self.to or self.names[-1].removeprefix("--").replace("-", "_")

    @property
    def value_when_absent(self) -> Any:
        """The value when it is not given."""
        return {"flag": False, "many": ()}.get(self.kind, self.default)

    def accepts(self, word: str) -> bool:
        """Whether a word is a value of this for certain: none that looks like an option, none besides the choices."""
        return (word == "-" or not word.startswith("-")) and (not self.choices or word in self.choices)

    def parse_value(self, word: str, before: Any) -> Any:
        """The value, when it was `before` until this word."""
        if self.kind == "path":
            return Path(word)
        return (*before, word) if self.kind == "many" else word


OPTIONS = (
    ChatOption(("-p", "--prompt"), "Answer one prompt and exit; - reads stdin.", metavar="TEXT|-"),
    ChatOption(("-o", "--output"), "Output format for -p.", choices=("text", "json", "stream-json"), default="text"),
    ChatOption(("--new",), "Start a new session.", "flag"),
    ChatOption(
        ("-r", "--resume", "--session"),
        "Resume this session (a prefix of 4 characters is enough); without ID choose one.",
        "optional",
        metavar="[ID]",
    ),
    ChatOption(("-c", "--continue"), "Resume the newest session in this workspace.", "flag", to="continue_"),
    ChatOption(("--full",), "Resume with as much of the full history as fits.", "flag"),
    ChatOption(("--force",), "Take over from the running instance.", "flag"),
    ChatOption(("--beside",), "Open beside a running instance.", "flag"),
    ChatOption(("--workspace",), "Project directory (default: current directory).", "path"),
    ChatOption(("--provider",), "Model server type.", metavar="TYPE"),
    ChatOption(("--base-url",), "Address of the model server.", metavar="URL"),
    ChatOption(("-m", "--model"), "Model to use.", metavar="NAME"),
    ChatOption(("--mode",), "Agent mode.", choices=("assistant", "plan", "code", "debug")),
    ChatOption(("--approval",), "What runs without asking.", choices=("read-only", "ask", "accept-edits", "yolo")),
    ChatOption(("--allow",), "Allow a tool or one command: 'shell:npm run test'.", "many", metavar="GRANT"),
    ChatOption(("--yes",), "Approve everything except protected files.", "flag"),
    ChatOption(("--daemon",), "Use the daemon; start it if needed.", "flag"),
)


def parse_simple_line(words: Sequence[str]) -> dict[str, Any] | None:
    """The options of a line that asks once, spelt out in full; None for any other line, which is click's to read."""
    known = {name: option for option in OPTIONS for name in option.names}
    found = {"text": None} | {option.destination: option.value_when_absent for option in OPTIONS}
    rest = iter(words)
    for name in rest:
        option = known.get(name)
        if option is None:
            return None
        if option.kind == "flag":
            found[option.destination] = True
            continue
        word = next(rest, None)
        if word is None or not option.accepts(word):
            return None
        found[option.destination] = option.parse_value(word, found[option.destination])
    return found if found["prompt"] is not None else None
