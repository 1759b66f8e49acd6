"""The tiny projects that the unseen tasks start from."""

from __future__ import annotations

DEPLOY = {
    "deploy.yaml": "name: shop\nservices:\n  api:\n    replicas: 2\n    port: 8080\n    env:\n"
    "      LOG: info\n  worker:\n    replicas: 1\n    queue: default\nmetrics:\n"
    "  enabled: true\n  port: 9464\n  path: /metrics\n",
    "notes.md": "# Notes\n\nAsk Jo before touching the api.\n",
}
QUEUE = {
    "client.py": "from retry import Retry\n\nDEFAULT_HOST = 'mq.local'\n\n\n"
    "def connect(host=DEFAULT_HOST, port=5672, retry=None):\n    retry = retry or Retry()\n"
    "    return host, port, retry.attempts\n",
    "retry.py": "class Retry:\n    def __init__(self, attempts=5, delay=2.0):\n"
    "        self.attempts = attempts\n        self.delay = delay\n\n    def wait(self):\n"
    "        return self.delay * self.attempts\n",
}
MAILER = {
    "mailer/__init__.py": "",
    "mailer/message.py": "class Message:\n    def __init__(self, to, text):\n        self.to = to\n"
    "        self.text = text\n",
    "mailer/transport.py": "import smtplib\n\n\nclass SmtpTransport:\n    def __init__(self, host):\n"
    "        self.host = host\n\n    def send(self, message):\n"
    "        with smtplib.SMTP(self.host) as server:\n"
    "            server.sendmail('me@x.org', message.to, message.text)\n",
    "mailer/templates.py": "def fill(template, **values):\n    return template.format(**values)\n",
}
GEOMETRY = {
    "geometry.py": "import math\n\n\ndef square(side):\n    return side * side\n\n\ndef rectangle(w, h):\n"
    "    return w * h\n\n\ndef circle(r):\n    return math.pi * r * r\n\n\n"
    "def triangle(b, h):\n    return b * h / 2\n\n\ndef cube(side):\n    return side**3\n\n\n"
    "def sphere(r):\n    return 4 / 3 * math.pi * r**3\n\n\ndef cylinder(r, h):\n"
    "    return circle(r) * h\n",
    "main.py": "from geometry import cube\n\nprint(cube(3))\n",
}
EMPLOYEES = {
    "employees.csv": "id,name,department,city\n1,Ann,Sales,Oslo\n2,Bo,IT,Rome\n3,Cy,Sales,Rome\n4,Di,HR,Oslo\n"
    "5,Ed,IT,Bern\n6,Flo,Sales,Bern\n7,Gus,Support,Oslo\n8,Hal,Sales,Lima\n9,Ida,IT,Lima\n",
    "README.md": "# Staff\n\nOne row per person.\n",
}
INVENTORY = {
    "inventory.csv": "item,qty,price\nhammer,40,9.99\nsaw,25,14.20\nnails,200,0.05\ndrill,18,79.00\n",
    "shop.txt": "Main street 4\n",
}
REPORT = {
    "report.py": "from data import SALES\n\nrows = [(name, units * price) for name, units, price in SALES]\n"
    "for name, amount in rows:\n    print(f'{name:10} {amount:6}')\n"
    "print('grand total', sum(amount for _, amount in rows))\n",
    "data.py": "SALES = [\n    ('lamp', 13, 38),\n    ('desk', 4, 260),\n    ('chair', 6, 50),\n]\n",
}
SLUG = {
    "slug.py": "def slugify(title):\n    words = title.lower().split(' ')\n    return '-'.join(words)\n",
    "test_slug.py": "from slug import slugify\n\nassert slugify('Hello World') == 'hello-world'\n"
    "assert slugify('One  two   Three') == 'one-two-three', slugify('One  two   Three')\n"
    "print('ok')\n",
}
STATS = {
    "stats.py": "def mean(values):\n    return sum(values) / len(values)\n\n\ndef median(values):\n"
    "    ordered = sorted(values)\n    middle = len(ordered) // 2\n    if len(ordered) % 2:\n"
    "        return ordered[middle]\n    return (ordered[middle - 1] + ordered[middle]) / 2\n\n"
    "\nif __name__ == '__main__':\n    print(median([]))\n",
}
BROKEN = {
    "broken.py": "stock = {\n    'apples': 3,\n    'pears': 5\n\n\ndef total(items):\n"
    "    return sum(items.values())\n\n\nfor name, count in stock.items():\n"
    "    print(name, count)\nprint('total', total(stock))\n",
}
FEEDS = {
    "feeds.py": "FEEDS = {'news': ['a', 'b'], 'blog': ['c']}\n\n\ndef fetch_feed(name):\n"
    "    return FEEDS[name]\n\n\ndef count_items(name):\n    return len(fetch_feed(name))\n",
    "main.py": "from feeds import count_items, fetch_feed\n\nif fetch_feed('news'):\n"
    "    print('news:', count_items('news'), 'items')\n",
    "README.md": "# Feeds\n\nReads feeds.\n",
}
ENGINE = {
    "engine.py": "from limits import MAX_DEPTH\n\nMAX_RETRIES = 7\n\n\ndef describe():\n"
    "    return f'retries {MAX_RETRIES} depth {MAX_DEPTH}'\n\n\nprint(describe())\n",
    "limits.py": "MAX_DEPTH = 3\n",
}
ORDERS = {
    "orders.py": "def total(prices):\n    result = 0\n    for price in prices:\n"
    "        result += price + price * 0.19\n    return result\n\n\ndef receipt(price):\n"
    "    return f'receipt {price + price * 0.19}'\n\n\nprint('total', total([100, 100]))\n"
    "print(receipt(100))\n",
}
PACKAGE = {
    "package.json": '{\n  "name": "panel",\n  "version": "0.4.1",\n  "scripts": {\n    "build": "tsc",\n'
    '    "test": "jest"\n  }\n}\n',
    "extensions.json": '{\n  "recommendations": [\n    "eslint",\n    "gitlens"\n  ],\n  "unwanted": [\n'
    '    "beautify"\n  ]\n}\n',
}
POETRY = {
    "pyproject.toml": '[project]\nname = "courier"\nversion = "1.3.0"\ndependencies = [\n    "click>=8.1",\n'
    '    "rich>=13",\n]\n\n[tool.ruff]\nline-length = 100\ntarget-version = "py311"\n',
    "courier.py": "import click\n\nprint(click.__name__)\n",
}
CHANGES = {
    "CHANGES.md": "# Changes\n\nUnreleased work is listed first.\n\n## Unreleased\n\n- faster start\n"
    "- new colours\n\n## 2.0.3\n\n- fix the menu\n\n## 2.0.2\n\n- fix the fix\n",
    "VERSION": "2.0.3\n",
}
BACKUP = {
    "backup.sh": "#!/bin/sh\nset -eu\n\nSOURCE=/srv/data\nTARGET=/mnt/backup\nKEEP=7\n\n"
    'echo "backing up $SOURCE to $TARGET"\necho "keeping $KEEP copies"\n',
    "crontab.txt": "0 3 * * 7 sh backup.sh\n",
}
BUTTON = {
    "src/button.js": "export function button(onClick) {\n  const element = document.createElement('button');\n"
    "  element.className = 'btn-send';\n  element.textContent = 'Send';\n"
    "  element.addEventListener('click', onClick);\n  return element;\n}\n",
    "src/index.js": "import { button } from './button.js';\n\n"
    "document.body.append(button(() => console.log('Send')));\n",
}
LAYOUT = {
    "src/layout.js": "export function layout(items, columns = 2, gap = 8) {\n  const rows = [];\n"
    "  for (let i = 0; i < items.length; i += columns) {\n"
    "    rows.push(items.slice(i, i + columns));\n  }\n  return { rows, gap };\n}\n",
    "src/main.js": "import { layout } from './layout.js';\n\nconsole.log(layout([1, 2, 3, 4]).rows.length);\n",
}
CONVERT = {
    "convert.py": "def to_celsius(f):\n    return (f - 32) * 5 / 9\n\n\ndef to_fahrenheit(c):\n"
    "    return c * 9 / 5 + 32\n",
    "test_convert.py": "from convert import to_celsius, to_fahrenheit\n\n\ndef test_freezing():\n"
    "    assert to_celsius(32) == 0\n",
}
LETTERS = {
    "part1.txt": "Dear Ada,\n",
    "part2.txt": "thank you for the notes.\nThey were a joy to read.\n",
    "part3.txt": "Yours, Charles\n",
}
VISITS = {
    "visitors.txt": "Ann\nBen\nAnn\nCleo\nBen\nDov\nAnn\nEva\nCleo\n",
    "plan.txt": "Ann at 9\nBen at 10\n",
}
SENSOR = {
    "sensor.log": "08:00 OK pump 1\n08:01 OK pump 2\n08:02 FAULT pump 3\n08:05 OK valve 1\n"
    "08:09 FAULT valve 1\n08:11 OK pump 3\n08:15 FAULT pump 3\n08:20 OK pump 1\n",
}
ROUTES = {
    "routes.py": "ROUTES = ['/', '/about']\n",
    "old_routes.py": "ROUTES = ['/', '/index.html', '/contact.html']\n",
    "app.py": "from routes import ROUTES\n\n\ndef start_toolbar():\n    print('debug toolbar on')\n\n\n"
    "start_toolbar()\nprint('routes:', *ROUTES)\n",
}
RECIPES = {
    "recipes.py": "def load_recipes(path):\n    with open(path) as file:\n"
    "        return [line.strip() for line in file]\n\n\ndef print_recipes(path):\n"
    "    for recipe in load_recipes(path):\n        print('-', recipe)\n",
    "list.txt": "soup\nbread\n",
}
PIPELINE = {
    "pipeline.py": "def greet(name):\n    return f'Hello, {name}.'\n\n\ndef part(name):\n    return f'Bye, {name}.'\n",
    "main.py": "from pipeline import greet\n\nprint(greet('Ada'))\n",
}
PLAYERS = {
    "players.json": '[\n  {"name": "Kim", "score": 18},\n  {"name": "Mia", "score": 31},\n'
    '  {"name": "Zed", "score": 24}\n]\n',
}
NGINX = {
    "nginx-hits.txt": "97 /about\n1204 /\n8 /terms\n310 /login\n12 /help\n",
    "hosts.txt": "a\nb\n",
}
DOCKER = {
    "Dockerfile": "FROM python:3.9-slim\nWORKDIR /app\nCOPY . .\nRUN pip install flask\nEXPOSE 5000\n"
    'CMD ["python", "app.py"]\n',
    "app.py": "print('listening on 5000')\n",
}
