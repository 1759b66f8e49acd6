"""Small tasks written by someone who had not read the code that they judge: everyday requests on tiny projects."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bench.tasks.task import (
    Check,
    Task,
    check_all,
    check_command,
    check_compact,
    check_contains,
    check_equals,
    check_few_changes,
    check_gone,
    check_json,
    check_kept,
    check_lacks,
    check_python,
    check_says,
    read_text,
)
from bench.tasks.unseen_projects import (
    BACKUP,
    BROKEN,
    BUTTON,
    CHANGES,
    CONVERT,
    DEPLOY,
    DOCKER,
    EMPLOYEES,
    ENGINE,
    FEEDS,
    GEOMETRY,
    INVENTORY,
    LAYOUT,
    LETTERS,
    MAILER,
    NGINX,
    ORDERS,
    PACKAGE,
    PIPELINE,
    PLAYERS,
    POETRY,
    QUEUE,
    RECIPES,
    REPORT,
    ROUTES,
    SENSOR,
    SLUG,
    STATS,
    VISITS,
)


def check_says_count(number: int, word: str = "-") -> Check:
    """The answer names this number or its word, not only as a part of a longer one."""
    wanted = re.compile(rf"(?<![\d.]){number}(?!\d|\.\d)|\b{word}\b", re.IGNORECASE)
    return lambda _, answer: wanted.search(answer) is not None


def check_says_failing(_folder: Path, answer: str) -> bool:
    """The answer says that something failed, and not that nothing did."""
    if re.search(r"\b(without|no)( any)? (errors?|failures?)|\ball\b[^.]*\bpass|\byes\b", answer, re.IGNORECASE):
        return False
    return re.search(r"fail|(not|n't) pass|error|^no\b", answer, re.IGNORECASE) is not None


def check_lines(path: str, *lines: str) -> Check:
    """The file holds just these lines, empty ones aside."""
    return lambda folder, _: [line for line in read_text(folder, path).splitlines() if line.strip()] == list(lines)


def check_dependencies(path: str, *names: str) -> Check:
    """The project's dependencies are just these packages, in any order and whatever their versions."""

    def check(folder: Path, _answer: str) -> bool:
        listed = tomllib.loads(read_text(folder, path))["project"]["dependencies"]
        return sorted(re.split(r"[^\w-]", entry, maxsplit=1)[0].lower() for entry in listed) == sorted(names)

    return check


