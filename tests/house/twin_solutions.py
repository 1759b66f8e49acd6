"""A solution for each of the twins' tasks, in the form of the strangers', and near misses, which finish none."""

from __future__ import annotations

from bench.tasks import twins_projects as data

from tests.house.guest_solutions import Solution

SLUGIFY = '\n\ndef slugify(title):\n    return "-".join(title.lower().split())\n'
STOCK_ERROR = 'class StockError(Exception):\n    """Not enough on the shelf."""\n'
COLORS = 'COLORS = {"sky": "#8cf", "sand": "#ec9"}\n'
LEAP_YEAR = "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
PRIMES = "for n in range(2, 30):\n    if all(n % divisor for divisor in range(2, n)):\n        print(n)\n"
COUNTDOWN = "for i in 5 4 3 2 1; do echo $i; done\necho liftoff\n"
LONGEST = 'print(max(open("words.txt").read().split(), key=len))\n'

FILE_SOLUTIONS: dict[str, Solution] = {
    "t read a size": ("The page size is 36.", {}),
    "t read a nested value": ("It runs in Europe/Lisbon.", {}),
    "t read a name": ("Irene Voss", {}),
    "t run a draw": ("winner 99151", {}),
    "t run the checks": ("autumn FAILED", {}),
    "t find the file with a function": (
        "`parse_invoice` is defined in `billing/reader.py`; billing/report.py only imports it.",
        {},
    ),
    "t find the file with a word": ("It appears in trips/wednesday.txt.", {}),
    "t find the file with a setting": ("conf/queue.ini (retries = 6)", {}),
    "t count the fixmes": ("There are **5** FIXME comments: 2 in backup.sh, 3 in deploy.sh.", {}),
    "t count lines in a log": ("Seven lines.", {}),
    "t count the functions": ("tools.py defines 6.", {}),
    "t count the tables": ("5", {}),
    "t count the pages": ("There are 6.", {}),
    "t create an ignore file": ("Created.", {".gitignore": "build/\n*.log\n"}),
    "t create a file in a folder": ("Created.", {"data/cities.csv": "city,country\n"}),
    "t add a pattern at the end": ("Added.", {".gitignore": ("", "*.log\n")}),
    "t add a row at the end": ("Added.", {"members.csv": ("", "Nadia,Lisbon,34\n")}),
    "t add a requirement at the end": ("Added.", {"requirements.txt": ("", "\nhttpx\n")}),
    "t fix a typo in a manual": ("Corrected.", {"manual.md": ("seperate", "separate")}),
    "t fix a typo in a message": ("Corrected.", {"login.py": ("Acess", "Access")}),
    "t fix a typo in a text": ("Corrected.", {"faq.txt": ("definately", "definitely")}),
    "t change the crate version": ("Set.", {"Cargo.toml": ('\nversion = "1.9.2"', '\nversion = "2.0.0"')}),
    "t change the module version": ("Updated.", {"orbit/__init__.py": ("5.0.3", "5.1.0")}),
    "t change the base image": ("Changed.", {"Dockerfile": ("3.9", "3.12")}),
    "t change a flag in JSON": ("It is on.", {"tsconfig.json": ('"strict": false', '"strict": true')}),
    "t change an entry in JSON": ("Changed.", {"members.json": ("petra@old", "petra@club")}),
    "t change a number in JSON": (
        "Raised.",
        {"client.json": ('"download": {"retries": 2', '"download": {"retries": 5')},
    ),
    "t add a key to a YAML section": ("Added.", {"deploy.yaml": ("  memory: 256\n", "  memory: 256\n  replicas: 3\n")}),
    "t add a key to TOML": ("Added.", {"service.toml": ("\n\n[http]", "\nmax_size = 500\n\n[http]")}),
    "t add up a column": ("The total is 149.", {"total.txt": "149\n"}),
    "t count words and write the number": ("Saved.", {"words.txt": "20\n"}),
    "t delete a folder": ("Removed.", {"tmp_cache/page1.html": None, "tmp_cache/img/logo.svg": None}),
    "t delete the backups": ("Deleted.", {"drafts/letter.txt.bak": None, "drafts/speech.bak": None}),
    "t rename a script": ("Renamed.", {"run.sh": None, "start.sh": "#!/bin/sh\necho up\n"}),
    "t rename a file in a folder": (
        "Renamed.",
        {"letters/draft.txt": None, "letters/final.txt": "Dear Mrs Holm,\nthank you.\n"},
    ),
    "t move a test into a folder": (
        "Moved.",
        {"test_parser.py": None, "tests/test_parser.py": data.PARSER["test_parser.py"]},
    ),
    "t move two files into a folder": (
        "Moved.",
        {
            "rain.csv": None,
            "wind.csv": None,
            "measured/rain.csv": data.MEASURED["rain.csv"],
            "measured/wind.csv": data.MEASURED["wind.csv"],
        },
    ),
}
CODE_SOLUTIONS: dict[str, Solution] = {
    "t rename a class": ("Renamed.", {"shop.py": ("Cart", "Basket"), "checkout.py": ("Cart", "Basket")}),
    "t rename a method": ("Renamed.", {"store.py": ("fetch_all", "load_all"), "report.py": ("fetch_all", "load_all")}),
    "t rename a shell function": ("Renamed.", {"lib.sh": ("say_it", "announce"), "run.sh": ("say_it", "announce")}),
    "t move a function": (
        "Moved.",
        {"utils.py": (SLUGIFY, ""), "text.py": ("", SLUGIFY), "blog.py": ("from utils", "from text")},
    ),
    "t move an exception": (
        "Moved.",
        {
            "warehouse.py": (STOCK_ERROR, "from errors import StockError\n"),
            "errors.py": ("", f"\n\n{STOCK_ERROR}"),
            "ship.py": ("import StockError, take", "import take\nfrom errors import StockError"),
        },
    ),
    "t move a table": (
        "Moved.",
        {
            "theme.py": (COLORS, ""),
            "palette.py": COLORS,
            "paint.py": ("import COLORS, FONT", "import FONT\nfrom palette import COLORS"),
        },
    ),
    "t make a parameter optional": ("Done.", {"net.py": ("retries):", "retries=3):")}),
    "t add a default width": ("Done.", {"banner.py": ("width):", "width=12):")}),
    "t add a default to a class": ("Done.", {"timer.py": ("seconds):", "seconds=90):")}),
    "t fix a bracket": ("Fixed.", {"totals.py": ("sum(amounts)", "sum(amounts))")}),
    "t fix an indent": ("Repaired.", {"levels.py": ("    return 'silver'", "        return 'silver'")}),
    "t fix broken JSON": ("Fixed.", {"routes.json": ('"/about"', '"/about",')}),
    "t mend a start script": ("Mended.", {"start.sh": ("", "fi\n")}),
    "t mend a counting script": ("Fixed.", {"count.sh": ("word.txt", "words.txt")}),
    "t mend a packing script": ("Repaired.", {"pack.sh": ("rm -rf dist\n", "rm -rf dist\nmkdir dist\n")}),
    "t write a script for primes": ("Written and run.", {"primes.py": PRIMES}),
    "t write a shell script": ("Written and run.", {"countdown.sh": COUNTDOWN}),
    "t write a script that reads a file": ("It prints blackcurrant.", {"longest.py": LONGEST}),
    "t fix a failing slug": ("Corrected.", {"slug.py": ('.replace(" ", "_")', '.lower().replace(" ", "-")')}),
    "t fix a failing leap year": ("Fixed.", {"calendar_tools.py": ("year % 4 == 0", LEAP_YEAR)}),
    "t fix a failing unit test": ("Fixed.", {"cart.py": ("amount = price", "amount += price")}),
    "t add a function for days": ("Added.", {"clock.py": ("", "\n\ndef days(hours):\n    return hours / 24\n")}),
    "t add a function for initials": (
        "Added.",
        {"names.py": ("", "\n\ndef initials(first, last):\n    return first[0] + last[0]\n")},
    ),
    "t add a function for the span": (
        "Added.",
        {"stats.py": ("", "\n\ndef span(values):\n    return max(values) - min(values)\n")},
    ),
    "t mend a missing key": ("Mended.", {"menu.py": ("PRICES[dish]", "PRICES.get(dish, 0)")}),
    "t mend a missing variable": (
        "Mended.",
        {"pool.py": ('os.environ["WORKERS"]', 'os.environ.get("WORKERS", 4)')},
    ),
    "t mend an empty list": ("Mended.", {"race.py": ("min(times)", "min(times) if times else 'none'")}),
}
TWIN_SOLUTIONS = {**FILE_SOLUTIONS, **CODE_SOLUTIONS}

