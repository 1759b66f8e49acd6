"""Outlines, maps and single definitions, through dispatch and through the command."""

import json
from pathlib import Path

import pytest

from ollm.services.token_counting import TokenCounter
from ollm.tools.catalogue import describe_catalogue
from ollm.tools.framework.tool_selection import select_tools
from tests.services.code_map.samples import PYTHON, RUST
from tests.tools.drive import Driver, content, error

COUNT = TokenCounter().count_text


@pytest.fixture
def drive(workspace: Path) -> Driver:
    (workspace / "shop").mkdir()
    (workspace / "shop" / "cart.py").write_text(PYTHON, encoding="utf-8")
    (workspace / "shop" / "app.py").write_text("from shop.cart import Cart\nCart().pay()\n", encoding="utf-8")
    (workspace / "ignored").mkdir()
    (workspace / "ignored" / "x.py").write_text("class Hidden: pass\nclass Cart: pass\n")
    (workspace / ".gitignore").write_text("ignored/\n")
    return Driver(workspace)


async def test_a_file_is_outlined(drive: Driver) -> None:
    assert content(await drive("outline", path="shop/cart.py")) == (
        "shop/cart.py: 27 lines\n"
        "    3 LIMIT = 3\n"
        "    8 class Cart(Base)\n"
        "   14   def total(self, tax: float = 0.2) -> float\n"
        "   23   async def pay(self)\n"
        "   27 def only_here()"
    )


async def test_a_directory_is_mapped_with_paths_to_use_again(drive: Driver) -> None:
    expected = "shop/cart.py\n  8 class Cart(Base)\n  23 Cart: async def pay(self)"

    assert content(await drive("outline")) == expected
    assert content(await drive("outline", path="shop")) == expected


async def test_the_budget_holds(drive: Driver) -> None:
    assert COUNT(content(await drive("outline", path="shop/cart.py", maxTokens=30))) <= 45


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("nope", "FileNotFound"),
        ("empty", "NotFound"),
        ("/etc", "Denied"),
        ("x.bin", "BinaryFile"),
        ("", "ValidationError"),
    ],
)
async def test_what_cannot_be_outlined_says_why(drive: Driver, workspace: Path, path: str, kind: str) -> None:
    (workspace / "empty").mkdir()
    (workspace / "x.bin").write_bytes(b"\x7fELF\0\0\1\2\3\xff" * 100)
    drive.person.approves = False

    assert error(await drive("outline", path=path))[0] == kind


async def test_a_file_without_definitions_says_so(drive: Driver, workspace: Path) -> None:
    (workspace / "a.txt").write_text("just words\n")

    assert content(await drive("outline", path="a.txt")).startswith("a.txt: 1 line; its language cannot be parsed here")


@pytest.mark.parametrize("mode", ["code", "plan", "assistant", "debug"])
def test_a_small_window_is_not_crowded(mode) -> None:
    tools = describe_catalogue()

    for window in (2048, 4096, 8192, 16_384):
        assert "outline" not in [tool.name for tool in select_tools(mode, tools, window)]
    assert json.dumps([tool.name for tool in tools if tool.name == "outline"])


@pytest.fixture
def sources(workspace: Path) -> Driver:
    (workspace / "cart.py").write_text(PYTHON, encoding="utf-8")
    (workspace / "point.rs").write_text(RUST, encoding="utf-8")
    (workspace / "latin.py").write_bytes("# ä\ndef grüße():\n    return 'ä'\n".encode("latin-1"))
    return Driver(workspace)


async def test_one_definition_is_read_with_its_decorators(sources: Driver) -> None:
    assert content(await sources("read_file", path="cart.py", symbol="Cart.pay")) == (
        "[cart.py, lines 23 to 23]\n    async def pay(self): ...\n"
    )
    assert content(await sources("read_file", path="cart.py", symbol="total", lineNumbers=True)).startswith(
        "[cart.py, lines 13 to 21]\n13\t    @property\n14\t    def total(\n"
    )


async def test_a_symbol_that_is_not_there_names_the_nearest(sources: Driver) -> None:
    assert error(await sources("read_file", path="cart.py", symbol="Cart.totl")) == (
        "NotFound",
        "cart.py does not define Cart.totl; did you mean Cart.total?",
    )
    assert "it defines Point" in error(await sources("read_file", path="point.rs", symbol="qqq"))[1]


async def test_a_symbol_defined_twice_is_not_guessed(sources: Driver, workspace: Path) -> None:
    (workspace / "two.py").write_text("class A:\n    def run(self): 1\n\n\n\n\nclass B:\n    def run(self): 2\n")

    assert error(await sources("read_file", path="two.py", symbol="run")) == (
        "NotFound",
        (
            "two.py defines run more than once: A.run (lines 2 to 2), B.run (lines 8 to 8). "
            "Read one with startLine and endLine."
        ),
    )


async def test_a_type_is_read_before_what_is_done_for_it(sources: Driver) -> None:
    said = content(await sources("read_file", path="point.rs", symbol="Point"))

    assert "struct Point" in said
    assert "; there is also impl" in said.split("\n")[0]


async def test_overloads_are_read_together(sources: Driver, workspace: Path) -> None:
    (workspace / "o.ts").write_text(
        "function f(a: string): void\nfunction f(a: number): void\nfunction f(a: any) {\n}\n"
    )

    assert content(await sources("read_file", path="o.ts", symbol="f")).startswith("[o.ts, lines 1 to 4]\n")


async def test_a_file_in_another_encoding_has_its_symbols(sources: Driver) -> None:
    assert "return 'ä'" in content(await sources("read_file", path="latin.py", symbol="grüße"))
