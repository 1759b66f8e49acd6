"""Everyday chores, first part, asked as people type them: 24 small ones here, 12 longer ones beside them."""

from __future__ import annotations

from bench.tasks import guests_projects as data
from bench.tasks.guests_checks import (
    check_defines,
    check_env,
    check_ini,
    check_not_defines,
    check_replaced,
    check_runs_tests,
    check_sorted_imports,
)
from bench.tasks.guests_first_long import LONG
from bench.tasks.strangers_checks import check_lacks_word, check_matches, check_toml
from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_few_changes,
    check_json,
    check_kept,
    check_lacks,
    check_python,
    check_says,
)
from bench.tasks.unseen import check_says_count

LEVEL_WORDS = ("warning", "WARNING", '"warning"', "'warning'")

SMALL = (
    Task(
        "g most seats",
        "how many seats can one person book at most?",
        data.BOOKING,
        check_all(check_says_count(6, "six"), check_kept(data.BOOKING, *data.BOOKING)),
    ),
    Task(
        "g where is it made",
        "which function generates the invoice numbers, and what file is it in?",
        data.BILLING,
        check_all(check_says("next_invoice_number", "numbers.py"), check_kept(data.BILLING, *data.BILLING)),
    ),
    Task(
        "g plants in the shade",
        "How many plants in garden.csv want shade?",
        data.GARDEN,
        check_all(check_says_count(5, "five"), check_kept(data.GARDEN, "garden.csv")),
    ),
    Task(
        "g last throw",
        "run dice.py and tell me what the last throw was",
        data.DICE,
        check_all(check_says_count(640), check_kept(data.DICE, "dice.py")),
    ),
    Task(
        "g database name",
        "What's the name of the database in .env?",
        data.ENV,
        check_all(check_says("orders_eu"), check_kept(data.ENV, *data.ENV)),
    ),
    Task(
        "g size of 2k",
        "what does parse_size('2k') return?",
        data.SIZES,
        check_all(check_says("2048"), check_kept(data.SIZES, *data.SIZES)),
    ),
    Task(
        "g requirements",
        "make a requirements.txt with flask and pyyaml, one per line",
        data.NOTHING_MUCH,
        check_matches("requirements.txt", r"(?i)\A\s*(flask\b.*\n\s*pyyaml\b.*|pyyaml\b.*\n\s*flask\b.*)\s*\Z"),
    ),
    Task(
        "g settings file",
        "create settings.json with theme set to dark and fontSize set to 14",
        data.EDITOR,
        check_all(
            check_json("settings.json", lambda found: found["theme"], "dark"),
            check_json("settings.json", lambda found: (len(found), str(found["fontSize"])), (2, "14")),
        ),
    ),
    Task(
        "g log level",
        "set the log level to warning in config.yml",
        data.CONFIG_YML,
        check_replaced(data.CONFIG_YML, "config.yml", "level: debug", *(f"level: {word}" for word in LEVEL_WORDS)),
    ),
    Task(
        "g line length",
        "change ruff's line-length to 110",
        data.TOML,
        check_toml("pyproject.toml", lambda found: found["tool"]["ruff"].update({"line-length": 110}), data.TOML),
    ),
    Task(
        "g cache off",
        "turn off the cache in app.ini please",
        data.INI,
        check_ini("app.ini", data.INI, "cache", "enabled", "false", "no", "off", "0"),
    ),
    Task("g app port", "set APP_PORT to 9090 in .env", data.ENV, check_env(".env", data.ENV, APP_PORT="9090")),
    Task(
        "g rename calc",
        "Rename the function calc to shipping_cost in prices.py and checkout.py. Leave calc_all as it is.",
        data.PRICES,
        check_all(
            check_command("python checkout.py", "one parcel: 5 all: 17"),
            check_defines("prices.py", "shipping_cost", "calc_all"),
            check_lacks_word("calc", "prices.py", "checkout.py"),
        ),
        2,
    ),
    Task(
        "g shorten",
        "test_shorten.py fails, fix shorten.py",
        data.SHORTEN,
        check_all(check_kept(data.SHORTEN, "test_shorten.py"), check_command("python test_shorten.py", "ok")),
        2,
    ),
    Task(
        "g default language",
        "move DEFAULT_LANG from translate.py to constants.py and import it from there",
        data.TRANSLATE,
        check_all(
            check_command("python translate.py", "nb en de"),
            check_defines("constants.py", "DEFAULT_LANG", "LANGUAGES"),
            check_not_defines("translate.py", "DEFAULT_LANG"),
        ),
        2,
    ),
    Task(
        "g separator",
        'Add a parameter sep to join_names in names.py, default ", ", that is put between the names.',
        data.NAMES,
        check_all(
            check_python(
                "import names as n; print(n.join_names(['a', 'b']), n.join_names(['a', 'b'], sep='/'),"
                " n.join_names(['a', 'b'], '+'), n.sort_names(['b', 'A']))",
                "a, b a/b a+b ['A', 'b']",
            ),
            check_command("python main.py", "Ida, Per"),
        ),
    ),
    Task(
        "g sort imports",
        "sort the imports in tools.py alphabetically",
        data.IMPORTS,
        check_all(
            check_sorted_imports("tools.py", "csv", "json", "os", "re", "sys"),
            check_command("python tools.py a-b.txt", '{"name": "a_b_txt", "csv": "csv"}'),
        ),
    ),
    Task(
        "g count vowels",
        "write a function count_vowels(text) in words.py and put a test for it in test_words.py",
        data.WORDS,
        check_all(
            check_python(
                "import words as w; print(w.count_vowels('hello'), w.count_vowels('xyz'), w.count_words('a b'))",
                "2 0 2",
            ),
            check_runs_tests("test_words.py", "count_vowels"),
        ),
        2,
    ),
    Task(
        "g new brand",
        "the product is called Bluebird now. replace Skylark by Bluebird in all files",
        data.BRAND,
        check_all(*(check_replaced(data.BRAND, path, "Skylark", "Bluebird") for path in data.BRAND)),
        3,
    ),
    Task(
        "g loud flag",
        "add a flag --loud to hello.py which prints the greeting in upper case",
        data.HELLO,
        check_all(
            check_command("python hello.py Ada --loud", "HELLO ADA"), check_command("python hello.py Ada", "Hello Ada")
        ),
    ),
    Task(
        "g debug prints",
        "Remove the DEBUG print lines from sync.py, keep the rest.",
        data.SYNC,
        check_all(
            check_command("python sync.py", "synced 2 files"),
            check_lacks("sync.py", "DEBUG"),
            check_few_changes(data.SYNC, "sync.py", 3),
        ),
    ),
    Task(
        "g free shipping",
        "free shipping should start at 75 instead of 50 (cart.js)",
        data.CART,
        check_all(
            check_replaced(data.CART, "js/cart.js", "FREE_SHIPPING_FROM = 50", "FREE_SHIPPING_FROM = 75"),
            check_kept(data.CART, "js/page.js"),
        ),
    ),
    Task(
        "g tick it off",
        "tick off 'buy paint' in todo.md",
        data.HOUSE_LIST,
        check_replaced(data.HOUSE_LIST, "todo.md", "[ ] buy paint", "[x] buy paint", "[X] buy paint"),
    ),
    Task(
        "g greet by name",
        "greet.sh should greet the name given as its first argument instead of World, e.g. Hello Ada",
        data.GREET_SH,
        check_all(
            check_command("sh greet.sh Ada | tr -d '!,'", "Hello Ada"),
            check_command("sh greet.sh Bo | tr -d '!,'", "Hello Bo"),
        ),
    ),
)

GUESTS_FIRST = (*SMALL, *LONG)
