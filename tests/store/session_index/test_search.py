"""Searching the index, word by word."""

import pytest

from ollm.store.session_index import search as searching
from ollm.store.session_index.search import SearchFilters, search_sessions
from tests.covers import covers
from tests.store.sessions.support import Home, call, many, run, said


def found(home: Home, text: str, **filters: str) -> list[str]:
    return [hit["snippet"] for hit in search_sessions(home.index(), text, SearchFilters(**filters)).hits]


@covers("H473", "H622")
@pytest.mark.parametrize(
    ("text", "typed", "hit"),
    [
        ("see src/ollm/store/index.py", "ollm/store", "«ollm/store»"),
        ("call getUserName() now", "getUser", "«getUserName»()"),
        ("snake_case_name", "case", "snake_«case»_name"),
        ("日本語のテキスト", "本語", "日«本語»の"),
        ("日本語のテキスト", "語の", "日本«語の»テ"),
        ("ひらがなとカタカナ", "がな", "ひら«がな»と"),
        ("configuration", "config", "«configuration»"),
        ("Élan vital", "elan", "«Élan»"),
        ("a AND b", "AND", "«AND»"),
        ("say NEAR( it", "NEAR(", "«NEAR»("),
        ('a "quoted" word', '"quoted"', '"«quoted»"'),
        ("x && y", "&&", "«&&»"),
        ("5 * 3", "*", "«*»"),
        ("one two three", "three one", "«one» two «three»"),
        ("C++ code", "C++", "«C++» code"),
        ("C# or C++17", "c++", "C# or «C++»17"),
        ("F# is like C#", "C#", "like «C#»"),
        ("a 🦄 party", "🦄 part", "a «🦄» «party»"),
        ("made with ❤", "❤\ufe0f", "with «❤»"),
        ("x -> y, a > b", "->", "x «->» y"),
        (
            "Łódź, Đorđe, Bjørn, Straße, Ağrı",
            "lodz dorde bjorn strasse agri",
            "«Łódź», «Đorđe», «Bjørn», «Straße», «Ağrı»",
        ),
        ("naïve col:umn", "col:umn", "«col:umn»"),
        ("see src/store/indexing.py", "src/store/ind", "«src/store/indexing».py"),
        ("left \u2192 right", "\u2192", "«\u2192»"),
        ("branch \ue0b0 main", "\ue0b0", "«\ue0b0»"),
        ("if (a <=> b)", "<=>", "«<=>»"),
        ("Grandma and her message's end", "s and", "Grandma «and» her message'«s» end"),
        ("The cars were parked", "parking car", "The «cars» were «parked»"),
    ],
)
def test_what_is_typed_is_found_as_it_stands(tmp_path, text, typed, hit):
    home = Home(tmp_path)
    home.recorded("something else", text, "nothing of the kind")
    (snippet,) = found(home, typed)
    assert hit in snippet


@pytest.mark.parametrize(
    "typed",
    ["", " ", '"', "*", "AND", "NOT", "NEAR(", "x" * 10_000, "a " * 5_000, "^", "-", "{", "\0", "col:", "(", "\ud800"],
)
def test_nothing_that_is_typed_breaks_a_search(tmp_path, typed):
    home = Home(tmp_path)
    home.recorded("plain text")
    assert found(home, typed) == []


def test_filters_narrow_a_search(tmp_path):
    home = Home(tmp_path)
    here, there = home.recorded("needle", workspace="/here"), home.recorded("needle", workspace="/there")
    hits = search_sessions(home.index(), "needle", SearchFilters(workspace="/here")).hits
    assert [hit["sessionId"] for hit in hits] == [here]
    assert found(home, "needle", role="assistant") == []
    assert found(home, "needle", model="other") == []
    assert len(found(home, "needle", model="m", role="user", since="2026-01-01T00:00:00.000Z")) == 2
    assert found(home, "needle", since="2027-01-01T00:00:00.000Z") == []
    assert there


def test_the_beginning_of_very_many_words_finds_the_newest(tmp_path):
    home = Home(tmp_path)
    many(home, [f"say begin{number:04}" for number in range(250)])
    result = search_sessions(home.index(), "begin", limit=2)
    assert [hit["snippet"] for hit in result.hits] == ["say «begin0249»", "say «begin0248»"]
    assert len(search_sessions(home.index(), "say begin", limit=300).hits) == 250
    assert [hit["snippet"] for hit in search_sessions(home.index(), "begin0007 say").hits] == ["«say» «begin0007»"]


def test_a_look_that_takes_too_long_is_broken_off_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "LOOK_SECONDS", 0)
    home = Home(tmp_path)
    many(home, ["(;" if number == 5 else "();" for number in range(searching.MIN_LOOKED_TEXTS + 100)])
    assert search_sessions(home.index(), "();").complete
    result = search_sessions(home.index(), "(;")
    assert (result.hits, result.complete) == ([], False)


def test_a_word_beside_a_common_one_is_ranked_by_the_rare_one(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "MAX_RANKED_HITS", 50)
    home = Home(tmp_path)
    many(home, ["hay"] * 60 + ["hay needle", "hay needle needle needle", "needle"])
    result = search_sessions(home.index(), "hay needle")
    assert result.ranked
    assert [hit["number"] for hit in result.hits] == [62, 61]
    assert search_sessions(home.index(), "hay needle", SearchFilters(role="tool")).hits == []
    assert [hit["number"] for hit in search_sessions(home.index(), "needle", SearchFilters(role="user")).hits] == [
        62,
        63,
        61,
    ]


