"""The longer files that the first of the guests' tasks start from."""

from __future__ import annotations

import json

LIBRARY_PY = '''\
"""A small lending library, kept in memory."""

from datetime import date, timedelta

LOAN_DAYS = 21
MAX_LOANS = 5
FINE_PER_DAY = 0.25


class LibraryError(Exception):
    """Anything that the library refuses."""


class NotLentError(LibraryError):
    """The book is not lent to anybody."""


class TooManyLoansError(LibraryError):
    """The reader has as many books as allowed."""


class Book:
    """A book that can be lent to one reader at a time."""

    def __init__(self, title, author, pages):
        self.title = title
        self.author = author
        self.pages = pages
        self.reader = None
        self.due = None

    def is_free(self):
        return self.reader is None

    def label(self):
        return f"{self.title} by {self.author}"


class Library:
    """The books, and who has them."""

    def __init__(self, name):
        self.name = name
        self.books = []

    def add(self, title, author, pages=100):
        """Put a new book on the shelf."""
        book = Book(title, author, pages)
        self.books.append(book)
        return book

    def find(self, title):
        """The book of that title, whatever its case; None when there is none."""
        for book in self.books:
            if book.title.lower() == title.lower():
                return book
        return None

    def loans_of(self, reader):
        """All books that this reader has at home."""
        return [book for book in self.books if book.reader == reader]

    def lend(self, title, reader, today):
        """Lend the book; gives back the day on which it is due."""
        book = self.find(title)
        if book is None:
            raise LibraryError(f"no such book: {title}")
        if not book.is_free():
            raise LibraryError(f"already lent: {title}")
        if len(self.loans_of(reader)) >= MAX_LOANS:
            raise TooManyLoansError(reader)
        book.reader = reader
        book.due = today + timedelta(days=LOAN_DAYS)
        return book.due

    def give_back(self, title, today):
        """Take the book back; gives the fine that is to be paid."""
        book = self.find(title)
        if book is None:
            raise LibraryError(f"no such book: {title}")
        if book.is_free():
            raise NotLentError(title)
        late = max(0, (today - book.due).days)
        book.reader = None
        book.due = None
        return late * FINE_PER_DAY

    def free_titles(self):
        """What could be lent right now, in order of the alphabet."""
        return sorted(book.title for book in self.books if book.is_free())

    def total_pages(self):
        """How many pages there are to read."""
        return sum(book.pages for book in self.books)


def demo():
    """A library with three books, one of them lent."""
    library = Library("Corner")
    library.add("Dune", "Herbert", 610)
    library.add("Emma", "Austen", 420)
    library.add("Ulysses", "Joyce", 730)
    library.lend("Emma", "Ann", date(2026, 3, 2))
    return library
'''
MAIN_PY = """\
from library import demo

library = demo()
print("free:", ", ".join(library.free_titles()))
"""
TEST_LIBRARY_PY = """\
from datetime import date

from library import demo


def test_free():
    assert demo().free_titles() == ["Dune", "Ulysses"]


def test_lend():
    assert demo().lend("dune", "Bo", date(2026, 3, 1)) == date(2026, 3, 22)


def test_fine():
    assert demo().give_back("Emma", date(2026, 3, 27)) == 1.0


if __name__ == "__main__":
    test_free()
    test_lend()
    test_fine()
    print("3 tests passed")
"""
LIBRARY = {"library.py": LIBRARY_PY, "main.py": MAIN_PY, "test_library.py": TEST_LIBRARY_PY}
LATE = {**LIBRARY, "library.py": LIBRARY_PY.replace("(today - book.due).days", "(book.due - today).days")}

STATIONS = (("harbour", 11), ("airport", 8), ("castle", 14), ("forest", 6))
WEATHER_CSV = "day,station,celsius\n" + "".join(
    f"{day},{name},{base + (day * 7 + place * 3) % 9}\n"
    for day in range(1, 31)
    for place, (name, base) in enumerate(STATIONS)
)
WEATHER_PY = '''\
"""Reads weather.csv and reports on it."""

import argparse
import csv

FILE = "weather.csv"
COLD = 10
WARM = 18


def c_to_f(celsius):
    """Celsius to Fahrenheit."""
    return celsius * 9 / 5 + 32


def f_to_c(fahrenheit):
    """Fahrenheit to Celsius."""
    return (fahrenheit - 32) * 5 / 9


def read_rows(path=FILE):
    """All rows; the numbers as numbers."""
    rows = []
    with open(path) as file:
        for row in csv.DictReader(file):
            rows.append({"day": int(row["day"]), "station": row["station"], "celsius": int(row["celsius"])})
    return rows


def station_names(rows):
    """The stations, in the order of the alphabet."""
    return sorted({row["station"] for row in rows})


def of_station(rows, station):
    """The rows of one station."""
    return [row for row in rows if row["station"] == station]


def average(rows):
    """The mean temperature, or None without rows."""
    if not rows:
        return None
    return sum(row["celsius"] for row in rows) / len(rows)


def warmest(rows):
    """The row with the highest temperature; the first of several."""
    return max(rows, key=lambda row: row["celsius"])


def coldest(rows):
    """The row with the lowest temperature; the first of several."""
    return min(rows, key=lambda row: row["celsius"])


def describe(celsius):
    """A word for a temperature."""
    if celsius < COLD:
        return "cold"
    if celsius >= WARM:
        return "warm"
    return "mild"


def report(rows):
    """One line for each station."""
    lines = []
    for station in station_names(rows):
        mean = average(of_station(rows, station))
        lines.append(f"{station}: {mean:.1f} C, {c_to_f(mean):.1f} F, {describe(mean)}")
    return lines


def main():
    parser = argparse.ArgumentParser(description="Reports on the weather.")
    parser.add_argument("--file", default=FILE)
    args = parser.parse_args()
    for line in report(read_rows(args.file)):
        print(line)


if __name__ == "__main__":
    main()
'''
WEATHER = {"weather.py": WEATHER_PY, "weather.csv": WEATHER_CSV}

LOGIN_USERS = ("anna", "boris", "carl", "dora", "emil")
AUTH_LOG = "".join(
    f"Mar {number // 8 + 1:02} {number % 24:02}:{number * 13 % 60:02} "
    + ("login failed for " if number % 3 == 0 or number % 10 == 3 else "login ok for ")
    + f"{LOGIN_USERS[number % 5]}\n"
    for number in range(1, 131)
)
AUTH = {"auth.log": AUTH_LOG}

REGION_NAMES = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east", "af-south", "me-north")
REGIONS = {
    "regions.json": json.dumps(
        {
            "default": "eu-west",
            "regions": {
                name: {
                    "host": f"{name}.nodes.example",
                    "port": 7000 + number,
                    "timeout": 30,
                    "retries": 3,
                    "disks": ["ssd", "hdd"] if number % 2 else ["ssd"],
                }
                for number, name in enumerate(REGION_NAMES, 1)
            },
        },
        indent=2,
    )
    + "\n"
}
