"""The small projects that the first of the guests' tasks start from."""

from __future__ import annotations

BOOKING = {
    "booking/rules.py": """\
MAX_SEATS_PER_ROW = 12
MAX_SEATS_PER_PERSON = 6
CANCEL_HOURS = 48


def may_book(wanted, already_booked):
    return wanted + already_booked <= MAX_SEATS_PER_PERSON
""",
    "booking/main.py": """\
from rules import may_book

print(may_book(2, 3))
""",
}
BILLING = {
    "billing/__init__.py": "",
    "billing/invoice.py": """\
from billing.numbers import next_invoice_number


class Invoice:
    def __init__(self, customer, amount):
        self.customer = customer
        self.amount = amount
        self.number = next_invoice_number()
""",
    "billing/numbers.py": """\
import itertools

_counter = itertools.count(1)


def next_customer_number():
    return f"C{next(_counter):04}"


def next_invoice_number():
    return f"2026-{next(_counter):05}"
""",
    "billing/mail.py": """\
def send(invoice):
    print("sending", invoice.number, "to", invoice.customer)
""",
}
GARDEN = {
    "garden.csv": """\
plant,light,water,height_cm
fern,shade,often,60
lavender,sun,rarely,50
hosta,shade,often,45
rosemary,sun,rarely,90
ivy,shade,sometimes,200
tomato,sun,often,120
mint,half,often,40
foxglove,half,sometimes,110
hellebore,shade,sometimes,35
moss,shade,often,3
""",
}
DICE = {
    "dice.py": """\
state = 7


def roll():
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state % 1000


for number in range(5):
    print("throw", number + 1, roll())
""",
    "README.md": "# Dice\n\nNot for gambling.\n",
}
ENV = {
    ".env": """\
APP_NAME=orders
APP_PORT=8000
DATABASE_HOST=db.local
DATABASE_NAME=orders_eu
METRICS_PORT=8001
""",
    "app.py": """\
import os

print("starting", os.environ.get("APP_NAME", "app"))
""",
}
NOTHING_MUCH = {"app.py": "import flask\nimport yaml\n\nprint(flask, yaml)\n", "README.md": "# Little site\n"}
EDITOR = {"editor.py": 'SETTINGS_FILE = "settings.json"\n', "NOTES.txt": "the editor reads its settings at start\n"}
CONFIG_YML = {
    "config.yml": """\
name: gateway
server:
  host: 0.0.0.0
  port: 7070
log:
  level: debug
  file: gateway.log
""",
    "run.sh": "#!/bin/sh\necho starting gateway\n",
}
TOML = {
    "pyproject.toml": """\
[project]
name = "kiosk"
version = "0.9.2"
requires-python = ">=3.10"

[tool.ruff]
line-length = 88

[tool.pytest.ini_options]
addopts = "-q"
""",
    "kiosk.py": 'print("kiosk")\n',
}
INI = {
    "app.ini": """\
[mail]
enabled = true
sender = info@kiosk.example

[cache]
enabled = true
seconds = 300

[paths]
uploads = /srv/uploads
""",
}
PRICES = {
    "prices.py": """\
def calc(weight):
    if weight > 10:
        return 12
    return 5


def calc_all(weights):
    return sum(calc(weight) for weight in weights)
""",
    "checkout.py": """\
from prices import calc, calc_all

print("one parcel:", calc(3))
print("all:", calc_all([3, 20]))
""",
}
SHORTEN = {
    "shorten.py": """\
def shorten(text, length):
    \"\"\"Cut the text to at most `length` characters; what was cut ends in three dots.\"\"\"
    if len(text) <= length:
        return text
    return text[:length] + "..."
""",
    "test_shorten.py": """\
from shorten import shorten

assert shorten("short", 10) == "short"
assert shorten("a long sentence", 9) == "a long...", shorten("a long sentence", 9)
assert len(shorten("x" * 50, 20)) == 20
print("ok")
""",
}
TRANSLATE = {
    "translate.py": """\
from constants import LANGUAGES

DEFAULT_LANG = "nb"


def pick(lang=None):
    lang = lang or DEFAULT_LANG
    return lang if lang in LANGUAGES else "en"


if __name__ == "__main__":
    print(pick(), pick("xx"), pick("de"))
""",
    "constants.py": 'LANGUAGES = ["en", "de", "nb", "fr"]\n',
}
NAMES = {
    "names.py": """\
def join_names(names):
    return ", ".join(names)


def sort_names(names):
    return sorted(names, key=str.lower)
""",
    "main.py": """\
from names import join_names

print(join_names(["Ida", "Per"]))
""",
}
IMPORTS = {
    "tools.py": """\
import sys
import json
import re
import csv
import os


def describe(path):
    name = os.path.basename(path)
    return json.dumps({"name": re.sub(r"\\W", "_", name), "csv": csv.__name__})


if __name__ == "__main__":
    print(describe(sys.argv[1]))
""",
}
WORDS = {
    "words.py": """\
def shout(text):
    return text.upper() + "!"


def count_words(text):
    return len(text.split())
""",
}
SIZES = {
    "sizes.py": """\
UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}


def parse_size(text):
    text = text.strip().lower()
    if text[-1] in UNITS:
        return int(text[:-1]) * UNITS[text[-1]]
    return int(text)
""",
    "main.py": """\
from sizes import parse_size

print(parse_size("100"))
""",
}
BRAND = {
    "README.md": "# Skylark\n\nSkylark keeps your notes in order.\n\nInstall Skylark with the setup program.\n",
    "site/index.html": """\
<html>
<head><title>Skylark</title></head>
<body>
<h1>Welcome to Skylark</h1>
<p>Notes, but tidy.</p>
</body>
</html>
""",
    "site/about.txt": "Made by three people in Turku.\nSkylark is free.\n",
}
HELLO = {
    "hello.py": """\
import argparse


def main():
    parser = argparse.ArgumentParser(description="Says hello.")
    parser.add_argument("name")
    args = parser.parse_args()
    print(f"Hello {args.name}")


if __name__ == "__main__":
    main()
""",
}
SYNC = {
    "sync.py": """\
def sync(local, remote):
    print("DEBUG local", local)
    missing = [name for name in local if name not in remote]
    print("DEBUG missing", missing)
    for name in missing:
        remote.append(name)
    return len(missing)


if __name__ == "__main__":
    done = sync(["a", "b", "c"], ["b"])
    print("DEBUG done", done)
    print("synced", done, "files")
""",
}
CART = {
    "js/cart.js": """\
const FREE_SHIPPING_FROM = 50;
const SHIPPING = 4.5;
const MAX_ITEMS = 50;

export function shipping(total) {
  return total >= FREE_SHIPPING_FROM ? 0 : SHIPPING;
}

export function canAdd(items) {
  return items.length < MAX_ITEMS;
}
""",
    "js/page.js": """\
import { shipping } from "./cart.js";

document.title = "Shipping " + shipping(20);
""",
}
HOUSE_LIST = {
    "todo.md": """\
# House

- [x] call the plumber
- [ ] buy paint
- [ ] paint the fence
- [ ] return the ladder
""",
}
GREET_SH = {
    "greet.sh": """\
#!/bin/sh
# says hello
echo "Hello World"
""",
}
RELEASE = {
    "package.json": '{\n  "name": "tally",\n  "version": "1.2.4",\n  "license": "MIT"\n}\n',
    "version.py": 'VERSION = "1.2.4"\n\nif __name__ == "__main__":\n    print("tally", VERSION)\n',
    "CHANGELOG.md": "# Changelog\n\n## 1.2.4\n\n- fix the clock\n\n## 1.2.3\n\n- first release\n",
}
LEGACY = {
    "main.py": """\
from report import build
from legacy.old_report import old_build

print(build([3, 4]))
""",
    "report.py": 'def build(values):\n    return f"sum {sum(values)}"\n',
    "legacy/__init__.py": "",
    "legacy/old_report.py": 'def old_build(values):\n    return "old " + str(sum(values))\n',
}
READINGS = {"readings.txt": "18\n25\n9\n31\n14\n22\n"}
