"""The half that is never looked at while tuning, small: one to three steps in files of up to 40 lines."""

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
    check_says_any,
)

DOCKER = {"Dockerfile": 'FROM python:3.11-slim\nWORKDIR /app\nCOPY . .\nEXPOSE 5050\nCMD ["python", "app.py"]\n'}
PRICES = {
    "prices.py": "def discount(price, percent):\n    return price * percent / 100\n",
    "check_prices.py": "from prices import discount\n\nassert discount(200, 25) == 150, discount(200, 25)\n",
}
CAR = {
    "car.py": "class Car:\n    def __init__(self, name):\n        self.name = name\n\n"
    "    def honk(self):\n        return self.name + ' honks'\n",
    "garage.py": "from car import Car\n\nprint(Car('Fiat').honk())\n",
}
WORDS = {"words.txt": "pear\napple\nfig\nbanana\ncherry\nplum\n"}
CARGO = {"Cargo.toml": '[package]\nname = "ferry"\nversion = "2.0.9"\nedition = "2021"\n'}
CONVERT = {
    "convert.py": "def to_celsius(f):\n    return (f - 32) * 5 / 9\n\n\nprint(to_celsius(212))\n",
}
LOOP = {"count.py": "n = 1\nwhile n < 5\n    print(n)\n    n += 1\n"}
PARSE = {"parse.py": "text = 'a=1,b=2'\npairs = dict(part.split(':') for part in text.split(','))\nprint(pairs['b'])\n"}
MENU = {"menu.json": '{\n  "title": "Lunch",\n  "items": ["soup", "salad"],\n  "open": true\n}\n'}
HOSTS = {"hosts.conf": "# hosts\nweb = 10.0.0.4\ndb = 10.0.0.7\ncache = 10.0.0.9\n"}
PAGE = {"index.html": "<html>\n<head><title>Old title</title></head>\n<body>\n<h1>Welcom</h1>\n</body>\n</html>\n"}
COLORS = {
    "colors.py": "RED = '#ff0000'\nBLUE = '#0000ff'\n",
    "theme.py": "NAME = 'plain'\n",
    "draw.py": "from colors import BLUE\n\nprint(BLUE)\n",
}

