"""What is found in the files of `corpus`, in full, with a grammar and by patterns, as it was last looked at.

`python -m tests.services.code_map.full_outlines` writes it anew; look at the difference before it is kept.
"""

from collections.abc import Sequence
from pathlib import Path

from ollm.services.code_map.definition import CodeDefinition
from ollm.services.code_map.outline import outline_text
from ollm.services.code_map.patterns import find_definitions

CORPUS = Path(__file__).with_name("corpus")
NAMES = sorted(path.name.removesuffix(".txt") for path in CORPUS.glob("*.txt"))


def describe_definitions(found: Sequence[CodeDefinition]) -> list[str]:
    return [f"{one.line} {one.first}-{one.last} {one.kind} {one.full_name} | {one.signature}" for one in found]


def describe_file(name: str) -> str:
    data = (CORPUS / f"{name}.txt").read_bytes()
    parsed = describe_definitions(outline_text(name, data))
    matched = describe_definitions(find_definitions(name, data.decode()))
    return "\n".join(["By its grammar:", *parsed, "By patterns:", *matched, ""])


def get_file(name: str) -> Path:
    return CORPUS / f"{name}.outline"


if __name__ == "__main__":
    for name in NAMES:
        get_file(name).write_text(describe_file(name), encoding="utf-8")
