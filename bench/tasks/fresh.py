"""Small tasks in the words of many people: polite, terse, as questions, with what is to be left alone."""

from __future__ import annotations

from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_contains,
    check_equals,
    check_few_changes,
    check_gone,
    check_json,
    check_kept,
    check_lacks,
    check_python,
    check_says,
)

CACHE = {"redis.conf": "bind 127.0.0.1\nmaxmemory 256mb\ntimeout 300\nloglevel notice\n", "run.sh": "echo run\n"}
PRICES = {
    "prices.py": "def net(price):\n    return price / 1.19\n\n\ndef gross(price):\n    return price * 1.19\n",
    "invoice.py": "from prices import gross\n\nprint(round(gross(100), 2))\n",
    "quote.py": "from prices import gross, net\n\nprint(round(gross(10) - net(10), 2))\n",
}
WORDS = {
    "words.py": "def longest(words):\n    best = ''\n    for word in words:\n        if len(word) < len(best):\n"
    "            best = word\n    return best\n",
    "test_words.py": "from words import longest\n\nassert longest(['a', 'tree', 'be']) == 'tree'\nprint('all good')\n",
}
CART = {
    "cart.py": "class Cart:\n    def __init__(self):\n        self.lines = []\n\n    def add(self, name, price):\n"
    "        self.lines.append((name, price))\n\n    def total(self):\n"
    "        return sum(price for _, price in self.lines)\n"
}
TSCONFIG = {"tsconfig.json": '{\n  "compilerOptions": {\n    "target": "es2017",\n    "strict": false\n  }\n}\n'}
TIMEOUTS = {
    "settings.py": "TIMEOUT = 30\nRETRIES = 4\nHOST = 'localhost'\n",
    "client.py": "from settings import HOST, TIMEOUT\n\nprint(HOST, TIMEOUT)\n",
    "server.py": "TIMEOUT = 30\nprint('server', TIMEOUT)\n",
}
CITIES = {"cities.txt": "Oslo\nBern\nRome\nLima\nCairo\n"}
LEVELS = {"app.log": "INFO start\nERROR disk full\nINFO retry\nERROR disk full\nWARN slow\nERROR no route\nINFO end\n"}
README = {"README.md": "# Tool\n\nA tool.\n\n## Install\n\nRun make.\n", "LICENSE": "MIT\n"}
DISCOUNT = {
    "discount.py": "LIMIT = 100\n\n\ndef discount(total):\n    if total >= LIMIT:\n"
    "        return total * 0.1\n    return 0\n"
}
PATHS = {
    "paths.py": "ROOT = '/srv'\nLOGS = '/var/log/app'\n",
    "const.py": "NAME = 'app'\n",
    "main.py": "from paths import LOGS\nfrom const import NAME\n\nprint(NAME, LOGS)\n",
}
BANK = {
    "bank.py": "def withdraw(balance, amount):\n    return balance - amount\n\n\ndef deposit(balance, amount):\n"
    "    return balance + amount\n"
}
SCORES = {"scores.csv": "name,points\nAnn,12\nBob,30\nCy,25\n"}
COMPOSE = {"compose.yaml": "services:\n  web:\n    image: nginx:1.25\n    ports:\n      - 8080:80\n"}
GREET = {"greet.sh": '#!/bin/sh\necho "Hi, $1"\n'}
ROUND = {
    "mean.py": "import sys\n\nnumbers = [float(word) for word in sys.argv[1:]]\nprint(sum(numbers) / len(numbers))\n",
    "notes.md": "call it with numbers\n",
}
STYLE = {"style.css": "body {\n  color: black;\n  margin: 0;\n}\n\na {\n  color: blue;\n}\n"}

