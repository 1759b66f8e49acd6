"""The small programs that the strangers' tasks start from and that work as they are."""

from __future__ import annotations

BANK = {
    "account.py": """\
class OverdrawnError(Exception):
    pass


class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount

    def withdraw(self, amount):
        if amount > self.balance:
            raise OverdrawnError(self.owner)
        self.balance -= amount
""",
    "main.py": """\
from account import Account

account = Account("Kim", 50)
account.deposit(25)
account.withdraw(30)
print(account.owner, account.balance)
""",
}
RATES = {
    "rates.py": """\
import json


def load_rates(path="rates.json"):
    with open(path) as file:
        return json.load(file)
""",
    "rates.json": '{\n  "USD": 1.1,\n  "GBP": 0.85,\n  "JPY": 160\n}\n',
    "invoice.py": """\
from rates import load_rates


def total(lines):
    return sum(price * count for price, count in lines)


def total_in(currency, lines):
    return total(lines) * load_rates()[currency]
""",
    "printing.py": "def show(amount, currency):\n    print(f'{amount:.2f} {currency}')\n",
}
CLOCK = {
    "app.py": "PORT = 8050\n\n\ndef main():\n    print('ready on', PORT)\n\n\nif __name__ == '__main__':\n    main()\n",
    "README.md": "# Clock\n\nShows the time in a browser.\n",
}
CLIENT = {
    "client.py": """\
TIMEOUT_SECONDS = 3
MAX_RETRIES = 3


def fetch(get, url):
    for _ in range(MAX_RETRIES):
        answer = get(url, timeout=TIMEOUT_SECONDS)
        if answer is not None:
            return answer
    raise ConnectionError(url)
""",
    "main.py": "from client import fetch\n\nprint(fetch(lambda url, timeout: 'ok', 'http://localhost'))\n",
}
TEMPERATURE = {
    "convert.py": '''\
"""Temperatures and lengths."""


def c_to_f(celsius):
    return celsius * 9 / 5 + 32


def km_to_miles(km):
    return km * 0.621371
''',
    "main.py": "from convert import c_to_f\n\nprint(c_to_f(20))\n",
}
TEXTS = {
    "texttools.py": """\
def count_words(text):
    return len(text.split())


def shout(text):
    return text.strip().upper() + "!"
""",
    "README.md": "# texttools\n\nLittle helpers for text.\n",
}
STACK = {
    "stack.py": """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)
""",
    "demo.py": "from stack import Stack\n\nstack = Stack()\nstack.push('a')\nprint(len(stack))\n",
}
STATS = {
    "stats.py": """\
def mean(numbers):
    if not numbers:
        return 0.0
    return sum(numbers) / len(numbers)


def spread(numbers):
    return max(numbers) - min(numbers)
""",
    "test_stats.py": """\
from stats import mean, spread


def test_mean():
    assert mean([2, 4, 6]) == 4


def test_mean_of_one():
    assert mean([5]) == 5


def test_spread():
    assert spread([3, 9, 4]) == 6


def test_spread_of_one():
    assert spread([3]) == 0


def test_spread_below_zero():
    assert spread([-2, 2]) == 4
""",
}
STOCK = {
    "stock.py": """\
STOCK = {"bolt": 120, "nut": 80, "washer": 0}


def qty_of(item):
    return STOCK.get(item, 0)


def is_sold_out(item):
    return qty_of(item) == 0
""",
    "shelf.py": """\
from stock import STOCK, qty_of


def label(item):
    return f"{item}: {qty_of(item)} left"


for item in STOCK:
    print(label(item))
""",
}
CUSTOMERS = {
    "models.py": """\
class Cust:
    def __init__(self, name, city):
        self.name = name
        self.city = city

    def label(self):
        return f"{self.name} ({self.city})"
""",
    "report.py": """\
from models import Cust

PEOPLE = [Cust("Ana", "Porto"), Cust("Ben", "Leeds")]


def report():
    return ", ".join(person.label() for person in PEOPLE)


print(report())
""",
}
LOGIN = {
    "config.json": '{\n  "user_name": "admin",\n  "host": "db.local",\n  "port": 5433\n}\n',
    "login.py": """\
import json


def login_line():
    with open("config.json") as file:
        config = json.load(file)
    return config["user_name"] + "@" + config["host"]


print(login_line())
""",
}
PRIMES = {
    "primes.py": """\
def is_prime(number):
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))


def primes_below(limit):
    return [number for number in range(limit) if is_prime(number)]


if __name__ == "__main__":
    for prime in primes_below(500):
        print(prime)
""",
}
TALLY = {
    "tally.sh": """\
#!/bin/sh
# adds up the second column
total=0
while IFS=, read -r name hours; do
  total=$((total + hours))
done < hours.csv
echo "Total hours: $total"
""",
    "hours.csv": "ada,37\nbill,41\ncora,29\ndev,33\nella,48\n",
}
SIMULATE = {
    "simulate.py": """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
steps = parser.parse_args().steps

value = 7
for step in range(steps):
    value = (value * 31 + step) % 1009
    print("step", step + 1)
print("final value:", value)
""",
}
VALIDATE = {
    "check.py": """\
import json
import sys

with open("server.json") as file:
    config = json.load(file)

if not config["host"]:
    sys.exit("INVALID: host is empty")
if not 0 < config["port"] < 65536:
    sys.exit(f"INVALID: port {config['port']} is out of range")
print("config is fine")
""",
    "server.json": '{\n  "host": "0.0.0.0",\n  "port": 70443,\n  "workers": 4\n}\n',
}
LEGACY = {
    "main.py": "from importer import read_rows\n\nprint(len(read_rows('a,b\\nc,d')))\n",
    "importer.py": "def read_rows(text):\n    return [line.split(',') for line in text.splitlines()]\n",
    "legacy.py": "def read_old(text):\n    return text.split(';')\n\n\ndef write_old(row):\n    return ';'.join(row)\n",
}
HELPERS = {
    "utils.py": "def tidy(text):\n    return ' '.join(text.split())\n\n\ndef first(items):\n    return items[0]\n",
    "main.py": "from utils import first, tidy\n\nprint(tidy('  a   b '))\nprint(first([4, 5]))\n",
}
UPLOAD = {
    "limits.py": "MAX_FILES = 20\nMAX_NAME = 64\n",
    "upload.py": """\
from limits import MAX_FILES

MAX_BYTES = 5_000_000


def may_upload(sizes):
    if len(sizes) > MAX_FILES:
        return False
    return sum(sizes) <= MAX_BYTES
""",
    "main.py": "from upload import may_upload\n\nprint(may_upload([10, 20]))\n",
}
INVOICE = {
    "constants.py": "CURRENCY = 'EUR'\nDUE_DAYS = 14\n",
    "invoice.py": """\
TAX_RATE = 0.19


def tax(net):
    return round(net * TAX_RATE, 2)


def gross(net):
    return round(net + tax(net), 2)
""",
}
RECEIPT = {
    "receipt.py": """\
def line(name, cents):
    return name + ": " + f"{cents / 100:.2f} EUR"


def footer(cents_list):
    total = sum(cents_list)
    return "Total: " + f"{total / 100:.2f} EUR"
""",
    "main.py": "from receipt import footer, line\n\nprint(line('tea', 250))\nprint(footer([250, 199]))\n",
}
BLOG = {
    "posts.py": """\
def slug(title):
    return title.strip().lower().replace(" ", "-")


def post_url(title):
    return "/posts/" + slug(title)
""",
    "pages.py": """\
def slug(title):
    return title.strip().lower().replace(" ", "-")


def page_url(title):
    return "/pages/" + slug(title)
""",
}
GREET = {
    "greet.py": 'GREETING = "Hello"\n\n\ndef greet(name):\n    return f"{GREETING}, {name}!"\n\n\n'
    'if __name__ == "__main__":\n    for name in ["Ruth", "Omar"]:\n        print(greet(name))\n',
}
