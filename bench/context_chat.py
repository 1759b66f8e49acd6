"""`OLLM_BASE_URL=http://127.0.0.1:8080/v1 python -m bench.context_chat`: sixty turns by the command with a real model.

Each turn is a process, `ollm -p --continue`, and every request passes a relay that notes what the server counted. The
folder given with --folder is kept; a chat that stopped (--seconds) continues in it. Everything that is said follows
from the number of the turn, so that two models hear the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.servers import Relay

GRANTS = ("--approval", "accept-edits", "--allow", "shell:cat build.log")
SUMMARY_MARKS = ("clerk of a coding session", "Write the minutes")
LOG_BYTES = 50_000
ASK_EVERY_TURNS = 3
FIRST_QUESTION_TURN = 10
# What is told, what the answer must have in it, and the question for it.
FACTS = (
    ("The staging database listens on port 45871.", "45871", "On which port does the staging database listen?"),
    ("Marta Vogel owns the billing service.", "Vogel", "Who owns the billing service?"),
    ("The nightly backup goes to /srv/vault/blue.", "/srv/vault/blue", "Where does the nightly backup go?"),
    ("We release on the ninth of March.", "March", "When do we release?"),
    ("The login page may take 340 milliseconds at most.", "340", "How long may the login page take?"),
    ("The import job is called quince-runner.", "quince", "What is the name of the import job?"),
    ("Retries are limited to 83 in the payment client.", "83", "How many retries does the payment client have?"),
    ("The old parser was removed in commit 8f3ac21.", "8f3ac21", "Which commit removed the old parser?"),
    ("The API key stands in the variable HERON_KEY.", "HERON_KEY", "Which variable has the API key?"),
    ("The test customer has the number 70412.", "70412", "What is the number of the test customer?"),
    ("The search index is rebuilt by Pawel.", "Pawel", "Who rebuilds the search index?"),
    ("The cache keeps 2500 entries.", "2500", "How many entries does the cache keep?"),
    ("The mail server is mx7.harbor.example.", "mx7", "What is the host name of the mail server?"),
    ("The report module is written in Kotlin.", "Kotlin", "In which language is the report module written?"),
    ("The export must be in the format Parquet.", "Parquet", "In which format must the export be?"),
    ("The second data centre is in Tallinn.", "Tallinn", "In which city is the second data centre?"),
)
TASKS = (
    "Write a Python function that reverses a string. Only the function.",
    "Explain in two sentences what a hash table is.",
    "Give three names for a function that removes duplicates from a list.",
    "What is the difference between a list and a tuple in Python? Two sentences.",
    "Write a shell command that counts the lines of all Python files. Only the command.",
)


@dataclass(frozen=True)
class ChatTurn:
    """`expected` stands in a right answer; `is_done` looks whether the files are as they were asked to be."""

    number: int
    kind: str
    text: str
    expected: str = ""
    is_done: Callable[[Path], bool] | None = None


def write_files(project: Path) -> None:
    """The project the chat is about: modules to read and change, and a log of 50 KB."""
    chance = random.Random(7)
    (project / "src").mkdir(parents=True, exist_ok=True)
    for number in range(12):
        lines = [f'"""Part {number}."""', "", f"LIMIT = {100 + number}", ""]
        for step in range(chance.choice((4, 8, 14))):
            lines += [f"def step_{step}(value: int) -> int:", f"    return value + {chance.randrange(10**5)}", "", ""]
        (project / "src" / f"part_{number}.py").write_text("\n".join(lines), encoding="utf-8")
    lines = [f"{n:05d} INFO worker {chance.randrange(40)} took {chance.randrange(9999)} ms" for n in range(1600)]
    lines[700] = "00700 ERROR worker 17 lost the lease of job 5519"
    (project / "build.log").write_text("\n".join(lines)[:LOG_BYTES] + "\n", encoding="utf-8")


def play_turns(turns: int) -> Iterator[ChatTurn]:
    """Facts are told in the first half, and asked for from the tenth turn on, the oldest first."""
    told = asked = 0
    for number in range(1, turns + 1):
        if number >= FIRST_QUESTION_TURN and number % ASK_EVERY_TURNS == 0 and told > 1:
            yield ask_fact(number, asked % told)
            asked += 1
        elif number % 2 == 1 and told < len(FACTS):
            fact = FACTS[told][0]
            yield ChatTurn(number, "tell", f"Please keep in mind: {fact} Answer with one short sentence.")
            told += 1
        else:
            yield give_work(number)


def ask_fact(number: int, index: int) -> ChatTurn:
    _, expected, question = FACTS[index]
    text = f"{question} I told you earlier. Answer with one short sentence."
    return ChatTurn(number, "ask", text, expected)


def give_work(number: int) -> ChatTurn:
    part = number % 12
    name = f"src/part_{part}.py"
    if number in (8, 38):
        return ChatTurn(
            number, "output", "Run the command `cat build.log` and tell me which job lost its lease.", "5519"
        )
    if number % 4 == 0:
        text = f"In {name} change the value of LIMIT to {900 + number}. Change nothing else."
        wanted = f"LIMIT = {900 + number}"
        return ChatTurn(number, "edit", text, is_done=lambda project: wanted in (project / name).read_text())
    if number % 4 == 2:
        text = f"Read {name} and tell me the value of LIMIT in it."
        return ChatTurn(number, "read", text)
    return ChatTurn(number, "talk", TASKS[number % len(TASKS)])


@dataclass
class Exchanged:
    """One chat request, and what the server said of it. Tokens are None where it said nothing."""

    body: dict[str, Any]
    status: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    answer_tokens: int | None = None
    new_tokens: int = 0  # of the user's message and the results that this request is the first to carry

    @property
    def read_tokens(self) -> int:
        """What the server read: all of it where it does not tell what it had cached."""
        return (self.prompt_tokens or 0) - (self.cached_tokens or 0)

    @property
    def max_tokens(self) -> int:
        found = self.body.get("max_tokens") or self.body.get("max_completion_tokens") or self.body.get("n_predict")
        return int(found or 0)

    def read_chunk(self, chunk: dict[str, Any]) -> None:
        """Take the counts out of an answer or a piece of it: `usage`, and llama.cpp's `timings`."""
        usage, timings = chunk.get("usage") or {}, chunk.get("timings") or {}
        if usage:
            self.prompt_tokens = usage.get("prompt_tokens", self.prompt_tokens)
            self.answer_tokens = usage.get("completion_tokens", self.answer_tokens)
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            self.cached_tokens = self.cached_tokens if cached is None else cached
        if "prompt_n" in timings:
            cached = timings.get("cache_n")
            self.cached_tokens = self.cached_tokens if cached is None else cached
            if self.prompt_tokens is None and cached is not None:
                self.prompt_tokens = timings["prompt_n"] + cached


