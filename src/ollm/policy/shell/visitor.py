"""Syntax tree visitor: a method named after a shfmt node type handles that node. All other nodes are visited child by
child, so that substitutions are found at any depth."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from typing import Any

from ollm.policy.shell.model import Assignment, Redirection, ShellScope, SimpleCommand
from ollm.policy.shell.parse import Node, ParsedScript
from ollm.policy.shell.words import ShellWord, WordDecoder, decode_ansi

_FIELD = r"%[sbq]"


def guess_output(statement: Node, decoder: WordDecoder, raw: Callable[[Node], str]) -> str | None:
    """Return the output of `echo …`, `printf …`, `which …` or `cat <<…`, or None for anything else. If there are
    escapes, both readings are included, one per line."""
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


class SyntaxVisitor:
    """Base visitor; collects into `found`."""

    def __init__(self, parsed: ParsedScript, integers: frozenset[str] = frozenset()) -> None:
        """`integers` are names to which the line assigns only integers."""
        self._parsed = parsed
        self.found: list[SimpleCommand | Redirection] = []
        self._quoted = False  # inside double quotes or a here-document
        self._loose = False  # inside another expansion
        self._arithmetic_depth = 0
        self._integers = integers

    def walk(self, scope: ShellScope) -> None:
        self._visit(self._parsed.statements, scope)

    def _visit(self, node: Any, scope: ShellScope) -> None:
        if isinstance(node, (list, tuple)):
            for child in node:
                self._visit(child, scope)
        elif isinstance(node, dict):
            if "Type" not in node and ("Cmd" in node or "Redirs" in node):
                self._visit_statement(node, scope)
                return
            method = getattr(self, f"_{node.get('Type', '')}", None)
            if method is None:
                self._visit_children(node, scope)
            else:
                method(node, scope)

    def _visit_children(self, node: Node, scope: ShellScope) -> None:
        for child in node.values():
            if isinstance(child, (dict, list)):
                self._visit(child, scope)

    def _visit_statement(self, node: Node, scope: ShellScope) -> None:
        self._visit_children(node, scope)

    def _add_command(
        self,
        node: Node,
        words: Iterable[ShellWord],
        scope: ShellScope,
        assignments: Iterable[Assignment] = (),
        *remarks: str,
    ) -> None:
        self.found.append(
            SimpleCommand(
                words=tuple(words),
                text=self._parsed.get_text(node),
                directories=scope.directories,
                assignments=tuple(assignments),
                remarks=remarks,
                stdin=scope.stdin if scope.stdin is not None else self._find_substituted_input(node, scope),
            )
        )

    def _find_substituted_input(self, node: Node, scope: ShellScope) -> str | None:
        parts = [part for word in node.get("Args") or () for part in word.get("Parts") or ()]
        output = self._make_output_guesser(scope)
        printed = [output(part) for part in parts if part.get("Type") == "ProcSubst" and part.get("Op") == "<("]
        return next((text for text in printed if text), None)

    def _read_here_document(self, body: Node) -> str:
        """Return a here-document as written and, if different, with its escapes removed."""
        if not body.get("Parts"):
            return ""
        raw = self._parsed.get_text(body)
        arrived = re.sub(r"\\([$`\\])", r"\1", raw)
        return raw if raw == arrived else f"{raw}\n{arrived}"

    def _make_decoder(self, scope: ShellScope) -> WordDecoder:
        certain = scope.certain
        if scope.directories and len(scope.directories) == 1:
            certain = {**certain, "PWD": str(scope.directories[0])}
        return WordDecoder(certain=certain, assigned=scope.assigned, output=self._make_output_guesser(scope))

    def _make_output_guesser(self, scope: ShellScope) -> Any:
        def guess(node: Node) -> str | None:
            statements = node.get("Stmts") or []
            return (
                guess_output(statements[0], self._make_decoder(scope), self._read_here_document)
                if len(statements) == 1
                else None
            )

        return guess