TASKS = (
    Task("u read a nested value", "what port does the metrics endpoint listen on?", DEPLOY, check_says("9464")),
    Task(
        "u read a default",
        "If I call connect() without any arguments, how many attempts will it make?",
        QUEUE,
        check_all(check_says_count(5), check_kept(QUEUE, *QUEUE)),
    ),
    Task(
        "u which class",
        "Which class does the sending of the mails, and in which file is it?",
        MAILER,
        check_says("SmtpTransport", "transport.py"),
    ),
    Task(
        "u count functions",
        "How many functions are defined in geometry.py?",
        GEOMETRY,
        check_all(check_says_count(7, "seven"), check_kept(GEOMETRY, "geometry.py")),
    ),
    Task("u count rows", "Tell me how many employees work in Sales.", EMPLOYEES, check_says_count(4, "four")),
    Task("u sum a column", "What's the total of the qty column in inventory.csv?", INVENTORY, check_says_count(283)),
    Task(
        "u run and report",
        "Please run report.py and tell me the grand total it prints.",
        REPORT,
        check_all(check_says("1834"), check_kept(REPORT, *REPORT)),
    ),
    Task(
        "u does it pass",
        "Run the tests in test_slug.py. Do they pass? Just tell me, don't fix anything.",
        SLUG,
        check_all(check_says_failing, check_kept(SLUG, *SLUG)),
    ),
    Task(
        "u fix a failing test",
        "test_slug.py fails. Find out why and fix slug.py.",
        SLUG,
        check_all(
            check_kept(SLUG, "test_slug.py"),
            check_command("python test_slug.py", "ok"),
            check_python("from slug import slugify; print(slugify('  Ab  cd '), slugify('x'))", "ab-cd x"),
        ),
        2,
    ),
    Task(
        "u fix a crash",
        "python stats.py crashes with an empty list. median([]) should give None.",
        STATS,
        check_python(
            "from stats import mean, median; print(median([]), median([3, 1, 2]), median([1, 2, 3, 4]), mean([2, 4]))",
            "None 2 2.5 3.0",
        ),
    ),
    Task(
        "u syntax error",
        "broken.py won't start, there's a syntax error somewhere. Please repair it.",
        BROKEN,
        check_command("python broken.py", "apples 3 pears 5 total 8"),
    ),
    Task(
        "u create a config",
        "create a file .editorconfig with root = true on the first line, then a section [*] with indent_size = 4",
        {"main.py": "print(1)\n", "README.md": "# Thing\n"},
        check_all(
            check_compact(".editorconfig", "root=true[*]indent_size=4"), check_contains(".editorconfig", "[*]\n")
        ),
    ),
    Task(
        "u create a script",
        "I need a script countdown.py that prints the numbers from 5 down to 1, one per line, and then the word "
        "Liftoff.",
        {"README.md": "# Rocket\n\nScripts for launch day.\n"},
        check_command("python countdown.py | tr -d '!.'", "5 4 3 2 1 Liftoff"),
    ),
    Task(
        "u rename in two files",
        "Rename the function fetch_feed to download_feed everywhere it is used.",
        FEEDS,
        check_all(
            check_command("python main.py", "news: 2 items"),
            check_contains("feeds.py", "def download_feed("),
            check_lacks("feeds.py", "fetch_feed"),
            check_lacks("main.py", "fetch_feed"),
        ),
        2,
    ),
    Task(
        "u move a constant",
        "MAX_RETRIES is in the wrong place. Put it into limits.py and import it in engine.py from there.",
        ENGINE,
        check_all(
            check_command("python engine.py", "retries 7 depth 3"),
            check_contains("limits.py", "MAX_RETRIES", "MAX_DEPTH"),
            check_python("import limits; print(limits.MAX_RETRIES, limits.MAX_DEPTH)", "7 3"),
            lambda folder, _: re.search(r"^MAX_RETRIES\s*=", read_text(folder, "engine.py"), re.MULTILINE) is None,
        ),
        2,
    ),
    Task(
        "u extract a function",
        "In orders.py the tax computation 'price * 0.19' appears twice. Extract it into a function tax(price) and "
        "use it.",
        ORDERS,
        check_all(
            check_python("import orders; print(round(orders.tax(100), 2))", "total 238.0 receipt 119.0 19.0"),
            lambda folder, _: read_text(folder, "orders.py").count("0.19") == 1,
            lambda folder, _: read_text(folder, "orders.py").count("tax(") >= 3,
        ),
        2,
    ),
    Task(
        "u json list",
        'Add "prettier" to the recommendations in extensions.json',
        PACKAGE,
        check_all(
            check_json("extensions.json", lambda d: sorted(d["recommendations"]), ["eslint", "gitlens", "prettier"]),
            check_json("extensions.json", lambda d: d["unwanted"], ["beautify"]),
            check_kept(PACKAGE, "package.json"),
        ),
    ),
    Task(
        "u json script",
        "package.json: the test script should be 'vitest run' instead of jest, pls",
        PACKAGE,
        check_all(
            check_json("package.json", lambda d: d["scripts"], {"build": "tsc", "test": "vitest run"}),
            check_json("package.json", lambda d: d["name"], "panel"),
        ),
    ),
    Task(
        "u yaml replicas",
        "We need 4 replicas of the worker, the api stays at 2.",
        DEPLOY,
        check_all(
            lambda folder, _: (
                read_text(folder, "deploy.yaml").strip()
                == DEPLOY["deploy.yaml"].replace("worker:\n    replicas: 1", "worker:\n    replicas: 4").strip()
            ),
            check_kept(DEPLOY, "notes.md"),
        ),
    ),
    Task(
        "u add a dependency",
        "add httpx as a dependency to pyproject.toml",
        POETRY,
        check_all(
            check_dependencies("pyproject.toml", "click", "rich", "httpx"),
            check_contains("pyproject.toml", 'name = "courier"', "line-length = 100"),
        ),
    ),
    Task(
        "u csv price",
        "The price of a hammer has gone up to 12.50. Update inventory.csv.",
        INVENTORY,
        lambda folder, _: (
            read_text(folder, "inventory.csv").strip()
            in [INVENTORY["inventory.csv"].replace("9.99", price).strip() for price in ("12.50", "12.5")]
        ),
    ),
    Task(
        "u markdown heading",
        "In CHANGES.md the heading 'Unreleased' should become '2.1.0', nothing else.",
        CHANGES,
        check_equals("CHANGES.md", CHANGES["CHANGES.md"].replace("## Unreleased", "## 2.1.0")),
    ),
    Task(
        "u shell variable",
        "backup.sh should keep 14 backups, not 7",
        BACKUP,
        check_all(
            check_command("sh backup.sh", "backing up /srv/data to /mnt/backup keeping 14 copies"),
            check_few_changes(BACKUP, "backup.sh", 2),
        ),
    ),
    Task(
        "u javascript text",
        "change the label of the button from 'Send' to 'Submit order' (src/button.js)",
        BUTTON,
        check_all(
            check_contains("src/button.js", "Submit order", "export function button", "btn-send"),
            check_lacks("src/button.js", "'Send'", '"Send"'),
            check_few_changes(BUTTON, "src/button.js", 2),
            check_kept(BUTTON, "src/index.js"),
        ),
    ),
    Task(
        "u javascript default",
        "In src/layout.js the default number of columns ought to be 3.",
        LAYOUT,
        check_all(
            check_compact("src/layout.js", "layout(items,columns=3,gap=8)"),
            check_few_changes(LAYOUT, "src/layout.js", 2),
        ),
    ),
    Task(
        "u add a test",
        "Write a second test in test_convert.py which checks that to_fahrenheit(100) is 212.",
        CONVERT,
        check_all(
            check_contains("test_convert.py", "to_fahrenheit(100)", "212", "to_celsius(32)"),
            check_python(
                "import test_convert as t\nnames = [n for n in dir(t) if n.startswith('test')]\n"
                "for n in names:\n    getattr(t, n)()\nprint(len(names))",
                "2",
            ),
            check_kept(CONVERT, "convert.py"),
        ),
    ),
    Task(
        "u combine files",
        "Join part1.txt, part2.txt and part3.txt (in that order) into letter.txt.",
        LETTERS,
        check_all(
            check_lines(
                "letter.txt", "Dear Ada,", "thank you for the notes.", "They were a joy to read.", "Yours, Charles"
            ),
        ),
    ),
    Task(
        "u deduplicate",
        "visitors.txt has duplicate names. Remove the duplicates; each name should appear once.",
        VISITS,
        lambda folder, _: sorted(read_text(folder, "visitors.txt").split()) == ["Ann", "Ben", "Cleo", "Dov", "Eva"],
    ),
    Task(
        "u filter lines",
        "Copy all lines of sensor.log that contain FAULT to faults.log",
        SENSOR,
        check_all(
            check_lines("faults.log", "08:02 FAULT pump 3", "08:09 FAULT valve 1", "08:15 FAULT pump 3"),
            check_kept(SENSOR, "sensor.log"),
        ),
    ),
    Task(
        "u delete unused",
        "old_routes.py isn't needed any more, delete it. Keep routes.py.",
        ROUTES,
        check_all(check_gone("old_routes.py"), check_kept(ROUTES, "routes.py", "app.py")),
    ),
    Task(
        "u comment out",
        "comment out the line in app.py that starts the debug toolbar",
        ROUTES,
        check_all(
            check_command("python app.py", "routes: / /about"),
            check_command(r"grep -c '^ *#.*start_toolbar()' app.py"),
        ),
    ),
    Task(
        "u wrap in try",
        "load_recipes in recipes.py should return an empty list if the file doesn't exist (catch FileNotFoundError).",
        RECIPES,
        check_all(
            check_python(
                "from recipes import load_recipes; print(load_recipes('none.txt'), load_recipes('list.txt'))",
                "[] ['soup', 'bread']",
            ),
            check_contains("recipes.py", "FileNotFoundError"),
        ),
    ),
    Task(
        "u add an argument",
        "Give greet() in pipeline.py a second parameter punctuation with '!' as its default, and put it at the end of "
        "the greeting instead of the dot.",
        PIPELINE,
        check_python(
            "from pipeline import greet; print(greet('Bo'), greet('Bo', '?'), greet('Bo', punctuation='.'))",
            "Hello, Bo! Hello, Bo? Hello, Bo.",
        ),
    ),
    Task(
        "u print a table",
        "players.json holds names and scores. Write table.py that reads it and prints one line per player: the name, a "
        "colon, a space and the score, highest score first.",
        PLAYERS,
        check_all(check_command("python table.py", "Mia: 31 Zed: 24 Kim: 18"), check_kept(PLAYERS, "players.json")),
        2,
    ),
    Task(
        "u sort by number",
        "Order the lines of nginx-hits.txt by the number at the start, biggest first.",
        NGINX,
        check_lines("nginx-hits.txt", "1204 /", "310 /login", "97 /about", "12 /help", "8 /terms"),
    ),
    Task(
        "u dockerfile",
        "Our Dockerfile should use python 3.12-slim as base, and expose port 8080 rather than 5000.",
        DOCKER,
        check_equals("Dockerfile", DOCKER["Dockerfile"].replace("3.9-slim", "3.12-slim").replace("5000", "8080")),
        2,
    ),
)
