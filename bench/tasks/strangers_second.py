"""The second half of the strangers' tasks: everyday requests by someone who had not seen the code that serves them."""

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
    check_records,
    check_tests,
    check_toml,
)
from bench.tasks.strangers_questions import QUESTIONS_SECOND
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
    read_text,
)

STRANGERS_SECOND: tuple[Task, ...] = (
    *QUESTIONS_SECOND,
    Task(
        "x create a start script",
        "I'd like a shell script run.sh that starts app.py with python3.",
        programs.CLOCK,
        check_all(
            check_matches("run.sh", r"python3?\b.*app\.py"),
            check_kept(programs.CLOCK, *programs.CLOCK),
            check_command("sh run.sh", "ready on 8050"),
        ),
    ),
    Task(
        "x create a list in json",
        "Make a file data/colors.json holding a JSON list of the three strings red, green and blue.",
        data.SITE,
        check_all(
            check_json("data/colors.json", lambda found: found, ["red", "green", "blue"]),
            check_kept(data.SITE, *data.SITE),
        ),
    ),
    Task(
        "x turn debug off",
        "Turn off debug mode in .env",
        data.DOTENV,
        check_all(
            check_matches(".env", r"(?i)^DEBUG=[\"']?(false|0|off|no)[\"']?\s*$"),
            check_few_changes(data.DOTENV, ".env", 2),
            check_kept(data.DOTENV, "app.py"),
        ),
    ),
    Task(
        "x raise retries",
        "In client.py, raise the number of retries from 3 to 6. Leave the timeout alone.",
        programs.CLIENT,
        check_all(
            check_matches("client.py", r"^MAX_RETRIES\s*=\s*6\b"),
            check_matches("client.py", r"^TIMEOUT_SECONDS\s*=\s*3\b"),
            check_few_changes(programs.CLIENT, "client.py", 2),
            check_kept(programs.CLIENT, "main.py"),
        ),
    ),
    Task(
        "x add a method",
        "Please give the Stack class a peek method that returns the top item without taking it off.",
        programs.STACK,
        check_all(
            check_contains("stack.py", "def peek", "def pop", "def push"),
            check_python(
                "from stack import Stack\ns = Stack()\ns.push(4)\ns.push(9)\nprint(s.peek(), len(s), s.pop(), s.pop())",
                "9 2 9 4",
            ),
        ),
    ),
    Task(
        "x add reverse words",
        "texttools needs a reverse_words(text) function, so that reverse_words('one two three') gives 'three two one'",
        programs.TEXTS,
        check_all(
            check_contains("texttools.py", "def reverse_words", "def count_words", "def shout"),
            check_python(
                "from texttools import *\nprint(reverse_words('one two three'), count_words('a b'), shout('hi'))",
                "three two one 2 HI!",
            ),
        ),
    ),
    Task(
        "x rename a key",
        "Rename the key user_name to username in config.json, and in login.py which reads it.",
        programs.LOGIN,
        check_all(
            check_lacks_word("user_name", "config.json", "login.py"),
            check_json("config.json", lambda found: found, {"username": "admin", "host": "db.local", "port": 5433}),
            check_command("python login.py", "admin@db.local"),
        ),
        2,
    ),
    Task(
        "x rename a class",
        "Rename the class Cust to Customer in models.py and report.py",
        programs.CUSTOMERS,
        check_all(
            check_lacks_word("Cust", "models.py", "report.py"),
            check_contains("models.py", "class Customer"),
            check_command("python report.py", "Ana (Porto), Ben (Leeds)"),
        ),
        2,
    ),
    Task(
        "x failing clamp",
        "test_clamp.py fails, please fix the code so that it passes.",
        faults.CLAMP,
        check_passes(faults.CLAMP, "test_clamp.py", "test_inside", "test_below", "test_above"),
    ),
    Task(
        "x failing basket",
        "The basket tests don't pass at the moment: fix basket.py.",
        faults.BASKET,
        check_passes(faults.BASKET, "test_basket.py", "test_empty", "test_total_counts_every_piece"),
    ),
    Task(
        "x wrong discount",
        "hey, something's off in prices.py: 20 percent off 50 should be 40, but discounted(50, 20) says 30",
        faults.DISCOUNT,
        check_all(
            check_contains("prices.py", "def with_tip"),
            check_kept(faults.DISCOUNT, "main.py"),
            check_python(
                "from prices import discounted\nprint(float(discounted(50, 20)), float(discounted(200, 10)))",
                "40.0 180.0",
            ),
        ),
    ),
    Task(
        "x average of nothing",
        "average([]) crashes with a ZeroDivisionError. It should return 0 for an empty list.",
        faults.GRADES,
        check_all(
            check_contains("grades.py", "def best"),
            check_kept(faults.GRADES, "main.py"),
            check_python(
                "from grades import average, best\nprint(float(average([])), average([1, 4]), best([2, 3]))",
                "0.0 2.5 3",
            ),
        ),
    ),
    Task(
        "x delete notes",
        "Delete old_notes.txt please.",
        data.LEFTOVERS,
        check_all(check_gone("old_notes.txt"), check_kept(data.LEFTOVERS, "notes.txt", "budget.csv")),
    ),
    Task(
        "x move into a folder",
        "Move logo.txt into a new folder called assets.",
        data.LOGO,
        check_all(
            check_gone("logo.txt"),
            check_equals("assets/logo.txt", data.LOGO["logo.txt"]),
            check_kept(data.LOGO, "README.md", "lists.py"),
        ),
    ),
    Task(
        "x move the tax rate",
        "TAX_RATE is defined in invoice.py. Put it into constants.py instead and have invoice.py import it.",
        programs.INVOICE,
        check_all(
            check_matches("constants.py", r"^TAX_RATE\s*=\s*0?\.19\b"),
            check_contains("constants.py", "CURRENCY = 'EUR'", "DUE_DAYS = 14"),
            check_lacks_match("invoice.py", r"^TAX_RATE\s*=(?!\s*constants\.)"),
            check_contains("invoice.py", "constants"),
            check_python("import invoice\nprint(invoice.tax(100), invoice.gross(100))", "19.0 119.0"),
        ),
        2,
    ),
    Task(
        "x requirement listed twice",
        "requests is in requirements.txt twice, drop one of them",
        data.REQUIREMENTS,
        check_all(
            lambda folder, _: (
                sorted(read_text(folder, "requirements.txt").split())
                == sorted(set(data.REQUIREMENTS["requirements.txt"].split()))
            ),
            check_kept(data.REQUIREMENTS, "app.py"),
        ),
    ),
    Task(
        "x same function twice",
        "slug() is written twice, in posts.py and in pages.py. Keep the one in posts.py and let pages.py import it.",
        programs.BLOG,
        check_all(
            check_kept(programs.BLOG, "posts.py"),
            check_lacks("pages.py", "def slug"),
            check_matches("pages.py", r"^\s*(from posts import|import posts)"),
            check_python("from pages import page_url\nprint(page_url(' Our Team '))", "/pages/our-team"),
        ),
    ),
    Task(
        "x add a script",
        "add a lint script to package.json, it should run: eslint .",
        data.WIDGET,
        check_all(
            check_json_change("package.json", lambda found: found["scripts"].update(lint="eslint ."), data.WIDGET),
            check_kept(data.WIDGET, "index.js", "CHANGELOG.md"),
        ),
    ),
    Task(
        "x add a license",
        'Add a license field with the value "MIT" to the [project] table in pyproject.toml',
        data.TIDEPOOL,
        check_all(
            check_toml("pyproject.toml", lambda found: found["project"].update(license="MIT"), data.TIDEPOOL),
            check_kept(data.TIDEPOOL, "README.md"),
        ),
    ),
    Task(
        "x wrong version in the docs",
        "Our install guide still says Python 3.8. We need 3.11 these days, please correct it.",
        data.MANUAL,
        check_all(
            check_contains("docs/install.md", "Python 3.11"),
            check_lacks("docs/install.md", "3.8"),
            check_few_changes(data.MANUAL, "docs/install.md", 2),
            check_kept(data.MANUAL, "README.md", "docs/faq.md"),
        ),
    ),
    Task(
        "x a typo",
        "there's a typo in docs/faq.md: recieve -> receive",
        data.MANUAL,
        check_all(
            check_contains("docs/faq.md", "will receive no more files"),
            check_lacks("docs/faq.md", "recieve"),
            check_few_changes(data.MANUAL, "docs/faq.md", 2),
            check_kept(data.MANUAL, "docs/install.md"),
        ),
    ),
    Task(
        "x append a to do",
        'Append the line "- [ ] water the plants" to TODO.md.',
        data.CHORES,
        check_all(
            check_equals("TODO.md", data.CHORES["TODO.md"] + "- [ ] water the plants"),
            check_kept(data.CHORES, "done.md"),
        ),
    ),
    Task(
        "x env to json",
        "Please write the settings of .env into settings.json too, as one flat object with the same names.",
        data.DOTENV,
        check_all(
            check_kept(data.DOTENV, *data.DOTENV),
            check_json(
                "settings.json",
                lambda found: {key: str(value).lower() for key, value in found.items()},
                {
                    "APP_NAME": "weather",
                    "DEBUG": "true",
                    "LOG_LEVEL": "info",
                    "DATABASE_URL": "sqlite:///weather.db",
                    "CACHE_SECONDS": "300",
                },
            ),
        ),
    ),
    Task(
        "x csv to json",
        "Convert books.csv to books.json: a list with one object per book, the column names as keys. Keep the CSV.",
        data.BOOKS,
        check_all(check_kept(data.BOOKS, *data.BOOKS), check_records("books.json", "books.csv", data.BOOKS)),
    ),
    Task(
        "x test a conversion",
        "Write a test for c_to_f in a new file test_convert.py.",
        programs.TEMPERATURE,
        check_all(
            check_kept(programs.TEMPERATURE, *programs.TEMPERATURE),
            check_tests("test_convert.py", "convert.py", "celsius * 9 / 5 + 32", "celsius * 9 / 5 + 30"),
        ),
    ),
    Task(
        "x test an empty list",
        "Add a test to test_stats.py which checks that mean of an empty list is 0.",
        programs.STATS,
        check_all(
            check_kept(programs.STATS, "stats.py"),
            check_contains("test_stats.py", "def test_mean()", "def test_mean_of_one", "def test_spread()", "[]"),
            check_tests("test_stats.py", "stats.py", "return 0.0", "return 1.0"),
        ),
    ),
    Task(
        "x release",
        'We release 2.0.0: set that version in package.json, and add a heading "## 2.0.0" to CHANGELOG.md above 1.8.3.',
        data.WIDGET,
        check_all(
            check_json_change("package.json", lambda found: found.update(version="2.0.0"), data.WIDGET),
            check_matches("CHANGELOG.md", r"(?s)^## 2\.0\.0[^\n]*\n.*^## 1\.8\.3$.*^## 1\.8\.2$"),
            check_contains("CHANGELOG.md", "# Changes", "- The clock shows seconds.", "- Fewer warnings."),
            check_kept(data.WIDGET, "index.js"),
        ),
        2,
    ),
    Task(
        "x fix, run, write down",
        "order.py adds the shipping twice. Fix it, run it, and write the output into out.txt.",
        faults.ORDER,
        check_all(
            check_matches("out.txt", r"\ATo pay: 55\s*\Z"),
            check_command("python order.py", "To pay: 55"),
            check_python("from order import order_total\nprint(order_total([10]))", "15"),
        ),
        3,
    ),
)
