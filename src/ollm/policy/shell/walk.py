"""Finds every simple command and redirection of a syntax tree, at any depth.

Working directories are tracked through `cd`, and values through assignments and loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ollm.policy.shell.model import (
    Assignment,
    Redirection,
    ShellScope,
    SimpleCommand,
    follow_cd,
    is_harmless_variable,
    merge_directories,
)
from ollm.policy.shell.parse import Node, ParsedScript, iter_nodes, parse_script, split_unparsed, take_balanced
from ollm.policy.shell.words import ShellWord, WordDecoder, find_fed_text, make_literal

_MAX_LOOP_ITEMS = 32
_ARITHMETIC_TYPES = frozenset({"Word", "Lit", "BinaryArithm", "UnaryArithm", "ParenArithm"})


def _get_literal(word: Node) -> str:
    parts: list[Node] = word.get("Parts") or []
    return str(parts[0]["Value"]) if len(parts) == 1 and parts[0].get("Type") == "Lit" else ""


def is_literal_arithmetic(expression: object) -> bool:
    """Return True if an expression consists of decimal numbers and operators: bash evaluates the value of anything
    else."""
    return all(
        node.get("Type", "Word") in _ARITHMETIC_TYPES
        and (node.get("Type") != "Lit" or str(node.get("Value", "")).strip().isdecimal())
        for node in iter_nodes(expression)
    )


def find_evaluated(node: Node) -> list[str]:
    """Return remarks on parts of an expansion that bash evaluates at run time: subscript, slice or indirection."""
    index: Any = node.get("Index")
    listed = index is not None and _get_literal(index) in ("@", "*")
    computed = index is not None and not listed and not is_literal_arithmetic(index)
    remarks = {
        "a subscript in it is evaluated when it runs": computed,
        "a part of a value is cut out by what is only known when it runs": not is_literal_arithmetic(node.get("Slice")),
        "which variable it reads is only known when it runs": node.get("Excl") and not node.get("Names") and not listed,
    }
    return [remark for remark, holds in remarks.items() if holds]


_ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_ARITHMETIC_TESTS = frozenset({"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


class ScriptWalker:
    """Walks a whole script: a method named after a shfmt node type handles that node. All other nodes are visited child
    by child, so that substitutions are found at any depth. `functions` are the names it defines."""

    def __init__(self, parsed: ParsedScript) -> None:
        self._parsed = parsed
        self.found: list[SimpleCommand | Redirection] = []
        self.functions: set[str] = set()
        self._quoted = False  # It is set inside double quotes and here-documents.
        self._loose = False  # It is set inside another expansion.
        self._arithmetic_depth = 0

    def walk(self, scope: ShellScope) -> None:
        self._collect_functions()
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
                stdin=scope.stdin,
            )
        )

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
        return WordDecoder(certain=certain, assigned=scope.assigned)

    def _collect_functions(self) -> None:
        for node in iter_nodes(self._parsed.statements):
            if node.get("Type") == "FuncDecl":
                self.functions.update(name["Value"] for name in [node.get("Name"), *(node.get("Names") or ())] if name)

    def _visit_statement(self, node: Node, scope: ShellScope) -> None:
        here = scope.enter_subshell() if node.get("Background") else scope
        before = here.stdin
        for redirection in node.get("Redirs") or ():
            self._visit_redirection(redirection, here)
        if node.get("Cmd"):
            self._visit(node["Cmd"], here)
        if node.get("Negated") or (node.get("Cmd") or {}).get("Type") not in ("CallExpr", "BinaryCmd"):
            here.reached = here.directories
        here.stdin = before

    def _visit_redirection(self, node: Node, scope: ShellScope) -> None:
        operator = node.get("Op", "")
        self._visit(node.get("Word"), scope)
        before, self._quoted = self._quoted, True
        self._visit(node.get("Hdoc"), scope)
        self._quoted = before
        number = (node.get("N") or {}).get("Value", "")
        if number.startswith("{"):
            self._add_command(node, (), scope, (), f"it sets {number.strip('{}')}")
        if operator in ("<<", "<<-"):
            body = node.get("Hdoc")
            scope.stdin = self._read_here_document(body) if body else ""
            return
        target = self._make_decoder(scope).decode_word(node.get("Word"))
        if operator == "<<<":
            scope.stdin = target.text
            return
        if operator == "<":
            scope.stdin = None
        text = self._parsed.get_text(node) if "Pos" in node and "End" in node else f"{operator} {target.text}"
        self.found.append(Redirection(operator=operator, target=target, text=text, directories=scope.directories))

    def _CallExpr(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        decoder = self._make_decoder(scope)
        words = tuple(word for argument in node.get("Args") or () for word in decoder.decode_words(argument))
        assignments = tuple(self._decode_assignment(one, scope) for one in node.get("Assigns") or ())
        self._visit_children(node, scope)
        self._add_command(node, words, scope, assignments)
        if not words:
            scope.assigned.update({one.name: one.value.text for one in assignments})
        before, scope.reached = scope.directories, follow_cd(words, scope.directories, scope.home)
        surely = scope.reached is None or all(place.is_dir() for place in scope.reached)
        scope.directories = scope.reached if surely else merge_directories(before, scope.reached)

    def _decode_assignment(self, node: Node, scope: ShellScope) -> Assignment:
        name = (node.get("Name") or {}).get("Value", "")
        decoder = self._make_decoder(scope)
        value = decoder.decode_word(node.get("Value"))
        if node.get("Array"):
            elements = [decoder.decode_word(one.get("Value")).text for one in node["Array"].get("Elems") or ()]
            value = ShellWord(text=" ".join(elements), known="", static=False)
        return Assignment(
            name=name, value=value, plain=not (node.get("Index") or node.get("Array") or node.get("Append"))
        )

    def _DeclClause(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        decoder = self._make_decoder(scope)
        variant = node["Variant"]["Value"]
        words = [make_literal(variant)]
        for argument in node.get("Args") or ():
            name = (argument.get("Name") or {}).get("Value", "")
            value = decoder.decode_word(argument.get("Value")).text
            if name and argument.get("Value"):
                scope.assigned[name] = value
            words.append(make_literal(f"{name}={value}" if name and argument.get("Value") else name or value))
        self._visit_children(node, scope)
        self._add_command(node, words, scope, (), f"{variant} changes the shell's variables")

    def _LetClause(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        decoder = self._make_decoder(scope)
        texts = [decoder.decode_word(one).text for one in node.get("Exprs") or () if one.get("Parts")]
        self._visit_children(node, scope)
        for text in texts:
            self._visit_evaluated_text(text, scope)
        self._add_command(
            node, [make_literal("let"), *map(make_literal, texts)], scope, (), "let changes the shell's variables"
        )

    def _BinaryCmd(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        operator = node.get("Op")
        if operator in ("|", "|&"):
            self._visit(node["X"], scope.enter_subshell())
            right = scope.enter_subshell()
            right.stdin = find_fed_text(node["X"], self._make_decoder(scope), self._read_here_document)
            self._visit(node["Y"], right)
            scope.reached = scope.directories
            return
        self._visit(node["X"], scope)
        before = scope.directories
        if operator == "&&":
            scope.directories = scope.reached
        self._visit(node["Y"], scope)
        scope.directories = merge_directories(before, scope.directories)
        if operator == "||":
            scope.reached = scope.directories

    def _CoprocClause(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        self._add_command(node, (), scope, (), "it continues in the background and sets a variable")
        self._visit_subshell(node, scope)

    def _visit_branch(self, node: Node, scope: ShellScope) -> None:
        """Visit a branch or function body. It may not run, so both working directories are possible afterwards."""
        before = scope.directories
        self._visit_children(node, scope)
        scope.directories = merge_directories(before, scope.directories)

    _IfClause = _CaseClause = _FuncDecl = _visit_branch

    def _visit_loop(self, node: Node, scope: ShellScope) -> None:
        before = scope.directories
        self._visit_children(node, scope)
        if scope.directories != before:
            scope.directories = None
            self._visit_children(node, scope)

    _WhileClause = _visit_loop

    def _ForClause(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        loop = node.get("Loop") or {}
        if loop.get("Type") != "WordIter":
            for part in ("Init", "Cond", "Post"):
                self._check_arithmetic(node, loop.get(part), scope)
            self._visit_loop(node, scope)
            return
        self._visit(loop.get("Items"), scope)
        name = (loop.get("Name") or {}).get("Value", "")
        if name.isupper() and not is_harmless_variable(name):
            self._add_command(loop, (), scope, (), f"the loop sets {name}")
        decoder = self._make_decoder(scope)
        items = [word for item in loop.get("Items") or () for word in decoder.decode_words(item)]
        known = bool(loop.get("Items")) and len(items) <= _MAX_LOOP_ITEMS and all(word.static for word in items)
        for value in dict.fromkeys(word.text for word in items) if known else [None]:
            here = scope if value is None else scope.enter_subshell()
            here.certain.pop(name, None)
            if value is not None:
                here.certain[name] = here.assigned[name] = value
            self._visit_loop({"Do": node.get("Do")}, here)
            scope.directories = merge_directories(scope.directories, here.directories)
        scope.certain.pop(name, None)
        if items:
            scope.assigned[name] = items[-1].text

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
        """Visit arithmetic, which expands even single-quoted text and the values of names."""
        self._check_arithmetic(node, node.get("X"), scope)
        self._arithmetic_depth += 1
        self._visit_children(node, scope)
        self._arithmetic_depth -= 1

    _ArithmExp = _ArithmCmd = _visit_arithmetic_expansion

    def _check_arithmetic(self, node: Node, expression: object, scope: ShellScope) -> None:
        if not is_literal_arithmetic(expression):
            self._add_command(node, (), scope, (), "a value in it is evaluated as arithmetic when it runs")

    def _SglQuoted(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        if self._arithmetic_depth:
            self._visit_evaluated_text(node.get("Value", ""), scope)

    def _ParamExp(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        expansion = node.get("Exp") or {}
        name = (node.get("Param") or {}).get("Value", "")
        if expansion.get("Op") in ("=", ":=") and not is_harmless_variable(name):
            self._add_command(node, (), scope, (), f"it sets {name}")
            scope.assigned.setdefault(name, self._make_decoder(scope).decode_word(expansion.get("Word")).text)
        for remark in find_evaluated(node):
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
            named = node["Op"] in ("-v", "-R") and all(_get_literal(side).isidentifier() for side in sides)
            if not named and not is_literal_arithmetic(sides):
                self._add_command(node, (), scope, (), "a value in it is evaluated as arithmetic when it runs")
            for side in sides:
                if side.get("Parts"):
                    self._visit_evaluated_text(self._make_decoder(scope).decode_word(side).text, scope)
        self._visit_children(node, scope)

    _UnaryTest = _BinaryTest = _visit_test

    def _visit_evaluated_text(self, text: str, scope: ShellScope) -> None:
        """Visit text that bash evaluates again: it runs the substitutions in it even if they were quoted."""
        if "$(" in text or "`" in text or "${" in text:
            self._visit_script(': "' + text.replace('"', '\\"') + '"', scope)

    def _visit_script(self, script: str, scope: ShellScope) -> None:
        nested = type(self)(parse_script(script))
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
        """Visit commands in `${…}` that the parser does not show: process substitutions and, inside quotes or another
        expansion, text in single quotes or after backslashes."""
        raw = self._parsed.get_text(node)
        for start in (match.start() for match in re.finditer(r"[<>]\(", raw)):
            self._visit_script(f": {take_balanced(raw[start:])}", scope)
        if self._quoted or self._loose:
            bare = re.sub(r"['\"\\]", "", raw) if self._loose else raw.replace("'", "")
            if bare != raw:
                self._visit_evaluated_text(bare[2:].rstrip("}"), scope)
