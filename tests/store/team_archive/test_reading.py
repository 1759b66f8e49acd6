"""Reading: a page of the newest, one by its prefix, and a search that takes any text literally."""

import pytest

from ollm.store.team_archive.reading import make_snippet
from tests.servers.archive_machine import MakeMachine


def test_a_search_takes_any_text_literally(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session = laptop.record("100% of foo_bar(x) | y & !z :* costs $5 \\ 'quoted' <b>", "Ünïcode straße 日本語の文章")
    laptop.run("push")

    for wanted in ("foo_bar(x) |", "100%", "& !z :*", "'quoted'", "\\ 'quo", "straße", "日本語", "quoted costs"):
        assert [hit["sessionId"] for hit in laptop.json("search", wanted)][:1] == [session], wanted
    for unwanted in ("fo%ar", "f__r", "nowhere", "%", "__"):
        assert laptop.json("search", unwanted) == [], unwanted


def test_paths_and_ideographs_are_found_by_their_parts_and_whole(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    blob = "".join(f"{number:03}" for number in range(300))
    session = laptop.record(
        "See https://example.org/shop and src/Cart.py:12", "日本語の文章", blob + "x" * 3000 + " ÉTÉ"
    )
    laptop.run("push")

    for wanted in (
        "cart",
        "cart.py",
        "CART.PY:12",
        "(src/cart.py)",
        "shop",
        "語",
        "本語",
        "été",
        blob,
        blob[401:460],
        "x ét",
        "rt.p",
    ):
        assert [hit["sessionId"] for hit in laptop.json("search", wanted)] == [session], wanted
    for unwanted in ("語本", "py.cart", "cart.org"):
        assert laptop.json("search", unwanted) == [], unwanted


def test_hits_have_a_snippet_with_the_word_and_can_be_narrowed(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("lorem " * 3000 + "needle in the hay", "The needle is found.")
    laptop.run("push")

    hits = laptop.json("search", "needle")
    assert {hit["role"] for hit in hits} == {"user", "assistant"}
    assert all("needle" in hit["snippet"] and len(hit["snippet"]) < 200 for hit in hits)
    assert [hit["role"] for hit in laptop.json("search", "needle", "--role", "user")] == ["user"]
    assert laptop.json("search", "needle", "--since", "2099-01-01") == []
    assert len(laptop.json("search", "needle", "--limit", "1")) == 1


@pytest.mark.parametrize("text", ["short", "x" * 1000, "", "a\nb needle\tc"])
def test_a_snippet_is_one_short_line(text: str) -> None:
    snippet = make_snippet(text, "needle in")

    assert "\n" not in snippet
    assert len(snippet) <= 162