class CountingRelay(Relay):
    """Keeps every chat request with what the server counted."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.seen: list[Exchanged] = []
        self._upstream = upstream.removesuffix("/v1")

    def count_tokens(self, text: str) -> int:
        """Let llama.cpp count a text; where the server does not, four characters are a token."""
        body = json.dumps({"content": text}).encode()
        request = urllib.request.Request(f"{self._upstream}/tokenize", body, {"content-type": "application/json"})
        with suppress(OSError, ValueError, KeyError), urllib.request.urlopen(request) as answer:
            return len(json.load(answer)["tokens"])
        return len(text) // 4

    def count_new(self, turn: ChatTurn, seen: Sequence[Exchanged]) -> None:
        """Count what each request of a turn is the first to carry. The first of all is new as a whole."""
        chats = [one for one in seen if one.status == 200 and not is_summary(one)]
        for place, one in enumerate(chats):
            texts = list_newest_results(one.body) if place else [turn.text]
            first = turn.number == 1 and place == 0
            one.new_tokens = one.prompt_tokens or 0 if first else sum(map(self.count_tokens, texts))

    def note_answer(self, path: str, body: bytes, status: int, answer: bytes) -> None:
        if not path.endswith("/chat/completions"):
            return
        exchanged = Exchanged(json.loads(body), status)
        for line in answer.split(b"\n"):
            with suppress(ValueError, AttributeError):
                exchanged.read_chunk(json.loads(line.removeprefix(b"data:")))
        self.seen.append(exchanged)


@dataclass
class TurnFigures:
    """One line of the log; sums of them are the table at the end."""

    number: int
    kind: str
    requests: int = 0
    summaries: int = 0
    refused: int = 0
    uncounted: int = 0  # requests of which the server told no count
    over: int = 0  # prompts over the window by the server's count, or refused
    sum_over: int = 0  # prompt + max_tokens over it
    largest: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_known: bool = False
    new_tokens: int = 0
    read_tokens: int = 0  # with those of summaries
    summary_tokens: int = 0  # written
    compressions: int = 0
    calls: int = 0
    seconds: float = 0.0
    ended: str = ""
    right: bool | None = None
    visible: bool | None = None  # whether the fact asked for stood in a request of this turn
    recalled: bool = False
    answer: str = ""
    notices: list[str] = field(default_factory=list)

    def to_line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def measure_turn(
    turn: ChatTurn, seen: Sequence[Exchanged], events: Iterable[dict[str, Any]], window: int
) -> TurnFigures:
    figures = TurnFigures(turn.number, turn.kind, requests=len(seen))
    for one in seen:
        _add_request(figures, one, window)
    for event in events:
        _add_event(figures, event)
    if turn.expected:
        figures.right = turn.expected.lower() in figures.answer.lower()
        asked = [json.dumps(one.body.get("messages"), ensure_ascii=False) for one in seen if not is_summary(one)]
        figures.visible = any(turn.expected in text for text in asked)
    return figures


def list_newest_results(body: dict[str, Any]) -> list[str]:
    """List the results at the end of a request."""
    found = []
    for message in reversed(body.get("messages") or ()):
        if message["role"] != "tool":
            break
        found.append(str(message.get("content") or ""))
    return found


def is_summary(one: Exchanged) -> bool:
    messages = one.body.get("messages") or [{}]
    return any(mark in str(messages[at].get("content")) for at in (0, -1) for mark in SUMMARY_MARKS)


def _add_request(figures: TurnFigures, one: Exchanged, window: int) -> None:
    prompt = one.prompt_tokens or 0
    figures.summaries += is_summary(one)
    figures.new_tokens += one.new_tokens
    figures.read_tokens += one.read_tokens
    figures.summary_tokens += (one.answer_tokens or 0) if is_summary(one) else 0
    figures.refused += one.status >= 400
    figures.uncounted += one.prompt_tokens is None and one.status == 200
    figures.over += prompt > window
    figures.sum_over += prompt + one.max_tokens > window
    figures.largest = max(figures.largest, prompt)
    if one.cached_tokens is not None:
        figures.cache_known = True
        figures.prompt_tokens += prompt
        figures.cached_tokens += one.cached_tokens


def _add_event(figures: TurnFigures, event: dict[str, Any]) -> None:
    match event.get("type"):
        case "text-delta":
            figures.answer += event["text"]
        case "compressed":
            figures.compressions += 1
        case "tool-started":
            figures.calls += 1
            figures.recalled |= event.get("name") == "recall"
        case "turn-finished":
            figures.ended = event["reason"]
        case "notice":
            figures.notices.append(event["text"])


def describe_turn(figures: TurnFigures, window: int) -> str:
    reuse = f"{figures.cached_tokens / max(1, figures.prompt_tokens):.0%}" if figures.cache_known else "?"
    right = {True: "right", False: "wrong", None: ""}[figures.right]
    if figures.right is False and figures.visible is not None:
        right += " (was in the prompt)" if figures.visible else " (was not in the prompt)"
    said = " ".join(figures.answer.split())[:60]
    return (
        f"{figures.number:>4} {figures.kind:<6} {figures.requests:>2} requests {figures.calls:>2} calls "
        f"largest {figures.largest:>5} ({figures.largest / window:.0%}) over {figures.over}+{figures.sum_over} "
        f"compressions {figures.compressions} reused {reuse:>4} "
        f"read {figures.read_tokens:>5} of {figures.new_tokens:>4} new {figures.seconds:>5.0f} s {figures.ended:<9} "
        f"{right} | {said}"
    )


def describe_chat(turns: Sequence[TurnFigures], window: int) -> list[str]:
    """The table at the end."""
    asked = [one for one in turns if one.kind == "ask"]
    done = [one for one in turns if one.kind in ("edit", "output", "read") and one.right is not None]
    prompt = sum(one.prompt_tokens for one in turns)
    failed = [one for one in turns if one.ended != "answered"]
    rows = {
        "turns": len(turns),
        "requests": sum(one.requests for one in turns),
        "of them without a count by the server": sum(one.uncounted for one in turns),
        "prompts over the window": sum(one.over for one in turns),
        "prompt + max_tokens over the window": sum(one.sum_over for one in turns),
        "refused by the server": sum(one.refused for one in turns),
        "largest prompt, of the window": f"{max((one.largest for one in turns), default=0) / window:.2f}",
        "compressions": sum(one.compressions for one in turns),
        "compressions a turn": f"{sum(one.compressions for one in turns) / max(1, len(turns)):.3f}",
        "summary requests": sum(one.summaries for one in turns),
        "prompt tokens read from the cache": f"{sum(one.cached_tokens for one in turns) / prompt:.1%}"
        if prompt
        else "not said by the server",
        "read again, × what is new": f"{compute_read_again(turns):.2f}",
        "tokens read a turn": f"{sum(one.read_tokens for one in turns) / max(1, len(turns)):.0f}",
        "tokens written for summaries": sum(one.summary_tokens for one in turns),
        "facts asked for": len(asked),
        "facts answered": sum(one.right is True for one in asked),
        "facts that stood in the prompt": sum(one.visible is True for one in asked),
        "questions in which recall was called": sum(one.recalled for one in asked),
        "files changed and outputs read as asked": f"{sum(one.right is True for one in done)} of {len(done)}",
        "turns that failed": ", ".join(f"{one.number} ({one.ended})" for one in failed) or "0",
        "seconds": f"{sum(one.seconds for one in turns):.0f}",
    }
    return [f"{name:<44}{value}" for name, value in rows.items()]


def compute_read_again(turns: Sequence[TurnFigures]) -> float:
    """Tokens read and written for summaries, over what is new. 1.0 is the least possible."""
    paid = sum(one.read_tokens + one.summary_tokens for one in turns)
    return paid / max(1, sum(one.new_tokens for one in turns))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.context_chat", description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--window", type=int, default=8192)
    parser.add_argument("--folder", type=Path, help="keeps the session and the log; a chat in it is gone on with")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no turn after this long")
    parser.add_argument("--turn-seconds", type=float, default=900.0, help="a turn that takes longer has failed")
    asked = parser.parse_args()
    url = os.environ.get("OLLM_BASE_URL", "")
    if not url:
        parser.error("OLLM_BASE_URL names no server")
    if asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
        return chat(asked, url, asked.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="ollm-chat-") as folder:
        return chat(asked, url, Path(folder))


def chat(asked: argparse.Namespace, url: str, folder: Path) -> int:
    log, project, begin = folder / "turns.jsonl", folder / "project", time.monotonic()
    done = [TurnFigures(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    if not project.exists():
        write_files(project)
    with CountingRelay(url.rstrip("/").removesuffix("/v1") + "/v1") as relay:
        for turn in list(play_turns(asked.turns))[len(done) :]:
            if time.monotonic() - begin > asked.seconds:
                break
            figures = take_turn(turn, relay, folder, asked)
            done.append(figures)
            with log.open("a", encoding="utf-8") as file:
                file.write(figures.to_line() + "\n")
            print(describe_turn(figures, asked.window), flush=True)
    print("\n".join(["", *describe_chat(done, asked.window)]))
    if len(done) < asked.turns:
        print(f"\nStopped after turn {len(done)}; the same command with --folder {folder} goes on.")
    return 1 if any(one.over or one.sum_over or one.ended != "answered" for one in done) else 0


def take_turn(turn: ChatTurn, relay: CountingRelay, folder: Path, asked: argparse.Namespace) -> TurnFigures:
    environment = {
        **os.environ,
        "OLLM_HOME": str(folder / "home"),
        "OLLM_PROVIDER": "openai",
        "OLLM_BASE_URL": relay.base_url,
        "OLLM_CONTEXT_WINDOW": str(asked.window),
    }
    again = ["--continue"] if turn.number > 1 else []
    command = [sys.executable, "-m", "ollm", "chat", "-p", turn.text, "-o", "stream-json", *GRANTS, *again]
    project, before, begin = folder / "project", len(relay.seen), time.monotonic()
    try:
        ended = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, check=False, timeout=asked.turn_seconds
        )
        printed, code, said = ended.stdout, ended.returncode, ended.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        printed, code, said = error.stdout or b"", 124, f"stopped after {asked.turn_seconds:.0f} s"
    relay.count_new(turn, relay.seen[before:])
    figures = measure_turn(turn, relay.seen[before:], read_events(printed), asked.window)
    figures.seconds = round(time.monotonic() - begin, 1)
    figures.ended = figures.ended or f"exit {code}"
    figures.notices += [line for line in said.splitlines() if line.strip()]
    if turn.is_done is not None:
        figures.right = turn.is_done(project)
    return figures


def read_events(printed: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.decode(errors="replace").splitlines() if line.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
