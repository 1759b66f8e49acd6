"""Runs the measurements: `python -m bench [NAME ...] [--save]`. A module here with `rows() -> Iterable[Row]` is one."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bench.row import Row

HERE = Path(__file__).parent
RESULTS = HERE.parent / "docs" / "performance.md"
HEADINGS = ("name", "ours", "baseline", "ratio", "goal", "")


def main() -> int:
    names = discovered()
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(names)}")
    parser.add_argument("--save", action="store_true", help="append the table to docs/performance.md")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(names))
    if unknown:
        parser.error(f"no measurement named {', '.join(unknown)}; there are {', '.join(names)}")
    rows = [row for name in asked.names or names for row in import_module(f"bench.{name}").rows()]
    print(table(rows))
    if asked.save:
        save(rows)
    return 1 if any(row.met is False for row in rows) else 0


def discovered() -> list[str]:
    """The modules that measure something; the others help them."""
    modules = {path.stem: path for path in HERE.glob("[a-z]*.py")}
    modules |= {path.parent.name: path for path in HERE.glob("[a-z]*/__init__.py")}
    return sorted(name for name, path in modules.items() if "def rows(" in path.read_text(encoding="utf-8"))


def cells(row: Row) -> tuple[str, ...]:
    ratio = f"{row.ratio:.2f} ×" if row.ratio is not None else ""
    goal = "" if row.goal is None else f"≤ {row.goal:g} {'×' if row.of == 'ratio' and row.baseline else row.unit}"
    verdict = {True: "ok", False: "over", None: ""}[row.met]
    baseline = f"{row.baseline:.4g} {row.unit}" if row.baseline is not None else ""
    return (
        row.name + (f" ({row.note})" if row.note else ""),
        f"{row.ours:.4g} {row.unit}",
        baseline,
        ratio,
        goal,
        verdict,
    )


def table(rows: Iterable[Row]) -> str:
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def save(rows: Iterable[Row]) -> None:
    machine = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores at a load of {os.getloadavg()[1]:.1f}, "
        f"Python {platform.python_version()}"
    )
    lines = [
        f"\n## {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine}\n",
        "| " + " | ".join(HEADINGS) + " |",
        "|---" * len(HEADINGS) + "|",
    ]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print(f"appended to {RESULTS.relative_to(HERE.parent)}")


if __name__ == "__main__":
    sys.exit(main())
