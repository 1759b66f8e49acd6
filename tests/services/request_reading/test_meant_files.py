"""Files that a request means without naming them."""

import pytest

from ollm.services.request_reading.meant_files import (
    MAX_TINY_CHARS,
    _weigh_word,
    find_led_to,
    find_meant,
    find_tiny_project,
)

FILES = {
    "bank.py": "def withdraw(balance, amount):\n    return balance - amount\n",
    "compose.yaml": "services:\n  web:\n    image: nginx:1.25\n",
    "README.md": "# Tool\n\nIt moves money of a balance.\n",
    "style.css": "a {\n  color: blue;\n}\n",
    "shop/cart.py": "class Cart:\n    pass\n",
    "test_bank.py": "from bank import withdraw\n\nassert withdraw(3, 1) == 2\n",
    "start.md": "See next.md.\n",
    "next.md": "It is in data/number.txt.\n",
    "data/number.txt": "7\n",
}


@pytest.mark.parametrize(
    ("request_", "meant"),
    [
        ("withdraw should raise ValueError if amount is greater than balance.", ["bank.py"]),
        ("bump the nginx image to 1.27", ["compose.yaml"]),
        ("I'd like links to be green instead of blue.", ["style.css"]),
        ("Add a method clear to Cart.", ["shop/cart.py"]),
        ("Append a line to the README.", ["README.md"]),
        ("Could you set a limit in the css file?", ["style.css"]),
        ("Give web a restart: always in the compose file.", ["compose.yaml"]),
        ("Write 3 into the new file.", []),
        ("Set a limit in the md file.", []),  # which?
        ("Which files use withdraw?", []),
        ("Rename withdraw to take in all files.", []),
        ("What is 2 + 2?", []),
        ("Hello", []),
        ("How many times is withdraw called?", []),
        ("The amounts are wrong.", ["bank.py"]),
        ("the tests are red, fix it", ["bank.py", "test_bank.py"]),
    ],
)
def test_what_a_request_speaks_of_is_found(request_: str, meant: list[str]) -> None:
    assert find_meant(request_, sorted(FILES), FILES.get) == meant


def test_a_test_leads_to_what_it_tests_and_a_page_to_the_files_it_names_where_that_is_said() -> None:
    assert find_led_to("test_bank.py fails. Make it pass.", ["test_bank.py"], sorted(FILES), FILES.get) == ["bank.py"]
    trail = "start.md names another file, which names a third one."
    assert find_led_to(trail, ["start.md"], sorted(FILES), FILES.get) == ["next.md", "data/number.txt"]
    assert find_led_to("Fix the typo in start.md.", ["start.md"], sorted(FILES), FILES.get) == []


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        ("How many employees work in Sales?", True),
        ("How many attempts does connect() make?", True),
        ("Hello", False),
        ("Which files use connect?", False),
        ("Rename connect to open everywhere.", False),
        ("Create hello.txt with a greeting.", False),
    ],
)
def test_a_tiny_project_is_shown_where_nothing_else_is_known_of_what_is_meant(request_: str, shown: bool) -> None:
    tiny = {"staff.csv": "name,department\nAnn,Sales\n", "retry.py": "def connect(attempts=5):\n    return attempts\n"}

    assert find_tiny_project(request_, list(tiny), tiny.get) == (list(tiny) if shown else [])
    assert find_tiny_project(request_, [*tiny, "gone.bin"], tiny.get) == []
    longer = {**tiny, "long.txt": "x" * MAX_TINY_CHARS}
    assert find_tiny_project(request_, list(longer), longer.get) == []
    assert find_tiny_project(request_, [f"{n}.txt" for n in range(7)], lambda _: "a") == []


def many(count: int, **held: str) -> dict[str, str]:
    """So many files that say nothing; `held` takes the place of some, by number."""
    return {f"f{number:02}.txt": held.get(f"n{number}", "nothing") for number in range(count)}


