"""What is said of the lines of the tables, in full, as it was last looked at: a changed reason, risk, part or grant shows.

Each line stands under the rules it is held against. `RECORD_COURSES=1 pytest FILE` writes down what its lines come to;
look at the difference before it is kept. (Remove the file first, and run all of tests/policy, to be rid of old lines.)
"""

import atexit
import json
import os
from functools import cache
from pathlib import Path

from ollm.domain.tools import Verdict
from tests.policy.conftest import Place

FILE = Path(__file__).with_name("told_verdicts.jsonl")
MAX_KEPT_CHARS = 2_000  # of a line with what is said of it


def describe_verdict(verdict: Verdict, place: Place) -> list[str]:
    """Line by line, without the directories of this run."""
    flags = [name for name in ("locked", "reads") if getattr(verdict, name)]
    told = [" ".join([verdict.decision, verdict.risk, *flags]), verdict.reason]
    told += [f"{part.decision} {part.command}: {part.reason}" for part in verdict.parts[1:]]
    told += [f"by {verdict.rule.layer}: {verdict.rule.text}"] if verdict.rule else []
    told += [f"{name} {value}" for name in ("grant", "prefix") if (value := getattr(verdict, name))]
    told += [f"opens {path}" for path in verdict.approve]
    root = place.workspace.parent
    named = {
        str(place.home): "HOME",
        str(root): "ROOT",
        str(root.parent): "ABOVE",
        f"/proc/{os.getpid()}/": "/proc/self/",
        f"{Path.cwd()}/": "HERE/",
    }
    for path, name in named.items():
        told = [text.replace(path, name) for text in told]
    return told


def check_told(verdict: Verdict, place: Place, command: str, rules: str = "built-in") -> None:
    """Lines of thousands of characters are held by their decision alone."""
    told = describe_verdict(verdict, place)
    if len(command) + sum(map(len, told)) > MAX_KEPT_CHARS:
        return
    if os.environ.get("RECORD_COURSES") == "1":
        load_new()[f"{rules}: {command}"] = told
    else:
        assert told == load_told()[f"{rules}: {command}"]


@cache
def load_told() -> dict[str, list[str]]:
    return dict(map(json.loads, FILE.read_text(encoding="utf-8").splitlines()))


@cache
def load_new() -> dict[str, list[str]]:
    found = dict(load_told()) if FILE.exists() else {}
    atexit.register(lambda: FILE.write_text("".join(f"{json.dumps(row)}\n" for row in sorted(found.items()))))
    return found
