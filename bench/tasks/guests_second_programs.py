"""The longer files that the second of the guests' tasks start from."""

from __future__ import annotations

TICKETS_PY = '''\
"""Tickets of a help desk: who asked what, and how far it is."""

OPEN = "open"
WAITING = "waiting"
CLOSED = "closed"
STATES = (OPEN, WAITING, CLOSED)
PRIORITIES = ("low", "normal", "high")
MAX_TITLE_LENGTH = 80


class TicketError(Exception):
    """A ticket cannot be made or changed like that."""


class UnknownTicketError(TicketError):
    """There is no ticket of that number."""


class ClosedTicketError(TicketError):
    """The ticket is closed and stays as it is."""


class Ticket:
    """One request, with the notes that were made on it."""

    def __init__(self, number, title, priority):
        self.number = number
        self.title = title
        self.priority = priority
        self.state = OPEN
        self.agent = None
        self.notes = []

    def is_open(self):
        return self.state != CLOSED

    def line(self):
        agent = self.agent or "nobody"
        return f"#{self.number} {self.title} ({self.priority}, {self.state}, {agent})"


class Desk:
    """All tickets, by their number."""

    def __init__(self):
        self.tickets = {}
        self.next_number = 1

    def create(self, title, priority="normal"):
        """Make a new ticket."""
        if not title or len(title) > MAX_TITLE_LENGTH:
            raise TicketError("bad title")
        if priority not in PRIORITIES:
            raise TicketError(f"bad priority: {priority}")
        ticket = Ticket(self.next_number, title, priority)
        self.tickets[ticket.number] = ticket
        self.next_number += 1
        return ticket

    def get(self, number):
        """The ticket of that number."""
        if number not in self.tickets:
            raise UnknownTicketError(number)
        return self.tickets[number]

    def give_to(self, number, agent):
        """Let an agent take care of the ticket."""
        ticket = self.get(number)
        if not ticket.is_open():
            raise ClosedTicketError(number)
        ticket.agent = agent
        return ticket

    def add_note(self, number, text):
        """Write a note on the ticket; gives how many there are now."""
        ticket = self.get(number)
        if not ticket.is_open():
            raise ClosedTicketError(number)
        ticket.notes.append(text.strip())
        return len(ticket.notes)

    def close(self, number):
        """Close the ticket."""
        ticket = self.get(number)
        ticket.state = CLOSED
        return ticket

    def open_tickets(self):
        """Those still to do, the pressing ones first."""
        todo = [ticket for ticket in self.tickets.values() if ticket.is_open()]
        return sorted(todo, key=lambda ticket: -PRIORITIES.index(ticket.priority))

    def count_by_state(self):
        """How many tickets there are of each state."""
        counts = dict.fromkeys(STATES, 0)
        for ticket in self.tickets.values():
            counts[ticket.state] += 1
        return counts


def sample():
    """A desk with four tickets, one closed."""
    desk = Desk()
    desk.create("printer is out of paper", "low")
    desk.create("cannot log in", "high")
    desk.create("new keyboard")
    desk.create("mail is slow")
    desk.give_to(2, "Ida")
    desk.give_to(4, "Ida")
    desk.close(3)
    return desk
'''
OVERVIEW_PY = """\
from tickets import sample

desk = sample()
for ticket in desk.open_tickets():
    print(ticket.line())
"""
TEST_TICKETS_PY = """\
from tickets import sample


def test_order():
    assert [ticket.number for ticket in sample().open_tickets()] == [2, 4, 1]


def test_notes():
    desk = sample()
    assert desk.add_note(1, " brought some ") == 1
    assert desk.get(1).notes == ["brought some"]


def test_states():
    assert sample().count_by_state() == {"open": 3, "waiting": 0, "closed": 1}


if __name__ == "__main__":
    test_order()
    test_notes()
    test_states()
    print("tickets: all tests pass")
"""
TICKETS = {"tickets.py": TICKETS_PY, "overview.py": OVERVIEW_PY, "test_tickets.py": TEST_TICKETS_PY}
MISCOUNT = {**TICKETS, "tickets.py": TICKETS_PY.replace("counts[ticket.state] += 1", "counts[ticket.state] = 1")}

KINDS = ("food", "rent", "travel", "books", "food", "gifts", "travel")
EXPENSES_CSV = "date,kind,amount\n" + "".join(
    f"2026-{number // 28 + 1:02}-{number % 28 + 1:02},{KINDS[number % 7]},{number * 17 % 89 + 3}\n"
    for number in range(112)
)
EXPENSES = {"expenses.csv": EXPENSES_CSV}
FOOD_TOTAL = sum(int(line.split(",")[2]) for line in EXPENSES_CSV.splitlines() if ",food," in line)

WIDGETS = ("clock", "calendar", "mail", "news", "weather", "notes", "music", "photos", "maps", "chat")
DASHBOARD_JS = '// What the dashboard shows, and how.\n"use strict";\n\nconst widgets = {\n' + "".join(
    f"  {name}: {{\n    title: '{name.title()}',\n    enabled: true,\n    refreshSeconds: {30 + 15 * number},\n"
    f"    width: {number % 3 + 1},\n    color: '#3344{number}{number}',\n  }},\n"
    for number, name in enumerate(WIDGETS)
)
DASHBOARD_JS += """\
};

function enabledWidgets() {
  return Object.keys(widgets).filter((name) => widgets[name].enabled);
}

function refreshOf(name) {
  return widgets[name].refreshSeconds * 1000;
}

module.exports = { widgets, enabledWidgets, refreshOf };
"""
DASHBOARD = {"dashboard.js": DASHBOARD_JS}

TEXTSTATS = {
    "textstats.py": '''\
"""Counts what is in a text file."""

import argparse


def count(text):
    return {"lines": len(text.splitlines()), "words": len(text.split()), "letters": sum(map(str.isalpha, text))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    args = parser.parse_args()
    with open(args.file) as file:
        found = count(file.read())
    for name, number in found.items():
        print(name, number)


if __name__ == "__main__":
    main()
''',
    "poem.txt": "the sea is wide\nthe boat is small\n\nrow on\n",
}
