"""Reading: a page of the newest, one by its prefix, and a search that takes any text literally."""

import contextlib
import json
from typing import Any

import msgspec
import pytest

from ollm.domain.errors import NotFoundError, UsageError
from ollm.store.session_index.texts import IndexEntry
from ollm.store.team_archive.connection import ArchiveTarget, open_connection
from ollm.store.team_archive.leases import take_lease
from ollm.store.team_archive.reading import (
    count_sessions,
    find_session,
    forget_session,
    list_sessions,
    make_snippet,
    open_records,
    search_messages,
)
from ollm.store.team_archive.records import ArchiveRecord
from ollm.store.team_archive.sending import Machine, SessionForgottenError, SessionMovedOnError, SessionSender
from tests.servers.archive_machine import MakeMachine
from tests.store.team_archive.test_sending import AT, HEAD


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


@pytest.mark.parametrize(
    ("text", "wanted", "snippet"),
    [
        ("x" * 160, "y", "x" * 160), ("x" * 161, "y", "x" * 160 + "…"), ("a" * 53 + " Needle", "needle in", None),
        ("a" * 54 + "Needle", "needle", "…" + "a" * 53 + "Needle"), ("", "y", ""), ("a b\n\tc", "y", "a b c"),
        ("a" * 54 + "Needle" + "b" * 101, "needle", "…" + "a" * 53 + "Needle" + "b" * 101),
        ("a" * 54 + "Needle" + "b" * 102, "needle", "…" + "a" * 53 + "Needle" + "b" * 101 + "…"),
    ],
)  # fmt: skip
def test_a_snippet_begins_a_third_before_the_word(text: str, wanted: str, snippet: str | None) -> None:
    assert make_snippet(text, wanted) == (f"…{text[1:]}" if snippet is None else snippet)


def test_lists_searches_and_counts_are_one_persons_view(archive_url: str) -> None:
    names = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(1, 5)]
    with contextlib.closing(open_connection(ArchiveTarget(url=archive_url))) as connection:
        for number, (name, origin) in enumerate(zip(names, (None, "task", None, "task"), strict=True)):
            sender = SessionSender(connection, name, Machine(id="1", host="h"), 0)
            sender.begin()
            entry = IndexEntry(1, "user", AT, None, f"word and src/a{number}.py")
            body = json.dumps({"metadata": {"parent": {"sessionId": names[0]}}}).encode() if number == 1 else b"{}"
            records = [ArchiveRecord("message", "1", b"{}", 1, entry), ArchiveRecord("head", "", body)]
            sender.send(
                records, msgspec.structs.replace(HEAD, origin=origin, last_activity=f"2026-01-2{number}T10:00:00Z")
            )
        connection.execute("UPDATE ollm.sessions SET owner = 'other' WHERE session_id = %s", (names[3],))
        take_lease(connection, names[2], Machine(id="1", host="h"))

        def list_ids(**more: Any) -> list[str]:
            return [row.session_id[-1] for row in list_sessions(connection, **more)]

        assert (list_ids(), list_ids(tasks=True), list_ids(tasks=True, limit=3)) == (["3", "1"], [*"4321"], [*"431"])
        assert (list_ids(limit=1), count_sessions(connection)) == (["3"], (4, 3))
        rows = {row.session_id: row.in_use for row in list_sessions(connection)}
        assert rows == {names[0]: None, names[2]: "h"}
        assert find_session(connection, names[0].upper()).in_use is None
        found = sorted(hit.session_id[-1] for hit in search_messages(connection, "word"))
        assert (found, len(search_messages(connection, "word", limit=1))) == (["1", "3"], 1)
        assert {hit.session_id[-1] for hit in search_messages(connection, "word", tasks=True)} == {*"123"}
        assert [hit.session_id[-1] for hit in search_messages(connection, "SRC/a2.py,")] == ["3"]
        for nothing in ("", " ", "a\0b"):
            with pytest.raises(UsageError, match="Nothing to search for"):
                search_messages(connection, nothing)
        assert len(search_messages(connection, "word " + "x" * 995 + " nowhere")) == 0
        assert len(search_messages(connection, "word" + " " * 996 + "nowhere")) == 2, "only so much is looked for"
        with pytest.raises(NotFoundError):
            find_session(connection, "00000000-0000-4000-8000-000000000009")
        connection.execute("LISTEN ollm_archive")
        assert forget_session(connection, names[0])
        assert not forget_session(connection, names[3])
        told = [notice.payload for notice in connection.notifies(timeout=0.5, stop_after=2)]
        assert told == [names[0], names[3]]
        assert list_ids(tasks=True) == ["4", "3"], "a conversation goes with its tasks"
        sender = SessionSender(connection, names[2], Machine(id="1", host="h"), 2)
        sender.begin()
        sender.send([], HEAD)
        assert [notice.payload for notice in connection.notifies(timeout=0.5, stop_after=1)] == [names[2]]
        with pytest.raises(SessionForgottenError):
            SessionSender(connection, names[0], Machine(id="1", host="h"), 0).begin()
        behind = SessionSender(connection, names[2], Machine(id="2", host="other"), 1)
        with pytest.raises(SessionMovedOnError, match="was continued on h and here"):
            behind.begin()
        behind.adopt()
        behind.begin()
        assert behind.seq == 2
        own = SessionSender(connection, names[2], Machine(id="1", host="h"), 1)
        own.begin()
        assert (own.seq, [kind for kind, _, _ in own.list_digests()]) == (2, ["message"])
        with open_records(connection, names[2], after=1) as records:
            assert [record.kind for record in records] == ["head"]
