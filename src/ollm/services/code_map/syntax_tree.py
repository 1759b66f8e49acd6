"""Definitions, outlines and syntax errors from the syntax tree (extra `[code]`). Empty without a grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.services.code_map.languages import CodeLanguage, find_language

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_PARSED_BYTES = 10 * 1024 * 1024
MAX_SIGNATURE_BYTES = 1200
MAX_DEPTH = 60
MAX_LEADING_COMMENTS = 200  # The time for one step back grows with their number.
_COMMENTS = frozenset({"comment", "line_comment", "block_comment", "attribute_item", "decorator", "marker_annotation"})
_FUNCTION_VALUES = frozenset("arrow_function function_expression function generator_function class".split())
_SCRIPTS = ("javascript", "typescript", "tsx")
_PREFIXES = {
    "type_spec": "type ",
    "type_alias": "type ",
    "const_spec": "const ",
    "var_spec": "var ",
    "variable_declarator": "const ",
}
_ANNOTATIONS = compile_late(r"^(?:@(?!interface\b)[\w.]+(?:\([^()]*\))?\s+)+")
_TEMPLATE_ARGUMENTS = compile_late(r"<[^<>]*>")
_CARRIERS = frozenset({"decorated_definition", "export_statement", "template_declaration"})
_DECLARATIONS = frozenset(
    "expression_statement lexical_declaration variable_declaration ambient_declaration type_declaration "
    "const_declaration var_declaration friend_declaration".split()
)
_CPP_WORDS = compile_late(rb"^\s*(?:class|namespace|template|using|public:|private:)\b", re.MULTILINE)
MAX_SIGNATURE_CHARS = 160
MAX_VALUE_CHARS = 70
OMISSION = "… {} not shown"
CountTokens = Callable[[str], int]


@lru_cache(maxsize=16)
def get_parser(module: str, function: str) -> Parser | None:
    """Return a parser, or None if tree-sitter or the grammar is missing or the two are incompatible."""
    try:
        from tree_sitter import Language, Parser

        return Parser(Language(getattr(import_module(module), function)()))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def has_grammar(name: str) -> bool:
    language = find_language(name)
    return language is not None and get_parser(language.module, language.function) is not None


def is_available() -> bool:
    """Return True if the extra `[code]` is installed, without importing it."""
    return find_spec("tree_sitter") is not None and find_spec("tree_sitter_python") is not None


def outline_text(name: str, data: bytes) -> list[CodeDefinition]:
    """List a file's definitions in order. Empty if it cannot be parsed. The file name gives the language."""
    language = _choose_language(name, data)
    parser = get_parser(language.module, language.function) if language else None
    if language is None or parser is None or len(data) > MAX_PARSED_BYTES:
        return []
    root = parser.parse(data).root_node
    return sorted(_TreeReader(language, data).read(root), key=lambda definition: definition.line)


def find_parse_error(name: str, data: bytes) -> int | None:
    """Find the line of the first syntax error. Returns None if there is none, or if the language cannot be checked. C
    cannot: its macros are unknown."""
    language = find_language(name)
    if language is None or language.name in ("c", "cpp"):
        return None
    parser = get_parser(language.module, language.function)
    if parser is None:
        return None
    root = parser.parse(data).root_node
    return _find_error_row(root) + 1 if root.has_error else None


def _find_error_row(node: Node) -> int:
    for _ in range(MAX_DEPTH * 10):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None or node.is_missing or node.is_error:
            break
        node = inner
    return node.start_point[0]


def _choose_language(name: str, data: bytes) -> CodeLanguage | None:
    """Choose the language by file name. A header with C++ keywords counts as C++."""
    language = find_language(name)
    if language is not None and language.name == "c" and name.endswith(".h") and _CPP_WORDS.search(data):
        return find_language("header.hpp")
    return language


