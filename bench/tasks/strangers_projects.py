"""The settings, tables, texts and pages that the strangers' tasks start from."""

from __future__ import annotations

SHOP = {
    "config.json": """\
{
  "shop": {
    "name": "Fern & Co",
    "currency": "EUR",
    "free_shipping_from": 45,
    "languages": ["en", "de", "fr"]
  },
  "mail": {
    "sender": "hello@fern.example",
    "retry_minutes": 12
  }
}
""",
    "shop.py": """\
import json
from pathlib import Path


def load():
    return json.loads(Path("config.json").read_text())


def shipping(total, fee=4.9):
    return 0 if total >= load()["shop"]["free_shipping_from"] else fee
""",
}
TIDEPOOL = {
    "pyproject.toml": """\
[project]
name = "tidepool"
version = "0.4.2"
description = "Small tools for tide tables"
requires-python = ">=3.10"
dependencies = [
    "httpx>=0.27",
    "rich>=13.0",
]

[project.scripts]
tidepool = "tidepool.cli:main"

[tool.ruff]
line-length = 100
""",
    "tidepool/__init__.py": "",
    "tidepool/cli.py": """\
def main():
    print("tides for today")
    return 0
""",
    "README.md": "# tidepool\n\nPrints tide tables.\n",
}
COMPOSE = {
    "docker-compose.yml": """\
services:
  web:
    image: nginx:1.27
    ports:
      - "8088:80"
    depends_on:
      - db
  db:
    image: postgres:16
    environment:
      POSTGRES_USER: app
      POSTGRES_DB: orders
  cache:
    image: redis:7.2
    command: redis-server --save 60 1
""",
    "README.md": "# Orders\n\nStart it with `docker compose up`.\n",
}
SESSIONS = {
    "settings.py": """\
import os

SITE_NAME = "Lantern"
PAGE_SIZE = 25
SESSION_MINUTES = 95
COOKIE_NAME = "lantern_id"
SECRET = os.environ.get("LANTERN_SECRET", "dev")
""",
    "sessions.py": """\
import settings


def is_expired(age_minutes):
    return age_minutes > settings.SESSION_MINUTES
""",
}
DOTENV = {
    ".env": """\
APP_NAME=weather
DEBUG=true
LOG_LEVEL=info
DATABASE_URL=sqlite:///weather.db
CACHE_SECONDS=300
""",
    "app.py": """\
import os


def is_debug():
    return os.environ.get("DEBUG", "false") == "true"


print("weather, debug:", is_debug())
""",
}
BOOKS = {
    "books.csv": """\
title,author,year
The Dispossessed,Ursula K. Le Guin,1974
Kindred,Octavia E. Butler,1979
The Lathe of Heaven,Ursula K. Le Guin,1971
Solaris,Stanislaw Lem,1961
A Wizard of Earthsea,Ursula K. Le Guin,1968
Roadside Picnic,Arkady Strugatsky,1972
""",
    "README.md": "# Books\n\nWhat is on the shelf.\n",
}
TEMPS = {
    "temps.json": """\
[
  {"city": "Oslo", "low": -4, "high": 2},
  {"city": "Rome", "low": 7, "high": 15},
  {"city": "Cairo", "low": 11, "high": 22}
]
""",
    "notes.txt": "Taken on the first of March.\n",
}
NAMES = {
    "names.txt": "Mara\nJonas\nPriya\nTomasz\nLeila\n",
    "hello.py": "for name in open('names.txt'):\n    print('Hello', name.strip())\n",
}
MANUAL = {
    "README.md": """\
# Ferry

Copies folders to another machine.

## Install

See docs/install.md.

## Usage

    ferry send photos nas:/backup

You recieve a report when all is copied.
""",
    "docs/install.md": """\
# Installing Ferry

You need Python 3.8 or newer.

    python3 -m venv .venv
    .venv/bin/pip install ferry

Windows is not supported.
""",
    "docs/faq.md": """\
# Questions

**Can I stop it?** Yes, press Ctrl-C. The other side will recieve no more files.

**Is it fast?** As fast as the disk.
""",
}
SITE = {
    "index.html": """\
<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <title>My page</title>
  <link rel="stylesheet" href="style.css">
</head>
<body>
  <h1>Welcome aboard</h1>
  <nav>
    <a href="menu.html">Menu</a>
    <a href="about.html">About us</a>
    <a href="contact.html">Contact</a>
  </nav>
  <p>We bake every morning. See <a href="menu.html">what is fresh</a>,
  or <a href="https://example.org/map">find us</a>.</p>
</body>
</html>
""",
    "style.css": """\
body {
  margin: 0;
  background: white;
  color: #222;
}

.card {
  background: white;
  padding: 1rem;
}

a {
  color: teal;
}
""",
}
MAKEFILE = {
    "Makefile": """\
.PHONY: test lint clean docs

test:
\tpython3 -m unittest

lint:
\truff check .

clean:
\trm -rf build dist

docs:
\tmkdocs build
""",
    "calc.py": "def add(a, b):\n    return a + b\n",
}
BACKUP = {
    "backup.sh": """\
#!/bin/sh
set -e
SOURCE="$HOME/documents"
TARGET=/mnt/backup
STAMP=$(date +%Y-%m-%d)

mkdir -p "$TARGET"
tar czf "$TARGET/docs-$STAMP.tar.gz" "$SOURCE"

# tidy up
find "$TARGET" -name 'docs-*.tar.gz' -mtime +21 -delete
echo "done: $STAMP"
""",
}
LOG = {
    "server.log": """\
08:00:01 INFO started
08:00:09 INFO GET /
08:01:12 ERROR GET /orders: timeout
08:01:30 WARNING slow answer
08:02:02 INFO GET /
08:02:44 ERROR GET /orders: timeout
08:03:10 INFO GET /about
08:04:00 ERROR POST /login: bad gateway
08:04:51 INFO GET /
08:05:05 ERROR GET /orders: timeout
08:06:18 WARNING slow answer
08:07:27 ERROR GET /cart: not found
08:08:00 ERROR GET /orders: timeout
08:09:59 INFO stopped
""",
    "README.md": "# Logs\n\nOne file a day.\n",
}
CHORES = {
    "TODO.md": "# To do\n\n- [x] call the bank\n- [ ] book the train\n- [ ] mend the bike\n",
    "done.md": "# Done\n\n- paid the rent\n",
}
IGNORES = {
    ".gitignore": "__pycache__/\n.venv/\nbuild/\ndist/\n*.egg-info/\n",
    "main.py": "import logging\n\nlogging.basicConfig(filename='run.log')\nlogging.info('hi')\n",
}
CART = {
    "cart.js": """\
function sumUp(items) {
  let total = 0;
  for (const item of items) {
    total += item.price * item.count;
  }
  return total;
}

module.exports = { sumUp };
""",
    "main.js": """\
const { sumUp } = require("./cart");

const items = [
  { name: "tea", price: 3, count: 2 },
  { name: "cup", price: 8, count: 1 },
];

console.log("Total: " + sumUp(items));
""",
}
WIDGET = {
    "package.json": """\
{
  "name": "widget",
  "version": "1.8.3",
  "main": "index.js",
  "scripts": {
    "start": "node index.js",
    "test": "node --test"
  },
  "license": "MIT"
}
""",
    "CHANGELOG.md": "# Changes\n\n## 1.8.3\n\n- The clock shows seconds.\n\n## 1.8.2\n\n- Fewer warnings.\n",
    "index.js": "console.log('widget');\n",
}
GUESTS = {
    "guests.txt": "Nora\nSam\nIbrahim\nNora\nChloe\nSam\nYuki\nNora\n",
    "plan.md": "# Party\n\nGuests are in guests.txt.\n",
}
REQUIREMENTS = {
    "requirements.txt": "flask==3.0.3\nrequests==2.32.3\npillow==10.4.0\nrequests==2.32.3\nclick==8.1.7\n",
    "app.py": "import flask\n\napp = flask.Flask('shop')\n",
}
LEFTOVERS = {
    "old_notes.txt": "call Pete\nbuy paint\nask about the roof\n",
    "notes.txt": "order tiles\npay the plumber\n",
    "budget.csv": "item,cost\ntiles,420\nplumber,610\n",
}
LOGO = {
    "logo.txt": "  /\\\n /  \\\n/____\\\n TENT\n",
    "README.md": "# Tent\n\nCamping lists.\n",
    "lists.py": "THINGS = ['tent', 'stove', 'lamp']\n",
}
