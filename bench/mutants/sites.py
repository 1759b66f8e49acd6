"""Where a module can be broken, and how: one small change of its text for each place."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SWAPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}

PLAIN = (
    "None",
    "True",
    "False",
    "''",
    "b''",
    "[]",
    "()",
    "{}",
    "0",
    "0.0",
)  # nothing for nothing: the type checker would tell
MIN_BOUND = 100  # a bound that is moved by one changes nothing that anybody could see: from here on it is doubled
TURNED: dict[type[ast.cmpop], str] = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}  # beside such a bound
CLOCK = re.compile(
    r"\b(monotonic|process_time|perf_counter|time)\(\)"
)  # never strikes a moment exactly: turned as well


class Mutant(NamedTuple):
    """One change: the bytes from `start` to `end` of a file become `text`."""

    path: Path
    line: int
    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutants(path: Path) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines; one in a thousand does not parse."""
    source = path.read_bytes()
    finder = Finder(path, source)
    finder.visit(ast.parse(source))
    return finder.found


def parses(mutant: Mutant) -> bool:
    try:
        ast.parse(mutant.apply(mutant.path.read_bytes()))
    except (SyntaxError, ValueError):
        return False
    return True


class Finder(ast.NodeVisitor):
    """Walks a module; what only the type checker reads, and what only people read, is left alone."""

    def __init__(self, path: Path, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._bounds = {*find_bounds(ast.parse(source)), *find_imported_bounds(path, ast.parse(source))}

    def visit_If(self, node: ast.If) -> None:
        """What only decides whether something is logged is not broken, as what is logged is not."""
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if not node.orelse and all(isinstance(inner, ast.Expr) and is_logging(inner.value) for inner in node.body):
            return
        self._add(node.test, "condition", f"not ({self._text(node.test)})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            left, right, operator = self._text(node.left), self._text(node.comparators[0]), type(node.ops[0])
            is_rough = {left, right} & self._bounds or CLOCK.search(left) or CLOCK.search(right)
            swaps = {**SWAPS, **TURNED} if is_rough else SWAPS
            self._add(node, "comparison", f"({left} {swaps[operator]} {right})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " or " if isinstance(node.op, ast.And) else " and "
        self._add(node, "and/or", f"({word.join(f'({self._text(value)})' for value in node.values)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add | ast.Sub) and not any(isinstance(n, ast.JoinedStr) for n in ast.walk(node)):
            sign = "-" if isinstance(node.op, ast.Add) else "+"
            self._add(node, "arithmetic", f"({self._text(node.left)} {sign} {self._text(node.right)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, "constant", str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, "constant", str(node.value + 1 if node.value < MIN_BOUND else node.value * 2))

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and ast.unparse(node.value) not in PLAIN:
            self._add(node.value, "return", "None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if is_logging(node.value):
            return
        if isinstance(node.value, ast.Call | ast.Await):
            self._add(node, "call removed", "pass")
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """How a class is made (slots, frozen) is not broken."""
        for statement in node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        if ast.unparse(node.targets[0]) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *(value for value in node.kw_defaults if value is not None)]:
            self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_Call(self, node: ast.Call) -> None:
        """That `zip` would mind rows of different lengths is not seen: it says that they are always equally long."""
        self.visit(node.func)
        for part in (*node.args, *node.keywords):
            if ast.unparse(node.func) != "zip" or ast.unparse(part) != "strict=True":
                self.visit(part)

    def visit_keyword(self, node: ast.keyword) -> None:
        """How far a text is split behind what is taken of it is not seen."""
        if node.arg != "maxsplit":
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts for people are not broken."""

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)

    def _add(self, node: ast.expr | ast.stmt, kind: str, text: str) -> None:
        start, end = self._span(node)
        self.found.append(Mutant(self._path, node.lineno, kind, start, end, text))

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last = node.end_lineno or node.lineno
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[last - 1] + (node.end_col_offset or 0)


def find_bounds(module: ast.Module) -> Iterator[str]:
    """The module's own names of numbers so large that one more or less is not seen."""
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = statement.value
            numbers: list[Any] = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
            whole = numbers and all(isinstance(number, int) for number in numbers)
            if whole and (max(numbers) >= MIN_BOUND or isinstance(value, ast.BinOp)):
                yield statement.targets[0].id


def find_imported_bounds(path: Path, module: ast.Module) -> Iterator[str]:
    """Such names of other modules of ours, under the names they have here."""
    root = next((parent for parent in path.parents if parent.name == "src"), path.parent)
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            other = root.joinpath(*statement.module.split(".")).with_suffix(".py")
            bounds = set(find_bounds(ast.parse(other.read_bytes()))) if other.is_file() else set()
            yield from (alias.asname or alias.name for alias in statement.names if alias.name in bounds)


def is_logging(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("_log.", "log.", "logging."))


def list_modules(root: Path, packages: list[str]) -> Iterator[Path]:
    for package in packages:
        yield from sorted((root / "src" / "ollm" / package).rglob("*.py"))
