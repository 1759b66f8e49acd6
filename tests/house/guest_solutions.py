"""A solution for each of the guests' first tasks, in the form of the strangers': the answer, and the changed files."""

from __future__ import annotations

import json
from pathlib import Path

from bench.tasks import guests_programs as programs
from bench.tasks import guests_projects as data

from tests.house.stranger_solutions import Change, change_text

Solution = tuple[str, dict[str, Change]]

VOWELS = '\n\ndef count_vowels(text):\n    return sum(letter in "aeiouAEIOU" for letter in text)\n'
VOWELS_TEST = (
    "from words import count_vowels\n\n\ndef test_count_vowels():\n    assert count_vowels('Anna') == 2\n"
    "    assert count_vowels('') == 0\n"
)
LONGEST = "\n    def longest(self):\n        return max(self.books, key=lambda book: book.pages).title\n\n\ndef demo():"
CONVERSIONS = programs.WEATHER_PY[programs.WEATHER_PY.index("def c_to_f") : programs.WEATHER_PY.index("def read_rows")]
ONE_STATION = (
    "    rows = read_rows(args.file)\n    if args.station:\n"
    "        rows = of_station(rows, args.station)\n    for line in report(rows):"
)


def change_regions() -> str:
    found = json.loads(programs.REGIONS["regions.json"])
    found["regions"]["us-east"]["timeout"] = 45
    del found["regions"]["ap-south"]
    return json.dumps(found, indent=2)


FIRST_SOLUTIONS: dict[str, Solution] = {
    "g most seats": ("One person can book at most 6 seats.", {}),
    "g where is it made": ("`next_invoice_number` in billing/numbers.py.", {}),
    "g plants in the shade": ("Five of them.", {}),
    "g last throw": ("The last throw was 640.", {}),
    "g database name": ("It is orders_eu.", {}),
    "g size of 2k": ("It returns 2,048.", {}),
    "g requirements": ("Done.", {"requirements.txt": "flask\npyyaml\n"}),
    "g settings file": ("Done.", {"settings.json": '{"theme": "dark", "fontSize": 14}\n'}),
    "g log level": ("Done.", {"config.yml": ("level: debug", "level: warning")}),
    "g line length": ("Done.", {"pyproject.toml": ("88", "110")}),
    "g cache off": ("Off.", {"app.ini": ("enabled = true\nseconds", "enabled = false\nseconds")}),
    "g app port": ("Set.", {".env": ("APP_PORT=8000", "APP_PORT=9090")}),
    "g rename calc": (
        "Renamed.",
        {
            "prices.py": ("calc(", "shipping_cost("),
            "checkout.py": ("calc,", "shipping_cost,", "calc(", "shipping_cost("),
        },
    ),
    "g shorten": ("Fixed.", {"shorten.py": ('text[:length] + "..."', 'text[: length - 3] + "..."')}),
    "g default language": (
        "Moved.",
        {
            "translate.py": ("import LANGUAGES", "import DEFAULT_LANG, LANGUAGES", 'DEFAULT_LANG = "nb"\n', ""),
            "constants.py": ("", 'DEFAULT_LANG = "nb"\n'),
        },
    ),
    "g separator": (
        "Added.",
        {"names.py": ("join_names(names)", 'join_names(names, sep=", ")', '", ".join', "sep.join")},
    ),
    "g sort imports": (
        "Sorted.",
        {
            "tools.py": (
                "import sys\nimport json\nimport re\nimport csv\nimport os\n",
                "import csv\nimport json\nimport os\nimport re\nimport sys\n",
            )
        },
    ),
    "g count vowels": ("Written.", {"words.py": ("", VOWELS), "test_words.py": VOWELS_TEST}),
    "g new brand": ("Replaced.", dict.fromkeys(data.BRAND, ("Skylark", "Bluebird"))),
    "g loud flag": (
        "Added.",
        {
            "hello.py": (
                '("name")\n',
                '("name")\n    parser.add_argument("--loud", action="store_true")\n',
                'print(f"Hello {args.name}")',
                'text = f"Hello {args.name}"\n    print(text.upper() if args.loud else text)',
            )
        },
    ),
    "g debug prints": (
        "Removed.",
        {
            "sync.py": (
                '    print("DEBUG local", local)\n',
                "",
                '    print("DEBUG missing", missing)\n',
                "",
                '    print("DEBUG done", done)\n',
                "",
            )
        },
    ),
    "g free shipping": ("Changed.", {"js/cart.js": ("FROM = 50", "FROM = 75")}),
    "g tick it off": ("Ticked.", {"todo.md": ("[ ] buy", "[x] buy")}),
    "g greet by name": ("Changed.", {"greet.sh": ("World", "$1")}),
    "g long: rename a method": (
        "All three tests pass.",
        {
            "library.py": ("def lend(", "def check_out(", ".lend(", ".check_out("),
            "test_library.py": (".lend(", ".check_out("),
        },
    ),
    "g long: longest book": (
        "Added.",
        {"library.py": ("\n\ndef demo():", LONGEST), "main.py": ("", "print(library.longest())\n")},
    ),
    "g long: fix and save": (
        "Fixed.",
        {"library.py": ("(book.due - today)", "(today - book.due)"), "out.txt": "3 tests passed\n"},
    ),
    "g long: which error": ("A `NotLentError`.", {}),
    "g long: loan rules": (
        "Changed.",
        {"library.py": ("LOAN_DAYS = 21", "LOAN_DAYS = 28", "DAY = 0.25", "DAY = 0.50")},
    ),
    "g long: warmest station": ("It is castle.", {"best.txt": "castle\n"}),
    "g long: units": (
        "Moved.",
        {
            "units.py": CONVERSIONS,
            "weather.py": (CONVERSIONS, "", "import csv\n", "import csv\n\nfrom units import c_to_f\n"),
        },
    ),
    "g long: one station": (
        "Added.",
        {
            "weather.py": (
                "default=FILE)\n",
                'default=FILE)\n    parser.add_argument("--station")\n',
                "    for line in report(read_rows(args.file)):",
                ONE_STATION,
            )
        },
    ),
    "g long: failed logins": ("dora, with 17 of them.", {}),
    "g long: regions": ("Done.", {"regions.json": change_regions()}),
    "g long: release": (
        "Released.",
        {
            "package.json": ("1.2.4", "1.3.0"),
            "version.py": ("1.2.4", "1.3.0"),
            "CHANGELOG.md": ("## 1.2.4", "## 1.3.0\n\n- new colours\n\n## 1.2.4"),
        },
    ),
    "g long: legacy": (
        "It prints sum 7.",
        {
            "legacy/__init__.py": None,
            "legacy/old_report.py": None,
            "main.py": ("from legacy.old_report import old_build\n", ""),
        },
    ),
}


def apply_changes(changes: dict[str, Change], folder: Path) -> None:
    for path, change in changes.items():
        place = folder / path
        if change is None:
            place.unlink()
            for parent in place.relative_to(folder).parents[:-1]:  # a folder goes with its last file
                if not any((folder / parent).iterdir()):
                    (folder / parent).rmdir()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(change if isinstance(change, str) else change_text(place.read_text(), change))
