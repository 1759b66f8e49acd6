"""The options of `chat`, said once: click reads any line, `plain_line` the everyday ones without importing click."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ollm.domain.struct import Data


class ChatOption(Data, frozen=True):
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
    def value_when_absent(self) -> Any:
        """The value when it is not given."""
        return {"flag": False, "many": ()}.get(self.kind, self.default)

    def accepts(self, word: str) -> bool:
        """Whether a word is a value of this beyond doubt: none that looks like an option, none besides the choices."""
        return (word == "-" or not word.startswith("-")) and (not self.choices or word in self.choices)

    def parse_value(self, word: str, before: Any) -> Any:
        """The value, when it was `before` until this word."""
        if self.kind == "path":
            return Path(word)
        return (*before, word) if self.kind == "many" else word


OPTIONS = (
    ChatOption(("-p", "--prompt"), "One turn without a screen; - reads stdin.", metavar="TEXT|-"),
    ChatOption(("-o", "--output"), "Form of -p.", choices=("text", "json", "stream-json"), default="text"),
    ChatOption(("--new",), "Start a new session without asking.", "flag"),
    ChatOption(("--session",), "Resume this session (4 characters of its id suffice).", metavar="ID"),
    ChatOption(("--continue",), "Resume the newest session of the workspace.", "flag", to="continue_"),
    ChatOption(("--full",), "Resume with everything from the archive that fits.", "flag"),
    ChatOption(("--force",), "Ask whoever holds the workspace to close, and take over.", "flag"),
    ChatOption(("--workspace",), "The project; default: where you stand.", "path"),
    ChatOption(("--provider",), "Kind of model server.", choices=("ollama", "openai", "embedded")),
    ChatOption(("--base-url",), "Address of the model server.", metavar="URL"),
    ChatOption(("--model",), "Model to talk to.", metavar="NAME"),
    ChatOption(("--mode",), "What the agent is for.", choices=("assistant", "plan", "code", "debug")),
    ChatOption(("--approval",), "What runs without a question.", choices=("read-only", "ask", "accept-edits", "yolo")),
    ChatOption(("--allow",), "Allow a tool, or one use of it: 'shell:npm run test'.", "many", metavar="GRANT"),
    ChatOption(("--yes",), "Answer every question with yes, but those about protected files.", "flag"),
    ChatOption(("--daemon",), "Talk through the daemon; started when it is not running.", "flag"),
)


def parse_simple_line(words: Sequence[str]) -> dict[str, Any] | None:
    """The options of a line that asks once, spelt out in full; None for any other line, which is click's to read."""
    known = {name: option for option in OPTIONS for name in option.names}
    found = {option.destination: option.value_when_absent for option in OPTIONS}
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
