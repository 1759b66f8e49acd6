"""The pages say what the code does, and link to what exists."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.requirements import STRICT

ROOT = Path(__file__).parents[2]


def test_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    stale = [path.name for path, text in module.pages().items() if path.read_text(encoding="utf-8") != text]

    assert not stale, "run make docs"


PAGES = [path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]

    assert [target for target in targets if not (ROOT / page.parent / target).exists()] == []


def test_every_page_can_be_found_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "index.md"]

    assert pages
    assert [page.name for page in pages if page.name not in index] == [] or not STRICT


def test_every_setting_is_explained() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `") and line.count("|") == 5]

    assert len(rows) > 50
    assert [row for row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").glob("*.svg")), ids=lambda path: path.name)
def test_no_blank_of_a_picture_depends_on_who_draws_it(picture: Path) -> None:
    """Many renderers join blanks: what stands apart has a place of its own."""
    runs = re.findall(r"<text x=[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))

    assert runs
    assert [run for run in runs if run != run.strip() or "  " in run] == []


def test_the_film_moves_without_a_script_and_stands_still_on_its_last_picture() -> None:
    film = (ROOT / "docs" / "demo.svg").read_text(encoding="utf-8")

    assert "<script" not in film
    assert film.count("<animate ") > 10
    assert len(film) < 200_000
    for shown in (
        "ollm 0.1.0",
        "Why is the total wrong?",
        "test_many FAILED",
        "? Edit shop/cart.py",
        "adds them up now.",
    ):
        assert shown in film
    assert "(docs/demo.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