NEAR_MISSES: tuple[tuple[str, Solution], ...] = (
    ("t find the file with a function", ("billing/mailer.py, billing/reader.py, billing/report.py", {})),
    ("t find the file with a word", ("trips/monday.txt", {})),
    ("t count the fixmes", ("15", {})),
    ("t count lines in a log", ("There are 6 lines, the last at 07:58.", {})),
    ("t add a requirement at the end", ("Added.", {"requirements.txt": ("", "httpx\n")})),
    ("t fix a typo in a message", ("Corrected.", {"login.py": ("Acess denied", "Denied")})),
    ("t change the crate version", ("Set.", {"Cargo.toml": ("1.9.2", "2.0.0")})),
    ("t change a flag in JSON", ("It is on.", {"tsconfig.json": ('"strict": false', '"strict": 1')})),
    ("t change an entry in JSON", ("Changed.", {"members.json": ("@old", "@club")})),
    ("t change a number in JSON", ("Raised.", {"client.json": (": 2,", ": 5,")})),
    ("t add a key to a YAML section", ("Added.", {"deploy.yaml": ("", "  replicas: 3\n")})),
    ("t add a key to a YAML section", ("Added.", {"deploy.yaml": ("256\n", "256\n   replicas: 3\n")})),
    ("t add a key to TOML", ("Added.", {"service.toml": ("", "max_size = 500\n")})),
    ("t add a key to TOML", ("Added.", {"service.toml": ("max_size = 20", "max_size = 500")})),
    (
        "t delete the backups",
        (
            "Deleted.",
            {"drafts/letter.txt.bak": None, "drafts/speech.bak": None, "drafts/backup_plan.txt": None},
        ),
    ),
    ("t rename a script", ("Renamed.", {"start.sh": "#!/bin/sh\necho up\n"})),
    (
        "t move two files into a folder",
        (
            "Moved.",
            {"measured/rain.csv": data.MEASURED["rain.csv"], "measured/wind.csv": data.MEASURED["wind.csv"]},
        ),
    ),
    ("t rename a class", ("Renamed.", {"shop.py": ("Cart", "Basket")})),
    ("t rename a method", ("Renamed.", {"report.py": ("fetch_all", "load_all")})),
    (
        "t move a function",
        ("Moved.", {"text.py": ("", "from utils import slugify\n"), "blog.py": ("from utils", "from text")}),
    ),
    ("t fix an indent", ("Repaired.", {"levels.py": ("    if points >= 60:\n    return 'silver'\n", "")})),
    ("t mend a start script", ("Mended.", {"start.sh": "echo dev server ready\n"})),
    ("t mend a counting script", ("Fixed.", {"count.sh": "echo 3\n"})),
    ("t write a script that reads a file", ("It prints blackcurrant.", {"longest.py": 'print("blackcurrant")\n'})),
    ("t fix a failing unit test", ("Fixed.", {"test_cart.py": None})),
    ("t mend an empty list", ("Mended.", {"race.py": "print('best none')\n"})),
)
