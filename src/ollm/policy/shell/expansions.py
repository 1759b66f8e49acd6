"""What bash evaluates inside words, also where the parser shows it as plain text: expansions, arithmetic, tests."""

from __future__ import annotations

import re

from ollm.policy.shell.integers import find_evaluated, is_surely_integer
from ollm.policy.shell.model import SimpleCommand
from ollm.policy.shell.parse import Node, parse_script, split_unparsed, take_balanced
from ollm.policy.shell.scope import ShellScope, is_harmless_variable
from ollm.policy.shell.visitor import SyntaxVisitor
from ollm.policy.shell.words import make_literal

_ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_ARITHMETIC_TESTS = frozenset({"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


class ExpansionVisitor(SyntaxVisitor):
    """Finds the commands in whatever is expanded."""

    def _visit_subshell(self, node: Node, scope: ShellScope) -> None:
        before = self._quoted, self._loose, self._arithmetic_depth
        self._quoted, self._loose, self._arithmetic_depth = False, False, 0
        self._visit_children(node, scope.enter_subshell())
        self._quoted, self._loose, self._arithmetic_depth = before

    _Subshell = _CmdSubst = _ProcSubst = _visit_subshell

    def _DblQuoted(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        before, self._quoted = self._quoted, True
        self._visit_children(node, scope)
        self._quoted = before

    def _visit_arithmetic_expansion(self, node: Node, scope: ShellScope) -> None:
        """Arithmetic: what is in single quotes is expanded all the same, and so is what a name stands for."""
        self._check_arithmetic(node, node.get("X"), scope)
        self._arithmetic_depth += 1
        self._visit_children(node, scope)
        self._arithmetic_depth -= 1

    _ArithmExp = _ArithmCmd = _visit_arithmetic_expansion

    def _check_arithmetic(self, node: Node, expression: object, scope: ShellScope) -> None:
        if not self._is_integer(expression):
            self._add_command(node, (), scope, (), "a value in it is evaluated as arithmetic when it runs")

    def _is_integer(self, expression: object) -> bool:
        return is_surely_integer(expression, self._integers)

    def _SglQuoted(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        if self._arithmetic_depth:
            self._visit_evaluated_text(node.get("Value", ""), scope)

    def _ParamExp(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        expansion = node.get("Exp") or {}
        name = (node.get("Param") or {}).get("Value", "")
        if expansion.get("Op") in ("=", ":=") and not is_harmless_variable(name):
            self._add_command(node, (), scope, (), f"it sets {name}")
            scope.assigned.setdefault(name, self._make_decoder(scope).decode_word(expansion.get("Word")).text)
        for remark in find_evaluated(node, self._is_integer):
            self._add_command(node, (), scope, (), remark)
        if expansion.get("Op") == "@" and self._make_decoder(scope).decode_word(expansion.get("Word")).text == "P":
            self._add_command(node, (), scope, (), "it runs what a variable holds")
        if expansion or node.get("Repl") or node.get("Slice") or node.get("Index"):
            self._visit_hidden_commands(node, scope)
            if self._quoted and set(self._parsed.get_text(node)) & set("'\"\\"):
                self._add_command(node, (), scope, (), "it is not sure where a quoted part of it ends")
        before, self._loose = self._loose, True
        self._visit_children(node, scope)
        self._loose = before

    def _ExtGlob(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        self._visit_evaluated_text((node.get("Pattern") or {}).get("Value", ""), scope)

    def _visit_arithmetic_operator(self, node: Node, scope: ShellScope) -> None:
        if node.get("Op") in _ASSIGNING:
            target = self._make_decoder(scope).decode_word(node.get("X"))
            if target.text.isupper() and not is_harmless_variable(target.text):
                self._add_command(node, (), scope, (), f"it sets {target.text}")
        self._visit_children(node, scope)

    _BinaryArithm = _UnaryArithm = _visit_arithmetic_operator

    def _visit_test(self, node: Node, scope: ShellScope) -> None:
        if node.get("Op") in _ARITHMETIC_TESTS:
            sides = [side for side in (node.get("X"), node.get("Y")) if side]
            if not all(self._is_integer(side) or self._is_plain_name(node, side) for side in sides):
                self._add_command(node, (), scope, (), "a value in it is evaluated as arithmetic when it runs")
            for side in sides:
                if side.get("Parts"):
                    self._visit_evaluated_text(self._make_decoder(scope).decode_word(side).text, scope)
        self._visit_children(node, scope)

    _UnaryTest = _BinaryTest = _visit_test

    def _is_plain_name(self, test: Node, word: Node) -> bool:
        """The name in `-v NAME`, where it has no subscript."""
        parts: list[Node] = word.get("Parts") or []
        literal = parts[0].get("Value", "") if len(parts) == 1 and parts[0].get("Type") == "Lit" else ""
        return test.get("Op") in ("-v", "-R") and literal.isidentifier()

    def _visit_evaluated_text(self, text: str, scope: ShellScope) -> None:
        """Text that bash evaluates once more: substitutions in it are run although they were quoted."""
        if "$(" in text or "`" in text or "${" in text:
            self._visit_script(': "' + text.replace('"', '\\"') + '"', scope)

    def _visit_script(self, script: str, scope: ShellScope) -> None:
        nested = type(self)(parse_script(script), self._integers)
        nested.walk(scope.enter_subshell())
        self.found += nested.found
        if parse_script(script).error:
            for words in split_unparsed(script):
                remark = "a quoted part of it may run"
                self.found.append(
                    SimpleCommand(
                        words=tuple(map(make_literal, words)),
                        text=" ".join(words),
                        directories=scope.directories,
                        remarks=(remark,),
                    )
                )

    def _visit_hidden_commands(self, node: Node, scope: ShellScope) -> None:
        """Where bash finds more in `${…}` than the parser shows: process substitutions, and, inside quotes or another
        expansion, what is in single quotes or behind backslashes."""
        raw = self._parsed.get_text(node)
        for start in (match.start() for match in re.finditer(r"[<>]\(", raw)):
            self._visit_script(f": {take_balanced(raw[start:])}", scope)
        if self._quoted or self._loose:
            bare = re.sub(r"['\"\\]", "", raw) if self._loose else raw.replace("'", "")
            if bare != raw:
                self._visit_evaluated_text(bare[2:].rstrip("}"), scope)
