"""More tasks for tuning, in other words than the rest: how strangers ask."""

from __future__ import annotations

from bench.tasks.sources import (
    log_lines,
    page_text,
    python_class,
    python_module,
    settings_module,
    table_rows,
    table_total,
)
from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_contains,
    check_equals,
    check_few_changes,
    check_json,
    check_kept,
    check_lacks,
    check_python,
    check_says,
    check_says_any,
)

TEMPERATURE = {
    "convert.py": "def to_celsius(f):\n    return (f - 32) * 9 / 5\n",
    "test_convert.py": "from convert import to_celsius\n\n"
    "assert to_celsius(212) == 100, to_celsius(212)\nprint('passed')\n",
}
ENV = {"app.env": "HOST=db.local\nPASSWORD=x\nDEBUG=1\n", "app.py": "print('app')\n"}
USERS = {
    "users.json": '{\n  "users": [\n    {"name": "Ann", "age": 31},\n'
    '    {"name": "Bob", "age": 27}\n  ],\n  "limit": 10\n}\n'
}
STACK = {
    "stack.py": "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n"
    "        self.items.append(item)\n\n    def pop(self):\n        return self.items.pop()\n"
}
CALC = {
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
    "app.py": "from calc import add, sub\n\nprint(add(2, 3), sub(9, 4))\n",
}
PRIMES = {
    "primes.py": "def is_prime(n):\n    for k in range(2, n):\n        if n % k == 0:\n"
    "            return False\n    return True\n"
}
LOUD = {"hi.py": "import sys\nname = sys.argv[1]\nprint('hi ' + name)\n"}
SHOP = {
    "shop.py": python_module("A shop.", ("apple", "pear", "plum", "melon"), "CURRENCY = 'EUR'\n"),
    "report.py": "from shop import describe_pear, make_pear\n\nprint(describe_pear(make_pear('Conference', 2, 4)))\n",
}
PLUM = 'def find_plum(items, name):\n    """The first plum of that name, or None."""\n    for item in items:\n'
BAD_SHOP = {
    **SHOP,
    "shop.py": SHOP["shop.py"].replace(
        PLUM + '        if item["name"] == name:', PLUM + '        if item["kind"] == name:'
    ),
    "check_plum.py": "from shop import find_plum, make_plum\n\nfound = find_plum([make_plum('Blue', 1)], 'Blue')\n"
    "assert found is not None, 'Blue was not found'\nprint('plums ok')\n",
}
CONF = {"conf.py": settings_module(("api", "jobs", "store", "index", "audit", "proxy", "media"))}
CLUB = {"club.py": python_class("Club", "club", ("player", "fan", "trainer", "match"))}
ACCESS = {"access.log": log_lines(260, "gate", 13)}
ROWS = {"orders.csv": table_rows(180, ("red", "green", "blue"), 11)}
MANUAL = {
    "MANUAL.md": page_text("Manual", ("Start", "Login", "Export", "Import", "Print", "Backup", "Restore", "Help"))
}
SPREAD = {
    "core/engine.py": python_module("Engine.", ("bolt", "gear"), "").replace(
        "\n\nimport math\n", "\n\nAPI_LEVEL = 3\n"
    ),
    "core/__init__.py": "",
    "cli.py": "from core.engine import make_gear\n\nprint(make_gear('g', 2)['price'])\n",
    "web.py": "from core import engine\n\nprint(engine.make_gear('w', 5)['price'])\n",
}

LINE = 1 + next(n for n, line in enumerate(SPREAD["core/engine.py"].splitlines()) if "def total_gears" in line)

