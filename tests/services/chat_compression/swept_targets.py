"""What compressions come to for every target there can be, in full, as it was last looked at: a token is a word here, so
that each border is met exactly.

`python -m tests.services.chat_compression.swept_targets` writes it anew; look at the difference before it is kept.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.context import Checkpoint, RequestLine, format_number_ranges
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.services.chat_compression import ChatCompressionService, CompressionOptions
from ollm.services.chat_compression.folding import cut_text, fold_calls, fold_result, write_digest
from ollm.services.chat_compression.groups import group_messages
from ollm.services.chat_compression.summary import build_request, cut_lines
from ollm.services.chat_compression.users import add_aside, add_primed, shorten_message
from ollm.services.token_counting import TokenCounter
from tests.services import contexts as make

RECORDED = Path(__file__).with_name("swept_targets.txt")
LONG = "\n".join(f"row {number} has_{number} some words in it" for number in range(30))
FIVE_LINES = "\n".join(f"line {number}: {'x' * number}" for number in range(5, 10))


class WordCounter(TokenCounter):
    def count_text(self, text: str) -> int:
        return len(text.split())

    def count_message(self, message: PromptMessage) -> int:
        called = sum(self.count_text(str(call.arguments)) for call in message.calls)
        return 1 + self.count_text(message.content) + called


counter = WordCounter()


def make_rich_talk() -> list[PromptMessage]:
    """Long arguments, a failure, asides, results on their own, and many short answers."""
    write = ToolCall(id="w", name="write_file", arguments={"path": "a_b.py", "content": LONG, "lines": [LONG, 3]})
    first = add_aside(f"Mend port 8443 of part_one. {LONG[:300]}", "it is late")
    return [
        make.SYSTEM,
        make.user(1, first),
        make.assistant(2, "I write it.", write),
        make.result(3, "w", "written", "write_file"),
        make.result(4, "gone", LONG),
        make.user(5, add_primed("And now part_two at 9000?", "Files here: a.py")),
        *(make.assistant(number, f"Step {number} of them") for number in range(6, 12)),
        make.user(12, "go on"),
        make.assistant(13, "", ToolCall(id="s", name="shell", arguments={"command": "make all"})),
        make.result(14, "s", f"error: no rule for target_x\n{LONG}", "shell", failed=True),
        make.assistant(15, "It fails with target_x."),
        make.user(16, "Then mend it"),
        make.assistant(17, "Done with it."),
    ]


def make_many_turns() -> list[PromptMessage]:
    """So many stretches between user messages that their lines become few."""
    said = [
        message
        for number in range(1, 37, 3)
        for message in (
            make.user(number, f"ask {number}"),
            make.assistant(number + 1, f"answer {number} " + "with words " * 12),
            make.assistant(number + 2, "more " * 9),
        )
    ]
    return [make.SYSTEM, *said]


def make_record(name: str, *numbers: int, asked: Iterable[int] = ()) -> Checkpoint:
    lines = tuple(RequestLine(number=number, text=f"asked for {number}") for number in asked)
    made = Checkpoint(
        id=name, text=f"Goal:\n- minutes {name}", message_ids=numbers, timestamp="", tokens=0, requests=lines
    )
    return msgspec.structs.replace(made, tokens=counter.count_message(made.message))


TALKS = {"plain": make.talk(3, 5), "rich": make_rich_talk(), "many": make_many_turns(), "bare": make.talk(2, 4)[1:]}
RECORDS = (make_record("k", 101, 102, asked=(101,)), make_record("user-messages", 90))
OPTIONS: dict[str, dict[str, Any]] = {
    "truncate": {"strategy": "truncate"},
    "truncate into a ledger": {"strategy": "truncate", "ledger_tokens": 20, "request": 16},
    "hybrid": {"strategy": "hybrid", "summary_max_tokens": 30},
    "hybrid into a ledger": {"strategy": "hybrid", "summary_max_tokens": 60, "ledger_tokens": 30, "request": 16},
    "summarize": {"strategy": "summarize", "summary_max_tokens": 50, "checkpoints": RECORDS, "locked": ("keep `x y`",)},
}
STEPS: dict[str, tuple[int, Sequence[str]]] = {
    "plain": (1, list(OPTIONS)),
    "bare": (1, ["truncate", "hybrid into a ledger"]),
    "many": (9, ["truncate", "truncate into a ledger", "hybrid into a ledger"]),
    "rich": (31, list(OPTIONS)),
}


def describe_message(message: PromptMessage) -> str:
    shown = f" {message.content!r}" if message.role == "system" else f" {message.content[-24:]!r}"
    return f"{message.role[0]}{format_number_ranges(message.sources)} {counter.count_message(message)}{shown}"


def compress(talk: str, option: str, target: int, *, model: bool) -> list[str]:
    ids = iter(range(99))
    service = ChatCompressionService(
        counter,
        make.good if model else None,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        ids=lambda: f"id{next(ids)}",
    )
    wanted = CompressionOptions(preserve_recent_tokens=12, target_tokens=target, **OPTIONS[option])
    found = asyncio.run(service.compress(TALKS[talk], wanted))
    created = found.created
    written = f"{created.id} {created.engine_written} {created.age} {created.tokens}" if created else "none"
    counts = f"{found.original_token_count} -> {found.compressed_token_count}"
    return [
        f"{counts}; gone {format_number_ranges(found.message_ids)}; created {written}",
        f"{found.fallback or found.skipped}; {found.notes}",
        *map(describe_message, found.compressed_messages),
    ]


def truncate(talk: str, target: int) -> list[str]:
    return [describe_message(message) for message in ChatCompressionService(counter).truncate(TALKS[talk], target)]


def run_lengths(values: Iterable[int], describe: Callable[[int], Sequence[str]]) -> Iterator[str]:
    """Each outcome with the first and last value that comes to it."""
    first, last, seen = 0, 0, tuple[str, ...]()
    for value in values:
        found = tuple(describe(value))
        if found != seen:
            if seen:
                yield f"{first} to {last}:"
                yield from (f"  {line}" for line in seen)
            first, seen = value, found
        last = value
    yield f"{first} to {last}:"
    yield from (f"  {line}" for line in seen)


def describe_record(allowed: int) -> list[str]:
    asked = build_request(group_messages(make.talk(2, 5)), RECORDS, (10, allowed), counter)
    return [repr(asked[-1].content.partition("</record>")[0])]


def list_sweeps() -> dict[str, Callable[[], Iterator[str]]]:
    groups = group_messages(make.talk(2, 5))
    way = 'recall {"messageId": 7}'
    sweeps: dict[str, Callable[[], Iterator[str]]] = {
        "a text by words": lambda: run_lengths(
            range(220), lambda n: [repr(cut_text(LONG, n, counter.count_text, way))]
        ),
        "a text by characters": lambda: run_lengths(range(75), lambda n: [repr(cut_text(FIVE_LINES, n, len, ""))]),
        "one line": lambda: run_lengths(range(130), lambda n: [repr(cut_text("word " * 24, n, len, way))]),
        "a message": lambda: run_lengths(
            range(60), lambda n: [repr(shorten_message(make.user(3, LONG), n, counter.count_text).content)]
        ),
        "a result": lambda: run_lengths(
            range(50, 140),
            lambda n: [repr(fold_result(make.result(1, "c", LONG[: n * 5]), counter.count_text).content)],
        ),
        "arguments": lambda: run_lengths(
            range(0, 240, 3), lambda n: [str(fold_calls(make_rich_talk()[2], n, counter.count_text).calls[0].arguments)]
        ),
        "a digest": lambda: run_lengths(range(80), lambda n: [repr(write_digest(groups, n, counter.count_text))]),
        "a record to be summarised": lambda: run_lengths(range(60, 420), describe_record),
        "lines of a summary": lambda: run_lengths(
            range(30), lambda n: [repr(cut_lines(make.MINUTES, n, counter.count_text))]
        ),
    }
    for talk, (step, options) in STEPS.items():
        values = range(0, counter.count_messages(TALKS[talk]) + 2, step)
        sweeps[f"{talk}, truncated alone"] = lambda talk=talk, values=values: run_lengths(
            values, lambda target: truncate(talk, target)
        )
        for option in options:
            for model in (False, True):
                if not model or not option.startswith("truncate"):
                    sweeps[f"{talk}, {option}{', with a model' if model else ''}"] = (
                        lambda talk=talk, option=option, model=model, values=values: run_lengths(
                            values, lambda target: compress(talk, option, target, model=model)
                        )
                    )
    return sweeps


def describe(name: str) -> str:
    return "\n".join(list_sweeps()[name]()) + "\n"


def read_recorded() -> dict[str, str]:
    parts = RECORDED.read_text(encoding="utf-8").split("== ")[1:]
    return {name: text for part in parts for name, _, text in [part.partition("\n")]}


if __name__ == "__main__":
    RECORDED.write_text("".join(f"== {name}\n{describe(name)}" for name in list_sweeps()), encoding="utf-8")
