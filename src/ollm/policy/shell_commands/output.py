"""What a simple printing command would print, where that can be read off: a guess that helps to forbid."""

from __future__ import annotations

from collections.abc import Callable

from ollm.policy.shell_commands.parse import Node
from ollm.policy.shell_commands.words import Decoder, ansi


def printed_by(statement: Node, decoder: Decoder, raw: Callable[[Node], str]) -> str | None:
    """The text of `echo …`, `printf …` or `cat <<…`; None for anything else. With escapes both readings are given,
    one a line."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "BinaryCmd" and command.get("Op") in ("|", "|&"):
        return None
    if command.get("Type") != "CallExpr":
        return None
    words = [word.text for argument in command.get("Args") or () for word in decoder.words(argument)]
    if words[:1] == ["cat"] and len(words) == 1:
        bodies = [redirection.get("Hdoc") for redirection in statement.get("Redirs") or ()]
        return "\n".join(raw(body) for body in bodies if body) or None
    if words[:1] == ["echo"]:
        return _both(" ".join(word for word in words[1:] if word not in ("-n", "-e", "-ne", "-en", "-E")))
    if words[:1] == ["printf"] and len(words) > 1:
        return _both(_formatted([word for word in words[1:] if word != "--"]))
    return None


def _formatted(words: list[str]) -> str:
    text, values = words[0], words[1:]
    if "%" not in text:
        return text
    for value in values:
        if "%s" not in text and "%b" not in text and "%q" not in text:
            text += words[0]
        place = (
            min(place for place in (text.find(mark) for mark in ("%s", "%b", "%q")) if place >= 0)
            if any(mark in text for mark in ("%s", "%b", "%q"))
            else -1
        )
        if place < 0:
            return " ".join(words)
        text = text[:place] + value + text[place + 2 :]
    return text


def _both(text: str) -> str:
    return text if "\\" not in text else f"{text}\n{ansi(text)}"
