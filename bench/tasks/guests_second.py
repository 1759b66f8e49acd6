"""Everyday chores, second part, asked as people type them: two thirds small, one third longer."""

from __future__ import annotations

from bench.tasks import guests_second_programs as programs
from bench.tasks import guests_second_projects as data
from bench.tasks.guests_checks import check_defines, check_env, check_not_defines, check_replaced
from bench.tasks.strangers_checks import check_json_change, check_lacks_word, check_said, check_table
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
    check_says,
)
from bench.tasks.unseen import check_says_count

SMALL = (
    Task(
        "g token minutes",
        "how many minutes is a token valid?",
        data.SESSIONS,
        check_all(check_says_count(45), check_kept(data.SESSIONS, *data.SESSIONS)),
    ),
    Task(
        "g who opens the device",
        "Which file has the code that opens the device, and what's the default speed?",
        data.SERIAL,
        check_all(check_says("device.py", "9600"), check_kept(data.SERIAL, *data.SERIAL)),
    ),
    Task("g json files", "how many json files are there in data?", data.DATA_FOLDER, check_says_count(4, "four")),
    Task(
        "g how many primes",
        "run primes.py. how many primes did it find?",
        data.PRIMES,
        check_all(check_says_count(125), check_kept(data.PRIMES, "primes.py")),
    ),
    Task(
        "g what is for lunch",
        "What does menu.py print when I start it with the argument lunch?",
        data.MENU,
        check_all(check_says("pea soup and rye bread"), check_kept(data.MENU, "menu.py")),
    ),
    Task(
        "g robots",
        "add a robots.txt with two lines: User-agent: * and Disallow: /private",
        data.EMPTY_SITE,
        check_replaced({"robots.txt": "x"}, "robots.txt", "x", "User-agent: *\nDisallow: /private"),
    ),
    Task(
        "g strict",
        "switch on strict in tsconfig.json",
        data.TSCONFIG,
        check_json_change("tsconfig.json", lambda found: found["compilerOptions"].update(strict=True), data.TSCONFIG),
    ),
    Task(
        "g backup time",
        "the backup should run at 04:30, change backup.yml",
        data.BACKUP_YML,
        check_replaced(data.BACKUP_YML, "backup.yml", '"02:15"', '"04:30"', "'04:30'", "04:30"),
    ),
    Task(
        "g add a variable",
        "add DEBUG=0 to .env.example",
        data.ENV_EXAMPLE,
        check_env(".env.example", data.ENV_EXAMPLE, DEBUG="0"),
    ),
    Task(
        "g rename a class",
        "rename the class Pump to WaterPump (pump.py and plant.py)",
        data.PUMPS,
        check_all(
            check_command("python plant.py", "biggest: 90"),
            check_defines("pump.py", "WaterPump", "biggest"),
            check_lacks_word("Pump", "pump.py", "plant.py"),
        ),
        2,
    ),
    Task(
        "g pages needed",
        "python test_pages.py fails, please repair pages.py",
        data.PAGES,
        check_all(
            check_kept(data.PAGES, "test_pages.py"),
            check_command("python test_pages.py", "all good"),
            check_python("from pages import pages_needed as p; print(p(1, 9), p(18, 9), p(19, 9))", "1 2 3"),
        ),
        2,
    ),
    Task(
        "g move the timeout",
        "TIMEOUT_S belongs in settings.py. move it there and import it in client.py",
        data.CLIENT,
        check_all(
            check_command("python client.py", "https://api.fjord.example within 12 s"),
            check_defines("settings.py", "TIMEOUT_S", "BASE_URL", "RETRIES"),
            check_not_defines("client.py", "TIMEOUT_S"),
        ),
        2,
    ),
    Task(
        "g currency",
        'Give format_price a parameter currency with the default "EUR" and use it in the result.',
        data.MONEY,
        check_all(
            check_python(
                "import money as m; print(m.format_price(2), m.format_price(2, 'NOK'), m.format_price(1, currency='X'),"
                " m.add_tax(4))",
                "2.00 EUR 2.00 NOK 1.00 X 5.0",
            ),
            check_command("python shop.py", "3.00 EUR"),
        ),
    ),
    Task(
        "g temporary files",
        "delete all .tmp files in cache",
        data.CACHE,
        check_all(
            *(check_gone(path) for path in data.CACHE if path.endswith(".tmp")),
            check_kept(data.CACHE, "cache/index.db", "cache/readme.txt", "main.py"),
        ),
    ),
    Task(
        "g new person",
        "add Nora, 34, from Bergen to people.csv",
        data.PEOPLE,
        check_table("people.csv", *data.PEOPLE["people.csv"].splitlines(), "Nora,34,Bergen"),
    ),
    Task(
        "g publish folder",
        "publish.sh should copy the folder build, not public",
        data.PUBLISH,
        check_all(
            check_command("sh publish.sh", "copying build to www.fjord.example"),
            check_few_changes(data.PUBLISH, "publish.sh", 2),
        ),
    ),
)