def test_with_very_many_sessions_filters_still_narrow(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "MAX_SESSIONS", 1)
    home = Home(tmp_path)
    for place in ("/here", "/here", "/there"):
        home.recorded("needle", workspace=place)
    assert len(found(home, "needle", workspace="/here")) == 2
    assert len(found(home, "needle", workspace="/there")) == 1
    assert found(home, "needle", workspace="/nowhere") == []


def test_too_many_hits_come_newest_first_and_that_is_said(tmp_path):
    home = Home(tmp_path)
    many(home, ["hay"] * 20_009)
    result = search_sessions(home.index(), "hay", limit=3)
    assert not result.ranked
    assert [hit["number"] for hit in result.hits] == [20_009, 20_008, 20_007]


def test_the_end_of_a_very_long_text_is_found(tmp_path):
    home = Home(tmp_path)
    home.recorded("short", "lorem ipsum " * 100_000 + "the needle", "short")
    (snippet,) = found(home, "lorem needle")
    assert snippet.startswith("…")
    assert snippet.endswith("«lorem» ipsum the «needle»")
    assert len(snippet) < 200


def test_the_same_index_is_searched_and_brought_up_to_date_again_and_again(tmp_path):
    home = Home(tmp_path)
    home.recorded("the first apple")
    index = home.index()
    assert [len(search_sessions(index, "apple").hits) for _ in range(3)] == [1, 1, 1]
    home.recorded("another apple")
    assert len(search_sessions(index, "apple").hits) == 2
    assert not index.connection.in_transaction
    index.close()


SAID = [
    ("/a", "m", None, [("user", "alpha beta"), ("assistant", "alphabet soup, alpha")], "alpha result"),
    (
        "/b",
        "n",
        None,
        [("user", "beta gamma"), ("assistant", "if a == b: alpha()"), ("user", "gammas == betas")],
        "nothing",
    ),
    ("/a", "m", "task", [("user", "alpha in a task")], "nothing"),
]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """An index of three sessions, one of them a task's, and their ids."""
    home = Home(tmp_path_factory.mktemp("searched"))

    async def record():
        service, ids = home.service(), []
        for workspace, model, origin, texts, result in SAID:
            more = {"origin": origin} if origin else {}
            ids.append(await service.create_session(model, "ollama", workspace=workspace, **more))
            for role, text in texts:
                await service.record_message(ids[-1], said(text, role))
            await service.record_tool_call(ids[-1], call("c1", result=result, message_id=1))
            await service.close_session(ids[-1])
        return ids

    return home.index(), run(record)


ALPHA = [
    "1.2 assistant if a == b: «alpha»()",
    "0.1 tool ls . «alpha» result",
    "0.2 assistant «alphabet» soup, «alpha»",
    "0.1 user «alpha» beta",
]


@pytest.mark.parametrize(
    ("typed", "options", "found", "total"),
    [
        ("alpha", {}, ALPHA, 4),
        ("alpha", {"limit": 1}, ALPHA[:1], 4),
        ("alpha", {"limit": 3}, [*ALPHA[:2], "0.2 assistant alphabet soup, «alpha»"], 4),
        ("beta", {}, ["1.3 user gammas == «betas»", "1.1 user «beta» gamma", "0.1 user alpha «beta»"], 3),
        ("gam", {}, ["1.3 user «gammas» == betas", "1.1 user beta «gamma»"], 2),
        ("gamma", {"limit": 1}, ["1.3 user «gammas» == betas"], 2),
        ("alpha beta", {}, ["0.1 user «alpha» «beta»"], 1),
        ("==", {}, ["1.3 user gammas «==» betas", "1.2 assistant if a «==» b: alpha()"], 2),
        ("== b", {}, ["1.2 assistant if a «==» «b»: alpha()"], 1),
        ("()", {}, ["1.2 assistant if a == b: alpha«()»"], 1),
        ("zzz", {}, [], 0),
        ("", {}, [], 0),
        ("alpha", {"role": "assistant"}, [ALPHA[0], ALPHA[2]], 2),
        ("alpha", {"role": "tool"}, [ALPHA[1]], 1),
        ("alpha", {"workspace": "/b"}, [ALPHA[0]], 1),
        ("alpha", {"workspace": "/c"}, [], 0),
        ("alpha", {"model": "n"}, [ALPHA[0]], 1),
        ("alpha", {"since": "2099"}, [], 0),
        ("alpha", {"since": "2020-01-01"}, ALPHA, 4),
        ("alpha", {"tasks": True}, ["2.1 user «alpha» in a task", *ALPHA], 5),
        ("==", {"workspace": "/a"}, [], 0),
        ("==", {"limit": 1}, ["1.3 user gammas «==» betas"], 2),
        ("result", {}, ["0.1 tool ls . alpha «result»"], 1),
        ("alpha", {"workspace": "/b", "model": "m"}, [], 0),
    ],
)
def test_all_that_is_found(searched, typed, options, found, total):
    index, ids = searched
    limit = {"limit": options["limit"]} if "limit" in options else {}
    filters = SearchFilters(**{name: value for name, value in options.items() if name != "limit"})

    result = search_sessions(index, typed, filters, **limit)

    hits = [f"{ids.index(hit['sessionId'])}.{hit['number']} {hit['role']} {hit['snippet']}" for hit in result.hits]
    ranked = typed != "()"
    assert (hits, result.ranked, result.total, result.complete) == (found, ranked, total, True)
