"""The active context: what counting, adding and compressing cost, and how long conversations fare in small windows."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import time
from collections.abc import Callable, Iterable

import msgspec

from bench.context_simulation.drive import Run, play
from bench.context_simulation.tokenizer import find_tokenizer
from bench.row import Row, pair, seconds
from bench.simulation import Simulation, simulate
from ollm.domain.messages import Message, PromptMessage, TextPart
from ollm.runtime.resume.workspace_record import SavedContext
from ollm.services.chat_compression.compression_state import CompressionOptions
from ollm.services.chat_compression.service import ChatCompressionService
from ollm.services.token_counting import TokenCounter

TURNS = 1000
WINDOWS = (4096, 8192, 16384, 32768)
PRICED = (("long", 8192, 120, 1), ("chatty", 8192, 140, 1), ("tools", 8192, 70, 1), ("tools", 4096, 50, 1))


def rows() -> Iterable[Row]:
    yield compression()
    yield adding()
    yield counting()
    yield prefix()
    yield resumed()
    for window in WINDOWS:
        yield from conversation(window)
    for mix, window, turns, seed in PRICED:
        yield from price(mix, window, turns, seed)


def compression() -> Row:
    """A hundred messages, without the model's time."""

    async def summarise(_asked, _tokens):
        yield "Goal:\n- go on\nOpen points:\n- none that anybody knows of"

    messages = [PromptMessage(role="system", content="You are an agent.")]
    messages += [
        PromptMessage(role=("user", "assistant")[n % 2], content=f"Words {n} of it, and more. " * 20, sources=(n + 1,))
        for n in range(100)
    ]

    counter = TokenCounter()
    counter.count_messages(messages)  # as they were when they were added

    def compress() -> object:
        service = ChatCompressionService(counter, summarise)
        return asyncio.run(service.compress(messages, CompressionOptions(preserve_recent_tokens=500)))

    return Row("compress 100 messages", seconds(compress), goal=0.05, of="figure", note="D asks 2 s")


def adding() -> Row:
    """The same message added to a long and to a short context, in CPU time: a busy machine hides so little."""
    long, short = adder(grown(10_000)), adder(grown(100))
    taken = [(spent(long), spent(short)) for _ in range(15)]
    ours, baseline = (statistics.median(column) for column in zip(*taken, strict=True))
    return Row("add 300 messages to 10,000, × to 100", ours, baseline, goal=1.5, unit="s", note="CPU time")


def spent(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def grown(size: int) -> Simulation:
    simulation = Simulation(10_000_000)
    for number in range(size):
        simulation.prompt.add_message(said(number), {})
    return simulation


def adder(simulation: Simulation, times: int = 300):
    def add() -> None:
        for number in range(times):
            simulation.prompt.add_message(said(number), {})

    return add


def said(number: int) -> Message:
    return Message(role="assistant", parts=(TextPart(f"Answer {number} of many"),), timestamp="", id=number + 1)


def counting() -> Row:
    """Counting a text that was counted before, beside counting it for the first time."""
    text = "def parse(line: str) -> list[int]:\n    return [int(part) for part in line.split(',')]\n" * 500
    known = TokenCounter()
    known.count_text(text)
    ours, first = pair(lambda: known.count_text(text), lambda: TokenCounter().count_text(text))
    return Row("count a known text, × the first time", ours, first, goal=0.05)


def prefix() -> Row:
    """Share of the last prompt that does not stand at the front of the next one, outside compressions."""

    async def talk() -> float:
        simulation = Simulation(32_768)
        for _ in range(60):
            await simulation.turn()
        entries = [entry for entry in simulation.prompt.ledger.entries if entry.broken_by != "compression"]
        return 1 - min(entry.reused_share for entry in entries)

    return Row("prompt not reused", asyncio.run(talk()) * 100, goal=0.0, unit="%", of="figure")


def resumed() -> Row:
    """The same for the first prompt after a resume, from the bytes that were kept."""

    async def talk() -> float:
        before, after = Simulation(32_768), Simulation(32_768)
        for _ in range(20):
            await before.turn()
        kept = msgspec.json.encode(SavedContext.from_prompt(before.prompt, 1))
        after.prompt.restore(msgspec.json.decode(kept, type=SavedContext).context, cause="resume")
        sent, again = before.prompt.build_request_messages(), after.prompt.build_request_messages()
        same = sum(len(old.content) for old, new in zip(sent, again, strict=True) if old == new)
        return 1 - same / sum(len(message.content) for message in sent)

    return Row("prompt not reused after a resume", asyncio.run(talk()) * 100, goal=0.0, unit="%", of="figure")


def conversation(window: int) -> Iterable[Row]:
    name = f"{TURNS} turns in {window // 1024}K"
    begin = time.perf_counter()
    report = simulate(window, TURNS)
    spent = time.perf_counter() - begin
    heavy = simulate(window, TURNS // 4, share=0.2)
    lost = len(report.facts_lost) + len(report.unreachable) + len(heavy.facts_lost) + len(heavy.unreachable)
    yield Row(f"{name}: compressions a turn", report.per_turn, goal=0.2, unit="", of="figure", note="turns of 5 %")
    yield Row(f"{name}: compressions a turn", heavy.per_turn, unit="", note="turns of 20 %")
    yield Row(f"{name}: largest request", max(report.largest, heavy.largest), goal=window, unit="tokens", of="figure")
    yield Row(f"{name}: facts and messages out of reach", lost, goal=0, unit="", of="figure")
    yield Row(f"{name}: our time a request", spent / report.requests, unit="s")


def price(mix: str, window: int, turns: int, seed: int) -> Iterable[Row]:
    """What the server of a small window must read and write, beside what is kept by it."""
    outcome = play(Run(window=window, seed=seed, turns=turns, mix=mix), find_tokenizer())
    shutil.rmtree(outcome.home.parent)
    found, name = outcome.figures, f"{mix} {window // 1024}K, {turns} turns"
    cut = found.over_window + found.sum_over_window + found.request_cut
    yield Row(f"{name}: tokens read and summarized, × what is new", found.cost.read_again, unit="", note="1 is least")
    yield Row(f"{name}: compactions a turn", found.compressions, unit="")
    yield Row(f"{name}: prompt not reused", (1 - found.prefix_kept) * 100, unit="%")
    yield Row(f"{name}: facts out of the prompt", mean_told(turns) - found.facts_visible, unit="")
    yield Row(f"{name}: first 40 messages not whole at turn 40", 40 - found.early_whole, unit="")
    yield Row(f"{name}: requests cut or over the window", cut, goal=0, unit="", of="figure")


def mean_told(turns: int) -> float:
    """Facts told so far, on average over the last two thirds of the turns: one comes with each turn."""
    return statistics.mean(range(turns // 3 + 1, turns + 1))
