"""Messages of one session are found by their words, in any language, and nothing is found that was not said."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import closing
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ollm.domain.tools import RecordedResult
from ollm.services.message_search.search import MessageMatch, search_messages
from ollm.services.message_search.session_archive import SessionArchive
from ollm.store.session_index.search import search_sessions
from ollm.store.session_index.session_texts import SessionTexts
from ollm.store.session_index.words import fold_words
from tests.store.sessions.support import Home, call, run, said

NOISE = [f"Please look at part {number} of the report again when you have time for it." for number in range(60)]
FACTS = [
    "The spare key hangs behind the meter box in the garage.",
    "Die Winterreifen liegen im Keller bei den Schwiegereltern.",
    "Wir haben die Äpfel von der Wiese in den Schuppen gebracht.",
    "La abuela guarda las joyas en la lata de galletas.",
    "猫は毎朝八時に薬を飲みます。",
    "แมวของเพื่อนบ้านชื่อส้มโอ",
    "우리 고양이는 매일 아침 약을 먹어요.",
    "Lena writes C++ at work.",
    "Tomek writes C# at home.",
    "The birthday cake had a 🦄 on it.",
    "Bjørn lives in Łódź.",
]


def find(home: Home, session: str, *queries: str, limit: int = 3) -> list[MessageMatch]:
    with closing(home.index()) as index:
        return search_messages(SessionTexts(index, session), queries, limit)


def find_texts(home: Home, session: str, *queries: str) -> list[str]:
    return [match.text.text for match in find(home, session, *queries)]


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str]:
    home = Home(tmp_path_factory.mktemp("home"))
    texts = NOISE.copy()
    for place, fact in enumerate(FACTS):
        texts.insert(place * 8 + 3, fact)
    return home, home.recorded(*texts, "And now?")


@pytest.mark.parametrize(
    ("queries", "fact"),
    [
        (["Where does the spare key hang?"], 0),
        (["hanging keys"], 0),  # other forms
        (["second door", "house keys", "key hidden"], 0),  # one of several
        (["Wo liegen die Winterreifen?"], 1),
        (["Autoräder", "Winterreifens"], 1),
        (["apfel schuppen"], 2),  # without accents
        (["¿Dónde guarda la abuela las joyas?"], 3),
        (["joya"], 3),
        (["薬"], 4),
        (["毎朝何を飲みますか"], 4),
        (["ชื่อแมว"], 5),
        (["고양이"], 6),
        (["C++"], 7),
        (["Who writes C#?"], 8),
        (["🦄"], 9),
        (["bjorn lodz"], 10),
    ],
)
def test_a_fact_is_found_by_its_words(talk: tuple[Home, str], queries: list[str], fact: int) -> None:
    assert FACTS[fact] in find_texts(*talk, *queries)


@pytest.mark.parametrize(
    "query",
    [
        "Where did we bury the time capsule?",
        "Wo haben wir die Zeitkapsel vergraben?",
        "¿Dónde está la escuela de la playa?",
        "宇宙飞船的燃料是什么",
        "sailing licence",
        "F#",
        "🐙",
        "a + b",
        "...",
        "",
    ],
)
def test_nothing_is_found_that_was_never_said(talk: tuple[Home, str], query: str) -> None:
    assert find_texts(*talk, query) == []


def test_a_match_says_which_words_it_has_and_what_was_said_beside_it(talk: tuple[Home, str]) -> None:
    (match,) = find(*talk, "grandmother", "keys garage")

    assert match.words == ("key", "garage")
    assert match.passage == FACTS[0]
    assert match.beside is not None
    assert match.beside.number == match.text.number + 1


def test_the_best_of_each_query_comes_before_what_answers_several_a_little(tmp_path: Path) -> None:
    home = Home(tmp_path)
    said = [f"The gateway and the ledger have fault {number} together." for number in range(5)]
    chatter = [f"Nothing new on day {number}." for number in range(60)]
    session = home.recorded(*said, *chatter, "The gateway listens on port 8443.", "The ledger has version 7.", "And?")

    found = find_texts(home, session, "gateway port", "ledger version")

    assert set(found[:2]) == {"The gateway listens on port 8443.", "The ledger has version 7."}


def test_a_session_of_one_subject_is_searched_by_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session = home.recorded(*(f"The parser has fault {number}." for number in range(40)))

    assert find_texts(home, session, "parser")


def test_a_name_of_words_that_are_everywhere_is_found_as_a_whole(tmp_path: Path) -> None:
    home = Home(tmp_path)
    said = [
        f"The port of {a}-{b} is 4{place}." for place, (a, b) in enumerate(permutations(("amber", "oak", "reef"), 2))
    ]
    session = home.recorded(*said, *(f"Amber, oak and reef: round {number}." for number in range(40)))

    assert find_texts(home, session, "What is the port of reef-amber?")[0] == said[4]


def test_the_newest_message_is_found_before_the_session_is_saved_and_other_sessions_are_not(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.recorded("The heron stands in another pond.")

    async def record() -> list[list[str]]:
        service = home.service()
        session = await service.create_session("m", "ollama")
        found = []
        for text in ("A heron came.", "Two herons came.", "Who came?"):
            await service.record_message(session, said(text))
            found.append(find_texts(home, session, "heron"))
        home.root.joinpath("index.db").unlink()  # may go at any time
        found.append(find_texts(home, session, "heron"))
        await service.close_session(session)
        return found

    first, second, *later = run(record)
    assert (first, second) == ([], ["A heron came."]), "the request under way is left out"
    assert [sorted(found) for found in later] == [["A heron came.", "Two herons came."]] * 2


def test_questions_do_not_hide_what_they_ask_for(tmp_path: Path) -> None:
    home = Home(tmp_path)
    facts = ("My sister is allergic to walnuts.", "Der Zahnarzttermin ist am Donnerstag.")
    asked = ("Any allergies?", "Wann ist mein Zahnarzt?", "Any allergies, or a Zahnarzt?")
    session = home.recorded(*facts, *NOISE, *asked)

    assert facts[0] in find_texts(home, session, "allergies")
    assert facts[1] in find_texts(home, session, "Zahnarzt")


def test_a_call_is_found_by_the_output_that_the_model_was_not_shown_and_recall_itself_is_not(tmp_path: Path) -> None:
    home = Home(tmp_path)

    async def record() -> str:
        service = home.service()
        session = await service.create_session("m", "ollama")
        await service.record_message(session, said("List it"))
        whole = "name\n" * 5_000 + "kingfisher.txt\n" + "name\n" * 5_000
        listed = replace(call("c1", result="cut"), result=RecordedResult(llm_content="cut", full_output=whole))
        await service.record_tool_call(session, listed)
        await service.record_tool_call(session, call("c2", name="recall", result="kingfisher, somewhere"))
        await service.close_session(session)
        return session

    (match,) = find(home, run(record), "kingfisher")

    assert match.text.call == "c1"
    assert "kingfisher" in match.passage
    assert len(match.passage) < 400


async def test_the_event_loop_runs_on_while_a_search_does() -> None:
    loop, told = asyncio.get_running_loop(), threading.Event()

    def search(_queries: Sequence[str], _limit: int, _vectors: object) -> tuple[list[MessageMatch], bool]:
        loop.call_soon_threadsafe(told.set)
        assert told.wait(10), "the loop stood still"
        return [], True

    async def load(_page: object) -> None:
        return None

    assert await SessionArchive(load, search).search(["x"], 3) == ((), True)


def test_a_long_session_is_indexed_in_parts_and_searched_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    session = home.recorded("The otter is first.", *NOISE[:15], "The beaver is last.", "Which?")
    monkeypatch.setattr("ollm.store.session_index.entries.STEP_TEXTS", 1)
    monkeypatch.setattr("ollm.store.session_index.session_texts.REFRESH_SECONDS", 0.002)
    found: list[list[str]] = []
    for _ in range(1_000):
        with closing(home.index()) as index:
            texts = SessionTexts(index, session)
            found.append([match.text.text for match in search_messages(texts, ["otter", "beaver"], 3)])
            if not texts.is_behind:
                break

    assert found[-1] == ["The otter is first.", "The beaver is last."]
    with closing(home.index()) as index:
        assert index.connection.execute("SELECT count(*) FROM entries").fetchone()[0] == 18


LETTERS = st.characters(categories=["Lu", "Ll", "Lt", "Lo", "Mn", "Mc", "Nd"])


@settings(max_examples=20)
@given(words=st.lists(st.text(LETTERS, min_size=3, max_size=12), min_size=1, max_size=4, unique=True))
def test_a_word_of_any_script_is_found_in_any_form(words: list[str]) -> None:
    words = [word for word in words if len(fold_words(word)) > 2 and word[0].isalpha()]
    with TemporaryDirectory() as root:
        home = Home(Path(root))
        session = home.recorded(*NOISE[:9], *(f"Then: {word}, and so on." for word in words), "Any news?")
        with closing(home.index()) as index:
            for number, word in enumerate(words, 10):
                for typed in (word, word.upper(), normalize("NFC", word), normalize("NFD", word)):
                    hits = search_sessions(index, typed).hits
                    matches = search_messages(SessionTexts(index, session), [typed], 6)
                    assert number in [hit["number"] for hit in hits], typed
                    assert number in [match.text.number for match in matches], typed
                    assert any("«" in hit["snippet"] for hit in hits)


def test_an_identifier_is_found_whole_or_by_its_beginning(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session = home.recorded(*NOISE, "It fails with E404 now.", "Ticket ABC-1234 is open.", "Any news?")
    assert find_texts(home, session, "E4041") == find_texts(home, session, "E405") == []
    assert find_texts(home, session, "e404") == find_texts(home, session, "E40") == ["It fails with E404 now."]
    for typed in ("1234", "123", "ABC-1234", "abc-12"):
        assert find_texts(home, session, typed) == ["Ticket ABC-1234 is open."]
    assert find_texts(home, session, "ABC-12345") == find_texts(home, session, "ABD-1234") == []


def test_the_end_of_a_very_long_message_is_found(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session = home.recorded(*NOISE, "lorem ipsum " * 100_000 + "the needle", "Any news?")
    (match,) = find(home, session, "ipsum needle")
    assert match.passage.endswith("the needle")
    assert match.words == ("ipsum", "needle")


def test_a_hit_names_the_words_of_every_query(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session = home.recorded(*NOISE, "The gateway listens on the purple socket.", "Any news?")
    (match,) = find(home, session, "purple gateway", "listening socket")
    assert set(match.words) >= {"purple", "gateway", "listens", "socket"}
