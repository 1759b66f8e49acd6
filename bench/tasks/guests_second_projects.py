"""The projects that the second of the guests' tasks start from."""

from __future__ import annotations

SESSIONS = {
    "conf/auth.toml": """\
[password]
min_length = 12
tries = 5

[token]
minutes = 45
issuer = "fjord"

[cookie]
name = "sid"
days = 14
""",
    "login.py": 'CONFIG = "conf/auth.toml"\n',
}
SERIAL = {
    "logger/__init__.py": "",
    "logger/ports.py": """\
import glob


def list_ports():
    return sorted(glob.glob("/dev/ttyUSB*"))
""",
    "logger/device.py": """\
from logger.ports import list_ports


def open_device(speed=9600):
    port = list_ports()[0]
    device = open(port, "rb")
    return device, speed
""",
    "logger/store.py": """\
def save(values, path="values.txt"):
    with open(path, "a") as file:
        file.write(" ".join(str(value) for value in values))
""",
}
DATA_FOLDER = {
    "data/users.json": "[]\n",
    "data/orders.json": "[]\n",
    "data/orders.csv": "id,amount\n",
    "data/cities.json": "[]\n",
    "data/notes.txt": "json files only, please\n",
    "data/old/users.bak": "[]\n",
    "data/prices.json": "{}\n",
    "load.py": "print('loading')\n",
}
PRIMES = {
    "primes.py": """\
LIMIT = 700


def is_prime(number):
    return number > 1 and all(number % part for part in range(2, int(number**0.5) + 1))


found = [number for number in range(LIMIT) if is_prime(number)]
print("below", LIMIT, "there are", len(found), "primes")
""",
}
MENU = {
    "menu.py": """\
import sys

MEALS = {
    "breakfast": ["porridge", "tea"],
    "lunch": ["pea soup", "rye bread"],
    "dinner": ["fish pie", "salad"],
}


def main(meal):
    dishes = MEALS.get(meal)
    if dishes is None:
        return "closed"
    return " and ".join(dishes)


if __name__ == "__main__":
    print(main(sys.argv[1]))
""",
}
EMPTY_SITE = {"index.html": "<h1>Fjord</h1>\n", "style.css": "h1 {\n  color: navy;\n}\n"}
TSCONFIG = {
    "tsconfig.json": """\
{
  "compilerOptions": {
    "target": "es2020",
    "module": "commonjs",
    "strict": false,
    "outDir": "dist"
  },
  "include": ["src"]
}
""",
    "src/index.ts": "export const answer: number = 42;\n",
}
BACKUP_YML = {
    "backup.yml": """\
source: /srv/photos
target: /mnt/disk2
schedule:
  time: "02:15"
  days: [mon, thu]
report:
  time: "08:00"
  mail: ops@fjord.example
""",
}
ENV_EXAMPLE = {
    ".env.example": "HOST=localhost\nPORT=3000\nSECRET=change-me\n",
    "README.md": "# Fjord\n\nCopy .env.example and fill it in.\n",
}
PUMPS = {
    "pump.py": """\
class Pump:
    def __init__(self, litres):
        self.litres = litres

    def run(self, minutes):
        return self.litres * minutes


def biggest(pumps):
    return max(pumps, key=lambda pump: pump.litres)
""",
    "plant.py": """\
from pump import Pump, biggest

pumps = [Pump(4), Pump(9)]
print("biggest:", biggest(pumps).run(10))
""",
}
PAGES = {
    "pages.py": """\
def pages_needed(items, per_page):
    \"\"\"How many pages it takes to show all items.\"\"\"
    return items // per_page


def page_of(items, page, per_page):
    start = (page - 1) * per_page
    return items[start : start + per_page]
""",
    "test_pages.py": """\
from pages import page_of, pages_needed

assert page_of([1, 2, 3, 4, 5], 2, 2) == [3, 4]
assert pages_needed(10, 5) == 2
assert pages_needed(11, 5) == 3, pages_needed(11, 5)
assert pages_needed(0, 5) == 0
print("all good")
""",
}
CLIENT = {
    "client.py": """\
from settings import BASE_URL

TIMEOUT_S = 12


def describe():
    return f"{BASE_URL} within {TIMEOUT_S} s"


if __name__ == "__main__":
    print(describe())
""",
    "settings.py": 'BASE_URL = "https://api.fjord.example"\nRETRIES = 2\n',
}
MONEY = {
    "money.py": """\
def format_price(amount):
    return f"{amount:.2f} EUR"


def add_tax(amount, rate=0.25):
    return amount * (1 + rate)
""",
    "shop.py": """\
from money import format_price

print(format_price(3))
""",
}
CACHE = {
    "cache/a1.tmp": "x\n",
    "cache/b7.tmp": "y\n",
    "cache/index.db": "index\n",
    "cache/c3.tmp": "z\n",
    "cache/readme.txt": "files ending in tmp can go\n",
    "main.py": "print('main')\n",
}
PEOPLE = {"people.csv": "name,age,city\nIvar,41,Oslo\nSiri,29,Tromso\nTor,57,Bodo\n"}
PUBLISH = {
    "publish.sh": """\
#!/bin/sh

HOST=www.fjord.example
FOLDER=public
echo "copying $FOLDER to $HOST"
""",
    "public/index.html": "<h1>Fjord</h1>\n",
}
LINKS = {
    "README.md": "# Fjord\n\nSee http://fjord.example/docs and http://fjord.example/help.\n",
    "links.py": 'DOCS = "http://fjord.example/docs"\nLOCAL = "http://localhost:8080"\n\nprint(DOCS)\n',
    "site/footer.html": '<footer>\n<a href="http://fjord.example">home</a>\n</footer>\n',
}
