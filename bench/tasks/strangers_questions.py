"""Those of the strangers' tasks that want an answer and no change: read, explain, count, or run and report."""

from __future__ import annotations

from bench.tasks import strangers_programs as programs
from bench.tasks import strangers_projects as data
from bench.tasks.strangers_checks import check_said
from bench.tasks.task import Task, check_all, check_kept, check_says
from bench.tasks.unseen import check_says_count

QUESTIONS_FIRST: tuple[Task, ...] = (
    Task(
        "x needed python",
        "which python version does this project need at least?",
        data.TIDEPOOL,
        check_all(check_says("3.10"), check_kept(data.TIDEPOOL, "pyproject.toml")),
    ),
    Task(
        "x value of a constant",
        "settings.py: what is SESSION_MINUTES set to?",
        data.SESSIONS,
        check_all(check_says_count(95), check_kept(data.SESSIONS, *data.SESSIONS)),
    ),
    Task(
        "x which exception",
        "What happens if I withdraw more than there is in the account? Which exception do I get?",
        programs.BANK,
        check_all(check_says("OverdrawnError"), check_kept(programs.BANK, *programs.BANK)),
    ),
    Task(
        "x how long backups stay",
        "After how many days does backup.sh throw old backups away?",
        data.BACKUP,
        check_all(check_says_count(21), check_kept(data.BACKUP, "backup.sh")),
    ),
    Task(
        "x run a check",
        "Run check.py and tell me what it complains about. Don't change anything.",
        programs.VALIDATE,
        check_all(
            check_said(r"\bport\b"),
            check_said(r"70443|out of range|too (high|large|big)|invalid"),
            check_kept(programs.VALIDATE, *programs.VALIDATE),
        ),
    ),
    Task(
        "x run with an option",
        "Please run `python3 simulate.py --steps 5` and report the final value.",
        programs.SIMULATE,
        check_all(check_says_count(35), check_kept(programs.SIMULATE, "simulate.py")),
    ),
    Task(
        "x count errors",
        "How many ERROR lines are in server.log?",
        data.LOG,
        check_all(check_says_count(6, "six"), check_kept(data.LOG, "server.log")),
    ),
    Task(
        "x count links",
        "How many <a> links does index.html have in total?",
        data.SITE,
        check_all(check_says_count(5, "five"), check_kept(data.SITE, *data.SITE)),
    ),
)

QUESTIONS_SECOND: tuple[Task, ...] = (
    Task(
        "x image of a service",
        "Hi! Could you look up which image the cache service runs on?",
        data.COMPOSE,
        check_all(check_says("redis", "7.2"), check_kept(data.COMPOSE, "docker-compose.yml")),
    ),
    Task(
        "x free shipping",
        "From what order value on is shipping free? It's somewhere in the config.",
        data.SHOP,
        check_all(check_says_count(45), check_kept(data.SHOP, *data.SHOP)),
    ),
    Task(
        "x who calls it",
        "Which function uses load_rates, and which file is that function in?",
        programs.RATES,
        check_all(check_says("total_in", "invoice.py"), check_kept(programs.RATES, *programs.RATES)),
    ),
    Task(
        "x what make clean removes",
        "what exactly gets removed when I run make clean? don't run it, just tell me",
        data.MAKEFILE,
        check_all(check_said(r"\bbuild\b"), check_said(r"\bdist\b"), check_kept(data.MAKEFILE, *data.MAKEFILE)),
    ),
    Task(
        "x run a shell script",
        "run tally.sh for me and tell me the total",
        programs.TALLY,
        check_all(check_says_count(188), check_kept(programs.TALLY, *programs.TALLY)),
    ),
    Task(
        "x last prime",
        "Run primes.py. What is the last number it prints?",
        programs.PRIMES,
        check_all(check_says_count(499), check_kept(programs.PRIMES, "primes.py")),
    ),
    Task(
        "x count books",
        "how many of the books are by Ursula K. Le Guin?",
        data.BOOKS,
        check_all(check_says_count(3, "three"), check_kept(data.BOOKS, "books.csv")),
    ),
    Task(
        "x count tests",
        "Count the test functions in test_stats.py and tell me the number.",
        programs.STATS,
        check_all(check_says_count(5, "five"), check_kept(programs.STATS, *programs.STATS)),
    ),
)
