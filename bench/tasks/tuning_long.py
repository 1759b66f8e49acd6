"""The tuning half, longer: files of 100 to 400 lines and up to six steps."""

from __future__ import annotations

from bench.tasks.sources import (
    log_lines,
    page_text,
    python_class,
    python_module,
    script_module,
    settings_module,
    style_sheet,
    table_rows,
    table_total,
    yaml_config,
)
from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_contains,
    check_equals,
    check_few_changes,
    check_gone,
    check_kept,
    check_lacks,
    check_python,
    check_says,
)

STOCK = python_module("Prices of a shop.", ("book", "lamp", "chair", "table", "shelf"), "VAT = 19\n")
SETTINGS = {"settings.py": settings_module(("web", "mail", "cache", "queue", "search", "backup", "auth", "upload"))}
STORE = {"store.py": STOCK, "main.py": "from store import total_lamps\n\nprint(total_lamps([]))\n"}
BUG = {
    "store.py": STOCK.replace(
        'def total_chairs(items):\n    """What all of them cost together."""\n    total = 0\n    for item in items:\n'
        '        total += item["price"] * item["amount"]',
        'def total_chairs(items):\n    """What all of them cost together."""\n    total = 0\n    for item in items:\n'
        '        total += item["price"] + item["amount"]',
    ),
    "test_store.py": "from store import make_chair, total_chairs\n\n"
    "assert total_chairs([make_chair('a', 5, 3)]) == 15\nprint('all fine')\n",
}
TEAM = {
    "team.py": python_class("Team", "team", ("member", "guest", "coach", "game", "goal")),
    "season.py": "from team import Team\n\nteam = Team('Reds')\nteam.add_member('Ann')\nprint(team.count_members())\n",
}
YAML = {
    "compose.yaml": yaml_config(
        ("web", "api", "worker", "mail", "cache", "search", "files", "auth", "cron", "proxy", "metrics")
    )
}
LOG = {"server.log": log_lines(300, "web", 17)}
TABLE = {"sales.csv": table_rows(220, ("north", "south", "east", "west"), 13)}
SCRIPT = {"shop.js": script_module(("order", "invoice", "client", "basket", "coupon", "refund"))}
STYLE = {"style.css": style_sheet([f"box{n}" for n in range(24)], "#ff6600")}
PAGES = {"README.md": page_text("Parcel", ("Install", "Use", "Configure", "Deploy", "Test", "Release", "Support"))}
VERSIONS = {
    "pyproject.toml": '[project]\nname = "parcel"\nversion = "1.4.0"\n',
    "parcel/__init__.py": '"""Parcel."""\n\n__version__ = "1.4.0"\n',
    "docs/conf.py": 'project = "parcel"\nrelease = "1.4.0"\n' + "".join(f"option_{n} = {n}\n" for n in range(100)),
    "show.py": "import parcel\n\nprint('parcel', parcel.__version__)\n",
}
UNITS = {"units.py": python_module("Counts.", ("day", "week", "month", "year"), "# seconds\n") + "\n\ndef span(days):\n"
         '    """Seconds in so many days."""\n    return days * 86400\n\n\ndef span_of_weeks(weeks):\n'
         "    return weeks * 7 * 86400\n"}  # fmt: skip
TRAIL = {
    "start.md": page_text("Start", ("One", "Two", "Three")) + "\nThe next hint is in the file hints/second.md.\n",
    "hints/second.md": page_text("Second", ("A", "B", "C", "D")) + "\nThe number is in data/number.txt.\n",
    "data/number.txt": "90210\n",
    "data/other.txt": "11111\n",
}
TOOL = {
    "tool.py": '"""Counts words."""\n\nimport argparse\n\n\n'
    + "".join(f"def helper_{n}(text):\n    return text.strip() + '{n}'\n\n\n" for n in range(22))
    + "def main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--text', default='a b c')\n"
    "    options = parser.parse_args()\n    print(len(options.text.split()))\n\n\nif __name__ == "
    "'__main__':\n    main()\n"
}