LONG = (
    Task(
        "g long: assign",
        "rename the method give_to of Desk to assign everywhere in tickets.py, then run python test_tickets.py",
        programs.TICKETS,
        check_all(
            check_contains("tickets.py", "def assign("),
            check_lacks("tickets.py", "give_to"),
            check_command("python test_tickets.py", "tickets: all tests pass"),
            check_few_changes(programs.TICKETS, "tickets.py", 6),
        ),
        2,
        "long",
    ),
    Task(
        "g long: tickets of an agent",
        "add a method count_of(agent) to Desk in tickets.py that returns how many tickets this agent has, and print "
        "the count of Ida as the last line of overview.py",
        programs.TICKETS,
        check_all(
            check_python(
                "from tickets import sample; d = sample(); d.give_to(1, 'Bo'); print(d.count_of('Ida'), "
                "d.count_of('Bo'), d.count_of('Cy'))",
                "2 1 0",
            ),
            check_command("test $(python overview.py | wc -l) = 4 && python overview.py | tail -n 1 | grep -q 2"),
            check_command("python overview.py | head -n 1", "#2 cannot log in (high, open, Ida)"),
            check_few_changes(programs.TICKETS, "tickets.py", 14),
        ),
        2,
        "long",
    ),
    Task(
        "g long: miscount",
        "test_tickets.py fails. find the bug in tickets.py and fix it, then save what the test prints in result.txt",
        programs.MISCOUNT,
        check_all(
            check_kept(programs.MISCOUNT, "test_tickets.py"),
            check_command("python test_tickets.py", "tickets: all tests pass"),
            check_contains("result.txt", "all tests pass"),
            check_lacks("result.txt", "Traceback"),
            check_few_changes(programs.MISCOUNT, "tickets.py", 8),
        ),
        3,
        "long",
    ),
    Task(
        "g long: note on a closed one",
        "which error is raised if I add a note to a closed ticket?",
        programs.TICKETS,
        check_all(check_said(r"\bClosedTicketError\b"), check_kept(programs.TICKETS, "tickets.py")),
        kind="long",
    ),
    Task(
        "g long: food",
        "write food.py that prints the sum of the amounts of kind food in expenses.csv, run it and save the output in "
        "food.txt",
        programs.EXPENSES,
        check_all(
            check_command(
                "python food.py | grep -oE '[0-9]+(\\.[0-9]+)?' | tail -n 1 | cut -d. -f1", str(programs.FOOD_TOTAL)
            ),
            check_contains("food.txt", str(programs.FOOD_TOTAL)),
            check_kept(programs.EXPENSES, "expenses.csv"),
        ),
        3,
        "long",
    ),
    Task(
        "g long: dashboard",
        "in dashboard.js disable the music widget and let news refresh every 300 seconds",
        programs.DASHBOARD,
        check_all(
            check_contains("dashboard.js", "title: 'Music',\n    enabled: false,"),
            check_contains("dashboard.js", "title: 'News',\n    enabled: true,\n    refreshSeconds: 300,"),
            check_few_changes(programs.DASHBOARD, "dashboard.js", 4),
        ),
        2,
        "long",
    ),
    Task(
        "g long: https",
        "change http://fjord.example to https://fjord.example in README.md, links.py and site/footer.html, then run "
        "links.py and tell me what it prints",
        data.LINKS,
        check_all(
            *(check_replaced(data.LINKS, path, "http://fjord", "https://fjord") for path in data.LINKS),
            check_says("https://fjord.example/docs"),
        ),
        4,
        "long",
    ),
    Task(
        "g long: as json",
        "add a flag --json to textstats.py that prints the counts as one JSON object, then run it on poem.txt and put "
        "the output in poem.json",
        programs.TEXTSTATS,
        check_all(
            check_command("python textstats.py poem.txt", "lines 4 words 10 letters 31"),
            check_command(
                "python textstats.py --json poem.txt | python -c "
                '"import json, sys; print(sorted(json.load(sys.stdin).items()))"',
                "[('letters', 31), ('lines', 4), ('words', 10)]",
            ),
            check_json("poem.json", lambda found: (found["lines"], found["words"], found["letters"]), (4, 10, 31)),
        ),
        3,
        "long",
    ),
)

GUESTS_SECOND = (*SMALL, *LONG)
