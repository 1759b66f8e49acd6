"""Going through a syntax tree: nodes with a meaning of their own have a method, which carries the name of shfmt's node;
everything else is walked child by child, so that a substitution is found in whatever it is wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ollm.policy.shell.model import Assignment, Command, Redirection
from ollm.policy.shell.output import printed_by
from ollm.policy.shell.parse import Node, Parsed
from ollm.policy.shell.scope import Scope
from ollm.policy.shell.words import Decoder, Word


class Visitor:
    """Collects into `found`."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self.found: list[Command | Redirection] = []
        self._quoted = False  # inside double quotes or a here-document
        self._loose = False  # inside another expansion
        self._arithmetic_depth = 0

    def walk(self, scope: Scope) -> None:
        self._visit(self._parsed.statements, scope)

    def _visit(self, node: Any, scope: Scope) -> None:
        if isinstance(node, (list, tuple)):
            for child in node:
                self._visit(child, scope)
        elif isinstance(node, dict):
            if "Type" not in node and ("Cmd" in node or "Redirs" in node):
                self._statement(node, scope)
                return
            method = getattr(self, f"_{node.get('Type', '')}", None)
            if method is None:
                self._children(node, scope)
            else:
                method(node, scope)

    def _children(self, node: Node, scope: Scope) -> None:
        for child in node.values():
            if isinstance(child, (dict, list)):
                self._visit(child, scope)

    def _statement(self, node: Node, scope: Scope) -> None:
        """A command with its redirections."""
        self._children(node, scope)

    def _found(
        self, node: Node, words: Iterable[Word], scope: Scope, assignments: Iterable[Assignment] = (), *remarks: str
    ) -> None:
        self.found.append(
            Command(
                words=tuple(words),
                text=self._parsed.text_of(node),
                directories=scope.directories,
                assignments=tuple(assignments),
                remarks=remarks,
                piped=scope.piped,
                stdin=scope.stdin if scope.stdin is not None else self._handed(node, scope),
            )
        )

    def _handed(self, node: Node, scope: Scope) -> str | None:
        """What a process substitution among the words prints: `bash <(echo …)` reads it like its input."""
        parts = [part for word in node.get("Args") or () for part in word.get("Parts") or ()]
        output = self._output(scope)
        printed = [output(part) for part in parts if part.get("Type") == "ProcSubst" and part.get("Op") == "<("]
        return next((text for text in printed if text), None)

    def _raw(self, body: Node) -> str:
        """A here-document as written and, where that differs, as it arrives."""
        if not body.get("Parts"):
            return ""
        raw = self._parsed.text_of(body)
        arrived = re.sub(r"\\([$`\\])", r"\1", raw)
        return raw if raw == arrived else f"{raw}\n{arrived}"

    def _decoder(self, scope: Scope) -> Decoder:
        certain = scope.certain
        if scope.directories and len(scope.directories) == 1:
            certain = {**certain, "PWD": str(scope.directories[0])}
        return Decoder(certain=certain, assigned=scope.assigned, output=self._output(scope))

    def _output(self, scope: Scope) -> Any:
        def guess(node: Node) -> str | None:
            statements = node.get("Stmts") or []
            return printed_by(statements[0], self._decoder(scope), self._raw) if len(statements) == 1 else None

        return guess
