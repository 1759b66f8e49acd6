"""What is said of the lines of the tables, in full, as it was last looked at: a changed reason, risk, part or grant shows.

`python -m tests.policy.told_verdicts` writes it anew; look at the difference before it is kept.
"""

import json
import tempfile
from functools import cache
from pathlib import Path

from ollm.domain.tools import Verdict
from tests.policy.conftest import Place, shell
from tests.policy.shell_lines import HARMLESS, RISKY, RISKY_CHARACTERS, lines

FILE = Path(__file__).with_name("told_verdicts.jsonl")


def describe_verdict(verdict: Verdict, place: Place) -> list[str]:
    """Line by line, without the directories of this run."""
    flags = [name for name in ("locked", "reads") if getattr(verdict, name)]
    told = [" ".join([verdict.decision, verdict.risk, *flags]), verdict.reason]
    told += [f"{part.decision} {part.command}: {part.reason}" for part in verdict.parts[1:]]
    told += [f"by {verdict.rule.layer}: {verdict.rule.text}"] if verdict.rule else []
    told += [f"{name} {value}" for name in ("grant", "prefix") if (value := getattr(verdict, name))]
    told += [f"opens {path}" for path in verdict.approve]
    root = place.workspace.parent
    named = {str(place.home): "HOME", str(root): "ROOT", str(root.parent): "ABOVE"}
    for path, name in named.items():
        told = [text.replace(path, name) for text in told]
    return told


@cache
def load_told() -> dict[str, list[str]]:
    return dict(map(json.loads, FILE.read_text(encoding="utf-8").splitlines()))


def write_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "above" / "root")
        commands = dict.fromkeys([*lines(HARMLESS), *lines(RISKY), *RISKY_CHARACTERS])
        told = [[one, describe_verdict(shell(place.engine(trusted=True), one), place)] for one in commands]
    FILE.write_text("".join(f"{json.dumps(line)}\n" for line in told), encoding="utf-8")


if __name__ == "__main__":
    write_told()
