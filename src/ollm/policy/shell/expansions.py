"""What bash evaluates inside words, also where the parser shows it as plain text: expansions, arithmetic, tests."""

from __future__ import annotations

import re

from ollm.policy.shell.model import Command
from ollm.policy.shell.parse import Node, balanced, parse, stretches
from ollm.policy.shell.scope import Scope, is_harmless_variable
from ollm.policy.shell.visitor import Visitor
from ollm.policy.shell.words import literal

_ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_ARITHMETIC_TESTS = frozenset({"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


class Expansions(Visitor):
    """Finds the commands in whatever is expanded."""

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

    def _ParamExp(self, node: Node, scope: Scope) -> None:  # noqa: N802
        expansion = node.get("Exp") or {}
        name = (node.get("Param") or {}).get("Value", "")
        if expansion.get("Op") in ("=", ":=") and not is_harmless_variable(name):
            self._found(node, (), scope, (), f"it sets {name}")
            scope.assigned.setdefault(name, self._decoder(scope).word(expansion.get("Word")).text)
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
        nested = type(self)(parse(script))
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
