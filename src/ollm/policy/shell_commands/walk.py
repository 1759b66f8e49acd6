"""Finds every simple command and redirection of a syntax tree, wherever it stands (safety 1.1).

Nodes with a meaning of their own have a method; everything else is walked child by child, so that a substitution is
found in whatever it is wrapped. Working directories are followed through `cd`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any

from ollm.policy.shell_commands.directories import after_cd, union
from ollm.policy.shell_commands.model import Assignment, Command, Directories, Redirection
from ollm.policy.shell_commands.output import printed_by
from ollm.policy.shell_commands.parse import Node, Parsed, balanced, parse, stretches
from ollm.policy.shell_commands.words import Decoder, Word, literal

_MOST_ITEMS = 32
_HARMLESS_NAMES = frozenset(
    {"CI", "NO_COLOR", "FORCE_COLOR", "LANG", "TZ", "TERM", "COLUMNS", "LINES", "DEBUG", "NODE_ENV"}
)
_ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_ARITHMETIC_TESTS = frozenset({"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


def is_harmless_variable(name: str) -> bool:
    """Variables whose setting changes nothing but looks (safety 1.6)."""
    return name in _HARMLESS_NAMES or name.startswith("LC_")


class Scope:
    """What is known at one place of the line."""

    def __init__(self, directories: Directories, home: Path | None, assigned: dict[str, str] | None = None) -> None:
        self.directories = directories
        self.home = home
        self.certain: dict[str, str] = {} if home is None else {"HOME": str(home)}
        self.assigned: dict[str, str] = dict(assigned or {})
        self.piped = False
        self.stdin: str | None = None

    def inner(self) -> Scope:
        """The same, for a subshell: what changes there does not come back."""
        twin = copy(self)
        twin.certain, twin.assigned = dict(self.certain), dict(self.assigned)
        return twin


class Walker:
    """Collects into `found`; `functions` are the names the line defines."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self.found: list[Command | Redirection] = []
        self.functions: set[str] = set()
        self._quoted = False  # inside double quotes or a here-document
        self._loose = False  # inside another expansion
        self._arithmetic_depth = 0

    def walk(self, scope: Scope) -> None:
        self._define(self._parsed.statements)
        self._visit(self._parsed.statements, scope)

    def _define(self, node: Any) -> None:
        if isinstance(node, dict):
            if node.get("Type") == "FuncDecl":
                self.functions.update(name["Value"] for name in [node.get("Name"), *(node.get("Names") or ())] if name)
            for child in node.values():
                self._define(child)
        elif isinstance(node, (list, tuple)):
            for child in node:
                self._define(child)

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

    def _raw(self, body: Node) -> str:
        """A here-document as written and, where that differs, as it arrives."""
        if not body.get("Parts"):
            return ""
        raw = self._parsed.text_of(body)
        arrived = re.sub(r"\\([$`\\])", r"\1", raw)
        return raw if raw == arrived else f"{raw}\n{arrived}"

    def _CallExpr(self, node: Node, scope: Scope) -> None:  # noqa: N802 - methods carry the names of shfmt's nodes
        decoder = self._decoder(scope)
        words = tuple(word for argument in node.get("Args") or () for word in decoder.words(argument))
        assignments = tuple(self._assignment(one, scope) for one in node.get("Assigns") or ())
        self._children(node, scope)
        self._found(node, words, scope, assignments)
        if not words:
            scope.assigned.update({one.name: one.value.text for one in assignments})
        scope.directories = after_cd(words, scope.directories, scope.home)

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

    def _in_subshell(self, node: Node, scope: Scope) -> None:
        before = self._quoted, self._loose, self._arithmetic_depth
        self._quoted, self._loose, self._arithmetic_depth = False, False, 0
        self._children(node, scope.inner())
        self._quoted, self._loose, self._arithmetic_depth = before

    _Subshell = _CmdSubst = _ProcSubst = _in_subshell

    def _DblQuoted(self, node: Node, scope: Scope) -> None:  # noqa: N802
        before, self._quoted = self._quoted, True
        self._children(node, scope)
        self._quoted = before

    def _evaluating(self, node: Node, scope: Scope) -> None:
        """Arithmetic: what stands in single quotes is expanded all the same."""
        self._arithmetic_depth += 1
        self._children(node, scope)
        self._arithmetic_depth -= 1

    _ArithmExp = _ArithmCmd = _evaluating

    def _SglQuoted(self, node: Node, scope: Scope) -> None:  # noqa: N802
        if self._arithmetic_depth:
            self._evaluated(node.get("Value", ""), scope)

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
                here.certain[name] = value
            self._loop({"Do": node.get("Do")}, here)
            scope.directories = union(scope.directories, here.directories)
        scope.certain.pop(name, None)
        if items:
            scope.assigned[name] = items[-1].text

    def _ParamExp(self, node: Node, scope: Scope) -> None:  # noqa: N802
        expansion = node.get("Exp") or {}
        name = (node.get("Param") or {}).get("Value", "")
        if expansion.get("Op") in ("=", ":=") and not is_harmless_variable(name):
            self._found(node, (), scope, (), f"it sets {name}")
        if expansion.get("Op") == "@" and self._decoder(scope).word(expansion.get("Word")).text == "P":
            self._found(node, (), scope, (), "it runs what a variable holds")
        if expansion or node.get("Repl") or node.get("Slice") or node.get("Index"):
            self._hidden_in(node, scope)
        before, self._loose = self._loose, True
        self._children(node, scope)
        self._loose = before

    def _ExtGlob(self, node: Node, scope: Scope) -> None:  # noqa: N802
        self._evaluated((node.get("Pattern") or {}).get("Value", ""), scope)

    def _arithmetic(self, node: Node, scope: Scope) -> None:
        if node.get("Op") in _ASSIGNING:
            target = self._decoder(scope).word(node.get("X"))
            if target.text.isupper() and not is_harmless_variable(target.text):
                self._found(node, (), scope, (), f"it sets {target.text}")
        self._children(node, scope)

    _BinaryArithm = _UnaryArithm = _arithmetic

    def _test(self, node: Node, scope: Scope) -> None:
        if node.get("Op") in _ARITHMETIC_TESTS:
            for side in (node.get("X"), node.get("Y")):
                if side and side.get("Parts"):
                    self._evaluated(self._decoder(scope).word(side).text, scope)
        self._children(node, scope)

    _UnaryTest = _BinaryTest = _test

    def _evaluated(self, text: str, scope: Scope) -> None:
        """Text that bash evaluates once more: substitutions in it are run although they were quoted."""
        if "$(" in text or "`" in text or "${" in text:
            self._reparsed(': "' + text.replace('"', '\\"') + '"', scope)

    def _reparsed(self, script: str, scope: Scope) -> None:
        nested = Walker(parse(script))
        nested.walk(scope.inner())
        self.found += nested.found
        if parse(script).error:
            for words in stretches(script):
                remark = "a part of it may be run although it is quoted"
                self.found.append(
                    Command(
                        words=tuple(map(literal, words)),
                        text=" ".join(words),
                        directories=scope.directories,
                        remarks=(remark,),
                    )
                )

    def _hidden_in(self, node: Node, scope: Scope) -> None:
        """Where bash finds more in `${…}` than the parser shows: process substitutions, and, inside quotes or another
        expansion, what stands in single quotes or behind backslashes."""
        raw = self._parsed.text_of(node)
        for start in (match.start() for match in re.finditer(r"[<>]\(", raw)):
            self._reparsed(f": {balanced(raw[start:])}", scope)
        if self._quoted or self._loose:
            bare = re.sub(r"['\"\\]", "", raw) if self._loose else raw.replace("'", "")
            if bare != raw:
                self._evaluated(bare[2:].rstrip("}"), scope)

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
