"""Twins of the tuning half's small tasks: questions, and what is done with files and settings."""

from __future__ import annotations

from bench.tasks import twins_projects as data
from bench.tasks.strangers_checks import check_toml
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
from bench.tasks.twins_checks import check_number, check_picks, check_whole_json, check_yaml

FILE_TWINS = (
    # read a value
    Task("t read a size", "What page size is configured in settings.toml?", data.CATALOG, check_says("36")),
    Task(
        "t read a nested value",
        "In which timezone does the backup job in jobs.yaml run?",
        data.JOBS,
        check_says("Europe/Lisbon"),
    ),
    Task("t read a name", "Who is the maintainer according to setup.cfg?", data.SETUP, check_says("Irene Voss")),
    # run and report
    Task("t run a draw", "Which number comes out when you run python draw.py?", data.DRAW, check_says("99151")),
    Task(
        "t run the checks",
        "Run python checks.py and tell me which check fails. Do not change anything.",
        data.CALENDAR,
        check_all(check_says("autumn"), check_kept(data.CALENDAR, "dates.py", "checks.py")),
    ),
    # find the file with a text
    Task(
        "t find the file with a function",
        "Which file defines the function parse_invoice?",
        data.INVOICES,
        check_picks(data.INVOICES, "billing/reader.py"),
    ),
    Task(
        "t find the file with a word",
        "In which of the files in the folder trips does the word harbour appear?",
        data.TRIPS,
        check_all(check_says("wednesday"), check_picks([path[:-4] for path in data.TRIPS], "trips/wednesday")),
    ),
    Task(
        "t find the file with a setting",
        "One of the files in conf sets retries. Which one is it?",
        data.SETTINGS,
        check_picks(data.SETTINGS, "conf/queue.ini"),
    ),
    # count the marks
    Task(
        "t count the fixmes",
        "How many FIXME comments are in the shell scripts here, all together?",
        data.SCRIPTS,
        check_number(5),
    ),
    Task("t count lines in a log", "How many lines of door.log contain DENIED?", data.LOG, check_number(7)),
    Task("t count the functions", "How many functions does tools.py define?", data.TOOLS, check_number(6)),
    # count the files
    Task(
        "t count the tables",
        "How many CSV files does the folder data hold?",
        {
            "data/jan.csv": "1\n",
            "data/feb.csv": "2\n",
            "data/mar.csv": "3\n",
            "data/apr.csv": "4\n",
            "data/may.csv": "5\n",
            "data/readme.txt": "monthly\n",
            "data/plot.py": "print('plot')\n",
            "old.csv": "0\n",
        },
        check_number(5),
    ),
    Task(
        "t count the pages",
        "Count the Markdown files in docs, including those in its subfolders. How many are there?",
        {
            "docs/index.md": "# Start\n",
            "docs/install.md": "# Install\n",
            "docs/style.css": "body {}\n",
            "docs/guide/first.md": "# First\n",
            "docs/guide/second.md": "# Second\n",
            "docs/guide/extra/tips.md": "# Tips\n",
            "docs/guide/extra/faq.md": "# Questions\n",
            "README.md": "# Project\n",
        },
        check_number(6),
    ),
    # create a text file
    Task(
        "t create an ignore file",
        "Create a .gitignore with the two entries build/ and *.log, each on its own line.",
        {"main.c": "int main(void) { return 0; }\n"},
        check_command("grep -qx 'build/' .gitignore && grep -qx '[*][.]log' .gitignore"),
    ),
    Task(
        "t create a file in a folder",
        "Make a new file data/cities.csv. For now it holds only the header line city,country.",
        {"import.py": "print('nothing to import')\n"},
        check_equals("data/cities.csv", "city,country"),
    ),
    # add a line at the end
    Task(
        "t add a pattern at the end",
        "Append the line *.log to .gitignore.",
        {".gitignore": "build/\n*.pyc\n", "main.py": "print('main')\n"},
        check_equals(".gitignore", "build/\n*.pyc\n*.log"),
    ),
    Task(
        "t add a row at the end",
        "Add the row Nadia,Lisbon,34 at the end of members.csv.",
        {"members.csv": "name,city,age\nOle,Bergen,51\nPia,Graz,28\n"},
        check_equals("members.csv", "name,city,age\nOle,Bergen,51\nPia,Graz,28\nNadia,Lisbon,34"),
    ),
    Task(
        "t add a requirement at the end",
        "Add httpx as the last line of requirements.txt.",
        {"requirements.txt": "flask\nclick\njinja2", "app.py": "import flask\n"},
        check_equals("requirements.txt", "flask\nclick\njinja2\nhttpx"),
    ),
    # fix a typo
    Task(
        "t fix a typo in a manual",
        "In manual.md the word seperate is misspelled. Correct it.",
        data.MANUAL,
        check_all(
            check_equals("manual.md", data.MANUAL["manual.md"].replace("seperate", "separate")),
            check_kept(data.MANUAL, "parts.md"),
        ),
    ),
    Task(
        "t fix a typo in a message",
        "The message for a wrong pin in login.py has a spelling mistake. Fix it.",
        data.LOGIN,
        check_all(
            check_python("from login import answer; print(answer('1'), answer('4410'))", "Access denied Welcome back"),
            check_few_changes(data.LOGIN, "login.py", 2),
        ),
    ),
    Task(
        "t fix a typo in a text",
        "Replace the wrong spelling definately in faq.txt with the right one.",
        data.FAQ,
        check_all(
            check_equals("faq.txt", data.FAQ["faq.txt"].replace("definately", "definitely")),
            check_kept(data.FAQ, "prices.txt"),
        ),
    ),
    # change the version
    Task(
        "t change the crate version",
        "Set the version of the package lantern in Cargo.toml to 2.0.0. Leave the dependencies alone.",
        data.CRATE,
        check_all(
            check_python(
                "import tomllib; d = tomllib.load(open('Cargo.toml', 'rb')); p = d['package']\n"
                "print(p['name'], p['version'], p['edition'], d['dependencies']['serde']['version'],"
                " d['dependencies']['log'])",
                "lantern 2.0.0 2021 1.9.2 0.4",
            ),
            check_few_changes(data.CRATE, "Cargo.toml", 2),
        ),
    ),
    Task(
        "t change the module version",
        "We release 5.1.0 today. Update __version__ in orbit/__init__.py.",
        data.ORBIT,
        check_all(
            check_command("python -m orbit.cli", "orbit 5.1.0"),
            check_contains("orbit/__init__.py", "M. Kepler", "Orbits of small bodies."),
            check_kept(data.ORBIT, "orbit/cli.py"),
        ),
    ),
    Task(
        "t change the base image",
        "Make the Dockerfile use python:3.12-slim as its base image.",
        data.IMAGE,
        check_all(
            check_contains("Dockerfile", "FROM python:3.12-slim\n", "WORKDIR /srv", "serve.py"),
            check_lacks("Dockerfile", "3.9"),
            check_few_changes(data.IMAGE, "Dockerfile", 2),
        ),
    ),
    # change a value in JSON
    Task(
        "t change a flag in JSON",
        "Turn on strict in tsconfig.json.",
        data.TSCONFIG,
        check_whole_json(
            "tsconfig.json",
            {"compilerOptions": {"target": "es2020", "strict": True, "noEmit": False}, "include": ["web"]},
        ),
    ),
    Task(
        "t change an entry in JSON",
        "Change the email of the member with id 7 in members.json to petra@club.example.",
        data.MEMBERS,
        check_whole_json(
            "members.json",
            [
                {"id": 3, "name": "Olu", "email": "olu@club.example"},
                {"id": 7, "name": "Petra", "email": "petra@club.example"},
                {"id": 17, "name": "Sven", "email": "sven@old.example"},
            ],
        ),
    ),
    Task(
        "t change a number in JSON",
        "In client.json, raise the retries for download to 5.",
        data.CLIENT,
        check_whole_json(
            "client.json",
            {
                "upload": {"retries": 2, "timeout": 40},
                "download": {"retries": 5, "timeout": 90},
                "agent": "courier/1",
            },
        ),
    ),
    # add a key to YAML
    Task(
        "t add a key to a YAML section",
        "In deploy.yaml, add the key replicas with the value 3 to the section web.",
        {"deploy.yaml": "web:\n  image: shop\n  memory: 256\nworker:\n  image: jobs\n  memory: 512\n"},
        check_yaml(
            "deploy.yaml",
            {
                "web": {"image": "shop", "memory": "256", "replicas": "3"},
                "worker": {"image": "jobs", "memory": "512"},
            },
        ),
    ),
    Task(
        "t add a key to TOML",
        "Add max_size = 500 to the section [cache] in service.toml.",
        data.SERVICE,
        check_all(
            check_toml("service.toml", lambda found: found["cache"].update(max_size=500), data.SERVICE),
            check_contains("service.toml", "[cache]", "[http]"),
        ),
    ),
    # add numbers and write the sum
    Task(
        "t add up a column",
        "Add up the amounts in expenses.csv and write just the total to total.txt.",
        data.EXPENSES,
        check_all(check_equals("total.txt", "149"), check_kept(data.EXPENSES, "expenses.csv")),
        2,
    ),
    Task(
        "t count words and write the number",
        "Count the words in poem.txt and save the number, nothing else, in words.txt.",
        data.POEM,
        check_all(
            check_equals("words.txt", str(len(data.POEM["poem.txt"].split()))), check_kept(data.POEM, "poem.txt")
        ),
        2,
    ),
    # delete a file
    Task(
        "t delete a folder",
        "Remove the folder tmp_cache and everything in it.",
        data.CACHE,
        check_all(check_gone("tmp_cache"), check_kept(data.CACHE, "cache.py", "templates/page.html")),
    ),
    Task(
        "t delete the backups",
        "Delete all files ending in .bak in the folder drafts.",
        data.DRAFTS,
        check_all(
            check_gone("drafts/letter.txt.bak"),
            check_gone("drafts/speech.bak"),
            check_kept(data.DRAFTS, "drafts/letter.txt", "drafts/backup_plan.txt", "final.txt"),
        ),
    ),
    # rename a file
    Task(
        "t rename a script",
        "Rename the script run.sh to start.sh.",
        {"run.sh": "#!/bin/sh\necho up\n", "stop.sh": "#!/bin/sh\necho down\n"},
        check_all(
            check_gone("run.sh"),
            check_equals("start.sh", "#!/bin/sh\necho up"),
            check_equals("stop.sh", "#!/bin/sh\necho down"),
        ),
    ),
    Task(
        "t rename a file in a folder",
        "The file letters/draft.txt should be called letters/final.txt. Please rename it.",
        {"letters/draft.txt": "Dear Mrs Holm,\nthank you.\n", "letters/list.txt": "Holm\n"},
        check_all(
            check_gone("letters/draft.txt"),
            check_equals("letters/final.txt", "Dear Mrs Holm,\nthank you."),
            check_equals("letters/list.txt", "Holm"),
        ),
    ),
    # make a folder and move a file
    Task(
        "t move a test into a folder",
        "Create the folder tests and put test_parser.py there.",
        data.PARSER,
        check_all(
            check_gone("test_parser.py"),
            check_equals("tests/test_parser.py", "# nothing here yet"),
            check_kept(data.PARSER, "parser.py"),
        ),
        2,
    ),
    Task(
        "t move two files into a folder",
        "Move the two CSV files into a new folder called measured.",
        data.MEASURED,
        check_all(
            check_gone("rain.csv"),
            check_gone("wind.csv"),
            check_equals("measured/rain.csv", data.MEASURED["rain.csv"]),
            check_equals("measured/wind.csv", data.MEASURED["wind.csv"]),
            check_kept(data.MEASURED, "plot.py"),
        ),
        2,
    ),
)
