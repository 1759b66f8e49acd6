"""Definitions by indentation and patterns, where no grammar is installed."""

import time

import pytest

from ollm.services.code_map.patterns import find_definitions, measure_indent
from tests.services.code_map.samples import GO, PYTHON, TYPESCRIPT


def names(name: str, text: str) -> list[str]:
    return [found.full_name for found in find_definitions(name, text)]


def test_what_grammars_would_find_is_mostly_found_without() -> None:
    assert names("cart.py", PYTHON) == ["Cart", "Cart.total", "Cart.total.inner", "Cart.pay", "only_here"]
    assert names("server.go", GO) == ["main", "Server", "Handler", "Run", "main"]
    assert {"Shape", "Square", "Square.handler", "add", "main", "N"} <= set(names("shape.ts", TYPESCRIPT))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.kt", "data class P(val x: Int) {\n    fun area(): Int = 3\n}\nfun main() {\n}\n", ["P", "P.area", "main"]),
        ("a.lua", "local function f(a)\n  return 1\nend\nfunction M.g()\nend\n", ["f", "M.g"]),
        ("a.md", "# Title\ntext\n## Part\n```\n# no heading\n```\n", ["Title", "Part"]),
        ("Makefile", "A := 3\nall: b\n\techo\nb:\n\techo\n", ["all", "b"]),
        ("a.toml", "[project]\nx = 1\n[tool.ruff]\n", ["project", "tool.ruff"]),
        ("a.sql", "CREATE TABLE IF NOT EXISTS orders (\n  id int\n);\n", ["orders"]),
        ("a.xyz", "alpha\n  one\nbeta\n  two\n", ["alpha", "beta"]),
        ("a.json", '{"a": {\n  "b": 1}}\n', []),
        ("a.py", "", []),
    ],
)
def test_other_kinds_of_files(name: str, text: str, expected: list[str]) -> None:
    assert names(name, text) == expected


def test_a_definition_ends_where_its_block_does() -> None:
    text = "class A {\n  run() {\n  }\n}\n\nfunction b() {\n  return 1\n}\nvar c = 3\n"

    found = {one.full_name: (one.first, one.last) for one in find_definitions("a.vue", text)}

    assert found["A"] == (1, 4)
    assert found["b"] == (6, 8)


def test_a_tab_is_four_columns() -> None:
    assert measure_indent("\t  x") == 6


def test_a_line_made_to_be_slow_is_not() -> None:
    assert find_definitions("a.kt", "public " * 50_000 + "\n" + "a " * 190 + "(\n" + "(" * 390) == []


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        (
            "A.cs",
            (
                "public class Cart\n{\n    private List<int> x = new List<int>();\n    public Cart(int size) : base(size)\n    {\n"
                "        if (size > 0) { Init(); }\n        foreach (var y in x) {\n        }\n    }\n"
                "    public async Task<int> AddAsync(int a)\n    {\n        await Save(a);\n    }\n"
                "    protected override void Drop() => base.Drop();\n}\n"
            ),
            "Cart Cart.Cart Cart.AddAsync Cart.Drop",
        ),
        (
            "a.dart",
            "class A {\n  Widget build(Context c) {\n    return Text(1);\n  }\n  Future<void> load() async {\n  }\n}\n",
            "A A.build A.load",
        ),
        ("a.zig", "pub const fn new(x: u8) void {\n}\n", "new"),
    ],
)
def test_methods_of_languages_without_a_grammar(name: str, text: str, names: str) -> None:
    assert " ".join(found.full_name for found in find_definitions(name, text)) == names


def test_loops_and_imports_are_no_functions() -> None:
    assert find_definitions("a.py", "from x import (\n    y,\n)\n")[0].kind == "block"
    assert [found.kind for found in find_definitions("a.kt", "for (i in range(3)) {\n  x()\n}\n")] == ["block"]


@pytest.mark.parametrize("line", ["    a(" + ")" * 390, "    " + "public " * 50 + "(", "    a<b " * 80 + "()" * 30])
def test_no_line_takes_long(line: str) -> None:
    begin = time.process_time()
    find_definitions("a.java", f"class A {{\n{line}\n}}\n" * 50)
    assert time.process_time() - begin < 5


def test_many_definitions_take_no_more_than_their_share() -> None:
    text = "".join(f"def function_{number}(): pass\n" for number in range(60_000))
    begin = time.process_time()
    assert len(find_definitions("a.py", text)) == 60_000
    assert time.process_time() - begin < 20, "minutes, when each is compared with all others"


def test_a_definition_ends_where_the_next_beside_it_begins() -> None:
    found = find_definitions("a.md", "# One\n## Two\ntext\n### Three\n## Four\n# Five\n")
    assert [(one.name, one.line, one.last) for one in found] == [
        ("One", 1, 5),
        ("Two", 2, 4),
        ("Three", 4, 4),
        ("Four", 5, 5),
        ("Five", 6, 7),
    ]


def test_how_long_lines_and_files_may_be() -> None:
    name = "x" * (400 - len("def (): pass"))
    assert [found.name for found in find_definitions("a.py", f"def {name}(): pass\n")] == [name]
    assert find_definitions("a.py", f"def {name}x(): pass\n") == []
    assert [found.line for found in find_definitions("a.py", "\n" * 99_999 + "def a(): pass")] == [100_000]
    assert find_definitions("a.py", "\n" * 100_000 + "def a(): pass") == []
    blocks = find_definitions("a.conf", "server\n  port\n" * 402)
    assert (len(blocks), blocks[-1].line) == (400, 799)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.go", "func a() {\n\tx\n}\n\nfunc b() {}\n", "a 1-3, b 5-5"),
        ("a.c", "int a(int b)\n{\n  x;\n}\nint c;\n", "a 1-4"),
        ("a.lua", "function a()\n  x\nend\nfunction b()\n  y\nEND;\nz\n", "a 1-3, b 4-6"),
        ("a.sh", "a() {\n  if x; then\n    y\n  fi\n}\nb() {\n  z\n}\n", "a 1-5, b 6-8"),
        ("a.rb", "class A\n  def b\n    x\n  end\n  y\nend\nz\n", "A 1-6, A.b 2-4"),
        ("a.js", "function a() {\n  x\n} else {\n  y\n}\nz\n", "a 1-5"),
        ("a.py", "class A:\n\n    x = 1\n\ny = 2\nclass B: pass\n", "A 1-3, B 6-6"),
        ("a.py", "class A:\n    def b(self):\n        x\n    def c(self): y\n", "A 1-4, A.b 2-3, A.c 4-4"),
        ("a.lua", "function a()\nend\n  function b()\n  end\n", "a 1-2, b 3-4"),
        ("a.lua", "function a()\n  function b()\n  end\nend\n", "a 1-4, a.b 2-3"),
    ],
)
def test_where_each_block_ends(name: str, text: str, found: str) -> None:
    assert ", ".join(f"{one.full_name} {one.line}-{one.last}" for one in find_definitions(name, text)) == found
