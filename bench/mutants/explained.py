"""Mutants that change nothing anybody could see, with the reason; they are drawn, counted and not judged."""

from pathlib import Path

from bench.mutants.sites import Mutant

EXPLAINED: dict[tuple[str, str, str], str] = {}


def find_reason(mutant: Mutant, root: Path) -> str:
    """By module, kind and the text that is changed."""
    module = str(mutant.path.relative_to(root / "src" / "ollm"))
    before = mutant.path.read_bytes()[mutant.start : mutant.end].decode()
    return EXPLAINED.get((module, mutant.kind, before), "")
