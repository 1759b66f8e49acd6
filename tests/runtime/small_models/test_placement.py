"""Where a small model's files go, and what it is shown first."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, sampled_from, text

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.tools import Verdict
from ollm.runtime.small_models.edits import read_change
from ollm.runtime.small_models.placement import place_definitions
from ollm.runtime.small_models.priming import Primed, find_named, find_tokens, prime_request
from ollm.runtime.small_models.project_files import MAX_TEXT_BYTES, ProjectFiles
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext
from tests.runtime.calls.support import ALLOW, ASK, Fixed
from tests.runtime.small_models.test_blocks import CLASS, LONG


def test_a_function_takes_the_place_of_the_one_with_its_name() -> None:
    new = "def total_chairs(items):\n    return 0\n"
    change = read_change("store.py", new, LONG)

    ((target, replacement),) = change.edits
    assert LONG.count(target) == 1
    assert target.startswith("def total_chairs(items):")
    assert target.endswith("return total")
    assert replacement == new.rstrip()


def test_a_new_function_is_added_behind_the_last_and_its_import_above_the_first() -> None:
    new = "def area(r):\n    return math.pi * r"
    after = LONG
    for pair in read_change("store.py", f"import math\n\n\n{new}\n", LONG).edits:
        after = after.replace(*pair)
    assert after.rstrip() == f"import math\n\n\n{LONG.rstrip()}\n\n\n{new}"


@pytest.mark.parametrize(
    "body",
    [
        "    def count(self):\n        return 5\n",
        "class Team:\n    def count(self):\n        return 5\n",
        "class Team:\n    # ... existing code ...\n\n    def count(self):\n        return 5\n",
    ],
)
def test_a_method_is_added_to_its_class_and_the_others_stay(body: str) -> None:
    change = read_change("team.py", body, CLASS)

    ((target, replacement),) = change.edits
    assert CLASS.count(target) == 1
    after = CLASS.replace(target, replacement)
    scope: dict[str, type] = {}
    exec(after, scope)
    assert scope["Team"]("x").count() == 5
    assert scope["Team"]("x").method_11() == 11


def test_a_new_function_with_a_head_of_several_lines_keeps_its_end() -> None:
    old = "function a() {\n  return 1;\n}\n"

    [(_, after)] = place("function b(\n  x,\n) {\n  return x;\n}", old) or []
    assert after.endswith("function b(\n  x,\n) {\n  return x;\n}")


def place(new: str, old: str) -> list[tuple[str, str]] | None:
    edits = place_definitions(new.splitlines(), old.splitlines())
    return None if edits is None else list(edits)


OLD = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"


def test_new_imports_stand_before_those_there_are() -> None:
    assert place("import re\n\ndef one():\n    return re", OLD) == [
        ("def one():\n    return 1", "def one():\n    return re"),
        ("import os", "import re\nimport os"),
    ]


@pytest.mark.parametrize("new", ["", "x = 1", "x = 1\ndef one():\n    return 10"])
def test_a_block_that_holds_other_things_is_not_placed(new: str) -> None:
    assert place(new, OLD) is None


def test_a_method_written_without_its_class_is_indented_like_the_one_there() -> None:
    old = "class A:\n    def run(self):\n        return 1\n"

    assert place("def run(self):\n    return 2", old) == [
        ("    def run(self):\n        return 1", "    def run(self):\n        return 2")
    ]


TWO_CLASSES = (
    'class Empty:\n    """Nothing yet."""\n\n\n'
    "class A:\n    def run(self):\n        return 1\n\n    def stop(self):\n        return 2\n"
    + "".join(f"\n    def a_{n}(self):\n        return {n}\n" for n in range(6))
    + "\n\nclass B:\n    def run(self):\n        return 3\n"
    + "".join(f"\n    def b_{n}(self):\n        return {n}\n" for n in range(6))
)


def place_in_two(block: str) -> str:
    made = TWO_CLASSES
    for target, replacement in read_change("a.py", block, TWO_CLASSES).edits:
        assert made.count(target) == 1, target
        made = made.replace(target, replacement)
    return made


def test_a_method_stays_in_its_own_class() -> None:
    added = place_in_two("class A:\n    def more(self):\n        return 9\n")
    assert added == TWO_CLASSES.replace("\n\n\nclass B", "\n\n    def more(self):\n        return 9\n\n\nclass B")
    changed = place_in_two("class A:\n    def run(self):\n        return 9\n")
    assert changed == TWO_CLASSES.replace("return 1\n\n    def stop", "return 9\n\n    def stop")
    both = place_in_two("class A:\n    def a_5(self):\n        return 8\n\n    def more(self):\n        return 9\n")
    assert "def a_5(self):\n        return 8\n\n    def more(self):\n        return 9\n\n\nclass B" in both
    last = place_in_two("class B:\n    def more(self):\n        return 9\n")
    assert last.endswith("    def b_5(self):\n        return 5\n\n    def more(self):\n        return 9\n")


def test_a_class_without_methods_gets_them_at_its_end() -> None:
    made = place_in_two("class Empty:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n")

    body = "    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
    assert made == TWO_CLASSES.replace('yet."""\n', f'yet."""\n\n\n{body}').replace(
        "1\n\n    def two", "1\n\n\n    def two"
    )


YAML = "".join(
    f"  {name}:\n    image: {name}:1\n    replicas: 2\n    restart: always\n"
    for name in ("web", "api", "cache", "cron")
)


def test_a_shown_part_with_a_change_takes_the_place_of_that_part() -> None:
    body = "  cache:\n    image: cache:1\n    replicas: 5\n    restart: always\n"
    change = read_change("compose.yaml", body, YAML * 1 + "".join(f"# {n}\n" for n in range(40)))

    ((target, replacement),) = change.edits
    assert "cache:1\n    replicas: 2" in target
    assert "cache:1\n    replicas: 5" in replacement


FILES = {
    "app/store.py": "import json\n\n\ndef load_users(path):\n    return json.load(open(path))\n\n\nclass Shelf:\n    limit = 3\n",
    "app/views.py": "from app.store import load_users\n\n\ndef show_all():\n    print(load_users('u.json'))\n",
    "conf.ini": "[server]\nport = 8080\ncolour = '#ff6600'\n",
    "README.md": "# Shop\n\nThe shop shows users which are in the file and the number of them.\n",
    "test_store.py": "from app.store import load_users\n\n\ndef test_it():\n    assert load_users('x') == []\n",
    "run.py": "#!/usr/bin/env python3\nfrom app import views\n\nviews.show_all()\n",
    "notes/todo.txt": "water the plants\n" * 30,
}

LONG_TEXT = "".join(f"def total_{n}(items):\n    return {n}\n\n\n" for n in range(40)) + "MAX_TOTAL = 9\n"


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
    primed = prime("Lass total_17 in sums.py zwei liefern", {"sums.py": LONG_TEXT})

    assert primed.whole == ()
    assert "sums.py is long (161 lines). Parts of it:\n```\ndef total_17(items):\n    return 17" in primed.text
    assert "total_18" not in primed.text
    heads = "\n".join(f"def total_{n}(items):" for n in range(40))
    assert f"Its definitions:\n```\n{heads}\n```" in prime("Lies sums.py", {"sums.py": LONG_TEXT}).text
    nested = "class Sums:\n" + "".join(f"    {line}\n" if line else "\n" for line in LONG_TEXT.splitlines())
    told = prime("Ergänze Sums in sums.py", {"sums.py": nested}).text
    assert "class Sums:\n    def total_0(items):\n        return 0\n```" in told


def test_a_name_is_found_only_as_a_whole() -> None:
    assert find_named("see my_app.py and app.py.bak, not xapp.py", ["app.py"]) == []
    assert find_named("b.py, then src/a.py.", ["src/a.py", "b.py", "src"]) == ["b.py", "src/a.py", "src"][:2]
    assert find_tokens("Set 'a b' in x_y to 3.14") == ["a b", "Set", "x_y", "3.14"]


NAMES = text("abc./_- \n`$;é", min_size=1, max_size=12)


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


class Place:
    def __init__(self, root: Path, verdict: Verdict = ALLOW) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.ledger = EditLedger()
        self.policy = Fixed(verdict)
        self.discovery = FileDiscoveryService(FileDiscoverySettings(), root.parent / "home")
        self.files = ProjectFiles(ToolContext(boundary=Boundary.around(root)), self.policy, self.ledger, self.discovery)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def is_stale(self, name: str) -> bool:
        path = self.root / name
        return self.ledger.is_stale(path, path.stat(), path.read_bytes())


@pytest.fixture
def place_files(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "w")
    yield made
    made.discovery.close()


async def test_names_are_sorted_and_ignored_ones_are_left_out(place_files: Place) -> None:
    for name in ("b.py", "a/c.py", "node_modules/x.js", "out.log"):
        place_files.write(name, "x")
    place_files.write(".gitignore", "*.log\n")

    assert await place_files.files.list_names() == [".gitignore", "a/c.py", "b.py"]


def test_texts_are_read_and_what_is_none_is_not(place_files: Place) -> None:
    place_files.write("a.txt", "héllo\n")
    place_files.write("binary", b"\x00\x01\x02" * 50)
    place_files.write("long", "x" * (MAX_TEXT_BYTES + 1))
    place_files.write("fits", "x" * MAX_TEXT_BYTES)
    (place_files.root / "folder").mkdir()

    assert place_files.files.read_text("a.txt") == "héllo\n"
    assert place_files.files.read_text("fits") is not None
    for name in ("binary", "long", "folder", "missing", "../outside", "a\0b", ""):
        assert place_files.files.read_text(name) is None
    assert place_files.files.exists("a.txt")
    assert not place_files.files.exists("folder")
    assert not place_files.files.exists("missing")


def test_what_a_reading_tool_would_have_to_ask_about_is_not_read(tmp_path: Path) -> None:
    place_files = Place(tmp_path / "w", ASK)
    place_files.write("a.txt", "secret")

    assert place_files.files.read_text("a.txt") is None
    (request,) = place_files.policy.requests
    assert (request.tool, request.params, request.reads_only) == ("read_file", {"path": "a.txt"}, True)
    assert [(found.target, found.access) for found in request.locations] == [("a.txt", "read")]


def test_a_file_that_is_remembered_is_stale_when_it_changes(place_files: Place) -> None:
    place_files.write("a.txt", "one")
    place_files.files.remember("a.txt")
    assert not place_files.is_stale("a.txt")
    place_files.write("a.txt", "two")
    assert place_files.is_stale("a.txt")
    place_files.files.remember("a.txt")
    assert not place_files.is_stale("a.txt")
    place_files.files.remember("missing")
