"""The tool `outline`, through dispatch and through the command."""

import json
from pathlib import Path

import pytest

from ollm.services.token_counting import TokenCounter
from ollm.tools.catalogue import describe_catalogue
from ollm.tools.framework.tool_selection import select_tools
from tests.services.code_map.samples import PYTHON
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


async def test_a_question_ranks_the_map(drive: Driver) -> None:
    assert content(await drive("outline", path=".", about="where is pay")).startswith("shop/cart.py\n")


async def test_a_question_nothing_answers_says_so(drive: Driver) -> None:
    assert error(await drive("outline", about="zebra")) == (
        "NotFound",
        "No file in the workspace has to do with that; ask in other words.",
    )


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