@pytest.mark.parametrize(
    ("request_", "files", "meant"),
    [
        ("Mend ziggurat.", many(70, n59="ziggurat"), ["f59.txt"]),
        ("Mend ziggurat.", many(70, n60="ziggurat"), []),
        ("Mend ziggurat.", many(3, n1="ziggurat" + "x" * 39_992), []),
        ("Mend ziggurat.", many(3, n1="ziggurat" + " " * 39_992), ["f01.txt"]),
        ("Mend ziggurat.", many(3, n1="ziggurat" + " " * 39_993), []),
        ("Improve cart.", {"a/cart.py": "", "b/cart.js": "", "c/cart.ts": ""}, ["a/cart.py", "b/cart.js"]),
        ("Improve cart.", {"x.py": "cart", "b/cart.js": "y"}, ["b/cart.js"]),
        ("Improve job.", {"x.py": "job", "job.py": "y"}, ["x.py"]),
        ("Mend ziggurat.", many(9, n1="ziggurat", n2="ziggurat"), ["f01.txt", "f02.txt"]),
        ("Mend ziggurat.", many(9, n1="ziggurat", n2="ziggurat", n3="ziggurat"), []),
        ("Mend tax ziggurat.", many(9, n1="tax", n2="ziggurat tax", n3="tax"), ["f02.txt"]),
        ("Mend tax ziggurat.", many(8, n1="tax", n2="ziggurat tax", n3="tax"), ["f02.txt"]),
        ("Mend tax.", many(8, n1="tax", n2="tax", n3="y"), ["f01.txt", "f02.txt"]),
        ("Mend tax.", many(2, n0="tax", n1="tax"), ["f00.txt", "f01.txt"]),
        ("Mend tax oak ziggurat.", many(9, n1="tax oak", n2="ziggurat tax oak"), ["f02.txt"]),
        ("Mend tax oak elm ziggurat.", many(9, n1="tax oak elm", n2="ziggurat tax oak elm"), ["f02.txt", "f01.txt"]),
        ("Mend total.", many(9, n1="total", n2="def total():\n    pass", n3="x"), ["f02.txt"]),
        ("Mend total.", many(9, n1="def total():\n    pass", n2="def total():\n    pass"), ["f01.txt", "f02.txt"]),
        ("Mend total.", many(9, n1="total", n2="def totals():\n    pass"), ["f01.txt", "f02.txt"]),
        ("Mend tabs.", many(3, n1="one tab"), ["f01.txt"]),
        ("Mend bus.", many(3, n1="one bu"), []),
        ("Mend bus.", many(3, n1="one bus"), ["f01.txt"]),
        ("Mend balance.", many(3, n1="Balance"), ["f01.txt"]),
        ("Mend Balance.", many(3, n1="balance"), []),
        ("Mend ox.", many(3, n1="ox"), []),
        ("Mend elm.", many(3, n1="elms"), ["f01.txt"]),
        ("Mend elm.", many(3, n1="elmwood", n2="helm"), []),
        ("the tests fail", {"test_a.py": "import a, b\nimport c", "test_b.py": "", "a.py": "x"}, []),
        ("the tests fail", {"test_a.py": "", "a.py": "x"}, ["test_a.py"]),
        (
            "the tests fail",
            {"t/test_a.py": "import a\nimport b\nimport c\nimport d\n", **{f"{n}.py": "x" for n in "abcd"}},
            ["a.py", "b.py", "c.py", "t/test_a.py"],
        ),
        ("my tests are slow: ziggurat", {"test_a.py": "import a", "a.py": "x", "b.py": "ziggurat"}, ["b.py"]),
    ],
)
def test_how_much_a_word_says_for_a_file(request_: str, files: dict[str, str], meant: list[str]) -> None:
    assert find_meant(request_, list(files), files.get) == meant


def test_a_file_that_cannot_be_read_speaks_for_nothing() -> None:
    assert find_meant("Mend ziggurat.", ["gone.txt", "a.txt"], {"a.txt": "ziggurat"}.get) == ["a.txt"]


def test_how_many_files_one_leads_to_and_which_imports_are_the_projects_own() -> None:
    imports = (
        "from pkg.mod import x\nimport plain\nfrom .near import y\nimport os\n"
        "const a = require('./lib/a.js')\nimport b from './b'\n"
    )
    names = ["b.ts", "lib/a.js", "near.py", "pkg/mod.py", "plain/__init__.py", "src/plain.py", "os.txt"]
    files = {"test_x.py": imports}

    def lead(request: str, named: list[str], names: list[str], files: dict[str, str]) -> list[str]:
        return find_led_to(request, named, names, files.get)

    assert lead("x", ["test_x.py"], names, files) == ["b.ts", "lib/a.js", "near.py"]
    assert lead("x", ["test_x.py"], names[3:], files) == ["pkg/mod.py", "plain/__init__.py", "src/plain.py"]
    assert lead("x", ["test_x.py", "a.py"], names, files) == []
    assert lead("x", [], names, files) == []
    assert lead("x", ["test_gone.py"], names, files) == []
    trail = {f"{number}.md": f"see {number + 1}.md" for number in range(6)}
    assert lead("follow it", ["0.md"], list(trail), trail) == ["1.md", "2.md", "3.md"]
    both = {"a.md": "b.md c.md d.md e.md a.md", "b.md": "a.md", "c.md": "", "d.md": "", "e.md": ""}
    assert lead("it leads to others", ["a.md"], list(both), both) == ["b.md", "c.md", "d.md"]
    assert lead("it leads to others", ["b.md", "c.md"], list(both), both) == ["a.md", "d.md", "e.md"]


def test_how_large_a_tiny_project_may_be() -> None:
    def show(count: int, chars: int) -> int:
        names = [f"{number}.txt" for number in range(count)]
        texts = dict.fromkeys(names, "") | {names[0]: "x" * chars}
        return len(find_tiny_project("Why is ziggurat empty?", names, texts.get))

    assert [show(6, 2_400), show(7, 1), show(1, 2_400), show(1, 2_401), show(6, 0)] == [6, 0, 1, 0, 6]
    assert find_tiny_project("Why is ziggurat in x/y.txt?", ["a.txt"], {"a.txt": ""}.get) == []


def test_a_word_that_a_third_of_the_files_hold_speaks_for_them_and_one_of_more_does_not() -> None:
    texts = {f"f{n}.py": f"{'apple' if n < 3 else ''} {'pear' if n < 4 else ''}" for n in range(9)}

    assert _weigh_word("apple", texts) == dict.fromkeys(("f0.py", "f1.py", "f2.py"), 1 / 3)
    assert _weigh_word("pear", texts) == {}
    assert _weigh_word("pear", dict(list(texts.items())[2:8])) == dict.fromkeys(("f2.py", "f3.py"), 1 / 2)