TASKS = (
    Task("f read a limit", "How much memory may redis use according to redis.conf?", CACHE, check_says("256")),
    Task(
        "f polite rename",
        "Could you please rename gross to with_vat in all files? Don't touch net.",
        PRICES,
        check_all(
            check_command("python invoice.py", "119.0"),
            check_command("python quote.py", "3.5"),
            check_contains("prices.py", "def with_vat(", "def net("),
        ),
        3,
    ),
    Task(
        "f failing test",
        "test_words.py does not pass. Make it pass, but don't edit the test itself.",
        WORDS,
        check_all(check_command("python test_words.py", "all good"), check_kept(WORDS, "test_words.py")),
        2,
    ),
    Task(
        "f add a method",
        "Please add a method clear to Cart that removes all lines.",
        CART,
        check_python(
            "from cart import Cart; c = Cart(); c.add('x', 3); a = c.total(); c.clear(); print(a, c.total())", "3 0"
        ),
    ),
    Task(
        "f strict mode",
        "turn on strict in tsconfig.json",
        TSCONFIG,
        check_all(
            check_json("tsconfig.json", lambda d: d["compilerOptions"]["strict"], True),
            check_json("tsconfig.json", lambda d: d["compilerOptions"]["target"], "es2017"),
        ),
    ),
    Task(
        "f only one file",
        "The timeout should be 60 seconds. Only change settings.py, leave server.py as it is.",
        TIMEOUTS,
        check_all(
            check_command("python client.py", "localhost 60"),
            check_kept(TIMEOUTS, "server.py", "client.py"),
            check_few_changes(TIMEOUTS, "settings.py", 2),
        ),
    ),
    Task("f sort a file", "sort cities.txt", CITIES, check_equals("cities.txt", "Bern\nCairo\nLima\nOslo\nRome")),
    Task("f count errors", "How many errors are in app.log?", LEVELS, check_says("3")),
    Task(
        "f append a section",
        "Append a section '## License' with the text 'MIT' to the README.",
        README,
        check_all(
            check_contains("README.md", "# Tool", "Run make.", "## License\n"),
            check_command("tail -n 1 README.md", "MIT"),
            check_kept(README, "LICENSE"),
        ),
    ),
    Task(
        "f explain a branch",
        "What does discount(100) return, and why?",
        DISCOUNT,
        check_all(check_says("10"), check_kept(DISCOUNT, "discount.py")),
    ),
    Task(
        "f move a constant",
        "Please move LOGS from paths.py into const.py. main.py must still work afterwards.",
        PATHS,
        check_all(
            check_command("python main.py", "app /var/log/app"),
            check_contains("const.py", "LOGS =", "NAME ="),
            check_lacks("paths.py", "LOGS"),
        ),
        3,
    ),
    Task(
        "f refuse overdraft",
        "withdraw should raise ValueError if amount is greater than balance.",
        BANK,
        check_all(
            check_python(
                "from bank import withdraw, deposit\ntry:\n    withdraw(1, 2)\nexcept ValueError:\n"
                "    print('no', withdraw(5, 2), deposit(1, 1))",
                "no 3 2",
            ),
        ),
    ),
    Task(
        "f best score",
        "Who has the most points in scores.csv?",
        SCORES,
        check_all(check_says("Bob"), check_kept(SCORES, "scores.csv")),
    ),
    Task(
        "f image version",
        "bump the nginx image to 1.27",
        COMPOSE,
        check_equals("compose.yaml", COMPOSE["compose.yaml"].replace("1.25", "1.27")),
    ),
    Task(
        "f run with argument",
        "Run greet.sh with the argument Zoe. What does it print?",
        GREET,
        check_all(check_says("Hi Zoe"), check_kept(GREET, "greet.sh")),
    ),
    Task(
        "f delete logs",
        "Get rid of all .tmp files here, nothing else.",
        {"a.tmp": "1\n", "b.tmp": "2\n", "keep.txt": "3\n", "tmp.py": "print(4)\n"},
        check_all(
            check_gone("a.tmp"), check_gone("b.tmp"), check_contains("keep.txt", "3"), check_contains("tmp.py", "print")
        ),
    ),
    Task(
        "f empty input",
        "mean.py dies when it gets no numbers. Can you make it print 0 in that case?",
        ROUND,
        check_all(check_command("python mean.py", "0"), check_command("python mean.py 2 4", "3.0")),
    ),
    Task(
        "f a colour",
        "I'd like links to be green instead of blue.",
        STYLE,
        check_equals("style.css", STYLE["style.css"].replace("blue", "green")),
    ),
    Task(
        "f new module",
        "Create utils.py with a function double(x) which returns x times two. Then write test_utils.py that asserts "
        "double(4) == 8.",
        {"main.py": "print('main')\n"},
        check_all(
            check_python("from utils import double; print(double(4), double(-1))", "8 -2"),
            check_contains("test_utils.py", "double(4)"),
            check_command("python test_utils.py"),
        ),
        2,
    ),
    Task(
        "f output to a file",
        "Run main.py and save its output as out.txt, please.",
        {"main.py": "for n in range(3):\n    print('row', n)\n"},
        check_equals("out.txt", "row 0\nrow 1\nrow 2"),
        2,
    ),
    Task(
        "f where is it used",
        "Which files use the function load_user?",
        {
            "db.py": "def load_user(name):\n    return {'name': name}\n",
            "web.py": "from db import load_user\n\nprint(load_user('x'))\n",
            "jobs.py": "print('no users here')\n",
        },
        check_says("web.py"),
    ),
    Task(
        "f drop an import",
        "app.py imports os but never uses it; remove that import.",
        {"app.py": "import os\nimport sys\n\nprint(len(sys.argv))\n"},
        check_all(check_lacks("app.py", "import os"), check_command("python app.py", "1")),
    ),
    Task(
        "f ini value",
        "Would you set the log level in app.ini to debug?",
        {"app.ini": "[db]\nlevel = 3\n\n[log]\nlevel = info\nfile = app.log\n"},
        check_equals("app.ini", "[db]\nlevel = 3\n\n[log]\nlevel = debug\nfile = app.log"),
    ),
    Task(
        "f docstring",
        "Give the function area in shape.py a docstring. Don't change anything else.",
        {"shape.py": "def area(w, h):\n    return w * h\n\n\ndef edge(w, h):\n    return 2 * (w + h)\n"},
        check_python(
            "import shape; print(bool(shape.area.__doc__), shape.edge.__doc__, shape.area(2, 3), shape.edge(1, 1))",
            "True None 6 4",
        ),
    ),
)
