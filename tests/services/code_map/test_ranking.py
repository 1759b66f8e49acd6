"""What others use, and what has to do with a question."""

import pytest

from ollm.services.code_map.facts import FileFacts, collect_facts
from ollm.services.code_map.ranking import (
    QueryScores,
    find_terms,
    is_test,
    is_vendored,
    score_definitions,
    split_words,
    stem_word,
)

SHOP = {
    "shop/cart.py": (
        "class Cart:\n    def total(self): pass\n    def _sum(self): pass\n"
        "def build(): pass\ndef _secret(): pass\nclass Ab: pass\n"
    ),
    "vendor/log.py": "class Logger: pass\ndef write(): pass\n",
    "tests/test_cart.py": "from shop.cart import Cart, build\ndef check(): pass\nCart().total()\nbuild()\n",
    "app/main.py": ("from shop import cart\ncart.build(); Cart().total(); cart._secret(); Logger(); check(); Ab\n"),
    "app/other.py": "build(); total(); write()\n",
    "app/log_user.py": "import log\nlog.write()\n",
    "web/x.ts": "build(); Cart\n",
    "vendor/user.py": "import cart\nbuild()\n",
}


def read_shop() -> list[FileFacts]:
    return [collect_facts(path, text.encode(), 0, 0) for path, text in SHOP.items()]


def test_how_much_each_definition_weighs() -> None:
    """By uses: in tests, in code of others, from files that never name where it stands; by what is private."""
    found = {name: round(weight, 6) for name, weight in weigh(read_shop()).items()}

    assert found == {
        "Cart": 1.3,
        "Cart.total": 1.32,
        "Cart._sum": 0.0,
        "build": 1.34,
        "_secret": 0.2,
        "Ab": 1.0,
        "Logger": 0.02,
        "write": 0.0204,
        "check": 0.002,
    }


@pytest.mark.parametrize(
    ("query", "scores", "defined"),
    [
        ("cart total", [6.5473, 0.0, 4.9993, 1.3545, 0.7194, 0.0, 0.6406, 0.6402], [0.9163, 1.9459, 0.9163, 0, 0, 0]),
        ("where is the logging", [0.0, 2.073, 0.0, 0.965, 0.0, 0.0, 0.0, 0.0], [0] * 6),
        ("write the", [0.0, 1.7625, 0.0, 0.0, 0.8235, 0.8235, 0.0, 0.0], [0] * 6),
        ("zzz", [0.0] * 8, [0] * 6),
        ("the", [0.0] * 8, [0] * 6),
    ],
)
def test_how_much_each_file_has_to_do_with_a_question(query: str, scores: list[float], defined: list[float]) -> None:
    files = read_shop()
    rated = QueryScores(files, query)

    assert [round(rated.score_file(number), 4) for number in range(len(files))] == scores
    assert [round(rated.score_definition(found), 4) for found in files[0].definitions] == defined


@pytest.mark.parametrize(
    ("path", "test", "vendored"),
    [
        ("test/a", True, False),
        ("spec/x", True, False),
        ("src/tests/x.py", True, False),
        ("src/atests/x.py", False, False),
        ("a/test_x.py", True, False),
        ("contest.py", False, False),
        ("vendor/a/b.py", False, True),
        ("src/third_party/b.py", False, True),
        ("a/vendor.py", False, False),
        ("vendor", False, False),
    ],
)
def test_tests_and_code_of_others_are_told_by_their_place(path: str, test: bool, vendored: bool) -> None:
    assert (is_test(path), is_vendored(path)) == (test, vendored)


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        ("parse parses parsed parsing parsings parser parsers", "pars"),
        ("timer timers timed", "tim"),
        ("station stations", "stat"),
        ("quickly quick", "quick"),
        ("sing", "sing"),
        ("used", "used"),
        ("see", "see"),
        ("tree", "tr"),
        ("as", "as"),
    ],
)
def test_forms_of_a_word_are_one_word(words: str, stem: str) -> None:
    assert {stem_word(word) for word in words.split()} == {stem}


def facts(**files: str) -> list[FileFacts]:
    return [collect_facts(name.replace("__", "/") + ".py", text.encode(), 0, 0) for name, text in files.items()]


