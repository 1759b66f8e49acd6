"""The files that the twins of the tuning half start from."""

from __future__ import annotations

CATALOG = {
    "settings.toml": '[catalog]\ntitle = "Seeds"\npage_size = 36\nmax_pages = 140\n\n[mail]\nbatch_size = 25\n',
}
JOBS = {
    "jobs.yaml": (
        "jobs:\n  cleanup:\n    at: '02:15'\n    timezone: America/Lima\n"
        "  backup:\n    at: '04:40'\n    timezone: Europe/Lisbon\n    keep: 14\n"
    ),
    "run_jobs.py": "print('no jobs yet')\n",
}
SETUP = {
    "setup.cfg": (
        "[metadata]\nname = tidepool\nauthor = Jon Abel\nmaintainer = Irene Voss\nlicense = MIT\n\n"
        "[options]\npackages = find:\n"
    ),
    "tidepool/__init__.py": "",
}
CRATE = {
    "Cargo.toml": (
        '[package]\nname = "lantern"\nversion = "1.9.2"\nedition = "2021"\n\n'
        '[dependencies]\nserde = { version = "1.9.2" }\nlog = "0.4"\n'
    ),
    "src/main.rs": 'fn main() {\n    println!("lantern");\n}\n',
}
ORBIT = {
    "orbit/__init__.py": '"""Orbits of small bodies."""\n\n__version__ = "5.0.3"\n__author__ = "M. Kepler"\n',
    "orbit/cli.py": 'from orbit import __version__\n\nprint("orbit", __version__)\n',
}
IMAGE = {
    "Dockerfile": (
        "FROM python:3.9-slim\nWORKDIR /srv\nCOPY requirements.txt .\n"
        'RUN pip install -r requirements.txt\nCOPY . .\nCMD ["python", "serve.py"]\n'
    ),
    "requirements.txt": "flask\n",
}
SHOP = {
    "shop.py": (
        "class Cart:\n    def __init__(self):\n        self.prices = []\n\n    def add(self, price):\n"
        "        self.prices.append(price)\n\n    def total(self):\n        return sum(self.prices)\n"
    ),
    "checkout.py": "from shop import Cart\n\norder = Cart()\norder.add(15)\norder.add(27)\nprint(order.total())\n",
}
STORE = {
    "store.py": (
        'class Store:\n    rows = [("oak", 3), ("elm", 8)]\n\n'
        "    def fetch_all(self):\n        return list(self.rows)\n\n"
        "    def count(self):\n        return len(self.fetch_all())\n"
    ),
    "report.py": (
        "from store import Store\n\nstore = Store()\nfor tree, number in store.fetch_all():\n"
        "    print(tree, number)\nprint(store.count())\n"
    ),
}
VOICE = {
    "lib.sh": 'say_it() {\n    echo ">> $1"\n}\n',
    "run.sh": '. ./lib.sh\n\nsay_it "doors open"\nsay_it "doors closed"\n',
}
DRAW = {
    "draw.py": (
        "state = 17\npicked = []\nfor _ in range(60):\n    state = (state * 1103 + 421) % 99991\n"
        "    picked.append(state)\nprint('winner', max(picked) - min(picked[10:]))\n"
    ),
}
CALENDAR = {
    "dates.py": (
        "def is_leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n\n\n"
        "def days_in(month, year):\n    if month == 2:\n        return 29 if is_leap(year) else 28\n"
        "    return 30 if month in (4, 6, 9) else 31\n"
    ),
    "checks.py": (
        "from dates import days_in, is_leap\n\nCHECKS = {\n"
        '    "century": not is_leap(1900),\n    "february": days_in(2, 2024) == 29,\n'
        '    "autumn": sum(days_in(m, 2023) for m in (9, 10, 11)) == 91,\n'
        '    "summer": sum(days_in(m, 2023) for m in (6, 7, 8)) == 92,\n}\n\n'
        'for name, passed in CHECKS.items():\n    print(name, "passed" if passed else "FAILED")\n'
    ),
}
CACHE = {
    "tmp_cache/page1.html": "<p>one</p>\n",
    "tmp_cache/img/logo.svg": "<svg/>\n",
    "cache.py": "FOLDER = 'tmp_cache'\n",
    "templates/page.html": "<p></p>\n",
}
DRAFTS = {
    "drafts/letter.txt": "Dear Sir\n",
    "drafts/letter.txt.bak": "Dear\n",
    "drafts/speech.bak": "Friends\n",
    "drafts/backup_plan.txt": "Stay at home.\n",
    "final.txt": "Yours\n",
}
BLOG = {
    "utils.py": (
        "def clamp(n, low, high):\n    return max(low, min(n, high))\n\n\n"
        'def slugify(title):\n    return "-".join(title.lower().split())\n'
    ),
    "text.py": "def shorten(line, size):\n    return line[:size]\n",
    "blog.py": 'from utils import slugify\n\nprint(slugify("A Walk in May"))\n',
}
WAREHOUSE = {
    "warehouse.py": (
        'class StockError(Exception):\n    """Not enough on the shelf."""\n\n\nshelf = {"bolt": 4}\n\n\n'
        "def take(item, number):\n    if shelf.get(item, 0) < number:\n        raise StockError(item)\n"
        "    shelf[item] -= number\n"
    ),
    "errors.py": "class AddressError(Exception):\n    pass\n",
    "ship.py": (
        "from warehouse import StockError, take\n\ntake('bolt', 3)\ntry:\n    take('bolt', 2)\n"
        "except StockError as error:\n    print('short of', error)\n"
    ),
}
THEME = {
    "theme.py": 'FONT = "serif"\nCOLORS = {"sky": "#8cf", "sand": "#ec9"}\nMARGIN = 12\n',
    "paint.py": 'from theme import COLORS, FONT\n\nprint(FONT, COLORS["sand"])\n',
}
TSCONFIG = {
    "tsconfig.json": (
        '{\n  "compilerOptions": {\n    "target": "es2020",\n    "strict": false,\n    "noEmit": false\n  },\n'
        '  "include": ["web"]\n}\n'
    ),
}
MEMBERS = {
    "members.json": (
        '[\n  {"id": 3, "name": "Olu", "email": "olu@club.example"},\n'
        '  {"id": 7, "name": "Petra", "email": "petra@old.example"},\n'
        '  {"id": 17, "name": "Sven", "email": "sven@old.example"}\n]\n'
    ),
}
CLIENT = {
    "client.json": (
        '{\n  "upload": {"retries": 2, "timeout": 40},\n  "download": {"retries": 2, "timeout": 90},\n'
        '  "agent": "courier/1"\n}\n'
    ),
}
NET = {
    "net.py": (
        "def connect(host, retries):\n    return [f'{host} try {n}' for n in range(1, retries + 1)]\n\n\n"
        "def close(host):\n    return f'{host} closed'\n"
    ),
}
BANNER = {
    "banner.py": "def banner(title, width):\n    return title.upper().center(width, '*')\n",
    "show.py": "from banner import banner\n\nprint(banner('sale', 10))\n",
}
TIMER = {
    "timer.py": (
        "class Timer:\n    def __init__(self, seconds):\n        self.seconds = seconds\n\n"
        "    def label(self):\n        return f'{self.seconds // 60}m{self.seconds % 60}s'\n"
    ),
}
TOTALS = {
    "totals.py": (
        "sales = {'mon': [4, 9], 'tue': [7]}\n\nfor day, amounts in sales.items():\n"
        "    print(day, sum(amounts)\n\nprint('days', len(sales))\n"
    ),
}
LEVELS = {
    "levels.py": (
        "def level(points):\n    if points >= 90:\n        return 'gold'\n    if points >= 60:\n    return 'silver'\n"
        "    return 'bronze'\n\n\nfor points in (95, 61, 12):\n    print(level(points))\n"
    ),
}
ROUTES = {
    "routes.json": '{\n  "home": "/",\n  "about": "/about"\n  "help": "/help"\n}\n',
    "load.py": "import json\n\nwith open('routes.json') as file:\n    print(len(json.load(file)), 'routes')\n",
}
PARSER = {"parser.py": "def parse(text):\n    return text.split()\n", "test_parser.py": "# nothing here yet\n"}
MEASURED = {"rain.csv": "day,mm\n1,4\n", "wind.csv": "day,kmh\n1,22\n", "plot.py": "print('plot')\n"}
START = {
    "start.sh": (
        '#!/bin/sh\nmode=${1:-dev}\nif [ "$mode" = "dev" ]; then\n    echo "dev server ready"\n'
        'else\n    echo "live server ready"\n'
    ),
}
WORDS = {
    "words.txt": "fern\nmoss\nivy\n",
    "count.sh": "#!/bin/sh\nset -e\nlist=word.txt\nwc -l < $list\n",
}
PACK = {
    "pack.sh": "#!/bin/sh\nset -e\nrm -rf dist\ncp recipe.md dist/recipe.md\necho packed\n",
    "recipe.md": "# Bread\n",
}
INVOICES = {
    "billing/reader.py": "def read_lines(path):\n    return open(path).read().splitlines()\n\n\n"
    "def parse_invoice(line):\n    number, total = line.split(';')\n    return number, float(total)\n",
    "billing/mailer.py": "def send(address, text):\n    print(address, text)\n",
    "billing/report.py": "from billing.reader import parse_invoice\n\nprint(parse_invoice('A1;20'))\n",
}
TRIPS = {
    "trips/monday.txt": "We took the early train north.\nIt rained all day.\n",
    "trips/tuesday.txt": "Museum in the morning.\nSoup at the market.\n",
    "trips/wednesday.txt": "A long walk.\nAt dusk the boats came into the harbour.\n",
    "trips/thursday.txt": "Packed the bags and went home.\n",
}
SETTINGS = {
    "conf/mail.ini": "[mail]\nsender = bot\nsubject = Hi\n",
    "conf/queue.ini": "[queue]\nname = jobs\nretries = 6\n",
    "conf/store.ini": "[store]\npath = var\nkeep = 30\n",
}
WORD_LIST = {"words.txt": "plum\napricot\nfig\nblackcurrant\npear\n"}
SLUG = {
    "slug.py": 'def slugify(title):\n    return title.strip().replace(" ", "_")\n',
    "test_slug.py": "from slug import slugify\n\n"
    "assert slugify('Big Red Bus') == 'big-red-bus', slugify('Big Red Bus')\nprint('passed')\n",
}
LEAP = {
    "calendar_tools.py": "def is_leap(year):\n    return year % 4 == 0\n",
    "check_leap.py": "from calendar_tools import is_leap\n\nassert is_leap(2024)\nassert not is_leap(2023)\n"
    "assert not is_leap(1900), '1900 was no leap year'\nassert is_leap(2000)\n",
}
CART = {
    "cart.py": "def total(items):\n    amount = 0\n    for price, count in items:\n        amount = price * count\n"
    "    return amount\n",
    "test_cart.py": "import unittest\n\nfrom cart import total\n\n\nclass CartTest(unittest.TestCase):\n"
    "    def test_one(self):\n        self.assertEqual(total([(5, 2)]), 10)\n\n"
    "    def test_two(self):\n        self.assertEqual(total([(5, 2), (3, 1)]), 13)\n\n\n"
    'if __name__ == "__main__":\n    unittest.main()\n',
}
SCRIPTS = {
    "backup.sh": "#!/bin/sh\n# FIXME: quote the path\ncp -r data /tmp\n# FIXME: check the space first\n",
    "clean.sh": "#!/bin/sh\nrm -f ./*.tmp\n",
    "deploy.sh": "#!/bin/sh\n# FIXME: ask before\nsh backup.sh\n# FIXME: no host yet\necho done\n# FIXME: log it\n",
    "README.md": "# Scripts\n\nSmall helpers for the server.\n",
}
LOG = {
    "door.log": "07:58 OPEN front\n08:02 DENIED cellar\n08:03 OPEN front\n08:15 OPEN gate\n08:40 DENIED gate\n"
    "09:11 DENIED cellar\n09:12 DENIED cellar\n09:30 OPEN cellar\n10:05 OPEN front\n11:47 DENIED roof\n"
    "12:00 OPEN gate\n12:31 DENIED front\n12:32 DENIED front\n"
}
TOOLS = {
    "tools.py": "import os\n\n\ndef read(path):\n    with open(path) as file:\n        return file.read()\n\n\n"
    "def write(path, text):\n    with open(path, 'w') as file:\n        file.write(text)\n\n\n"
    "def size(path):\n    return os.path.getsize(path)\n\n\ndef lines(path):\n    return read(path).splitlines()\n\n\n"
    "def exists(path):\n    return os.path.exists(path)\n\n\ndef empty(path):\n    return size(path) == 0\n"
}
MANUAL = {
    "manual.md": "# Pump\n\n1. Close the valve.\n2. Keep oil and water in seperate tanks.\n3. Start the motor.\n",
    "parts.md": "- valve\n- tank\n",
}
LOGIN = {
    "login.py": 'PIN = "4410"\n\n\ndef answer(pin):\n    if pin == PIN:\n        return "Welcome back"\n'
    '    return "Acess denied"\n'
}
FAQ = {
    "faq.txt": "Can I bring a dog?\nYes, dogs are definately welcome.\n\nIs there parking?\nYes, behind the house.\n",
    "prices.txt": "room 80\nbreakfast 12\n",
}
CLOCK = {
    "clock.py": "def minutes(hours):\n    return hours * 60\n\n\ndef seconds(hours):\n    return minutes(hours) * 60\n"
}
NAMES = {
    "names.py": "def full(first, last):\n    return first + ' ' + last\n\n\n"
    "def sort_key(first, last):\n    return last + ', ' + first\n"
}
STATS = {
    "stats.py": "def mean(values):\n    return sum(values) / len(values)\n\n\n"
    "def largest(values):\n    return max(values)\n"
}
MENU = {
    "menu.py": 'PRICES = {"soup": 5, "bread": 2, "stew": 9}\n\n\ndef price(dish):\n    return PRICES[dish]\n\n\n'
    'if __name__ == "__main__":\n    print(price("soup"), price("cake"))\n'
}
WORKERS = {"pool.py": 'import os\n\nworkers = int(os.environ["WORKERS"])\nprint("workers", workers)\n'}
RACE = {"race.py": "times = []\n\nbest = min(times)\nprint('best', best)\n"}
EXPENSES = {"expenses.csv": "item,amount\npaper,14\nink,62\nstamps,25\nlamp,48\n"}
POEM = {
    "poem.txt": "The kettle hums a quiet tune\nwhile rain runs down the pane\n"
    "and all the long grey afternoon\nis rain\n"
}
SERVICE = {"service.toml": '[cache]\nfolder = "var/cache"\n\n[http]\nbind = "0.0.0.0"\nmax_size = 20\n'}
