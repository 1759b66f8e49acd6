"""`python -m bench.context_simulation --window 8192 --turns 300`: plays conversations and prints what they came to."""

from __future__ import annotations

import argparse
import os
import shutil

from bench.context_simulation.drive import MIXES, Outcome, Run, play
from bench.context_simulation.held_out import HELD_OUT
from bench.context_simulation.server import REFUSALS, SUMMARIES
from bench.context_simulation.tokenizer import find_tokenizer

MAX_COLUMNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.context_simulation", description=__doc__)
    parser.add_argument("--window", type=int, nargs="*", default=[8192])
    parser.add_argument("--served", type=int, help="the server's window, when it is another than it says")
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--seed", type=int, nargs="*", default=[1], help="odd ones are for tuning")
    parser.add_argument("--way", choices=("library", "command"), default="library")
    parser.add_argument("--refuses", choices=tuple(REFUSALS), default="")
    parser.add_argument("--clamps", action="store_true", help="the server cuts what is too long and says nothing")
    parser.add_argument("--silent", action="store_true", help="the server reports no usage")
    parser.add_argument("--summaries", choices=SUMMARIES, default="good")
    parser.add_argument("--mix", choices=tuple(MIXES), default="mixed", help="whose turns are played")
    parser.add_argument("--held-out", action="store_true", help="play the mixes and seeds that nothing is tuned to")
    parser.add_argument("--rare", action="store_true", help="messages of rare ideographs")
    parser.add_argument("--untold", action="store_true", help="the window comes from the server's list of models")
    parser.add_argument("--gguf", help="whose vocabulary counts")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    os.nice(5)
    tokenizer = find_tokenizer(asked.gguf)
    columns: list[tuple[str, Outcome, int]] = []
    for mix, window, turns, seed in HELD_OUT if asked.held_out else list_runs(asked):
        run = Run(
            window=window,
            seed=seed,
            turns=turns,
            way=asked.way,
            served=asked.served,
            refuses=asked.refuses,
            clamps=asked.clamps,
            reports=not asked.silent,
            summaries=asked.summaries,
            rare=asked.rare,
            mix=mix,
            told=not asked.untold,
        )
        outcome = play(run, tokenizer)
        columns.append((f"{mix} {window // 1024}K s{seed}", outcome, asked.served or window))
        if asked.verbose:
            show(outcome)
        shutil.rmtree(outcome.home.parent)
    for start in range(0, len(columns), MAX_COLUMNS):
        print_table(columns[start : start + MAX_COLUMNS], asked.way)


def list_runs(asked: argparse.Namespace) -> list[tuple[str, int, int, int]]:
    return [(asked.mix, window, asked.turns, seed) for window in asked.window for seed in asked.seed]


def show(outcome: Outcome) -> None:
    for line in outcome.figures.broken:
        print("  rewritten at", line)
    for line in dict.fromkeys(outcome.notices):
        print("  notice", line[:200])
    bad = [f"{n + 1}: {reason}" for n, reason in enumerate(outcome.reasons) if reason != "answered"]
    print("  not answered:", bad)


def print_table(columns: list[tuple[str, Outcome, int]], way: str) -> None:
    print(f"{way:<46}" + "".join(f"{name:>18}" for name, _, _ in columns))
    lines = [outcome.figures.lines(window) for _, outcome, window in columns]
    for row in zip(*lines, strict=True):
        print(f"{row[0][0]:<46}" + "".join(f"{cell:>18}" for _, cell in row))


if __name__ == "__main__":
    main()