def weigh(files: list[FileFacts]) -> dict[str, float]:
    weights = score_definitions(files)
    return {
        found.full_name: weight
        for number, one in enumerate(files)
        for found, weight in zip(one.definitions, weights[number], strict=True)
    }


def test_what_more_files_use_weighs_more_and_names_of_the_language_nothing() -> None:
    users = {f"user{number}": "from core import parse\nparse(len([1]))\n" for number in range(5)}

    found = weigh(facts(core="def parse(x): pass\ndef rare(): pass\n", one="from core import rare\nrare()\n", **users))

    assert found["parse"] == 5.0
    assert found["rare"] == 1.0
    assert "len" not in found


def test_short_names_count_too() -> None:
    users = {f"user{number}": "from core import db, Q\ndb(Q(1))\n" for number in range(3)}

    found = weigh(facts(core="class Q: pass\ndef db(x): pass\n", **users))

    assert (found["Q"], found["db"]) == (3.0, 3.0)


def test_code_of_others_and_short_words_weigh_little() -> None:
    users = {f"user{number}": "from own import Thing\nThing()  # In no case\nLog(1)\n" for number in range(3)}

    found = weigh(facts(own="class Thing: pass\n", vendor__log="class Log: pass\n", runes="class In: pass\n", **users))

    assert found["Thing"] == 3.0
    assert found["Log"] < 0.1
    assert found["In"] < 0.1


def test_a_method_counts_where_its_class_is_named() -> None:
    """Everybody calls get(); not everybody means this one."""
    others = {f"other{number}": "settings.get(1)\n" for number in range(20)}

    found = weigh(
        facts(lazy="class Lazy:\n    def get(self): pass\n", user="from lazy import Lazy\nLazy().get()\n", **others)
    )

    assert found["Lazy.get"] < 2
    assert found["Lazy"] == 1.0


def test_a_name_defined_in_many_files_is_shared_by_them() -> None:
    files = {f"part{number}": "def build(): pass\n" for number in range(4)}

    found = score_definitions(facts(user="import part0\nbuild()\n", **files))

    assert max(max(weights, default=0) for weights in found) <= 0.25


def test_tests_weigh_little() -> None:
    found = weigh(facts(core="def parse(): pass\n", tests__test_core="from core import parse\nparse()\n"))

    assert found["parse"] == 0.3
    assert is_test("tests/a.py")
    assert is_test("src/a.test.ts")
    assert not is_test("src/latest.py")


def test_the_words_of_a_name_are_found_without_their_endings() -> None:
    assert split_words("parseCalls") == split_words("parsing_call")
    assert find_terms("Where is the retry of downloads?") == list(
        dict.fromkeys([*split_words("retry"), *split_words("downloads")])
    )


def test_a_question_finds_its_files() -> None:
    files = facts(
        shop__cart="def total(): pass\n", shop__mail="def send(): pass\n", tests__test_cart="def test_total(): pass\n"
    )

    scores = QueryScores(files, "cart: the total is wrong")

    rated = {one.path: scores.score_file(number) for number, one in enumerate(files)}
    assert rated["shop/mail.py"] == 0
    assert min(rated["shop/cart.py"], rated["tests/test_cart.py"]) > 0
    assert scores.score_definition(files[0].definitions[0]) > 0


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Where is the a bc?", ["bc"]),
        ("x y", []),
        ("parse_calls of parseCall, HTTPServer v2", ["pars", "call", "http", "serv"]),
        ("find files about code", []),
    ],
)
def test_the_terms_of_a_question(query: str, terms: list[str]) -> None:
    assert find_terms(query) == terms


def test_a_name_of_three_letters_tells_where_it_is_from_and_one_of_two_does_not() -> None:
    users = {f"user{number}": "Abc(1)\nAb(1)\nabc(1)\n" for number in range(4)}

    found = weigh(facts(one="class Abc: pass\nclass Ab: pass\ndef abc(): pass\n", **users))

    assert [round(found[name], 4) for name in ("Abc", "Ab", "abc")] == [4.0, 0.08, 0.08]
