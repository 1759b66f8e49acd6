"""The options of `chat`, said once: click reads any line, `plain_line` the everyday ones without importing click."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ollm.domain.struct import Data


class Option(Data, frozen=True):
    """`kind` says what follows the name: nothing (flag), a word (text, path), a word each time it is given (many)."""

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
    def absent(self) -> Any:
        """The value when it is not given."""
        return {"flag": False, "many": ()}.get(self.kind, self.default)

    def suits(self, word: str) -> bool:
        """Whether a word is a value of this beyond doubt: none that looks like an option, none besides the choices."""
        return (word == "-" or not word.startswith("-")) and (not self.choices or word in self.choices)

    def read(self, word: str, before: Any) -> Any:
        """The value, when it was `before` until this word."""
        if self.kind == "path":
            return Path(word)
        return (*before, word) if self.kind == "many" else word


OPTIONS = (
    Option(("-p", "--prompt"), "One turn without a screen; - reads stdin.", metavar="TEXT|-"),
    Option(("-o", "--output"), "Form of -p.", choices=("text", "json", "stream-json"), default="text"),
    Option(("--new",), "Start a new session without asking.", "flag"),
    Option(("--session",), "Resume this session (4 characters of its id suffice).", metavar="ID"),
    Option(("--continue",), "Resume the newest session of the workspace.", "flag", to="continue_"),
    Option(("--full",), "Resume with everything from the archive that fits.", "flag"),
    Option(("--force",), "Ask whoever holds the workspace to close, and take over.", "flag"),
    Option(("--workspace",), "The project; default: where you stand.", "path"),
    Option(("--provider",), "Kind of model server.", choices=("ollama", "openai", "embedded")),
    Option(("--base-url",), "Address of the model server.", metavar="URL"),
    Option(("--model",), "Model to talk to.", metavar="NAME"),
    Option(("--mode",), "What the agent is for.", choices=("assistant", "plan", "code", "debug")),
    Option(("--approval",), "What runs without a question.", choices=("read-only", "ask", "accept-edits", "yolo")),
    Option(("--allow",), "Allow a tool, or one use of it: 'shell:npm run test'.", "many", metavar="GRANT"),
    Option(("--yes",), "Answer every question with yes, but those about protected files.", "flag"),
    Option(("--daemon",), "Talk through the daemon; started when it is not running.", "flag"),
)


def plain_line(words: Sequence[str]) -> dict[str, Any] | None:
    """The options of a line that asks once, spelt out in full; None for any other line, which is click's to read."""
    known = {name: option for option in OPTIONS for name in option.names}
    found = {option.destination: option.absent for option in OPTIONS}
    rest = iter(words)
    for name in rest:
        option = known.get(name)
        if option is None:
            return None
        if option.kind == "flag":
            found[option.destination] = True
            continue
        word = next(rest, None)
        if word is None or not option.suits(word):
            return None
        found[option.destination] = option.read(word, found[option.destination])
    return found if found["prompt"] is not None else None
