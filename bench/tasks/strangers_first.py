"""The first half of the strangers' tasks: everyday requests by someone who had not seen the code that serves them."""

from __future__ import annotations

from bench.tasks import strangers_faults as faults
from bench.tasks import strangers_programs as programs
from bench.tasks import strangers_projects as data
from bench.tasks.strangers_checks import (
    check_json_change,
    check_lacks_match,
    check_lacks_word,
    check_matches,
    check_passes,
    check_table,
    check_tests,
    check_toml,
)
from bench.tasks.strangers_questions import QUESTIONS_FIRST
from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_contains,
    check_few_changes,
    check_gone,
    check_json,
    check_kept,
    check_lacks,
    check_python,
    read_text,
    squeeze,
)
from bench.tasks.unseen import check_lines, check_says_count

STRANGERS_FIRST: tuple[Task, ...] = (
    *QUESTIONS_FIRST,
    Task(
        "x create a gitignore",
        "this repo has no .gitignore yet - please add one that ignores __pycache__ and .venv",
        programs.TEMPERATURE,
        check_all(
            check_matches(".gitignore", r"^(\*\*/|/)?__pycache__(/\*{0,2})?\s*$"),
            check_matches(".gitignore", r"^(\*\*/|/)?\.venv(/\*{0,2})?\s*$"),
            check_kept(programs.TEMPERATURE, *programs.TEMPERATURE),
        ),
    ),
    Task(
        "x create a script",
        "Create a file hello.py that prints Hello, world! when it is run.",
        data.CHORES,
        check_all(check_command("python hello.py", "Hello, world!"), check_kept(data.CHORES, *data.CHORES)),
    ),
    Task(
        "x background of a page",
        "The body's background in style.css should be #fafafa instead of white.",
        data.SITE,
        check_all(
            check_matches("style.css", r"body\s*\{[^}]*background(-color)?:\s*#fafafa"),
            check_matches("style.css", r"\.card\s*\{[^}]*background:\s*white"),
            check_few_changes(data.SITE, "style.css", 2),
            check_kept(data.SITE, "index.html"),
        ),
    ),
    Task(
        "x bump a version",
        "bump the version to 0.5.0",
        data.TIDEPOOL,
        check_all(
            check_toml("pyproject.toml", lambda found: found["project"].update(version="0.5.0"), data.TIDEPOOL),
            check_kept(data.TIDEPOOL, "tidepool/cli.py", "README.md"),
        ),
    ),
    Task(
        "x add a median",
        "can you add a median(numbers) function to stats.py? for an even count take the mean of the middle two",
        programs.STATS,
        check_all(
            check_contains("stats.py", "def median", "def mean", "def spread"),
            check_kept(programs.STATS, "test_stats.py"),
            check_python(
                "from stats import median\nprint(float(median([9, 1, 5])), float(median([4, 1, 3, 2])))", "5.0 2.5"
            ),
        ),
    ),
    Task(
        "x add a conversion",
        "Add a function f_to_c(fahrenheit) to convert.py, the reverse of c_to_f.",
        programs.TEMPERATURE,
        check_all(
            check_contains("convert.py", "def f_to_c", "def c_to_f", "def km_to_miles"),
            check_python(
                "from convert import c_to_f, f_to_c\nprint(round(f_to_c(212)), round(f_to_c(32)), c_to_f(100))",
                "100 0 212.0",
            ),
        ),
    ),
    Task(
        "x rename in js",
        "in the js files: sumUp should be called cartTotal instead",
        data.CART,
        check_all(
            check_lacks_word("sumUp", "cart.js", "main.js"),
            check_matches("cart.js", r"cartTotal\s*(\(|=)"),
            check_matches("cart.js", r"exports.*\bcartTotal\b"),
            check_matches("main.js", r"cartTotal\b.*require"),
            check_contains("main.js", "cartTotal(items)"),
            check_few_changes(data.CART, "cart.js", 4),
            check_few_changes(data.CART, "main.js", 4),
        ),
        2,
    ),
    Task(
        "x rename a function",
        "qty_of is an ugly name. Rename it to quantity_of everywhere.",
        programs.STOCK,
        check_all(
            check_lacks_word("qty_of", "stock.py", "shelf.py"),
            check_contains("stock.py", "def quantity_of"),
            check_command("python shelf.py", "bolt: 120 left nut: 80 left washer: 0 left"),
            check_python("import stock\nprint(stock.is_sold_out('nut'))", "False"),
        ),
        2,
    ),
    Task(
        "x failing leap year",
        "make the tests pass (don't touch the test file)",
        faults.LEAP,
        check_all(
            check_passes(faults.LEAP, "test_leap.py", "test_usual", "test_centuries"),
            check_python(
                "from leap import is_leap\nprint(is_leap(2100), is_leap(2400), is_leap(1996))", "False True True"
            ),
        ),
    ),
    Task(
        "x failing initials",
        "One of the tests in test_names.py is red. Can you find out why and repair names.py?",
        faults.INITIALS,
        check_passes(
            faults.INITIALS, "test_names.py", "test_full_name", "test_initials", "test_initials_of_small_letters"
        ),
    ),
    Task(
        "x palindrome and case",
        "is_palindrome says False for 'Level'. Upper and lower case shouldn't matter.",
        faults.PALINDROME,
        check_all(
            check_contains("words.py", "def vowels"),
            check_python(
                "from words import is_palindrome\nprint(*map(is_palindrome, ['Level', 'noon', 'Lever']))",
                "True True False",
            ),
        ),
    ),
    Task(
        "x countdown ends too early",
        "The countdown stops at 1, but it has to go down to 0. Please fix it",
        faults.COUNTDOWN,
        check_all(
            check_few_changes(faults.COUNTDOWN, "countdown.py", 4),
            check_python("from countdown import countdown\nprint(*countdown(3))\nprint(*countdown(1))", "3 2 1 0 1 0"),
        ),
    ),
    Task(
        "x remove an unused module",
        "legacy.py isn't used by anything any more, get rid of it",
        programs.LEGACY,
        check_all(check_gone("legacy.py"), check_kept(programs.LEGACY, "main.py", "importer.py")),
    ),
    Task(
        "x rename a module",
        "Rename utils.py to helpers.py and make sure main.py still works.",
        programs.HELPERS,
        check_all(
            check_gone("utils.py"),
            check_contains("helpers.py", "def tidy", "def first"),
            check_lacks_word("utils", "main.py"),
            check_command("python main.py", "a b 4"),
        ),
        2,
    ),
    Task(
        "x move a limit",
        "Move MAX_BYTES from upload.py to limits.py, where the other limits are, and import it from there.",
        programs.UPLOAD,
        check_all(
            check_matches("limits.py", r"^MAX_BYTES\s*=\s*5_?000_?000"),
            check_contains("limits.py", "MAX_FILES = 20", "MAX_NAME = 64"),
            check_lacks_match("upload.py", r"^MAX_BYTES\s*="),
            check_kept(programs.UPLOAD, "main.py"),
            check_python(
                "from upload import may_upload\nprint(*map(may_upload, [[5000000], [5000001], [1] * 21]))",
                "True False False",
            ),
        ),
        2,
    ),
    Task(
        "x extract a helper",
        "receipt.py formats cents the same way twice. Pull that out into a function money(cents), used in both places.",
        programs.RECEIPT,
        check_all(
            check_contains("receipt.py", "def money"),
            check_matches("receipt.py", r"(?s)money\(.*money\(.*money\("),
            lambda folder, _: squeeze(read_text(folder, "receipt.py")).count("/100") == 1,
            check_kept(programs.RECEIPT, "main.py"),
            check_python(
                "from receipt import footer, line, money\nprint(money(5), line('tea', 250), footer([250, 199]))",
                "0.05 EUR tea: 2.50 EUR Total: 4.49 EUR",
            ),
        ),
    ),
    Task(
        "x guests named twice",
        "guests.txt has some names more than once. Remove the duplicates, keep the order of first appearance.",
        data.GUESTS,
        check_all(
            check_lines("guests.txt", "Nora", "Sam", "Ibrahim", "Chloe", "Yuki"), check_kept(data.GUESTS, "plan.md")
        ),
    ),
    Task(
        "x add a language",
        'We support Italian now: add "it" to the languages in config.json.',
        data.SHOP,
        check_all(
            check_json_change("config.json", lambda found: found["shop"]["languages"].append("it"), data.SHOP),
            check_kept(data.SHOP, "shop.py"),
        ),
    ),
    Task(
        "x restart the database",
        "Could you give the db service a `restart: always` in the compose file? Only db, not the others.",
        data.COMPOSE,
        check_all(
            check_matches(
                "docker-compose.yml",
                r"^  db:\n((    .*)?\n)*?    restart: [\"']?always[\"']?\s*$(?=(\n    .*)*\n+  cache:)",
            ),
            check_few_changes(data.COMPOSE, "docker-compose.yml", 1),
            check_kept(data.COMPOSE, "README.md"),
        ),
    ),
    Task(
        "x title of a page",
        'Set the title of index.html to "Harbour Bakery". The big heading stays as it is.',
        data.SITE,
        check_all(
            check_matches("index.html", r"<title>\s*Harbour Bakery\s*</title>"),
            check_contains("index.html", "<h1>Welcome aboard</h1>"),
            check_few_changes(data.SITE, "index.html", 2),
            check_kept(data.SITE, "style.css"),
        ),
    ),
    Task(
        "x change a heading",
        'In README.md change the heading "Usage" to "How to use it".',
        data.MANUAL,
        check_all(
            check_matches("README.md", r"^## How to use it\s*$"),
            check_lacks("README.md", "Usage"),
            check_few_changes(data.MANUAL, "README.md", 2),
            check_kept(data.MANUAL, "docs/install.md", "docs/faq.md"),
        ),
    ),
    Task(
        "x ignore logs",
        "git should ignore log files too: put *.log at the end of .gitignore",
        data.IGNORES,
        check_all(
            check_lines(".gitignore", *data.IGNORES[".gitignore"].split(), "*.log"), check_kept(data.IGNORES, "main.py")
        ),
    ),
    Task(
        "x lines to json",
        "turn names.txt into a json list of strings, in names.json",
        data.NAMES,
        check_all(
            check_kept(data.NAMES, *data.NAMES),
            check_json("names.json", lambda found: found, ["Mara", "Jonas", "Priya", "Tomasz", "Leila"]),
        ),
    ),
    Task(
        "x json to csv",
        "I need temps.json as a CSV file, temps.csv, with the header city,low,high.",
        data.TEMPS,
        check_all(
            check_kept(data.TEMPS, *data.TEMPS),
            check_table("temps.csv", "city,low,high", "Oslo,-4,2", "Rome,7,15", "Cairo,11,22"),
        ),
    ),
    Task(
        "x test a stack",
        "Please write test_stack.py: push two items onto a Stack and check that pop gives back the last one first.",
        programs.STACK,
        check_all(
            check_kept(programs.STACK, *programs.STACK),
            check_tests("test_stack.py", "stack.py", "self.items.pop()", "self.items.pop(0)"),
        ),
    ),
    Task(
        "x test shout",
        "texttools.shout has no test. add test_texttools.py with one or two tests for it",
        programs.TEXTS,
        check_all(
            check_kept(programs.TEXTS, *programs.TEXTS),
            check_tests("test_texttools.py", "texttools.py", 'text.strip().upper() + "!"', "text"),
        ),
    ),
    Task(
        "x change, run, save",
        'Change the greeting in greet.py to "Good morning", then run it and save what it prints in result.txt',
        programs.GREET,
        check_all(
            check_few_changes(programs.GREET, "greet.py", 4),
            check_lines("result.txt", "Good morning, Ruth!", "Good morning, Omar!"),
            check_command("python greet.py", "Good morning, Ruth! Good morning, Omar!"),
        ),
        3,
    ),
    Task(
        "x write numbers, add them",
        "Create numbers.txt with the numbers from 1 to 10, one per line. Then tell me what they add up to.",
        data.NAMES,
        check_all(
            check_lines("numbers.txt", *map(str, range(1, 11))),
            check_says_count(55),
            check_kept(data.NAMES, "names.txt"),
        ),
        2,
    ),
)