TASKS = (
    Task(
        "x fix a formula",
        "The test test_convert.py is red. Please repair convert.py and run the test again.",
        TEMPERATURE,
        check_all(check_command("python test_convert.py", "passed"), check_kept(TEMPERATURE, "test_convert.py")),
        2,
    ),
    Task(
        "x turn a switch off",
        "Turn DEBUG off (0) in app.env.",
        ENV,
        check_equals("app.env", "HOST=db.local\nPASSWORD=x\nDEBUG=0"),
    ),
    Task(
        "x add an entry to JSON",
        "Add a user Cy, age 44, to users.json.",
        USERS,
        check_all(
            check_json("users.json", lambda d: [u["name"] for u in d["users"]], ["Ann", "Bob", "Cy"]),
            check_json("users.json", lambda d: d["limit"], 10),
        ),
    ),
    Task(
        "x add a method",
        "Stack in stack.py needs a method size() that returns the number of items.",
        STACK,
        check_python("from stack import Stack; s = Stack(); s.push(1); s.push(2); print(s.size(), s.pop())", "2 2"),
    ),
    Task(
        "x rename and run",
        "Please rename sub to subtract everywhere, then start app.py to see that it still works.",
        CALC,
        check_all(
            check_command("python app.py", "5 5"),
            check_contains("calc.py", "def subtract("),
            check_lacks("app.py", "sub(9"),
        ),
        2,
    ),
    Task(
        "x edge cases",
        "is_prime in primes.py says that 0 and 1 are prime. Correct that.",
        PRIMES,
        check_python(
            "from primes import is_prime; print([n for n in range(14) if is_prime(n)])", "[2, 3, 5, 7, 11, 13]"
        ),
    ),
    Task(
        "x a missing argument",
        "hi.py crashes without an argument. It should say 'hi world' then.",
        LOUD,
        check_all(check_command("python hi.py", "hi world"), check_command("python hi.py Bo", "hi Bo")),
    ),
    Task(
        "x biggest file",
        "Which file in this folder has the most lines?",
        {"a.txt": "1\n2\n", "b.txt": "1\n2\n3\n4\n5\n6\n7\n", "c.txt": "1\n"},
        check_says("b.txt"),
    ),
    Task(
        "x copy",
        "Make a copy of settings.ini called settings.bak.",
        {"settings.ini": "[a]\nb = 1\n"},
        check_all(check_equals("settings.bak", "[a]\nb = 1"), check_equals("settings.ini", "[a]\nb = 1")),
    ),
    Task(
        "x sort lines",
        "Sort the lines of names.txt alphabetically.",
        {"names.txt": "Rob\nAda\nKim\nBen\n"},
        check_equals("names.txt", "Ada\nBen\nKim\nRob"),
    ),
    Task(
        "x ignore file",
        "Write a .gitignore that ignores __pycache__ and *.log.",
        {"main.py": "print(1)\n"},
        check_contains(".gitignore", "__pycache__", "*.log"),
    ),
    Task(
        "x python version",
        "I want to know what python main.py outputs.",
        {"main.py": "print(17 * 23 + 5)\n"},
        check_says("396"),
    ),
    Task(
        "x comment out",
        "In app.py comment out the line that prints secret.",
        {"app.py": "secret = 4\nprint('start')\nprint(secret)\nprint('end')\n"},
        check_all(check_command("python app.py", "start end"), check_contains("app.py", "secret = 4")),
    ),
    Task(
        "x html title",
        "Change the title of index.html to Welcome home.",
        {"index.html": "<html>\n<head><title>Old page</title></head>\n<body>\n<h1>Hello</h1>\n</body>\n</html>\n"},
        check_contains("index.html", "<title>Welcome home</title>", "<h1>Hello</h1>"),
    ),
    Task(
        "x long: find and fix",
        "check_plum.py fails. Find out why, repair shop.py and run it again.",
        BAD_SHOP,
        check_all(
            check_command("python check_plum.py", "plums ok"),
            check_few_changes(BAD_SHOP, "shop.py", 4),
            check_kept(BAD_SHOP, "check_plum.py"),
        ),
        3,
        "long",
    ),
    Task(
        "x long: currency",
        "Use USD instead of EUR as CURRENCY in shop.py and let describe_melon end with the currency in brackets.",
        SHOP,
        check_all(
            check_python(
                "import shop; print(shop.CURRENCY, 'USD' in shop.describe_melon(shop.make_melon('m', 1)))", "USD True"
            ),
            check_few_changes(SHOP, "shop.py", 6),
        ),
        2,
        "long",
    ),
    Task(
        "x long: three settings",
        "Set API_PORT to 9000, STORE_RETRIES to 5 and MEDIA_ENABLED to False in conf.py.",
        CONF,
        check_all(
            check_python(
                "import conf as c; print(c.API_PORT, c.STORE_RETRIES, c.MEDIA_ENABLED, c.JOBS_RETRIES)",
                "9000 5 False 3",
            ),
            check_few_changes(CONF, "conf.py", 6),
        ),
        3,
        "long",
    ),
    Task(
        "x long: new method",
        "Give the class Club in club.py a method close() that sets self.closed to True, and a method is_open() that "
        "returns whether it is not closed.",
        CLUB,
        check_all(
            check_python(
                "from club import Club; c = Club('x'); a = c.is_open(); c.close(); "
                "print(a, c.is_open(), c.count_fans())",
                "True False 0",
            ),
            check_few_changes(CLUB, "club.py", 12),
        ),
        2,
        "long",
    ),
    Task(
        "x long: warnings",
        "How many lines of access.log have the level WARN? Put the number into warnings.txt.",
        ACCESS,
        check_equals("warnings.txt", str(sum(" WARN " in line for line in ACCESS["access.log"].splitlines()))),
        2,
        "long",
    ),
    Task(
        "x long: sum by name",
        "What is the sum of amount of all blue orders in orders.csv?",
        ROWS,
        check_says(str(table_total(ROWS["orders.csv"], "blue"))),
        kind="long",
    ),
    Task(
        "x long: drop a section",
        "Remove the section Print from MANUAL.md.",
        MANUAL,
        check_all(
            check_lacks("MANUAL.md", "## Print", "print page"),
            check_contains("MANUAL.md", "## Import", "## Backup", "- then try it"),
            check_few_changes(MANUAL, "MANUAL.md", 9),
        ),
        kind="long",
    ),
    Task(
        "x long: rename across folders",
        "Rename the function make_gear to build_gear in the whole project and run python cli.py.",
        SPREAD,
        check_all(
            check_command("python cli.py", "2"),
            check_command("python web.py", "5"),
            check_contains("core/engine.py", "def build_gear("),
        ),
        3,
        "long",
    ),
    Task(
        "x long: negative prices",
        "make_pear in shop.py should raise a ValueError when price is negative. Then run python report.py and store "
        "its output in report.txt.",
        SHOP,
        check_all(
            check_python(
                "import shop\ntry:\n    shop.make_pear('a', -1)\nexcept ValueError:\n    print('raised')", "raised"
            ),
            check_contains("report.txt", "Pear Conference"),
            check_few_changes(SHOP, "shop.py", 6),
        ),
        3,
        "long",
    ),
    Task(
        "x long: where defined",
        "In which file and on which line is the function total_gears defined?",
        SPREAD,
        check_all(check_says("engine.py"), check_says_any(str(LINE))),
        kind="long",
    ),
)
