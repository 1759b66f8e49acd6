"""What goes with a request to a small model."""

from ollm.services.request_reading.primed_request import prime_request

STORE = "import math\n\n\n" + "".join(f"def total_{n}(items):\n    return sum(items) + {n}\n\n\n" for n in range(60))
FILES = {
    "conf.py": "DEBUG = False\nLIMIT = 12\n",
    "store.py": STORE,
    "src/app.py": "print(1)\n",
    "test_store.py": "from store import total_7\n\nassert total_7([]) == 0\n",
    "server.log": "".join(f"10:{n % 60:02} {'ERROR' if n % 9 == 0 else 'INFO'} line {n}\n" for n in range(300)),
}


def prime(request: str, max_chars: int = 9000) -> str:
    return prime_request(request, sorted(FILES), FILES.get, max_chars).text


def test_names_come_always_and_the_text_of_short_files_that_are_named() -> None:
    told = prime("Change LIMIT in conf.py to 20.")
    assert told.startswith("Files here: conf.py, server.log, src/app.py, store.py, test_store.py")
    assert "conf.py:\n```\nDEBUG = False\nLIMIT = 12\n```" in told
    assert "print(1)" not in told
    assert prime_request("Change conf.py", sorted(FILES), FILES.get, 9000).whole == ("conf.py",)


def test_of_a_long_file_comes_what_the_request_or_a_short_file_names() -> None:
    assert "def total_31(items):\n    return sum(items) + 31" in prime("Fix total_31 in store.py")
    told = prime("python test_store.py fails. Find the bug in store.py.")
    assert "def total_7(items):" in told
    assert "total_8" not in told


def test_a_word_that_stands_on_many_lines_is_shown_by_its_first() -> None:
    told = prime("When does the first ERROR in server.log happen?")
    assert "10:00 ERROR line 0" in told
    assert told.count("ERROR") == 2


def test_what_is_only_run_moved_or_deleted_is_not_shown() -> None:
    assert "```" not in prime("Run python src/app.py and tell me what it prints.")
    assert "```" not in prime("Delete the file conf.py.")
    assert "```" not in prime("Rename conf.py to settings.py.")


def test_a_word_that_becomes_another_is_shown_where_it_stands() -> None:
    told = prime("Rename total_7 to sum_7 in store.py and test_store.py.")
    assert "test_store.py:1:from store import total_7" in told
    assert "store.py:32:def total_7(items):" in told


def test_it_keeps_within_its_room() -> None:
    told = prime("Change LIMIT in conf.py and total_3 in store.py", max_chars=120)
    assert len(told) <= 120
