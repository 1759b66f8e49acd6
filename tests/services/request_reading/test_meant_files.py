"""Files that a request means without naming them."""

import pytest

from ollm.services.request_reading.meant_files import MAX_TINY_CHARS, find_led_to, find_meant, find_tiny_project

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
