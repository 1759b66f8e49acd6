"""Finds every simple command and redirection of a syntax tree, wherever it is.

Working directories are followed through `cd`, and values through assignments and loops.
"""

from __future__ import annotations

from ollm.policy.shell.expansions import ExpansionVisitor, find_integer_names
from ollm.policy.shell.model import Assignment, Redirection
from ollm.policy.shell.parse import Node, ParsedScript, iter_nodes
from ollm.policy.shell.scope import ShellScope, follow_cd, is_harmless_variable, merge_directories
from ollm.policy.shell.visitor import guess_output
from ollm.policy.shell.words import ShellWord, make_literal

_MAX_LOOP_ITEMS = 32


class ScriptWalker(ExpansionVisitor):
    """Walks a whole script; `functions` are the names it defines."""

    def __init__(self, parsed: ParsedScript, integers: frozenset[str] = frozenset()) -> None:
        super().__init__(parsed, integers)
        self.functions: set[str] = set()

    def walk(self, scope: ShellScope) -> None:
        self._collect_functions()
        self._integers |= find_integer_names(self._parsed.statements)
        super().walk(scope)

    def _collect_functions(self) -> None:
        for node in iter_nodes(self._parsed.statements):
            if node.get("Type") == "FuncDecl":
                self.functions.update(name["Value"] for name in [node.get("Name"), *(node.get("Names") or ())] if name)

    def _visit_statement(self, node: Node, scope: ShellScope) -> None:
        here = scope.enter_subshell() if node.get("Background") else scope
        before = here.piped, here.stdin
        for redirection in node.get("Redirs") or ():
            self._visit_redirection(redirection, here)
        if node.get("Cmd"):
            self._visit(node["Cmd"], here)
        here.piped, here.stdin = before

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
            scope.piped, scope.stdin = True, None
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
        scope.directories = follow_cd(words, scope.directories, scope.home)

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
            right.piped, right.stdin = (
                True,
                guess_output(node["X"], self._make_decoder(scope), self._read_here_document),
            )
            self._visit(node["Y"], right)
            return
        self._visit(node["X"], scope)
        before = scope.directories
        self._visit(node["Y"], scope)
        if scope.directories != before:
            scope.directories = merge_directories(before, scope.directories)

    def _CoprocClause(self, node: Node, scope: ShellScope) -> None:  # noqa: N802
        self._add_command(node, (), scope, (), "it continues in the background and sets a variable")
        self._visit_subshell(node, scope)

    def _visit_branch(self, node: Node, scope: ShellScope) -> None:
        """A branch, a function's body: run or not, so both working directories are possible afterwards."""
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
