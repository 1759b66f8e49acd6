"""Finds every simple command and redirection of a syntax tree, wherever it stands.

Working directories are followed through `cd`, and values through assignments and loops.
"""

from __future__ import annotations

from typing import Any

from ollm.policy.shell.directories import after_cd, union
from ollm.policy.shell.expansions import Expansions
from ollm.policy.shell.model import Assignment, Redirection
from ollm.policy.shell.output import printed_by
from ollm.policy.shell.parse import Node, Parsed
from ollm.policy.shell.scope import Scope, is_harmless_variable
from ollm.policy.shell.words import Word, literal

_MOST_ITEMS = 32


class Walker(Expansions):
    """Walks a whole script; `functions` are the names it defines."""

    def __init__(self, parsed: Parsed) -> None:
        super().__init__(parsed)
        self.functions: set[str] = set()

    def walk(self, scope: Scope) -> None:
        self._define(self._parsed.statements)
        super().walk(scope)

    def _define(self, node: Any) -> None:
        if isinstance(node, dict):
            if node.get("Type") == "FuncDecl":
                self.functions.update(name["Value"] for name in [node.get("Name"), *(node.get("Names") or ())] if name)
            for child in node.values():
                self._define(child)
        elif isinstance(node, (list, tuple)):
            for child in node:
                self._define(child)

    def _statement(self, node: Node, scope: Scope) -> None:
        here = scope.inner() if node.get("Background") else scope
        before = here.piped, here.stdin
        for redirection in node.get("Redirs") or ():
            self._redirection(redirection, here)
        if node.get("Cmd"):
            self._visit(node["Cmd"], here)
        here.piped, here.stdin = before

    def _redirection(self, node: Node, scope: Scope) -> None:
        operator = node.get("Op", "")
        self._visit(node.get("Word"), scope)
        before, self._quoted = self._quoted, True
        self._visit(node.get("Hdoc"), scope)
        self._quoted = before
        if operator in ("<<", "<<-"):
            body = node.get("Hdoc")
            scope.stdin = self._raw(body) if body else ""
            return
        target = self._decoder(scope).word(node.get("Word"))
        if operator == "<<<":
            scope.stdin = target.text
            return
        if operator == "<":
            scope.piped, scope.stdin = True, None
        text = self._parsed.text_of(node) if "Pos" in node and "End" in node else f"{operator} {target.text}"
        self.found.append(Redirection(operator=operator, target=target, text=text, directories=scope.directories))

    def _CallExpr(self, node: Node, scope: Scope) -> None:  # noqa: N802
        decoder = self._decoder(scope)
        words = tuple(word for argument in node.get("Args") or () for word in decoder.words(argument))
        assignments = tuple(self._assignment(one, scope) for one in node.get("Assigns") or ())
        self._children(node, scope)
        self._found(node, words, scope, assignments)
        if not words:
            scope.assigned.update({one.name: one.value.text for one in assignments})
        scope.directories = after_cd(words, scope.directories, scope.home)

    def _assignment(self, node: Node, scope: Scope) -> Assignment:
        name = (node.get("Name") or {}).get("Value", "")
        decoder = self._decoder(scope)
        value = decoder.word(node.get("Value"))
        if node.get("Array"):
            elements = [decoder.word(one.get("Value")).text for one in node["Array"].get("Elems") or ()]
            value = Word(text=" ".join(elements), known="", static=False)
        return Assignment(
            name=name, value=value, plain=not (node.get("Index") or node.get("Array") or node.get("Append"))
        )

    def _DeclClause(self, node: Node, scope: Scope) -> None:  # noqa: N802
        decoder = self._decoder(scope)
        variant = node["Variant"]["Value"]
        words = [literal(variant)]
        for argument in node.get("Args") or ():
            name = (argument.get("Name") or {}).get("Value", "")
            value = decoder.word(argument.get("Value")).text
            if name and argument.get("Value"):
                scope.assigned[name] = value
            words.append(literal(f"{name}={value}" if name and argument.get("Value") else name or value))
        self._children(node, scope)
        self._found(node, words, scope, (), f"{variant} changes the shell's variables")

    def _LetClause(self, node: Node, scope: Scope) -> None:  # noqa: N802
        decoder = self._decoder(scope)
        texts = [decoder.word(one).text for one in node.get("Exprs") or () if one.get("Parts")]
        self._children(node, scope)
        for text in texts:
            self._evaluated(text, scope)
        self._found(node, [literal("let"), *map(literal, texts)], scope, (), "let changes the shell's variables")

    def _BinaryCmd(self, node: Node, scope: Scope) -> None:  # noqa: N802
        operator = node.get("Op")
        if operator in ("|", "|&"):
            self._visit(node["X"], scope.inner())
            right = scope.inner()
            right.piped, right.stdin = True, printed_by(node["X"], self._decoder(scope), self._raw)
            self._visit(node["Y"], right)
            return
        self._visit(node["X"], scope)
        before = scope.directories
        self._visit(node["Y"], scope)
        if scope.directories != before:
            scope.directories = union(before, scope.directories)

    def _CoprocClause(self, node: Node, scope: Scope) -> None:  # noqa: N802
        self._found(node, (), scope, (), "it goes on in the background and sets a variable")
        self._in_subshell(node, scope)

    def _maybe(self, node: Node, scope: Scope) -> None:
        """A branch, a function's body: run or not, so both working directories are possible afterwards."""
        before = scope.directories
        self._children(node, scope)
        scope.directories = union(before, scope.directories)

    _IfClause = _CaseClause = _FuncDecl = _maybe

    def _loop(self, node: Node, scope: Scope) -> None:
        before = scope.directories
        self._children(node, scope)
        if scope.directories != before:
            scope.directories = None
            self._children(node, scope)

    _WhileClause = _loop

    def _ForClause(self, node: Node, scope: Scope) -> None:  # noqa: N802
        loop = node.get("Loop") or {}
        if loop.get("Type") != "WordIter":
            self._loop(node, scope)
            return
        self._visit(loop.get("Items"), scope)
        name = (loop.get("Name") or {}).get("Value", "")
        if name.isupper() and not is_harmless_variable(name):
            self._found(loop, (), scope, (), f"the loop sets {name}")
        decoder = self._decoder(scope)
        items = [word for item in loop.get("Items") or () for word in decoder.words(item)]
        known = bool(loop.get("Items")) and len(items) <= _MOST_ITEMS and all(word.static for word in items)
        for value in dict.fromkeys(word.text for word in items) if known else [None]:
            here = scope if value is None else scope.inner()
            here.certain.pop(name, None)
            if value is not None:
                here.certain[name] = here.assigned[name] = value
            self._loop({"Do": node.get("Do")}, here)
            scope.directories = union(scope.directories, here.directories)
        scope.certain.pop(name, None)
        if items:
            scope.assigned[name] = items[-1].text
