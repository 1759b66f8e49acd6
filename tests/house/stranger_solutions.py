"""A solution for each of the strangers' tasks: the answer, and what becomes of the files.

A file's change is its whole new text, None where it goes, or a row of texts: each second one takes the place of the one
before it, and one after an empty text is added at the end.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from bench.tasks import strangers_programs as programs
from bench.tasks import strangers_projects as data

Change = str | tuple[str, ...] | None

SOLUTIONS: dict[str, tuple[str, dict[str, Change]]] = {
    "x needed python": ("Python 3.10 or newer.", {}),
    "x value of a constant": ("SESSION_MINUTES is 95.", {}),
    "x which exception": ("An OverdrawnError is raised.", {}),
    "x how long backups stay": ("After 21 days.", {}),
    "x create a gitignore": ("Added.", {".gitignore": "__pycache__/\n.venv/\n"}),
    "x create a script": ("Done.", {"hello.py": "print('Hello, world!')\n"}),
    "x background of a page": (
        "Changed.",
        {"style.css": ("margin: 0;\n  background: white", "margin: 0;\n  background: #fafafa")},
    ),
    "x bump a version": ("The version is 0.5.0.", {"pyproject.toml": ("0.4.2", "0.5.0")}),
    "x add a median": (
        "Added median.",
        {
            "stats.py": (
                "",
                "\n\ndef median(numbers):\n    ordered = sorted(numbers)\n    half = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[half]\n    return (ordered[half - 1] + ordered[half]) / 2\n",
            )
        },
    ),
    "x add a conversion": (
        "Added f_to_c.",
        {"convert.py": ("", "\n\ndef f_to_c(fahrenheit):\n    return (fahrenheit - 32) * 5 / 9\n")},
    ),
    "x rename in js": ("Renamed.", {"cart.js": ("sumUp", "cartTotal"), "main.js": ("sumUp", "cartTotal")}),
    "x rename a function": ("Renamed.", {"stock.py": ("qty_of", "quantity_of"), "shelf.py": ("qty_of", "quantity_of")}),
    "x failing leap year": (
        "Fixed.",
        {"leap.py": ("year % 4 == 0 and year % 100 != 0", "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)")},
    ),
    "x failing initials": ("Fixed.", {"names.py": ("part[0] for", "part[0].upper() for")}),
    "x palindrome and case": (
        "Fixed.",
        {"words.py": ("    return word == word", "    word = word.lower()\n    return word == word")},
    ),
    "x countdown ends too early": ("Fixed.", {"countdown.py": ("range(start, 0, -1)", "range(start, -1, -1)")}),
    "x run a check": ("It says that port 70443 is out of range.", {}),
    "x run with an option": ("The final value is 35.", {}),
    "x count errors": ("There are 6.", {}),
    "x count links": ("It has 5 links.", {}),
    "x remove an unused module": ("Removed.", {"legacy.py": None}),
    "x rename a module": (
        "Renamed.",
        {"utils.py": None, "helpers.py": programs.HELPERS["utils.py"], "main.py": ("from utils", "from helpers")},
    ),
    "x move a limit": (
        "Moved.",
        {
            "limits.py": ("", "MAX_BYTES = 5_000_000\n"),
            "upload.py": ("import MAX_FILES\n\nMAX_BYTES = 5_000_000\n", "import MAX_BYTES, MAX_FILES\n"),
        },
    ),
    "x extract a helper": (
        "Done.",
        {
            "receipt.py": (
                "def line",
                "def money(cents):\n    return f'{cents / 100:.2f} EUR'\n\n\ndef line",
                'f"{cents / 100:.2f} EUR"',
                "money(cents)",
                'f"{total / 100:.2f} EUR"',
                "money(total)",
            )
        },
    ),
    "x guests named twice": ("Done.", {"guests.txt": "Nora\nSam\nIbrahim\nChloe\nYuki\n"}),
    "x add a language": ("Added.", {"config.json": ('"fr"]', '"fr", "it"]')}),
    "x restart the database": (
        "Added.",
        {"docker-compose.yml": ("image: postgres:16\n", "image: postgres:16\n    restart: always\n")},
    ),
    "x title of a page": ("Set.", {"index.html": ("My page", "Harbour Bakery")}),
    "x change a heading": ("Changed.", {"README.md": ("## Usage", "## How to use it")}),
    "x ignore logs": ("Done.", {".gitignore": ("", "*.log\n")}),
    "x lines to json": ("Done.", {"names.json": '["Mara", "Jonas", "Priya", "Tomasz", "Leila"]'}),
    "x json to csv": ("Converted.", {"temps.csv": "city,low,high\nOslo,-4,2\nRome,7,15\nCairo,11,22\n"}),
    "x test a stack": (
        "Written.",
        {
            "test_stack.py": "from stack import Stack\n\n\nclass TestStack:\n    def test_pop(self):\n        stack = Stack()\n        stack.push(1)\n        stack.push(2)\n        assert stack.pop() == 2\n"
        },
    ),
    "x test shout": (
        "Added.",
        {
            "test_texttools.py": "import unittest\n\nfrom texttools import shout\n\n\nclass ShoutTest(unittest.TestCase):\n    def test_shout(self):\n        self.assertEqual(shout('hi'), 'HI!')\n"
        },
    ),
    "x change, run, save": (
        "Done.",
        {"greet.py": ("Hello", "Good morning"), "result.txt": "Good morning, Ruth!\nGood morning, Omar!\n"},
    ),
    "x write numbers, add them": ("They add up to 55.", {"numbers.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"}),
    "x image of a service": ("It runs `redis:7.2`.", {}),
    "x free shipping": ("Shipping is free from 45 EUR on.", {}),
    "x who calls it": ("total_in in invoice.py calls it.", {}),
    "x what make clean removes": ("It removes the folders build and dist.", {}),
    "x create a start script": ("Here it is.", {"run.sh": "#!/bin/sh\nexec python3 app.py\n"}),
    "x create a list in json": ("Made it.", {"data/colors.json": '["red", "green", "blue"]\n'}),
    "x turn debug off": ("Debug is off.", {".env": ("DEBUG=true", "DEBUG=false")}),
    "x raise retries": ("Raised.", {"client.py": ("MAX_RETRIES = 3", "MAX_RETRIES = 6")}),
    "x add a method": (
        "Stack has peek now.",
        {"stack.py": ("    def __len__", "    def peek(self):\n        return self.items[-1]\n\n    def __len__")},
    ),
    "x add reverse words": (
        "Added.",
        {"texttools.py": ("", "\n\ndef reverse_words(text):\n    return ' '.join(reversed(text.split()))\n")},
    ),
    "x rename a key": ("Renamed.", {"config.json": ("user_name", "username"), "login.py": ("user_name", "username")}),
    "x rename a class": ("Renamed.", {"models.py": ("Cust", "Customer"), "report.py": ("Cust", "Customer")}),
    "x failing clamp": ("Fixed.", {"clamp.py": ("min(low, max(value, high))", "max(low, min(value, high))")}),
    "x failing basket": ("Fixed.", {"basket.py": ("sum(price for", "sum(price * quantity for")}),
    "x wrong discount": ("Fixed.", {"prices.py": ("return price - percent", "return price - price * percent / 100")}),
    "x average of nothing": (
        "Fixed.",
        {"grades.py": ("    return sum(marks)", "    if not marks:\n        return 0\n    return sum(marks)")},
    ),
    "x run a shell script": ("Total hours: 188", {}),
    "x last prime": ("The last one is 499.", {}),
    "x count books": ("Three of them.", {}),
    "x count tests": ("There are 5 test functions.", {}),
    "x delete notes": ("Deleted.", {"old_notes.txt": None}),
    "x move into a folder": ("Moved.", {"logo.txt": None, "assets/logo.txt": data.LOGO["logo.txt"]}),
    "x move the tax rate": (
        "Moved.",
        {
            "constants.py": ("", "TAX_RATE = 0.19\n"),
            "invoice.py": ("TAX_RATE = 0.19\n", "from constants import TAX_RATE\n"),
        },
    ),
    "x requirement listed twice": (
        "Done.",
        {"requirements.txt": "flask==3.0.3\nrequests==2.32.3\npillow==10.4.0\nclick==8.1.7\n"},
    ),
    "x same function twice": (
        "Done.",
        {
            "pages.py": (
                'def slug(title):\n    return title.strip().lower().replace(" ", "-")\n',
                "from posts import slug\n",
            )
        },
    ),
    "x add a script": ("Added.", {"package.json": ('"node --test"\n', '"node --test",\n    "lint": "eslint ."\n')}),
    "x add a license": ("Added.", {"pyproject.toml": ('version = "0.4.2"\n', 'version = "0.4.2"\nlicense = "MIT"\n')}),
    "x wrong version in the docs": ("Corrected.", {"docs/install.md": ("Python 3.8", "Python 3.11")}),
    "x a typo": ("Corrected.", {"docs/faq.md": ("recieve", "receive")}),
    "x append a to do": ("Appended.", {"TODO.md": ("", "- [ ] water the plants\n")}),
    "x env to json": (
        "Done.",
        {
            "settings.json": json.dumps(
                {
                    "APP_NAME": "weather",
                    "DEBUG": True,
                    "LOG_LEVEL": "info",
                    "DATABASE_URL": "sqlite:///weather.db",
                    "CACHE_SECONDS": 300,
                }
            )
        },
    ),
    "x csv to json": (
        "Converted.",
        {"books.json": json.dumps(list(csv.DictReader(data.BOOKS["books.csv"].splitlines())))},
    ),
    "x test a conversion": (
        "Written.",
        {"test_convert.py": "from convert import c_to_f\n\n\ndef test_c_to_f():\n    assert c_to_f(100) == 212\n"},
    ),
    "x test an empty list": (
        "Added.",
        {"test_stats.py": ("", "\n\ndef test_mean_of_nothing():\n    assert mean([]) == 0\n")},
    ),
    "x release": ("Done.", {"package.json": ("1.8.3", "2.0.0"), "CHANGELOG.md": ("## 1.8.3", "## 2.0.0\n\n## 1.8.3")}),
    "x fix, run, write down": (
        "Done.",
        {"order.py": ("return total + SHIPPING", "return total"), "out.txt": "To pay: 55\n"},
    ),
}


def solve(name: str, folder: Path) -> str:
    """Leaves the folder as the solution does and gives its answer."""
    answer, changes = SOLUTIONS[name]
    for path, change in changes.items():
        place = folder / path
        if change is None:
            place.unlink()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(change if isinstance(change, str) else change_text(place.read_text(), change))
    return answer


def change_text(text: str, change: tuple[str, ...]) -> str:
    for old, new in zip(change[::2], change[1::2], strict=True):
        assert old in text
        text = text.replace(old, new) if old else text + new
    return text
