"""Tables of lines with what must become of them: `allow: LINE`, `ask: LINE`, or `lock: LINE` for a question that neither a
grant nor an approval level answers. ⏎ is a line's end."""

from typing import NamedTuple

from ollm.domain.tools import Verdict
from ollm.policy.shell.verdict import ShellJudge
from ollm.system.sandbox.box import Level
from tests.policy.conftest import Place
from tests.policy.told_verdicts import check_told


class Row(NamedTuple):
    wanted: str
    line: str


def rows(table: str) -> list[Row]:
    found = [line.partition(": ") for line in table.strip().splitlines()]
    return [Row(wanted, line.replace("⏎", "\n")) for wanted, _, line in found]


def judge(place: Place, line: str, level: Level = "landlock", *, trusted: bool = True) -> Verdict:
    shell = ShellJudge(place.engine().rules, place.boundary, trusted=trusted, find_level=lambda: level)
    return shell.judge({"command": line}, (), "ask").verdict


def decide(place: Place, line: str, level: Level = "landlock") -> str:
    verdict = judge(place, line, level)
    return "lock" if verdict.locked else verdict.decision


def check_row(place: Place, row: Row) -> None:
    """What becomes of its line, and all that is said of it."""
    verdict = judge(place, row.line)
    assert ("lock" if verdict.locked else verdict.decision) == row.wanted
    check_told(verdict, place, row.line, "landlock")
