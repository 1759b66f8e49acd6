"""What is found in the files of `corpus`, in full, as it was last looked at.

`python -m tests.services.code_map.full_outlines` writes it anew; look at the difference before it is kept.
"""

from pathlib import Path

from ollm.services.code_map.syntax_tree import outline_text

CORPUS = Path(__file__).with_name("corpus")
NAMES = sorted(path.name.removesuffix(".txt") for path in CORPUS.glob("*.txt"))


def describe_file(name: str) -> str:
    found = outline_text(name, (CORPUS / f"{name}.txt").read_bytes())
    lines = [f"{one.line} {one.first}-{one.last} {one.kind} {one.full_name} | {one.signature}" for one in found]
    return "\n".join([*lines, ""])


def get_file(name: str) -> Path:
    return CORPUS / f"{name}.outline"


if __name__ == "__main__":
    for name in NAMES:
        get_file(name).write_text(describe_file(name), encoding="utf-8")
