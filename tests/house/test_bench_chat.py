"""The chat of sixty turns: that its relay reads what a server counted, and that its figures tell good from bad."""

import json
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from bench.context_chat import CountingRelay, Exchanged, describe_chat, measure_turn, play_turns, write_files

ANSWER = (
    b'data: {"choices": [{"delta": {"content": "45871"}}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 5000, "completion_tokens": 3}, '
    b'"timings": {"prompt_n": 100, "cache_n": 4900}}\n\ndata: [DONE]\n\n'
)


class Upstream(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


def test_the_relay_passes_on_and_keeps_what_the_server_counted() -> None:
    server = HTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4000}
    with CountingRelay(f"http://127.0.0.1:{server.server_address[1]}/v1") as relay:
        request = urllib.request.Request(f"{relay.base_url}/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            assert answer.read() == ANSWER
    server.shutdown()
    server.server_close()

    [seen] = relay.seen
    assert (seen.prompt_tokens, seen.cached_tokens, seen.answer_tokens) == (5000, 4900, 3)


def test_the_figures_tell_a_sum_over_the_window_a_wrong_answer_and_a_failure() -> None:
    turn = next(turn for turn in play_turns(60) if turn.kind == "ask")
    told = {
        "messages": [{"role": "user", "content": "The staging database listens on port 45871."}],
        "max_tokens": 4000,
    }
    seen = [Exchanged(told, 200, 5000, 4900), Exchanged(told, 200, 9000, 0), Exchanged(told, 400)]
    events = [{"type": "text-delta", "text": "On 5432."}, {"type": "compressed"}]

    figures = measure_turn(turn, seen, events, 8192)

    assert (figures.over, figures.sum_over, figures.refused, figures.compressions) == (1, 2, 1, 1)
    assert (figures.right, figures.visible, figures.ended) == (False, True, "")
    table = "\n".join(describe_chat([figures], 8192))
    assert "facts answered                              0" in table
    assert "35.0%" in table


def test_sixty_turns_ask_for_every_fact_and_begin_with_nothing_done(tmp_path: Path) -> None:
    write_files(tmp_path)
    turns = list(play_turns(60))

    assert [turn.number for turn in turns] == list(range(1, 61))
    assert len({turn.text for turn in turns if turn.kind == "ask"}) >= 14
    assert {turn.kind for turn in turns} == {"tell", "ask", "read", "edit", "output", "talk"}
    assert not any(turn.is_done(tmp_path) for turn in turns if turn.is_done)
    assert (tmp_path / "build.log").stat().st_size >= 50_000


def test_without_a_server_it_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.context_chat"], capture_output=True, text=True, env={"PATH": ""}, check=False
    )

    assert done.returncode == 2
    assert "OLLM_BASE_URL" in done.stderr
