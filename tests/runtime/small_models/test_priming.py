"""The files that go with what a person typed, chosen by tokens in any language."""

import pytest
from hypothesis import given, settings
from hypothesis.strategies import dictionaries, sampled_from, text

from ollm.runtime.small_models.priming import Primed, find_named, find_tokens, prime_request

FILES = {
    "app/store.py": "import json\n\n\ndef load_users(path):\n    return json.load(open(path))\n\n\nclass Shelf:\n    limit = 3\n",
    "app/views.py": "from app.store import load_users\n\n\ndef show_all():\n    print(load_users('u.json'))\n",
    "conf.ini": "[server]\nport = 8080\ncolour = '#ff6600'\n",
    "README.md": "# Shop\n\nThe shop shows users which are in the file and the number of them.\n",
    "test_store.py": "from app.store import load_users\n\n\ndef test_it():\n    assert load_users('x') == []\n",
    "run.py": "#!/usr/bin/env python3\nfrom app import views\n\nviews.show_all()\n",
    "notes/todo.txt": "water the plants\n" * 30,
}
LONG = "".join(f"def total_{n}(items):\n    return {n}\n\n\n" for n in range(40)) + "MAX_TOTAL = 9\n"


def prime(typed: str, files: dict[str, str] | None = None, max_chars: int = 8_000) -> Primed:
    there = FILES if files is None else files
    return prime_request(typed, sorted(there), there.get, max_chars)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("Change the port in conf.ini to 9090.", ["conf.ini"]),
        ("Ändere den Port in conf.ini auf 9090.", ["conf.ini"]),
        ("Cambia el puerto en conf.ini a 9090.", ["conf.ini"]),
        ("把conf.ini里的port改成9090", ["conf.ini"]),
        ("todo.txt is too long", ["notes/todo.txt"]),
        ("Was macht show_all?", ["app/views.py"]),
        ("¿Qué hace Shelf?", ["app/store.py"]),
        ("Ersetze '#ff6600' durch '#0066ff'", ["conf.ini"]),
        ("test_store.py schlägt fehl", ["test_store.py", "app/store.py"]),
        ("run.py stürzt ab", ["run.py", "app/views.py"]),
        ("Let conf.ini name load_users", ["conf.ini", "app/store.py"]),
    ],
)
def test_files_are_found_by_their_names_and_by_rare_tokens(typed: str, shown: list[str]) -> None:
    assert sorted(prime(typed).whole) == sorted(shown)


def test_all_names_are_told_and_what_has_nothing_to_do_with_it_is_not_shown() -> None:
    primed = prime("Guten Morgen!")

    assert primed == Primed(text=f"Files here: {', '.join(sorted(FILES))}")
    assert prime("Hi", {}) == Primed()
    many = {f"f{n:03}.py": "x = 1\n" for n in range(90)}
    assert prime("Look at f077.py", many).text.startswith("Files here: f000.py, ")
    assert "f077.py and 50 more" in prime("Look at f077.py", many).text


def test_of_a_long_file_only_what_matches_is_shown() -> None:
    primed = prime("Lass total_17 in sums.py zwei liefern", {"sums.py": LONG})

    assert primed.whole == ()
    assert "sums.py is long (161 lines). Parts of it:\n```\ndef total_17(items):\n    return 17" in primed.text
    assert "total_18" not in primed.text
    heads = "\n".join(f"def total_{n}(items):" for n in range(40))
    assert f"Its definitions:\n```\n{heads}\n```" in prime("Lies sums.py", {"sums.py": LONG}).text
    nested = "class Sums:\n" + "".join(f"    {line}\n" if line else "\n" for line in LONG.splitlines())
    told = prime("Ergänze Sums in sums.py", {"sums.py": nested}).text
    assert "class Sums:\n    def total_0(items):\n        return 0\n...\n    def total_1(items):\n...\n" in told


def test_a_tiny_project_is_shown_whole_with_its_pages_first() -> None:
    tiny = {"a.py": "print(1)\n", "README.md": "# One\n"}

    primed = prime("Behebe den Fehler", tiny)

    assert set(primed.whole) == set(tiny)
    assert primed.text.index("# One") < primed.text.index("print(1)")


def test_uses_of_a_named_definition_in_other_files_are_listed() -> None:
    primed = prime("Nenne load_users in app/store.py um")

    assert "Lines with load_users:\napp/views.py:1:from app.store import load_users\n" in primed.text
    assert "test_store.py:5:assert load_users('x') == []" in primed.text


def test_columns_of_a_table_are_numbered() -> None:
    assert prime("Sum t.csv", {"t.csv": "id,name\n1,a\n"}).text.endswith("Columns: $1 id, $2 name")


def test_a_name_is_found_only_as_a_whole() -> None:
    assert find_named("see my_app.py and app.py.bak, not xapp.py", ["app.py"]) == []
    assert find_named("b.py, then src/a.py.", ["src/a.py", "b.py", "src"]) == ["b.py", "src/a.py", "src"][:2]
    assert find_tokens("Set 'a b' in x_y to 3.14") == ["a b", "Set", "x_y", "3.14"]


NAMES = text("abc./_- \n`$;é", min_size=1, max_size=12)


@settings(max_examples=200)
@given(
    files=dictionaries(NAMES, text("ab=\n `#'\"(", max_size=80), max_size=6),
    typed=text(max_size=60),
    size=sampled_from([50, 400, 9_000]),
)
def test_no_request_is_too_odd_and_the_limit_holds(files: dict[str, str], typed: str, size: int) -> None:
    primed = prime(typed, files, size)
    told, _, _ = primed.text.partition("\n\n")

    assert len(primed.text) <= max(size, len(told)) + 2 * len(files) + 4
    assert set(primed.whole) <= set(files)
    assert "\n" not in told
