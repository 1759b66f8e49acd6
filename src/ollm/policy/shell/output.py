"""What a simple printing command would print, where that can be read off: a guess that helps to forbid."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from ollm.policy.shell.parse import Node
from ollm.policy.shell.words import WordDecoder, decode_ansi

_FIELD = r"%[sbq]"


def guess_output(statement: Node, decoder: WordDecoder, raw: Callable[[Node], str]) -> str | None:
    """The text of `echo …`, `printf …`, `which …` or `cat <<…`; None for anything else. With escapes both readings are
    given, one a line."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "BinaryCmd" and command.get("Op") in ("|", "|&"):
        fed = guess_output(command["X"], decoder, raw)
        return None if fed is None else _apply_filter(_decode_words(command["Y"].get("Cmd") or {}, decoder), fed)
    words = _decode_words(command, decoder)
    fed = "\n".join(_read_input(redirection, decoder, raw) for redirection in statement.get("Redirs") or ())
    if fed.strip():
        return _apply_filter(words, fed)
    return _guess_printed(words)


def _decode_words(command: Node, decoder: WordDecoder) -> list[str]:
    if command.get("Type") != "CallExpr":
        return []
    return [word.text for argument in command.get("Args") or () for word in decoder.decode_words(argument)]


def _read_input(redirection: Node, decoder: WordDecoder, raw: Callable[[Node], str]) -> str:
    if redirection.get("Op") == "<<<":
        return decoder.decode_word(redirection.get("Word")).text
    body = redirection.get("Hdoc")
    return raw(body) if body else ""


def _apply_filter(words: list[str], fed: str) -> str | None:
    """What a filter makes of a text: as it is, decoded, or turned round."""
    match words[:1]:
        case ["cat" | "tee"]:
            return fed
        case ["rev"]:
            return "\n".join(line[::-1] for line in fed.splitlines())
        case ["base64" | "gbase64" | "openssl"]:
            return _try_decode(lambda: base64.b64decode("".join(fed.split()), validate=False))
        case ["xxd"]:
            return _try_decode(lambda: bytes.fromhex("".join(fed.split())))
    return None


def _try_decode(decode: Callable[[], bytes]) -> str | None:
    try:
        return decode().decode("utf-8", "replace")
    except ValueError:
        return None


def _guess_printed(words: list[str]) -> str | None:
    if words[:1] == ["echo"]:
        return _add_unescaped(" ".join(word for word in words[1:] if word not in ("-n", "-e", "-ne", "-en", "-E")))
    if words[:1] == ["which"] or words[:2] in (["command", "-v"], ["type", "-p"], ["type", "-P"]):
        return next((word for word in words[1:] if not word.startswith("-")), None)
    if words[:1] == ["printf"] and len(words) > 1:
        return _add_unescaped(_format_printf([word for word in words[1:] if word != "--"]))
    return None


def _format_printf(words: list[str]) -> str:
    text, values = words[0], words[1:]
    for value in values if "%" in text else ():
        text = text if re.search(_FIELD, text) else text + words[0]
        if not re.search(_FIELD, text):
            return " ".join(words)
        text = re.sub(_FIELD, lambda _: value, text, count=1)  # noqa: B023 - called at once
    return text


def _add_unescaped(text: str) -> str:
    return text if "\\" not in text else f"{text}\n{decode_ansi(text)}"