TASKS = (
    Task("read a port", "Which port does the Dockerfile expose?", DOCKER, check_says("5050")),
    Task("read an address", "What is the address of db in hosts.conf?", HOSTS, check_says("10.0.0.7")),
    Task(
        "find the definition",
        "In which file is the function load_user defined?",
        {
            "api.py": "from store import load_user\n\nload_user(1)\n",
            "store.py": "def load_user(number):\n    return {}\n",
            "views.py": "import api\n",
        },
        check_says("store.py"),
    ),
    Task(
        "create a module",
        "Create a Python file maths.py with a function double(x) that returns twice x.",
        {"README.md": "# maths\n"},
        check_python("import maths; print(maths.double(21))", "42"),
    ),
    Task(
        "create a config",
        "Create a file config.json with the keys name set to demo and debug set to true.",
        {"main.py": "print(1)\n"},
        check_all(
            check_json("config.json", lambda data: data["name"], "demo"),
            check_json("config.json", lambda data: data["debug"], True),
        ),
    ),
    Task(
        "raise a version",
        "Raise the version in Cargo.toml to 2.1.0.",
        CARGO,
        check_all(check_contains("Cargo.toml", 'version = "2.1.0"', 'name = "ferry"', "2021")),
    ),
    Task(
        "change an address",
        "Change the address of cache in hosts.conf to 10.0.0.12.",
        HOSTS,
        check_all(
            check_contains("hosts.conf", "cache = 10.0.0.12", "db = 10.0.0.7"),
            check_few_changes(HOSTS, "hosts.conf", 2),
        ),
    ),
    Task(
        "rename a method in two files",
        "Rename the method honk to beep in car.py and garage.py.",
        CAR,
        check_all(
            check_contains("car.py", "def beep("), check_lacks("garage.py", "honk"), check_command("python garage.py")
        ),
        2,
    ),
    Task(
        "fix a wrong formula",
        "check_prices.py fails: discount should return the price after the discount. Fix prices.py.",
        PRICES,
        check_all(check_command("python check_prices.py"), check_kept(PRICES, "check_prices.py")),
        2,
    ),
    Task(
        "run and say the number",
        "Run convert.py and say which number it prints.",
        CONVERT,
        check_says("100"),
    ),
    Task("count the words", "How many lines does words.txt have?", WORDS, check_says_any("6", "six")),
    Task("say the longest word", "Which line of words.txt comes last in the alphabet?", WORDS, check_says("plum")),
    Task(
        "delete two files",
        "Delete a.tmp and b.tmp, and keep c.txt.",
        {"a.tmp": "1\n", "b.tmp": "2\n", "c.txt": "3\n"},
        check_all(check_gone("a.tmp"), check_gone("b.tmp"), check_equals("c.txt", "3")),
        2,
    ),
    Task(
        "copy a file",
        "Copy settings.ini to settings.bak.ini.",
        {"settings.ini": "[a]\nb = 1\n"},
        check_all(check_equals("settings.bak.ini", "[a]\nb = 1"), check_equals("settings.ini", "[a]\nb = 1")),
    ),
    Task(
        "move a colour",
        "Move BLUE from colors.py to theme.py and change the import in draw.py.",
        COLORS,
        check_all(
            check_lacks("colors.py", "BLUE"),
            check_contains("colors.py", "RED"),
            check_contains("theme.py", "BLUE = ", "NAME"),
            check_command("python draw.py", "#0000ff"),
        ),
        3,
    ),
    Task(
        "fix a heading",
        "The heading in index.html is misspelt, it should be Welcome. Fix it.",
        PAGE,
        check_all(
            check_contains("index.html", "<h1>Welcome</h1>", "Old title"), check_few_changes(PAGE, "index.html", 2)
        ),
    ),
    Task(
        "add to a list in JSON",
        "Add pasta to the items in menu.json.",
        MENU,
        check_all(
            check_json("menu.json", lambda data: data["items"], ["soup", "salad", "pasta"]),
            check_json("menu.json", lambda data: data["title"], "Lunch"),
        ),
    ),
    Task(
        "add a second function",
        "Add a function to_fahrenheit(c) to convert.py.",
        CONVERT,
        check_python("import convert; print(convert.to_fahrenheit(100))", "100.0 212.0"),
    ),
    Task(
        "add a method",
        "Add a method rename(self, name) to the class Car in car.py that sets the name.",
        CAR,
        check_python("from car import Car; c = Car('A'); c.rename('B'); print(c.honk())", "B honks"),
    ),
    Task(
        "mend a loop",
        "count.py has a syntax error. Fix it, then run it.",
        LOOP,
        check_command("python count.py", "1 2 3 4"),
        2,
    ),
    Task(
        "mend a parser",
        "python parse.py crashes. It should print 2. Fix it.",
        PARSE,
        check_all(check_command("python parse.py", "2"), check_contains("parse.py", "split")),
        2,
    ),
    Task(
        "sort a file",
        "Sort the lines of words.txt alphabetically and write them to sorted.txt.",
        WORDS,
        check_equals("sorted.txt", "apple\nbanana\ncherry\nfig\npear\nplum"),
    ),
    Task(
        "write a shell script",
        "Write a shell script hi.sh that prints hi three times, one per line, and run it with sh.",
        {"README.md": "# hi\n"},
        check_command("sh hi.sh", "hi hi hi"),
        2,
    ),
    Task(
        "comment out a line",
        "Comment out the line debug = true in app.conf with a # in front.",
        {"app.conf": "name = app\ndebug = true\nport = 80\n"},
        check_all(
            check_contains("app.conf", "name = app", "port = 80"), check_command("grep -q '^# *debug = true' app.conf")
        ),
    ),
)
