"""Everyday chores, first part, the longer ones: files of 80 to 200 lines, or two to four steps in one request."""

from __future__ import annotations

from bench.tasks import guests_programs as programs
from bench.tasks import guests_projects as data
from bench.tasks.guests_checks import (
    check_defines,
    check_no_files,
    check_not_defines,
)
from bench.tasks.strangers_checks import check_json_change, check_matches, check_said
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
    check_says,
)

STATION_LINES = "airport: 12.1 C, 53.8 F, mild castle: 17.8 C, 64.0 F, mild "
STATION_LINES += "forest: 10.1 C, 50.2 F, mild harbour: 15.1 C, 59.2 F, mild"

LONG = (
    Task(
        "g long: rename a method",
        "rename the method lend of Library to check_out everywhere, then run python test_library.py",
        programs.LIBRARY,
        check_all(
            check_contains("library.py", "def check_out("),
            check_lacks("library.py", "def lend(", ".lend("),
            check_lacks("test_library.py", ".lend("),
            check_command("python test_library.py", "3 tests passed"),
            check_few_changes(programs.LIBRARY, "library.py", 6),
        ),
        3,
        "long",
    ),
    Task(
        "g long: longest book",
        "add a method longest() to the class Library in library.py that returns the title of the book with the most "
        "pages, and print it at the end of main.py",
        programs.LIBRARY,
        check_all(
            check_python(
                "from library import Library; l = Library('x'); l.add('aa', 'b', 5); l.add('bb', 'c', 9); "
                "l.add('cc', 'c', 7); print(l.longest())",
                "bb",
            ),
            check_command("python main.py | head -n 1", "free: Dune, Ulysses"),
            check_command("python main.py | tail -n 1 | grep -q Ulysses && test $(python main.py | wc -l) = 2"),
            check_few_changes(programs.LIBRARY, "library.py", 14),
        ),
        2,
        "long",
    ),
    Task(
        "g long: fix and save",
        "python test_library.py fails. fix the bug in library.py, then write the output of the test to out.txt",
        programs.LATE,
        check_all(
            check_kept(programs.LATE, "test_library.py"),
            check_command("python test_library.py", "3 tests passed"),
            check_contains("out.txt", "3 tests passed"),
            check_lacks("out.txt", "Traceback"),
            check_few_changes(programs.LATE, "library.py", 8),
        ),
        3,
        "long",
    ),
    Task(
        "g long: which error",
        "Which exception do I get when I give back a book that nobody has borrowed?",
        programs.LIBRARY,
        check_all(check_says("NotLentError"), check_kept(programs.LIBRARY, "library.py")),
        kind="long",
    ),
    Task(
        "g long: loan rules",
        "books may be kept 28 days now and the fine goes up to 0.50 a day. change that in library.py",
        programs.LIBRARY,
        check_all(
            check_python("import library as l; print(l.LOAN_DAYS, l.FINE_PER_DAY, l.MAX_LOANS)", "28 0.5 5"),
            check_few_changes(programs.LIBRARY, "library.py", 4),
        ),
        2,
        "long",
    ),
    Task(
        "g long: warmest station",
        "run weather.py and write the name of the station with the highest average into best.txt",
        programs.WEATHER,
        check_all(check_equals("best.txt", "castle"), check_kept(programs.WEATHER, "weather.py")),
        2,
        "long",
    ),
    Task(
        "g long: units",
        "Move c_to_f and f_to_c out of weather.py into a new file units.py and import what weather.py needs from "
        "there. It must still run.",
        programs.WEATHER,
        check_all(
            check_defines("units.py", "c_to_f", "f_to_c"),
            check_not_defines("weather.py", "c_to_f", "f_to_c"),
            check_python("import units; print(units.c_to_f(100), units.f_to_c(32))", "212.0 0.0"),
            check_command("python weather.py", STATION_LINES),
        ),
        3,
        "long",
    ),
    Task(
        "g long: one station",
        "add an option --station to weather.py so that only that station is reported. without it everything stays",
        programs.WEATHER,
        check_all(
            check_command("python weather.py --station forest", "forest: 10.1 C, 50.2 F, mild"),
            check_command("python weather.py", STATION_LINES),
        ),
        kind="long",
    ),
    Task(
        "g long: failed logins",
        "who has the most failed logins in auth.log?",
        programs.AUTH,
        check_all(check_said(r"\bdora\b"), check_kept(programs.AUTH, "auth.log")),
        kind="long",
    ),
    Task(
        "g long: regions",
        "in regions.json set the timeout of us-east to 45 and remove the region ap-south",
        programs.REGIONS,
        check_json_change(
            "regions.json",
            lambda found: (found["regions"]["us-east"].update(timeout=45), found["regions"].pop("ap-south")),
            programs.REGIONS,
        ),
        2,
        "long",
    ),
    Task(
        "g long: release",
        "set the version to 1.3.0 in package.json and version.py and add a section '## 1.3.0' with the line "
        "'- new colours' above 1.2.4 in CHANGELOG.md",
        data.RELEASE,
        check_all(
            check_json_change("package.json", lambda found: found.update(version="1.3.0"), data.RELEASE),
            check_command("python version.py", "tally 1.3.0"),
            check_matches("CHANGELOG.md", r"\A# Changelog\s+## 1\.3\.0\s+- new colours\s+## 1\.2\.4\s+- fix the clock"),
            check_contains("CHANGELOG.md", "## 1.2.3", "- first release"),
        ),
        3,
        "long",
    ),
    Task(
        "g long: legacy",
        "delete the folder legacy and the import of it in main.py, then run main.py to see that it still works",
        data.LEGACY,
        check_all(
            check_no_files("legacy"), check_command("python main.py", "sum 7"), check_kept(data.LEGACY, "report.py")
        ),
        3,
        "long",
    ),
)