class _TreeReader:
    def __init__(self, language: CodeLanguage, data: bytes) -> None:
        self._language = language
        self._data = data
        self._found: list[CodeDefinition] = []

    def read(self, root: Node) -> list[CodeDefinition]:
        self._visit_children(root, "", None, 0)
        return self._found

    def _visit_children(self, node: Node, scope: str, outer: Node | None, depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        for child in node.named_children:
            self._visit(child, scope, outer, depth + 1)

    def _visit(self, node: Node, scope: str, outer: Node | None, depth: int) -> None:
        """Visit a node. `outer` is the statement that wraps only this node, such as `export` or its decorators."""
        kind = self._language.get_kind(node.type)
        if kind is not None and (named := self._name_definition(node, kind, scope)):
            found = self._add(node, outer or node, *named)
            if self._language.is_container(node.type):
                bodies = map(node.child_by_field_name, ("body", "value", "type"))
                if (body := next(filter(None, bodies), None)) is not None:
                    self._visit_children(body, found.full_name, None, depth + 1)
            elif held := self._find_members(node, found.kind):
                self._visit_children(held, found.full_name, None, depth + 1)
            return
        if node.type in self._language.wrappers or node.is_error:
            alone = node.type in _CARRIERS or (node.type in _DECLARATIONS and node.named_child_count == 1)
            self._visit_children(node, scope, (outer or node) if alone else None, depth)

    def _find_members(self, node: Node, kind: str) -> Node | None:
        """Find the members of a value: functions of an object, or methods of a struct or class declared in it."""
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if value is not None and value.type in ("object", "call"):
            return value
        if self._language.name != "cpp":
            return None
        if kind == "class" and node.type == "function_definition":
            return node.child_by_field_name("body")
        inner = node.child_by_field_name("type")
        return inner.child_by_field_name("body") if inner is not None else None

    def _add(self, node: Node, whole: Node, kind: str, name: str, scope: str) -> CodeDefinition:
        signature = shorten_signature(self._read_signature(node), kind)
        if node.type == "type_definition" and not re.search(rf"\b{re.escape(name)}\b", signature):
            signature = f"{signature} {name}"  # The name is behind the braces.
        named = node.child_by_field_name("name") or node
        line, last = named.start_point[0] + 1, _find_last_row(whole) + 1
        found = CodeDefinition(kind, name, scope, signature, line, self._find_first_line(whole), max(line, last))
        self._found.append(found)
        return found

    def _read_signature(self, node: Node) -> str:
        start, end = node.start_byte, self._find_signature_end(node)
        text = self._data[start : min(end, start + MAX_SIGNATURE_BYTES)].decode("utf-8", "replace").rstrip()
        text = _ANNOTATIONS.sub("", text.removesuffix("=>").removesuffix("="))
        return f"{_PREFIXES.get(node.type, '')}{text}" if self._language.name in ("go", *_SCRIPTS) else text

    def _find_signature_end(self, node: Node) -> int:
        for field in ("body", "value", "right"):
            body = node.child_by_field_name(field)
            if body is not None and field != "body":
                body = body.child_by_field_name("body") if body.type in _FUNCTION_VALUES else None
            if body is not None:
                return min(node.end_byte, body.start_byte)
        if node.type in ("type_spec", "field_declaration", "type_definition", "declaration", "macro_definition"):
            return _find_brace(self._data, node.start_byte, node.end_byte)
        return node.end_byte

    def _find_first_line(self, node: Node) -> int:
        """Find the first line, with the comments and attributes above."""
        first = node.start_point[0]
        before = node.prev_sibling
        for _ in range(MAX_LEADING_COMMENTS):
            if before is None or before.type not in _COMMENTS or _find_last_row(before) < first - 1:
                break
            if before.prev_sibling is not None and _find_last_row(before.prev_sibling) == before.start_point[0]:
                break  # This comment follows other code on its line.
            first, before = before.start_point[0], before.prev_sibling
        return first + 1

    def _name_definition(  # noqa: PLR0911 - one line a kind of node
        self, node: Node, kind: str, scope: str
    ) -> tuple[str, str, str] | None:
        """Return kind, name and scope, or None for an irrelevant node, such as a local variable."""
        match node.type:
            case (
                "assignment"
                | "variable_declarator"
                | "assignment_expression"
                | "public_field_definition"
                | "field_definition"
                | "pair"
            ):
                return self._name_value(node, kind, scope)
            case "function_expression" | "arrow_function" | "class" if self._language.name in _SCRIPTS:
                exported = node.parent is not None and node.parent.type == "export_statement"
                return (kind, self._read_name(node) or "default", scope) if exported else None
            case "type_alias_statement":
                left = node.child_by_field_name("left")
                return (kind, self._read_text(left).partition("[")[0], scope) if left is not None else None
            case "field_declaration" if self._language.name == "java":
                return self._name_field(node, kind, scope)
            case "impl_item":
                return self._name_implementation(node)
            case "method_declaration" if self._language.name == "go":
                return kind, self._read_name(node), self._read_receiver(node)
            case "function_definition" | "declaration" | "field_declaration" | "type_definition" if (
                self._language.name in ("c", "cpp")
            ):
                return self._name_declaration(node, kind, scope)
            case "struct_specifier" | "union_specifier" | "enum_specifier" | "class_specifier":
                if node.child_by_field_name("body") is None:
                    return None
        name = self._read_name(node)
        return (kind, name, scope) if name else None

    def _name_value(self, node: Node, kind: str, scope: str) -> tuple[str, str, str] | None:
        """Name an upper-case constant, an exported value, or a function assigned to a name."""
        left = next(
            (found for field in ("left", "name", "property", "key") if (found := node.child_by_field_name(field))), None
        )
        value = node.child_by_field_name("right") or node.child_by_field_name("value")
        if left is None or value is None:
            return None
        name = self._read_text(left)
        if value.type in _FUNCTION_VALUES:
            return "function", name.removeprefix("module.").removeprefix("exports.").rpartition(".")[2], scope
        plain = left.type in ("identifier", "constant")
        if plain and value.type == "call" and value.child_by_field_name("block") and name[:1].isupper():
            return "class", name, scope  # Ruby: Point = Struct.new(:x) do … end.
        if plain and (self._is_exported(node) or _holds_functions(value)):
            return "constant", name, scope
        if kind != "constant" or not plain or not name.isupper() or scope:
            return None
        return kind, name, scope

    def _is_exported(self, node: Node) -> bool:
        declaration = node.parent
        outside = declaration.parent if declaration is not None else None
        return self._language.name in _SCRIPTS and outside is not None and outside.type == "export_statement"

    def _name_field(self, node: Node, kind: str, scope: str) -> tuple[str, str, str] | None:
        declarator = node.child_by_field_name("declarator")
        name = self._read_name(declarator) if declarator is not None else ""
        return (kind, name, scope) if name.isupper() else None

    def _name_implementation(self, node: Node) -> tuple[str, str, str] | None:
        target = node.child_by_field_name("type")
        while target is not None and target.type == "reference_type":
            target = target.child_by_field_name("type")
        if target is None:
            return None
        return "impl", self._read_text(target).partition("<")[0], ""

    def _name_declaration(self, node: Node, kind: str, scope: str) -> tuple[str, str, str] | None:
        """Name a C declaration, whose name is inside its declarator: `static int *find(int n)`. Skips variables."""
        declarator = node.child_by_field_name("declarator")
        is_function = False
        while declarator is not None:
            is_function = is_function or declarator.type in ("function_declarator", "operator_cast")
            inner = declarator.child_by_field_name("declarator")
            if declarator.type == "reference_declarator":
                inner = next(iter(declarator.named_children), None)
            if inner is None or declarator.type == "operator_cast":
                break
            declarator = inner
        if node.type != "type_definition" and not is_function:
            return self._name_marked_class(node, scope) or self._name_inner_type(node, scope)
        if declarator is None:
            return None
        text = self._read_text(declarator).lstrip("(*^& ")  # A pointer to a function is in brackets.
        name = _TEMPLATE_ARGUMENTS.sub("", re.split(r"[()]", text)[0]).strip().replace("::", ".")
        outer, _, bare = name.rpartition(".")
        return kind, bare, ".".join(filter(None, (scope, outer)))

    def _name_marked_class(self, node: Node, scope: str) -> tuple[str, str, str] | None:
        """Name `class EXPORTED Window { … };`, which parses as a function because of the macro."""
        head, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
        if head is None or declarator is None or node.type != "function_definition" or declarator.type != "identifier":
            return None
        is_class = head.type in ("class_specifier", "struct_specifier") and head.child_by_field_name("body") is None
        return ("class", self._read_text(declarator), scope) if is_class else None

    def _name_inner_type(self, node: Node, scope: str) -> tuple[str, str, str] | None:
        """Name the struct in `struct point { … } origin;`, rather than the declared value."""
        inner = node.child_by_field_name("type")
        if inner is None or inner.child_by_field_name("body") is None or not (name := self._read_name(inner)):
            return None
        return self._language.get_kind(inner.type) or "type", name, scope

    def _read_receiver(self, node: Node) -> str:
        receiver = node.child_by_field_name("receiver")
        named = self._read_text(receiver).strip("()").partition("[")[0] if receiver is not None else ""
        return next(reversed(named.replace("*", " ").split()), "")

    def _read_name(self, node: Node) -> str:
        name = node.child_by_field_name("name")
        return self._read_text(name).replace("::", ".") if name is not None else ""

    def _read_text(self, node: Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _find_last_row(node: Node) -> int:
    """Return the row of the last character. Some nodes include the line break."""
    row, column = node.end_point
    return row if column > 0 or row == node.start_point[0] else row - 1


def _holds_functions(value: Node) -> bool:
    """Return True if a value is an object with functions, such as the methods of a module."""
    return value.type == "object" and any(
        child.type == "method_definition"
        or (child.type == "pair" and (held := child.child_by_field_name("value")) and held.type in _FUNCTION_VALUES)
        for child in value.named_children
    )


def _find_brace(data: bytes, start: int, end: int) -> int:
    place = data.find(b"{", start, end)
    return end if place < 0 else place


class CodeDefinition(Data, frozen=True, kw_only=False, array_like=True, gc=False):
    """A class, function or similar. `line` is the line of its name, `first` that of its decorators or comments, and
    `last` its last line, counting from 1. `scope` is the dotted name of its container."""

    kind: str
    name: str
    scope: str
    signature: str
    line: int
    first: int
    last: int

    @property
    def full_name(self) -> str:
        return f"{self.scope}.{self.name}" if self.scope else self.name

    @property
    def depth(self) -> int:
        return self.scope.count(".") + 1 if self.scope else 0


def shorten_signature(text: str, kind: str = "") -> str:
    line = " ".join(text.split()).rstrip("{:; ").removesuffix(" do").removesuffix(" end").rstrip("; ")
    line = line.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    max_chars = MAX_VALUE_CHARS if kind in ("constant", "variable", "type", "macro") else MAX_SIGNATURE_CHARS
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def render_definition(found: CodeDefinition) -> str:
    return f"{found.line:>5} {'  ' * found.depth}{found.signature}"


def normalize_symbol(symbol: str) -> str:
    """Normalize a symbol: `Turn::run`, `Turn#run` and `Turn.run()` become `Turn.run`."""
    return symbol.strip().removesuffix("()").replace("::", ".").replace("#", ".").strip(".")


def match_symbol(symbol: str, definitions: Sequence[CodeDefinition]) -> list[CodeDefinition]:
    """Match a symbol: definitions with exactly that full name, else those whose full name ends in it."""
    wanted = normalize_symbol(symbol)
    if not wanted:
        return []
    exact = [found for found in definitions if found.full_name == wanted]
    return exact or [found for found in definitions if found.full_name.endswith(f".{wanted}")]


def fit_outline(definitions: Sequence[CodeDefinition], max_tokens: int, count: CountTokens) -> list[str]:
    """Fit the outline into so many tokens: drop inner definitions, deepest first, then the end. Adds a count of the
    omitted definitions."""
    shown = list(definitions)
    deepest = max((found.depth for found in shown), default=0)
    while deepest > 0 and count("\n".join(render_definition(found) for found in shown)) > max_tokens:
        shown = [found for found in shown if found.depth < deepest]
        deepest -= 1
    lines = [render_definition(found) for found in shown]
    kept = take_within(lines, max_tokens, count)
    if len(kept) == len(definitions):
        return kept
    kept = take_within(
        lines, max_tokens - count(OMISSION.format(format_count(len(definitions), "more definition"))), count
    )
    return [*kept, OMISSION.format(format_count(len(definitions) - len(kept), "more definition"))]


def take_within(lines: Sequence[str], max_tokens: int, count: CountTokens) -> list[str]:
    left, kept = max_tokens, list[str]()
    for line in lines:
        left -= count(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    return kept
