"""Files of 100 to 400 lines for the longer tasks, written by rule so that each task can break one place of them."""

from __future__ import annotations

from collections.abc import Sequence


def python_module(title: str, nouns: Sequence[str], constants: str = "") -> str:
    """Some 28 lines for each noun: a maker, a total, a search, a label."""
    head = f'"""{title}"""\n\nimport math\n\n{constants}'
    return head + "".join(_FUNCTIONS.replace("NOUN", noun).replace("Noun", noun.title()) for noun in nouns)


_FUNCTIONS = '''

def make_NOUN(name, price, amount=1):
    """A new NOUN as a plain dictionary."""
    if amount < 0:
        raise ValueError("amount must not be negative")
    return {"kind": "NOUN", "name": name, "price": price, "amount": amount}


def total_NOUNs(items):
    """What all of them cost together."""
    total = 0
    for item in items:
        total += item["price"] * item["amount"]
    return total


def find_NOUN(items, name):
    """The first NOUN of that name, or None."""
    for item in items:
        if item["name"] == name:
            return item
    return None


def describe_NOUN(item):
    """One line for people."""
    return f"Noun {item['name']}: {item['amount']} x {item['price']:.2f}"
'''


def python_class(name: str, noun: str, parts: Sequence[str]) -> str:
    """A class with three methods for each part: some 20 lines each."""
    fields = "".join(f"        self.{part}s = []\n" for part in parts)
    head = f'"""Keeps the {noun} and what belongs to it."""\n\n\nclass {name}:\n    """One {noun}."""\n\n'
    init = f"    def __init__(self, title):\n        self.title = title\n        self.closed = False\n{fields}"
    return head + init + "".join(_METHODS.replace("PART", part) for part in parts)


_METHODS = '''
    def add_PART(self, value):
        """Add a PART unless it is there already."""
        if self.closed:
            raise RuntimeError("closed")
        if value not in self.PARTs:
            self.PARTs.append(value)
        return len(self.PARTs)

    def remove_PART(self, value):
        """Take a PART away; True when it was there."""
        if value in self.PARTs:
            self.PARTs.remove(value)
            return True
        return False

    def count_PARTs(self):
        """How many there are."""
        return len(self.PARTs)
'''


def settings_module(groups: Sequence[str]) -> str:
    """Twelve lines of constants for each group."""
    keys = (
        ("ENABLED", "True"), ("HOST", '"{}.internal"'), ("PORT", "{}"), ("TIMEOUT_SECONDS", "{}"), ("RETRIES", "3"),
        ("POOL_SIZE", "{}"), ("LOG_LEVEL", '"info"'), ("PREFIX", '"{}:"'), ("MAX_ITEMS", "{}"),
    )  # fmt: skip
    lines = ['"""Settings of the service. Every value can be overridden in the environment."""', ""]
    for number, group in enumerate(groups, 1):
        lines += ["", f"# {group.title()}"]
        for place, (key, value) in enumerate(keys):
            filled = value.format(group if '"' in value else 1000 + 37 * number + place)
            lines.append(f"{group.upper()}_{key} = {filled}")
    return "\n".join(lines) + "\n"


def yaml_config(services: Sequence[str]) -> str:
    lines = ["version: 3", "services:"]
    for number, service in enumerate(services, 1):
        lines += [
            f"  {service}:",
            f"    image: registry.local/{service}:1.{number}",
            f"    replicas: {number % 3 + 1}",
            "    restart: always",
            "    logging:",
            "      level: info",
            f"      file: /var/log/{service}.log",
            "    limits:",
            f"      memory: {128 * number}m",
            f"      cpu: {number % 4 + 1}",
            "",
        ]
    return "\n".join(lines)


def script_module(nouns: Sequence[str]) -> str:
    """A JavaScript module, some 16 lines for each noun."""
    return '"use strict";\n' + "".join(_SCRIPT.replace("NOUN", noun.title()) for noun in nouns)


_SCRIPT = """
/** Loads one NOUN from the store. */
function loadNOUN(store, id) {
  const found = store.get(id);
  if (found === undefined) {
    throw new Error("NOUN not found: " + id);
  }
  return { ...found, loaded: true };
}

/** Counts what is open. */
function countOpenNOUN(items) {
  return items.filter((item) => item.open).length;
}

module.exports.loadNOUN = loadNOUN;
"""


def style_sheet(names: Sequence[str], color: str) -> str:
    return "/* Look of the pages */\n" + "".join(
        f"\n.{name} {{\n  color: {color if place % 3 == 0 else '#222222'};\n  margin: {place}px;\n  padding: 4px;\n}}\n"
        for place, name in enumerate(names)
    )


def log_lines(count: int, service: str, error_every: int) -> str:
    lines = []
    for number in range(1, count + 1):
        level = "ERROR" if number % error_every == 0 else "WARN" if number % 11 == 0 else "INFO"
        told = "could not reach the database" if level == "ERROR" else f"handled request {number * 7}"
        lines.append(f"2026-03-{number % 28 + 1:02} 10:{number % 60:02}:00 {level} {service} {told}")
    return "\n".join(lines) + "\n"


def table_rows(count: int, names: Sequence[str], step: int) -> str:
    rows = [f"{number},{names[number % len(names)]},{number * step % 97}" for number in range(1, count + 1)]
    return "id,name,amount\n" + "\n".join(rows) + "\n"


def table_total(text: str, name: str | None = None) -> int:
    """The sum of the amounts, of all rows or of those with this name."""
    rows = [line.split(",") for line in text.splitlines()[1:]]
    return sum(int(row[2]) for row in rows if name is None or row[1] == name)


def page_text(title: str, sections: Sequence[str]) -> str:
    """A README of some eight lines for each section."""
    return f"# {title}\n" + "".join(
        f"\n## {section}\n\nThis part explains {section.lower()}.\n\n- first look at the {section.lower()} page\n"
        f"- then try it\n- report what you saw\n"
        for section in sections
    )
