"""The outline of a file and the lines of one definition, through the tools."""

from pathlib import Path

import pytest

from tests.services.code_map.samples import PYTHON, RUST
from tests.tools.drive import Driver, content, error


@pytest.fixture
def drive(workspace: Path) -> Driver:
    (workspace / "cart.py").write_text(PYTHON, encoding="utf-8")
    (workspace / "point.rs").write_text(RUST, encoding="utf-8")
    (workspace / "latin.py").write_bytes("# ä\ndef grüße():\n    return 'ä'\n".encode("latin-1"))
    return Driver(workspace)


async def test_one_definition_is_read_with_its_decorators(drive: Driver) -> None:
    assert content(await drive("read_file", path="cart.py", symbol="Cart.pay")) == (
        "[cart.py, lines 23 to 23]\n    async def pay(self): ...\n"
    )
    assert content(await drive("read_file", path="cart.py", symbol="total", lineNumbers=True)).startswith(
        "[cart.py, lines 13 to 21]\n13\t    @property\n14\t    def total(\n"
    )


async def test_a_symbol_that_is_not_there_names_the_nearest(drive: Driver) -> None:
    assert error(await drive("read_file", path="cart.py", symbol="Cart.totl")) == (
        "NotFound",
        "cart.py does not define Cart.totl; did you mean Cart.total?",
    )
    assert "it defines Point" in error(await drive("read_file", path="point.rs", symbol="qqq"))[1]


async def test_a_symbol_defined_twice_is_not_guessed(drive: Driver, workspace: Path) -> None:
    (workspace / "two.py").write_text("class A:\n    def run(self): 1\n\n\n\n\nclass B:\n    def run(self): 2\n")

    assert error(await drive("read_file", path="two.py", symbol="run")) == (
        "NotFound",
        (
            "two.py defines run more than once: A.run (lines 2 to 2), B.run (lines 8 to 8). "
            "Read one with startLine and endLine."
        ),
    )


async def test_a_type_is_read_before_what_is_done_for_it(drive: Driver) -> None:
    said = content(await drive("read_file", path="point.rs", symbol="Point"))

    assert "struct Point" in said
    assert "; there is also impl" in said.split("\n")[0]


async def test_overloads_are_read_together(drive: Driver, workspace: Path) -> None:
    (workspace / "o.ts").write_text(
        "function f(a: string): void\nfunction f(a: number): void\nfunction f(a: any) {\n}\n"
    )

    assert content(await drive("read_file", path="o.ts", symbol="f")).startswith("[o.ts, lines 1 to 4]\n")


async def test_a_file_in_another_encoding_has_its_symbols(drive: Driver) -> None:
    assert "return 'ä'" in content(await drive("read_file", path="latin.py", symbol="grüße"))
