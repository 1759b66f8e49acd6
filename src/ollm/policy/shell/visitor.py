"""Going through a syntax tree: nodes with a meaning of their own have a method, which carries the name of shfmt's node;
everything else is walked child by child, so that a substitution is found in whatever it is wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ollm.policy.shell.model import Assignment, Redirection, SimpleCommand
from ollm.policy.shell.output import guess_output
from ollm.policy.shell.parse import Node, ParsedScript
from ollm.policy.shell.scope import ShellScope
from ollm.policy.shell.words import ShellWord, WordDecoder


class SyntaxVisitor:
    """Collects into `found`."""

    def __init__(self, parsed: ParsedScript, integers: frozenset[str] = frozenset()) -> None:
        """`integers` are names that the line has given nothing but integers."""
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
        """A command with its redirections."""
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
                piped=scope.piped,
                stdin=scope.stdin if scope.stdin is not None else self._find_substituted_input(node, scope),
            )
        )

    def _find_substituted_input(self, node: Node, scope: ShellScope) -> str | None:
        """What a process substitution among the words prints: `bash <(echo …)` reads it like its input."""
        parts = [part for word in node.get("Args") or () for part in word.get("Parts") or ()]
        output = self._make_output_guesser(scope)
        printed = [output(part) for part in parts if part.get("Type") == "ProcSubst" and part.get("Op") == "<("]
        return next((text for text in printed if text), None)

    def _read_here_document(self, body: Node) -> str:
        """A here-document as written and, where that differs, as it arrives."""
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