TASKS = (
    Task(
        "change a constant in many",
        "In settings.py set QUEUE_TIMEOUT_SECONDS to 90.",
        SETTINGS,
        check_all(
            check_python("import settings; print(settings.QUEUE_TIMEOUT_SECONDS)", "90"),
            check_few_changes(SETTINGS, "settings.py", 2),
        ),
        kind="long",
    ),
    Task(
        "change two constants",
        "In settings.py change MAIL_PORT to 2525 and AUTH_LOG_LEVEL to debug.",
        SETTINGS,
        check_all(
            check_python("import settings as s; print(s.MAIL_PORT, s.AUTH_LOG_LEVEL)", "2525 debug"),
            check_few_changes(SETTINGS, "settings.py", 4),
        ),
        2,
        "long",
    ),
    Task(
        "say a value in many",
        "What is the value of SEARCH_POOL_SIZE in settings.py?",
        SETTINGS,
        check_says("1190"),
        kind="long",
    ),
    Task(
        "fix a function in a long module",
        "python test_store.py fails. Find the bug in store.py and fix it.",
        BUG,
        check_all(
            check_command("python test_store.py", "all fine"),
            check_kept(BUG, "test_store.py"),
            check_few_changes(BUG, "store.py", 4),
        ),
        3,
        "long",
    ),
    Task(
        "fix, test and note",
        "The function total_chairs in store.py is wrong: it must multiply price and amount. Fix it, "
        "run python test_store.py "
        "and write what it prints into RESULT.txt.",
        BUG,
        check_all(
            check_command("python test_store.py", "all fine"),
            check_few_changes(BUG, "store.py", 4),
            check_contains("RESULT.txt", "all fine"),
        ),
        3,
        "long",
    ),
    Task(
        "rename across a long module",
        "Rename the function total_lamps to sum_lamps in store.py and main.py.",
        STORE,
        check_all(
            check_command("python main.py", "0"),
            check_contains("store.py", "def sum_lamps("),
            check_lacks("main.py", "total_lamps"),
            check_few_changes(STORE, "store.py", 2),
        ),
        2,
        "long",
    ),
    Task(
        "add a parameter",
        "Give the function total_books in store.py a second parameter discount=0 that is subtracted from the result.",
        STORE,
        check_all(
            check_python(
                "from store import *; b = [make_book('a', 5, 2)]; print(total_books(b), total_books(b, 3))", "10 7"
            ),
            check_few_changes(STORE, "store.py", 6),
        ),
        kind="long",
    ),
    Task(
        "add a method to a long class",
        "Add a method count_all(self) to the class Team in team.py that returns how many members, guests and coaches "
        "there are together.",
        TEAM,
        check_all(
            check_python(
                "from team import Team; t = Team('x'); t.add_guest(1); t.add_coach(2); "
                "t.add_coach(3); t.add_member(4);"
                " print(t.count_all(), t.count_goals())",
                "4 0",
            ),
            check_few_changes(TEAM, "team.py", 6),
        ),
        kind="long",
    ),
    Task(
        "rename a class in two files",
        "Rename the class Team to Club in team.py and season.py, then run python season.py.",
        TEAM,
        check_all(
            check_command("python season.py", "1"),
            check_contains("team.py", "class Club:"),
            check_lacks("season.py", "import Team"),
        ),
        3,
        "long",
    ),
    Task(
        "change one service",
        "In compose.yaml set replicas of the service cache to 5.",
        YAML,
        check_all(
            check_contains("compose.yaml", "registry.local/cache:1.5\n    replicas: 5\n"),
            check_few_changes(YAML, "compose.yaml", 2),
        ),
        kind="long",
    ),
    Task(
        "count errors and note them",
        "Count the lines with ERROR in server.log and write the number into errors.txt.",
        LOG,
        check_all(check_equals("errors.txt", "17"), check_kept(LOG, "server.log")),
        2,
        "long",
    ),
    Task(
        "say the first error",
        "At which time of day does the first ERROR in server.log happen?",
        LOG,
        check_says("10:17"),
        kind="long",
    ),
    Task(
        "raise a version in three files",
        "Raise the version from 1.4.0 to 1.5.0 in pyproject.toml, parcel/__init__.py and docs/conf.py, "
        "then run python show.py.",
        VERSIONS,
        check_all(
            check_contains("pyproject.toml", 'version = "1.5.0"'),
            check_contains("docs/conf.py", 'release = "1.5.0"', "option_99"),
            check_command("python show.py", "parcel 1.5.0"),
        ),
        4,
        "long",
    ),
    Task(
        "remove a function",
        "Remove the function describe_table from store.py. Nothing uses it.",
        STORE,
        check_all(
            check_python(
                "import store; print(hasattr(store, 'describe_table'), hasattr(store, 'make_shelf'))", "False True"
            ),
            check_few_changes(STORE, "store.py", 4),
        ),
        kind="long",
    ),
    Task(
        "name a number",
        "In units.py introduce a constant SECONDS_PER_DAY = 86400 and use it in span and span_of_weeks.",
        UNITS,
        check_all(
            check_python(
                "import units; print(units.SECONDS_PER_DAY, units.span(2), units.span_of_weeks(1))",
                "86400 172800 604800",
            ),
            check_command("test $(grep -c 86400 units.py) = 1"),
            check_few_changes(UNITS, "units.py", 6),
        ),
        2,
        "long",
    ),
    Task(
        "follow a trail",
        "start.md names another file, which names a third one. Read them, and write the number you find there into "
        "answer.txt.",
        TRAIL,
        check_equals("answer.txt", "90210"),
        4,
        "long",
    ),
    Task(
        "change a colour everywhere",
        "Replace the colour #ff6600 by #0066ff everywhere in style.css and tell me how many places that were.",
        STYLE,
        check_all(check_lacks("style.css", "#ff6600"), check_contains("style.css", "#222222"), check_says("8")),
        2,
        "long",
    ),
    Task(
        "change a JavaScript function",
        "In shop.js let countOpenBasket also check that item.paid is false.",
        SCRIPT,
        check_all(
            check_command("grep -A3 'function countOpenBasket' shop.js | grep -q 'paid'"),
            check_few_changes(SCRIPT, "shop.js", 6),
        ),
        kind="long",
    ),
    Task(
        "add an option and run it",
        "Add an option --twice to tool.py that prints the number of words twice as large, then run "
        "python tool.py --twice.",
        TOOL,
        check_all(check_command("python tool.py --twice", "6"), check_command("python tool.py", "3")),
        2,
        "long",
    ),
    Task(
        "add up a column",
        "Add up the column amount in sales.csv and write the sum into total.txt.",
        TABLE,
        check_equals("total.txt", str(table_total(TABLE["sales.csv"]))),
        2,
        "long",
    ),
    Task(
        "write a script for a table",
        "Write a script north.py that prints the sum of amount in sales.csv for the rows with the "
        "name north, run it, "
        "and save its output in north.txt.",
        TABLE,
        check_all(
            check_command("python north.py", str(table_total(TABLE["sales.csv"], "north"))),
            check_equals("north.txt", str(table_total(TABLE["sales.csv"], "north"))),
        ),
        3,
        "long",
    ),
    Task(
        "add a section to a page",
        "In README.md add a section ## Licence with the text MIT at the end.",
        PAGES,
        check_all(
            check_command("tail -5 README.md | tr -d '\\n' | grep -q '## Licence.*MIT'"),
            check_few_changes(PAGES, "README.md", 3),
        ),
        kind="long",
    ),
    Task(
        "tidy a folder",
        "Make a folder old, move every file that ends in .bak into it, delete empty.tmp, and list what is in old.",
        {"a.bak": "1\n", "b.bak": "2\n", "c.txt": "3\n", "empty.tmp": "", "server.log": LOG["server.log"]},
        check_all(
            check_equals("old/a.bak", "1"),
            check_equals("old/b.bak", "2"),
            check_gone("empty.tmp"),
            check_gone("a.bak"),
            check_equals("c.txt", "3"),
        ),
        4,
        "long",
    ),
    Task(
        "move a function to a module",
        "Move the function describe_lamp from store.py to a new file labels.py.",
        STORE,
        check_all(
            check_python(
                "import labels; print(labels.describe_lamp({'name': 'x', 'amount': 2, 'price': 3}))", "Lamp x: 2 x 3.00"
            ),
            check_python("import store; print(store.make_shelf('a', 1)['kind'])", "shelf"),
            check_command("! grep -q 'def describe_lamp' store.py"),
        ),
        2,
        "long",
    ),
)
