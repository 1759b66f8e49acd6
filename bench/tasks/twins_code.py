"""Twins of the tuning half's small tasks: programs and scripts that are written, changed and mended."""

from __future__ import annotations

from bench.tasks import twins_projects as data
from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_contains,
    check_equals,
    check_few_changes,
    check_kept,
    check_lacks,
    check_python,
)
from bench.tasks.twins_checks import check_whole_json

CODE_TWINS = (
    # rename a function in two files
    Task(
        "t rename a class",
        "The class Cart in shop.py should be called Basket. Rename it there and in checkout.py.",
        data.SHOP,
        check_all(
            check_command("python checkout.py", "42"),
            check_python("import shop; print(shop.Basket.__name__, hasattr(shop, 'Cart'))", "Basket False"),
            check_lacks("checkout.py", "Cart"),
            check_contains("checkout.py", "Basket"),
        ),
        2,
    ),
    Task(
        "t rename a method",
        "Rename the method fetch_all of Store to load_all and update report.py as well.",
        data.STORE,
        check_all(
            check_command("python report.py", "oak 3 elm 8 2"),
            check_contains("store.py", "def load_all("),
            check_lacks("store.py", "fetch_all"),
            check_lacks("report.py", "fetch_all"),
        ),
        2,
    ),
    Task(
        "t rename a shell function",
        "Rename the shell function say_it to announce, in lib.sh and run.sh.",
        data.VOICE,
        check_all(
            check_command("sh run.sh", ">> doors open >> doors closed"),
            check_command(". ./lib.sh && announce hi", ">> hi"),
            check_lacks("lib.sh", "say_it"),
            check_lacks("run.sh", "say_it"),
        ),
        2,
    ),
    # move a constant
    Task(
        "t move a function",
        "Move the function slugify from utils.py into text.py and correct the import in blog.py.",
        data.BLOG,
        check_all(
            check_python(
                "import text, utils; print(text.slugify('B c'), text.shorten('long', 2), utils.clamp(9, 1, 5))",
                "b-c lo 5",
            ),
            check_contains("text.py", "def slugify("),
            check_lacks("utils.py", "slugify"),
            check_lacks("blog.py", "utils"),
            check_command("python blog.py", "a-walk-in-may"),
        ),
        3,
    ),
    Task(
        "t move an exception",
        "Move the class StockError from warehouse.py to errors.py. "
        "warehouse.py and ship.py should import it from there.",
        data.WAREHOUSE,
        check_all(
            check_contains("errors.py", "class StockError(Exception)", "class AddressError(Exception)"),
            check_lacks("warehouse.py", "class StockError"),
            check_contains("warehouse.py", "errors"),
            check_contains("ship.py", "errors"),
            check_command("python ship.py", "short of bolt"),
            check_python("import errors, warehouse; print(errors.StockError.__module__)", "errors"),
        ),
        3,
    ),
    Task(
        "t move a table",
        "Take COLORS out of theme.py and put it into a new module palette.py. paint.py must still work.",
        data.THEME,
        check_all(
            check_python("import palette; print(palette.COLORS['sky'], len(palette.COLORS))", "#8cf 2"),
            check_contains("palette.py", "COLORS", "#8cf"),
            check_lacks("theme.py", "#8cf"),
            check_contains("theme.py", 'FONT = "serif"', "MARGIN = 12"),
            check_command("python paint.py", "serif #ec9"),
        ),
        3,
    ),
    # add a default
    Task(
        "t make a parameter optional",
        "Make the parameter retries of connect in net.py optional. Without it there should be 3 tries.",
        data.NET,
        check_python(
            "import net; print(len(net.connect('a')), len(net.connect('a', 1)), len(net.connect('a', retries=5)),"
            " len(net.connect('a', 0)), net.close('b'))",
            "3 1 5 0 b closed",
        ),
    ),
    Task(
        "t add a default width",
        "Let width in the function banner default to 12.",
        data.BANNER,
        check_all(
            check_python(
                "import banner; print(banner.banner('hats'), banner.banner('hats', 6))", "****HATS**** *HATS*"
            ),
            check_command("python show.py", "***SALE***"),
        ),
    ),
    Task(
        "t add a default to a class",
        "It should be possible to write Timer() in timer.py: seconds is then 90.",
        data.TIMER,
        check_python(
            "from timer import Timer; print(Timer().label(), "
            "Timer().seconds, Timer(125).label(), Timer(seconds=0).seconds)",
            "1m30s 90 2m5s 0",
        ),
    ),
    # fix a syntax error
    Task(
        "t fix a bracket",
        "python totals.py stops with a SyntaxError. Please fix it.",
        data.TOTALS,
        check_all(
            check_command("python totals.py", "mon 13 tue 7 days 2"), check_few_changes(data.TOTALS, "totals.py", 2)
        ),
        2,
    ),
    Task(
        "t fix an indent",
        "Something is wrong with the indentation in levels.py, it does not start. Repair it.",
        data.LEVELS,
        check_all(
            check_command("python levels.py", "gold silver bronze"),
            check_python(
                "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    import levels\n"
                "print(levels.level(59), levels.level(60), levels.level(90))",
                "bronze silver gold",
            ),
        ),
        2,
    ),
    Task(
        "t fix broken JSON",
        "load.py cannot read routes.json because it is not valid JSON. Find the mistake and fix it.",
        data.ROUTES,
        check_all(
            check_command("python load.py", "3 routes"),
            check_whole_json("routes.json", {"home": "/", "about": "/about", "help": "/help"}),
            check_kept(data.ROUTES, "load.py"),
        ),
        2,
    ),
    # mend a shell script
    Task(
        "t mend a start script",
        "sh start.sh ends with an error instead of dev server ready. Find the reason and mend the script.",
        data.START,
        check_all(
            check_command("sh start.sh", "dev server ready"),
            check_command("sh start.sh live", "live server ready"),
        ),
        3,
    ),
    Task(
        "t mend a counting script",
        "count.sh is meant to print how many lines words.txt has, but it breaks. Run it, see what is wrong and fix it.",
        data.WORDS,
        check_all(
            check_command("sh count.sh | grep -o '[0-9]*'", "3"),
            check_kept(data.WORDS, "words.txt"),
            check_command(
                "mkdir -p .probe && cp count.sh words.txt .probe && (cd .probe && echo oak >> words.txt"
                " && sh count.sh | grep -o '[0-9]*'); rm -rf .probe",
                "4",
            ),
        ),
        3,
    ),
    Task(
        "t mend a packing script",
        "pack.sh should copy recipe.md into dist and print packed. It fails: run it, find the cause and repair it.",
        data.PACK,
        check_all(
            check_command("sh pack.sh", "packed"),
            check_equals("dist/recipe.md", "# Bread"),
            check_kept(data.PACK, "recipe.md"),
        ),
        3,
    ),
    # write a script and run it
    Task(
        "t write a script for primes",
        "Write a script primes.py that prints all prime numbers below 30, one per line. Then run it.",
        {"notes.txt": "math homework\n"},
        check_command("python primes.py", "2 3 5 7 11 13 17 19 23 29"),
        2,
    ),
    Task(
        "t write a shell script",
        "Write a shell script countdown.sh that prints the numbers from 5 down to 1 and then the word liftoff, "
        "each on its own line, and run it.",
        {"rocket.md": "# Rocket\n"},
        check_command("bash countdown.sh", "5 4 3 2 1 liftoff"),
        2,
    ),
    Task(
        "t write a script that reads a file",
        "Write a script longest.py that prints the longest word in words.txt and nothing else, and run it.",
        data.WORD_LIST,
        check_all(
            check_command("python longest.py", "blackcurrant"),
            check_command(
                "d=$(mktemp -d) && cp longest.py $d && cd $d && printf 'oak\\nwillow\\nash\\n' > words.txt && "
                "python longest.py; rc=$?; rm -r $d; exit $rc",
                "willow",
            ),
            check_kept(data.WORD_LIST, "words.txt"),
        ),
        2,
    ),
    # fix a failing test
    Task(
        "t fix a failing slug",
        "The test in test_slug.py fails when I run it with python. Correct slug.py, not the test.",
        data.SLUG,
        check_all(
            check_command("python test_slug.py", "passed"),
            check_python("import slug; print(slug.slugify('Old Town Hall'))", "old-town-hall"),
            check_kept(data.SLUG, "test_slug.py"),
        ),
        2,
    ),
    Task(
        "t fix a failing leap year",
        "python check_leap.py ends with an error. Fix is_leap in calendar_tools.py so that it runs through.",
        data.LEAP,
        check_all(
            check_command("python check_leap.py"),
            check_python(
                "from calendar_tools import is_leap\n"
                "print([y for y in (1600, 1700, 2100, 2016, 2018, 2400) if is_leap(y)])",
                "[1600, 2016, 2400]",
            ),
            check_kept(data.LEAP, "check_leap.py"),
        ),
        2,
    ),
    Task(
        "t fix a failing unit test",
        "One test in test_cart.py fails. Find the bug in cart.py and fix it.",
        data.CART,
        check_all(
            check_command("python -m unittest -q test_cart"),
            check_python("from cart import total; print(total([]), total([(2, 3), (4, 5), (1, 1)]))", "0 27"),
            check_kept(data.CART, "test_cart.py"),
        ),
        2,
    ),
    # add a function
    Task(
        "t add a function for days",
        "Add a function days(hours) to clock.py that returns how many days the hours are, so days(48) is 2.",
        data.CLOCK,
        check_python(
            "import clock; print(clock.days(48) == 2, clock.days(36) == 1.5, clock.minutes(2), clock.seconds(1))",
            "True True 120 3600",
        ),
    ),
    Task(
        "t add a function for initials",
        'Add a function initials(first, last) to names.py. For "Ada" and "Byron" it returns "AB".',
        data.NAMES,
        check_python(
            "import names; print(names.initials('Ada', 'Byron'), names.initials('Max', 'Frisch'), "
            "names.full('A', 'B'), names.sort_key('A', 'B'))",
            "AB MF A B B, A",
        ),
    ),
    Task(
        "t add a function for the span",
        "Write a new function span(values) in stats.py: it returns the largest value minus the smallest.",
        data.STATS,
        check_python(
            "import stats; print(stats.span([4, 9, 2]), stats.span([-3, 5]), "
            "stats.mean([1, 3]), stats.largest([1, 8]))",
            "7 8 2.0 8",
        ),
    ),
    # mend a crash
    Task(
        "t mend a missing key",
        "menu.py crashes for a dish that is not in PRICES. Make price return 0 for such a dish.",
        data.MENU,
        check_all(
            check_command("python menu.py", "5 0"),
            check_python("from menu import price; print(price('stew'), price('bread'), price('tea'))", "9 2 0"),
        ),
    ),
    Task(
        "t mend a missing variable",
        "pool.py fails if the environment variable WORKERS is not set. It should then use 4 workers.",
        data.WORKERS,
        check_all(
            check_command("unset WORKERS; python pool.py", "workers 4"),
            check_command("export WORKERS=9; python pool.py", "workers 9"),
        ),
    ),
    Task(
        "t mend an empty list",
        "race.py stops with an error while times is empty. Let it print best none then.",
        data.RACE,
        check_all(
            check_command("python race.py", "best none"),
            check_command("sed 's/^times = \\[\\]/times = [31, 28]/' race.py > again.py && python again.py", "best 28"),
        ),
    ),
)
